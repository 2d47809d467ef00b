package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// drift is what somebody does to an object when all has settled.
type drift struct {
	role role
	// path leads to a field, which gets the value; empty: the object is deleted.
	path  []any
	value any
	// again is made under the name of the object that is deleted; nil: nothing.
	again *unstructured.Unstructured
	// refused says why the API server does not take it; empty if it does.
	refused string
}

func (d *drift) String() string { return strings.TrimSpace(d.role.String() + " " + pathText(d.path)) }

// deletes returns the drift that deletes an object that the operator made.
func (r *reference) deletes() []drift {
	var out []drift
	for _, c := range r.children {
		out = append(out, drift{role: c.role})
	}
	return out
}

// changes returns the drifts that change a field that the operator has set.
func (r *reference) changes() []drift {
	var out []drift
	for _, c := range r.children {
		out = append(out, c.changes...)
	}
	return out
}

// remakes returns the drifts that delete an object of the scenario that the operator serves, and make it again.
func (r *reference) remakes() []drift {
	var out []drift
	for _, o := range r.served {
		out = append(out, drift{role: roleOf(o), again: o})
	}
	return out
}

// child is an object that the operator made, and that was there when all had settled.
type child struct {
	role    role
	changes []drift
}

// servedIn returns the objects of some kinds in the namespace of a play that have been keys of the operator's queue, as somebody
// would make them.
func servedIn(ctx context.Context, c client.Client, o *outcome, kinds []schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	keys := map[string]bool{}
	for _, e := range o.journal.Since(0) {
		if e.Kind == trace.KindDequeue && e.Key.Namespace == o.namespace {
			keys[e.Key.Name] = true
		}
	}
	var out []*unstructured.Unstructured
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, list, client.InNamespace(o.namespace)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			object := &list.Items[i]
			made := slices.ContainsFunc(o.children, func(c *child) bool { return c.role == roleOf(object) })
			if keys[object.GetName()] && object.GetGenerateName() == "" && !made {
				again := bare(object)
				again.SetName(object.GetName())
				out = append(out, again)
			}
		}
	}
	return out, nil
}

// bare returns an object without its names, its status, and what the API server adds to metadata.
func bare(o *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range o.DeepCopy().Object {
		if key != "metadata" && key != "status" {
			out.Object[key] = value
		}
	}
	out.SetLabels(o.GetLabels())
	out.SetAnnotations(o.GetAnnotations())
	return out
}

// childrenOf returns the objects that the operator made in a play, in the order in which it made them, without those that are gone.
func childrenOf(ctx context.Context, c client.Client, o *outcome) ([]*child, error) {
	var out []*child
	known := map[role]bool{}
	for _, e := range o.journal.Since(0) {
		if e.Seq > o.settled {
			break
		}
		made := e.Verb == trace.VerbCreate || e.Verb == trace.VerbApply && len(e.Before) == 0
		if e.Kind != trace.KindCall || e.Operator == "" || !made || e.Error != "" || e.Via == trace.ViaRecorder || e.Object.Subresource != "" ||
			e.Object.Namespace != o.namespace || e.Object.Kind == "Event" || e.Object.Kind == "Lease" {
			continue
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(schema.FromAPIVersionAndKind(e.Object.APIVersion, e.Object.Kind))
		err := c.Get(ctx, client.ObjectKey{Namespace: e.Object.Namespace, Name: e.Object.Name}, object)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, err
		case !known[roleOf(object)]:
			known[roleOf(object)] = true
			changes, err := changesOf(ctx, c, object)
			if err != nil {
				return nil, err
			}
			out = append(out, &child{roleOf(object), changes})
		}
	}
	return out, nil
}

