package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/scenarios/expression"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

// verb is a way to write an object.
type verb string

const (
	apply  verb = "apply"
	create verb = "create"
	update verb = "update"
	patch  verb = "patch"
)

// writing is a writing operation. The four kinds differ in their verb; only a patch may have a subresource.
type writing struct {
	verb verb
	format.Apply
	subresource string
}

func (s *stepRun) writes(ctx context.Context, in inherited, w writing) ([]action, error) {
	var inline any
	if w.Resource != nil {
		inline = w.Resource
	}
	all, err := s.resources(ctx, in, inline, w.File, true)
	if err != nil {
		return nil, err
	}
	actions := make([]action, len(all))
	for i, r := range all {
		actions[i] = action{name: title(r.object), position: r.position, do: func(ctx context.Context, in inherited, d *doing) error {
			return d.write(ctx, in, w, r)
		}}
	}
	return actions, nil
}

// writer writes one object.
type writer struct {
	writing
	*doing
	inherited inherited
	cluster   *cluster
	object    *unstructured.Unstructured
}

func (d *doing) write(ctx context.Context, in inherited, w writing, r resource) error {
	in, err := in.with(ctx, settings{
		cluster: w.Cluster, clusters: w.Clusters, dryRun: w.DryRun, templating: w.Template,
		timeouts: &format.Timeouts{Apply: w.Timeout}, bindings: w.Bindings,
	})
	if err != nil {
		return err
	}
	object, err := decoded(r.object)
	if err != nil {
		return err
	}
	if err := withGrace(object, int64(in.grace.Seconds())); err != nil {
		return err
	}
	if in.templating {
		if object, err = in.scope.Object(ctx, object); err != nil {
			return err
		}
		if object, err = decoded(object); err != nil {
			return err
		}
	}
	c, u, err := d.resolve(ctx, in, object)
	if err != nil {
		return err
	}
	d.report.Name = nameOf(u)
	ctx, cancel := context.WithTimeout(ctx, in.timeouts.apply)
	defer cancel()
	return (&writer{w, d, in, c, u}).run(ctx)
}

// run writes until it succeeds, fails permanently, or the time is up. An apply fails permanently only by a mistake in
// the test itself: other obstacles may disappear.
func (w *writer) run(ctx context.Context) error {
	var last error
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		attempt := w.once(ctx)
		if attempt != nil && ctx.Err() != nil && last != nil {
			return false, last // more informative than the timeout
		}
		last = attempt
		switch {
		case attempt == nil:
			return true, nil
		case errors.As(attempt, new(*expression.Invalid)), apierrors.IsRequestEntityTooLargeError(attempt):
			return false, attempt
		case w.verb == apply, passing(attempt):
			return false, nil
		}
		return false, attempt
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// passing reports whether an error may disappear when the request is repeated.
func passing(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err)
}

// once tries once.
func (w *writer) once(ctx context.Context) error {
	actual, err := w.cluster.get(ctx, w.object)
	exists := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	switch w.verb {
	case apply:
		if exists {
			return w.change(ctx, actual)
		}
		return w.create(ctx)
	case create:
		if exists {
			return fmt.Errorf("the resource already exists in the cluster")
		}
		return w.create(ctx)
	case update:
		if !exists {
			return fmt.Errorf("the resource does not exist in the cluster")
		}
		return w.replace(ctx, actual)
	}
	if !exists {
		return err
	}
	return w.change(ctx, actual)
}

func (w *writer) create(ctx context.Context) error {
	out := w.object.DeepCopy()
	var options []client.CreateOption
	if w.inherited.dryRun {
		options = append(options, client.DryRunAll)
	}
	err := w.cluster.do(ctx, func(c client.Client) error { return c.Create(ctx, out, options...) })
	if err == nil && !w.inherited.dryRun && !w.inherited.skipDelete {
		w.made.add(w.cluster, out)
	}
	return w.judge(ctx, out, err)
}

func (w *writer) replace(ctx context.Context, actual *unstructured.Unstructured) error {
	out := w.object.DeepCopy()
	out.SetResourceVersion(actual.GetResourceVersion())
	var options []client.UpdateOption
	if w.inherited.dryRun {
		options = append(options, client.DryRunAll)
	}
	err := w.cluster.do(ctx, func(c client.Client) error { return c.Update(ctx, out, options...) })
	return w.judge(ctx, out, err)
}

// change patches the existing object with the object of the test, unless somebody else changes it in between. As in
// Chainsaw, the intended object is then checked, not the answer.
func (w *writer) change(ctx context.Context, actual *unstructured.Unstructured) error {
	out := w.object.DeepCopy()
	out.SetResourceVersion(actual.GetResourceVersion())
	body, err := json.Marshal(out.Object)
	if err != nil {
		return err
	}
	merge := client.RawPatch(types.MergePatchType, body)
	err = w.cluster.do(ctx, func(c client.Client) error {
		if w.subresource != "" {
			var options []client.SubResourcePatchOption
			if w.inherited.dryRun {
				options = append(options, client.DryRunAll)
			}
			return c.SubResource(w.subresource).Patch(ctx, actual.DeepCopy(), merge, options...)
		}
		var options []client.PatchOption
		if w.inherited.dryRun {
			options = append(options, client.DryRunAll)
		}
		return c.Patch(ctx, actual.DeepCopy(), merge, options...)
	})
	return w.judge(ctx, w.object, err)
}

// judge checks the result of a write against the expectations, and then evaluates the outputs.
func (w *writer) judge(ctx context.Context, out *unstructured.Unstructured, err error) error {
	scope := w.inherited.scope.With("error", messageOf(err))
	matched, unexpected := scope.Expect(ctx, out.Object, w.Expect)
	switch {
	case !matched && err != nil:
		return err
	case unexpected != nil && passing(err):
		return err // a retry may give the expected result
	case unexpected != nil && err != nil:
		f := failureOf(unexpected)
		f.Message += "; the API server said: " + err.Error()
		return &problem{*f, unexpected}
	case unexpected != nil:
		return unexpected
	}
	outputs, err := scope.Outputs(ctx, out.Object, w.Outputs)
	w.doing.outputs = outputs
	return err
}

// messageOf returns the value of $error.
func messageOf(err error) any {
	if err == nil {
		return nil
	}
	return err.Error()
}
