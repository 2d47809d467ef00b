package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/operator-lab/operator-lab/scenarios/expression"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// asserts returns an action for each resource that is asserted, or, if absent is true, that must not exist.
func (s *stepRun) asserts(ctx context.Context, in inherited, op *format.Assert, absent bool) ([]action, error) {
	all, err := s.resources(ctx, in, op.Check, op.File, false)
	if err != nil {
		return nil, err
	}
	actions := make([]action, len(all))
	for i, r := range all {
		name := title(r.object)
		if name == "" {
			name = shorten(strings.Join(slices.Sorted(maps.Keys(r.object)), ", "))
		}
		actions[i] = action{name: name, position: r.position, do: func(ctx context.Context, in inherited, d *doing) error {
			return d.assert(ctx, in, op, r, absent)
		}}
	}
	return actions, nil
}

// asserted is an assertion, or with absent its negation.
type asserted struct {
	*suite
	test    *format.Test
	giveUp  bool // fail as soon as nothing can change any more
	scope   expression.Scope
	tree    map[string]any
	absent  bool
	cluster *cluster                   // nil if it concerns no object
	object  *unstructured.Unstructured // identifies the objects meant
}

// assert waits until an assertion holds.
func (d *doing) assert(ctx context.Context, in inherited, op *format.Assert, r resource, absent bool) error {
	timeout := &format.Timeouts{Assert: op.Timeout}
	if absent {
		timeout = &format.Timeouts{Error: op.Timeout}
	}
	in, err := in.with(ctx, settings{
		cluster: op.Cluster, clusters: op.Clusters, templating: op.Template, timeouts: timeout, bindings: op.Bindings,
	})
	if err != nil {
		return err
	}
	tree := r.object
	if in.templating {
		if tree, err = in.scope.Reference(ctx, tree); err != nil {
			return err
		}
	}
	a := &asserted{suite: d.suite, test: d.test, giveUp: d.GiveUp || d.says.GiveUp, scope: in.scope, tree: tree, absent: absent}
	if u := (&unstructured.Unstructured{Object: tree}); u.GetKind() != "" {
		c, meant, err := d.resolve(ctx, in, tree)
		if err != nil {
			return err
		}
		d.report.Name = nameOf(meant)
		if u.GetAPIVersion() != "" {
			// The object's namespace is then asserted too, as in Chainsaw.
			a.cluster, a.object, a.tree = c, meant, meant.Object
		}
	}
	limit := in.timeouts.assert
	if absent {
		limit = in.timeouts.error
	}
	if err := a.await(ctx, limit); err != nil {
		return err
	}
	d.holds = a
	return nil
}