// changesOf returns a change of each field of an object that is not the API server's, and that has another value than it would
// have if nobody had set it.
func changesOf(ctx context.Context, c client.Client, o *unstructured.Unstructured) ([]drift, error) {
	var out []drift
	asked := map[string]bool{} // by path: whether it has its value by default
	for _, path := range leavesOf(o.Object, nil) {
		changed, ok := otherValue(o, path)
		if !ok || identifies(path) {
			continue
		}
		byDefault := false
		for end := 2; end <= len(path) && !byDefault; end++ { // what it is in may be there by default, too
			known, is := asked[pathText(path[:end])]
			if !is {
				var err error
				if known, err = isDefault(ctx, c, o, path[:end]); err != nil {
					return nil, err
				}
				asked[pathText(path[:end])] = known
			}
			byDefault = known
		}
		if byDefault {
			continue
		}
		d := drift{role: roleOf(o), path: path, value: changed}
		err := d.patch(ctx, c, o.DeepCopy(), client.DryRunAll)
		switch {
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
			d.refused = "the API server refuses the change: " + err.Error()
		case err != nil:
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// leavesOf returns the paths of the values in a part of an object at a path, without those of the API server.
func leavesOf(value any, path []any) [][]any {
	var out [][]any
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below := append(slices.Clip(path), key)
			switch {
			case len(path) == 0 && (key == "apiVersion" || key == "kind" || key == "status"):
			case len(path) == 1 && path[0] == "metadata" && key != "labels" && key != "annotations":
			default:
				out = append(out, leavesOf(v[key], below)...)
			}
		}
	case []any:
		for i, item := range v {
			out = append(out, leavesOf(item, append(slices.Clip(path), i))...)
		}
	default:
		out = append(out, path)
	}
	return out
}

// keysOfItems are the fields that tell an item of a list from the others.
var keysOfItems = []string{"containerPort", "devicePath", "ip", "key", "mountPath", "name", "port", "protocol", "topologyKey", "type"}

// identifies reports whether a field identifies an item of a list: with another value it is another item.
func identifies(path []any) bool {
	last, _ := path[len(path)-1].(string)
	_, item := path[max(0, len(path)-2)].(int)
	return item && slices.Contains(keysOfItems, last)
}

// otherValue returns another value for a field; false if none is known.
func otherValue(o *unstructured.Unstructured, path []any) (any, bool) {
	switch v := valueAt(o.Object, path).(type) {
	case string:
		if o.GetKind() == "Secret" && path[0] == "data" {
			return "ZHJpZnRlZA==", true // "drifted"
		}
		return v + "x", true
	case int64:
		return v + 1, true
	case bool:
		return !v, true
	}
	return nil, false
}

func valueAt(value any, path []any) any {
	for _, part := range path {
		switch v := value.(type) {
		case map[string]any:
			name, _ := part.(string)
			value = v[name]
		case []any:
			i, _ := part.(int)
			if i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// isDefault reports whether the API server gives a field the value that it has: if an object without the field would get it.
func isDefault(ctx context.Context, c client.Client, o *unstructured.Unstructured, path []any) (bool, error) {
	without := o.DeepCopy()
	last, is := path[len(path)-1].(string)
	parent, has := valueAt(without.Object, path[:len(path)-1]).(map[string]any)
	if !is || !has {
		return false, nil // an item of a list
	}
	delete(parent, last)
	fresh := bare(without)
	fresh.SetNamespace(o.GetNamespace())
	fresh.SetGenerateName("verify-")
	err := c.Create(ctx, fresh, client.DryRunAll)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		return false, nil // somebody has to set it
	}
	return err == nil && equality.Semantic.DeepEqual(valueAt(fresh.Object, path), valueAt(o.Object, path)), err
}

// operations returns the drift as a JSON patch.
func (d *drift) operations() []byte {
	var pointer strings.Builder
	for _, part := range d.path {
		pointer.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(part)))
	}
	text, _ := json.Marshal([]any{map[string]any{"op": "replace", "path": pointer.String(), "value": d.value}}) // strings and numbers
	return text
}

func (d *drift) patch(ctx context.Context, c client.Client, o *unstructured.Unstructured, options ...client.PatchOption) error {
	return c.Patch(ctx, o, client.RawPatch(types.JSONPatchType, d.operations()), options...)
}

// goneEvery is how often an object that was deleted is looked for.
const goneEvery = 20 * time.Millisecond

// do changes or deletes the first object of the role. Without an object, or if the API server refuses it, it says why.
func (d *drift) do(ctx context.Context, c client.Client, o *outcome) (why string, err error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.FromAPIVersionAndKind(d.role.apiVersion, d.role.kind+"List"))
	if err := c.List(ctx, list, client.InNamespace(o.namespace)); err != nil {
		return "", err
	}
	i := slices.IndexFunc(list.Items, func(item unstructured.Unstructured) bool { return roleOf(&item) == d.role })
	if i < 0 {
		return "the operator did not make the object this time", nil
	}
	object := &list.Items[i]
	since := o.journal.Stats().Last
	if len(d.path) > 0 {
		if err = d.patch(ctx, c, object); apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
			return "the API server refused it", nil
		}
	} else if err = c.Delete(ctx, object, client.Preconditions{UID: new(object.GetUID())}); err == nil {
		err = wait.PollUntilContextTimeout(ctx, goneEvery, settlePatience, true, func(ctx context.Context) (bool, error) {
			now := object.DeepCopy()
			err := c.Get(ctx, client.ObjectKeyFromObject(object), now)
			return apierrors.IsNotFound(err) || err == nil && now.GetUID() != object.GetUID(), client.IgnoreNotFound(err)
		})
	}
	if err == nil && d.again != nil {
		fresh := d.again.DeepCopy()
		fresh.SetNamespace(o.namespace)
		if err = c.Create(ctx, fresh); err == nil {
			err = awaitCollected(ctx, c, o, object.GetUID())
		}
		object = fresh
	}
	if err != nil {
		return "", err
	}
	awaitHeard(ctx, o.journal, object, since)
	return "", nil
}