// await waits until the assertion holds, or the time is up.
func (a *asserted) await(ctx context.Context, limit time.Duration) error {
	if a.Once {
		return a.lookOnce(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	var last *seen
	var problem error
	err := poll(limited, func(ctx context.Context) (bool, error) {
		now, err := a.look(ctx)
		rests := err == nil && !now.ok && a.giveUp && a.Hooks.AtRest(ctx, a.test, limit-time.Since(began))
		if rests { // what came to rest last may have done so after the look
			now, err = a.look(ctx)
		}
		switch {
		case err == nil:
			last, problem = now, nil
			if rests && !now.ok {
				return false, errAtRest
			}
			return now.ok, nil
		case forGood(err):
			return false, err
		case limited.Err() == nil: // else it only says that the time is up
			problem = err // the API server may become reachable again
		}
		return false, nil
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errAtRest):
		passed := time.Since(began).Round(10 * time.Millisecond)
		return a.problem(ctx, last, fmt.Sprintf("after %s, when nothing could change any more", passed))
	case forGood(err):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case problem != nil:
		return fmt.Errorf("it could not be told within %s: %w", limit, problem)
	case last == nil:
		return fmt.Errorf("it could not be told within %s: %w", limit, err)
	}
	return a.problem(ctx, last, fmt.Sprintf("after %s", limit))
}

var errAtRest = errors.New("nothing can change any more")

// lookOnce checks without waiting.
func (a *asserted) lookOnce(ctx context.Context) error {
	now, err := a.look(ctx)
	if err != nil || now.ok {
		return err
	}
	return a.problem(ctx, now, "now")
}

// forGood reports whether an error is permanent, so that looking again is useless.
func forGood(err error) bool {
	return errors.As(err, new(*expression.Invalid)) || errors.Is(err, expression.ErrEndless) || apierrors.IsBadRequest(err) ||
		apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// seen is the result of one look.
type seen struct {
	ok bool
	// nothing reports that no object was found.
	nothing bool
	// closest is the object with the fewest differences, or the one that must not exist; nil if the assertion concerns
	// no object.
	closest *unstructured.Unstructured
	// differences are those of closest; unclear is the error that prevented the comparison, if any.
	differences field.ErrorList
	unclear     error
	weight      int
	others      int
}

// unclear weighs more than any number of differences: an object that could not be compared is never the closest.
const unclear = 1 << 20

// look checks once.
func (a *asserted) look(ctx context.Context) (*seen, error) {
	if a.object == nil {
		now, err := a.hold(ctx, nil)
		if err != nil {
			return nil, err
		}
		now.ok = now.unclear == nil && (now.weight == 0) != a.absent
		return now, nil
	}
	found, err := read(ctx, a.cluster, a.object)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if len(found) == 0 {
		return &seen{ok: a.absent, nothing: true}, nil
	}
	var closest, fog *seen
	for _, o := range found {
		now, err := a.hold(ctx, o)
		if err != nil {
			return nil, err
		}
		if now.unclear != nil {
			fog = now
		}
		if closest == nil || now.weight < closest.weight {
			closest = now
		}
		if now.weight == 0 {
			break
		}
	}
	if a.absent && closest.weight > 0 && fog != nil {
		closest = fog // it is not known whether an object exists that must not
	}
	closest.others = len(found) - 1
	closest.ok = closest.unclear == nil && (closest.weight == 0) != a.absent
	return closest, nil
}

// hold compares one object with the assertion. An expression that cannot be evaluated makes the result unclear, because
// a field it needs may not exist yet.
func (a *asserted) hold(ctx context.Context, o *unstructured.Unstructured) (*seen, error) {
	var value any
	if o != nil {
		value = o.Object
	}
	list, err := a.scope.Check(ctx, a.tree, value)
	switch {
	case err == nil:
		return &seen{closest: o, differences: list, weight: len(list)}, nil
	case forGood(err) || ctx.Err() != nil:
		return nil, err
	}
	return &seen{closest: o, weight: unclear, unclear: err}, nil
}

// problem describes what is wrong with the last look; when is a part of a sentence, such as "after 30s".
func (a *asserted) problem(ctx context.Context, last *seen, when string) *problem {
	f := report.Failure{Differences: differences(last.differences), Others: last.others}
	what := "what is asserted"
	if a.object != nil {
		what = nameOf(a.object)
		if all := a.object.GetLabels(); a.object.GetName() == "" && len(all) > 0 {
			what += " with the labels " + labels.FormatLabels(all)
		}
	}
	if last.closest != nil {
		f.Object = nameOf(last.closest)
	}
	switch {
	case last.nothing:
		f.Message = fmt.Sprintf("%s was not found %s", what, when)
		f.Hint = a.neighbours(ctx)
	case a.absent && last.weight == 0 && last.closest != nil:
		f.Message = fmt.Sprintf("%s is %s as it must not be", f.Object, when)
	case a.absent && last.weight == 0:
		f.Message = fmt.Sprintf("what must not be is so %s", when)
	case last.unclear != nil:
		f.Message = fmt.Sprintf("%s cannot be told to be so %s: %v", what, when, last.unclear)
	case a.object != nil:
		f.Message = fmt.Sprintf("%s is not as asserted %s", what, when)
	default:
		f.Message = fmt.Sprintf("%s is not so %s", what, when)
	}
	if last.closest != nil && !a.absent {
		f.Diff = a.diff(ctx, last.closest)
	}
	if last.closest != nil {
		f.Loop = a.Hooks.Explain(ctx, last.closest)
	} else if a.object != nil && last.nothing {
		f.Loop = a.Hooks.Explain(ctx, a.object)
	}
	return &problem{failure: f, err: context.DeadlineExceeded}
}

// enough is the maximum number of neighbours that are named.
const enough = 5

// neighbours names other objects of the kind when the asserted object does not exist.
func (a *asserted) neighbours(ctx context.Context) string {
	if a.absent || ctx.Err() != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, newKindPatience)
	defer cancel()
	like := reference(a.object)
	like.SetName("")
	found, err := read(ctx, a.cluster, like)
	if err != nil {
		return ""
	}
	where := ""
	if like.GetNamespace() != "" {
		where = " in the namespace " + like.GetNamespace()
	}
	if len(found) == 0 {
		return fmt.Sprintf("there is no %s%s at all", like.GetKind(), where)
	}
	names := make([]string, 0, enough)
	for _, o := range found[:min(len(found), enough)] {
		names = append(names, o.GetName())
	}
	if more := len(found) - enough; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("of the kind %s there is%s: %s", like.GetKind(), where, strings.Join(names, ", "))
}