// awaitCollected returns when Kubernetes has deleted what belonged to an object that is gone.
func awaitCollected(ctx context.Context, c client.Reader, o *outcome, owner types.UID) error {
	err := wait.PollUntilContextTimeout(ctx, goneEvery, settlePatience, true, func(ctx context.Context) (bool, error) {
		all, err := objects(ctx, c, o.journal, o.namespace)
		return !slices.ContainsFunc(all, func(object unstructured.Unstructured) bool {
			return slices.ContainsFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner })
		}), err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil // it is seen in the end
	}
	return err
}

// awaitHeard returns when the operator has heard of a change of an object after an event, or has not for a while: it may not
// watch the kind.
func awaitHeard(ctx context.Context, journal *trace.Journal, o *unstructured.Unstructured, after int64) {
	ctx, cancel := context.WithTimeout(ctx, seenPatience)
	defer cancel()
	await(ctx, journal, after, func(e *trace.Event) bool {
		return e.Kind == trace.KindWatch && e.Object.UID == string(o.GetUID())
	})
}

// await returns true when a journal has a certain event after another one, or false when the context ends.
func await(ctx context.Context, journal *trace.Journal, after int64, is func(e *trace.Event) bool) bool {
	grown, cancel := journal.Subscribe()
	defer cancel()
	for {
		for _, e := range journal.Since(after) {
			if after = e.Seq; is(e) {
				return true
			}
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return false
		}
	}
}

// restart starts the operator again, and returns when the new one has started, or when the context ends.
func (h *playHooks) restart(ctx context.Context) error {
	since := h.outcome.journal.Stats().Last
	if err := h.Lab.Faults().Arm(planFault, h.outcome.plan.Fault); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, settlePatience, fmt.Errorf("the operator has not started again after %v", settlePatience))
	defer cancel()
	if !await(ctx, h.outcome.journal, since, func(e *trace.Event) bool { return e.Kind == trace.KindOperator && e.Verb == trace.VerbStart }) {
		return context.Cause(ctx)
	}
	return nil
}

// disturb lets happen what is to happen when all has settled, and returns when all has settled again. An operator that is only
// started again has nothing to write.
func (h *playHooks) disturb(ctx context.Context, test *format.Test) (found []report.Finding, err error) {
	o := h.outcome
	since := o.journal.Stats().Last
	if o.plan.drift == nil {
		err = h.restart(ctx)
	} else if o.why, err = o.plan.drift.do(ctx, h.player.options.Client, o); err == nil {
		o.reached = o.why == ""
	}
	if err == nil {
		err = h.settle(ctx, test, "")
	}
	if err == nil && o.plan.drift != nil {
		err = h.awaitSame(ctx, test)
	}
	if err != nil || o.plan.drift != nil {
		return nil, err
	}
	for _, e := range o.journal.Since(since) {
		if isWrite(e) && e.Object.Kind != "Lease" && e.Object.Kind != "Event" {
			found = append(found, report.Finding{Oracle: "rest", Message: "it wrote although nothing had changed: " + e.Verb + " " + e.Object.String()})
		}
	}
	return found, nil
}

// sameEvery is how often the cluster is compared with what it was.
const sameEvery = 100 * time.Millisecond

// awaitSame returns when all is as it was in the plays without a fault, or not after the time that an assertion of the scenario
// may take: nobody asserts what comes after a drift, and a key with a long timer counts as settled.
func (h *playHooks) awaitSame(ctx context.Context, test *format.Test) error {
	err := wait.PollUntilContextTimeout(ctx, sameEvery, h.player.options.Patience, true, func(ctx context.Context) (bool, error) {
		state, err := look(ctx, h.Reader, h.outcome.journal, h.outcome.namespace)
		return err == nil && !slices.ContainsFunc(h.player.reference.differences(state), func(d difference) bool { return !d.isHistory() }), err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = nil // it is seen in the end
	}
	return errors.Join(err, h.settle(ctx, test, ""))
}

// restPlans returns the plans of a fault that happens when all has settled.
func restPlans(r *reference, k kindOfFault) []*Plan {
	if k.drifts == nil {
		return []*Plan{{Name: k.name, At: "rest", Fault: k.fault, atRest: true}}
	}
	var plans []*Plan
	for _, d := range k.drifts(r) {
		plans = append(plans, &Plan{Name: k.name, At: d.String(), atRest: true, drift: &d, Needless: d.refused})
	}
	return plans
}

// pathText returns a path as an expression of Chainsaw.
func pathText(path []any) string {
	var text strings.Builder
	for _, part := range path {
		if i, is := part.(int); is {
			text.WriteString("[" + strconv.Itoa(i) + "]")
		} else {
			text.WriteString("." + quoted(fmt.Sprint(part)))
		}
	}
	return strings.TrimPrefix(text.String(), ".")
}
