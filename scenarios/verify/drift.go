package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// drift is what somebody does when all has settled, one deed after the other.
type drift struct {
	// at says to what: an object, and a field of it.
	at    string
	deeds []deed
	// stays is a deed whose value is to be there in the end; nil: all is to be as before.
	stays *deed
	// refused says why the API server does not take it; empty if it does.
	refused string
}

// deed is one thing that somebody does to an object.
type deed struct {
	role role
	// path leads to a field, which gets the value; absent says that it is not there yet. Without a path the object is deleted, or
	// made if there is one to make.
	path   []any
	value  any
	absent bool
	make   *unstructured.Unstructured
	// then says what comes before the next deed.
	then then
}

// then is what comes after a deed.
type then int

const (
	// compare: the operator settles, and all is to be as it was.
	compare then = iota
	// compareOthers: what there was is to be as it was, and there may be more.
	compareOthers
	// settles: the operator settles.
	settles
	// remember: the operator settles, and what is there then is what the drift is to end in.
	remember
	// atOnce: nothing.
	atOnce
)

// deletes returns the drifts that delete an object that the operator made.
func (r *reference) deletes() []drift {
	var out []drift
	for _, c := range r.children {
		out = append(out, drift{at: c.role.String(), deeds: []deed{{role: c.role}}})
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
	for _, s := range r.served {
		of := roleOf(s.again)
		out = append(out, drift{at: of.String(), deeds: []deed{{role: of, then: atOnce}, {role: of, make: s.again}}})
	}
	return out
}

// changesBack returns the drifts that give a field of an object of the scenario another value, and then the one that it had.
func (r *reference) changesBack() []drift {
	var out []drift
	for _, s := range r.served {
		out = append(out, s.andBack(s.changes)...)
	}
	return out
}

// spoils returns the drifts that give a field of an object of the scenario a value that makes no sense, and then the one that it had.
func (r *reference) spoils() []drift {
	var out []drift
	for _, s := range r.served {
		out = append(out, s.andBack(s.spoils)...)
	}
	return out
}

// andBack returns drifts that change a field, and that change it back when the operator has settled.
func (s *served) andBack(changes []drift) []drift {
	var out []drift
	for _, d := range changes {
		back := d.deeds[0]
		back.value = valueAt(s.again.Object, back.path)
		d.deeds = append(slices.Clip(d.deeds), back)
		d.deeds[0].then = settles
		out = append(out, d)
	}
	return out
}

// changesOrMakes returns the drifts that make an object of the scenario with another value in a field, and that then make it as it was
// and change the field: both are to come to the same.
func (r *reference) changesOrMakes() []drift {
	var out []drift
	for _, s := range r.served {
		for _, d := range s.changes {
			change := d.deeds[0]
			other := s.again.DeepCopy()
			setValue(other.Object, change.path, change.value)
			of := roleOf(s.again)
			d.deeds = []deed{
				{role: of, then: atOnce},
				{role: of, make: other, then: remember},
				{role: of, then: atOnce},
				{role: of, make: s.again, then: settles},
				change,
			}
			out = append(out, d)
		}
	}
	return out
}

// beside is a part of the name of an object that is made beside another one.
const beside = "-beside"

// besides returns the drifts that make a second object like one of the scenario that the operator serves, and delete it.
func (r *reference) besides() []drift {
	var out []drift
	for _, s := range r.served {
		second := s.again.DeepCopy()
		second.SetName(second.GetName() + beside)
		of := roleOf(second)
		out = append(out, drift{at: roleOf(s.again).String(), deeds: []deed{{role: of, make: second, then: compareOthers}, {role: of}}})
	}
	return out
}

// theirs is the label that somebody puts on an object of the operator.
const theirs = "example.com/theirs"

// labels returns the drifts that put a label on an object that the operator made. It is to stay.
func (r *reference) labels() []drift {
	var out []drift
	for _, c := range r.children {
		if len(r.state[c.role]) != 1 {
			continue // which of them it stays on is not told apart
		}
		put := deed{role: c.role, path: []any{"metadata", "labels", theirs}, value: "yes", absent: true}
		out = append(out, drift{at: c.role.String(), deeds: []deed{put}, stays: &put})
	}
	return out
}

// with returns a reference for what is to be there after a drift.
func (r *reference) with(d *drift) *reference {
	if d == nil || d.stays == nil {
		return r
	}
	s := maps.Clone(r.state)
	object := maps.Clone(r.state[d.stays.role][0])
	object[pathText(d.stays.path)] = strconv.Quote(fmt.Sprint(d.stays.value))
	s[d.stays.role] = []fields{object}
	return r.instead(s)
}

// instead returns a reference for another state.
func (r *reference) instead(s state) *reference {
	other := *r
	other.state = s
	return &other
}

// child is an object that the operator made, and that was there when all had settled.
type child struct {
	role    role
	changes []drift
}

// served is an object of the scenario that the operator did something about, as somebody would make it.
type served struct {
	again *unstructured.Unstructured
	// changes give a field another value, spoils one that makes no sense.
	changes, spoils []drift
}

// servedIn returns the objects of some kinds in the namespace of a play that have been keys of the operator's queue.
func servedIn(ctx context.Context, c client.Client, o *outcome, kinds []schema.GroupVersionKind) ([]*served, error) {
	keys := map[string]bool{}
	for _, e := range o.journal.Since(0) {
		if e.Kind == trace.KindDequeue && e.Key.Namespace == o.namespace {
			keys[e.Key.Name] = true
		}
	}
	var out []*served
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, list, client.InNamespace(o.namespace)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			object := &list.Items[i]
			made := slices.ContainsFunc(o.children, func(c *child) bool { return c.role == roleOf(object) })
			if !keys[object.GetName()] || object.GetGenerateName() != "" || made || isOfKubernetes(object.GetKind(), object.GetName()) {
				continue
			}
			s := &served{again: bare(object)}
			s.again.SetName(object.GetName())
			for _, path := range leavesOf(s.again.Object, nil) {
				if identifies(path) || path[0] == "metadata" && object.Object["spec"] != nil {
					continue
				}
				for _, of := range []struct {
					value func(*unstructured.Unstructured, []any) (any, bool)
					all   *[]drift
				}{{otherValue, &s.changes}, {senseless, &s.spoils}} {
					value, ok := of.value(object, path)
					if !ok {
						continue
					}
					d, err := changeOf(ctx, c, object, path, value)
					if err != nil {
						return nil, err
					}
					*of.all = append(*of.all, d)
				}
			}
			out = append(out, s)
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
		d, err := changeOf(ctx, c, o, path, changed)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// changeOf returns the drift that gives a field of an object another value.
func changeOf(ctx context.Context, c client.Client, o *unstructured.Unstructured, path []any, value any) (drift, error) {
	change := deed{role: roleOf(o), path: path, value: value}
	d := drift{at: change.role.String() + " " + pathText(path), deeds: []deed{change}}
	err := change.patch(ctx, c, o.DeepCopy(), client.DryRunAll)
	if isRefused(err) {
		d.refused, err = "the API server refuses the change: "+err.Error(), nil
	}
	return d, err
}

// isRefused reports whether the API server does not take an object as it is to be.
func isRefused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
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

// senseless returns a value for a field that makes no sense, and that it does not have; false if none is known.
func senseless(o *unstructured.Unstructured, path []any) (any, bool) {
	switch v := valueAt(o.Object, path).(type) {
	case string:
		return "", v != ""
	case int64:
		return int64(-1), v != -1
	}
	return nil, false
}

// setValue gives a field that is there another value.
func setValue(object map[string]any, path []any, value any) {
	last := len(path) - 1
	switch in := valueAt(object, path[:last]).(type) {
	case map[string]any:
		if name, is := path[last].(string); is {
			in[name] = value
		}
	case []any:
		if i, is := path[last].(int); is && i < len(in) {
			in[i] = value
		}
	}
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
	if isRefused(err) {
		return false, nil // somebody has to set it
	}
	return err == nil && equality.Semantic.DeepEqual(valueAt(fresh.Object, path), valueAt(o.Object, path)), err
}

// patchOf returns the patch that gives a field its value.
func (d *deed) patchOf() client.Patch {
	if d.absent {
		value := d.value
		for _, part := range slices.Backward(d.path) {
			value = map[string]any{fmt.Sprint(part): value}
		}
		text, _ := json.Marshal(value) // strings and numbers
		return client.RawPatch(types.MergePatchType, text)
	}
	var pointer strings.Builder
	for _, part := range d.path {
		pointer.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(part)))
	}
	text, _ := json.Marshal([]any{map[string]any{"op": "replace", "path": pointer.String(), "value": d.value}}) // strings and numbers
	return client.RawPatch(types.JSONPatchType, text)
}

func (d *deed) patch(ctx context.Context, c client.Client, o *unstructured.Unstructured, options ...client.PatchOption) error {
	return c.Patch(ctx, o, d.patchOf(), options...)
}

// goneEvery is how often an object that was deleted is looked for.
const goneEvery = 20 * time.Millisecond

// do carries out a deed, on the first object of the role, and returns when the operator has heard of it. Without an object, or if
// the API server refuses it, it says why.
func (d *deed) do(ctx context.Context, c client.Client, o *outcome) (why string, err error) {
	since := o.journal.Stats().Last
	var object *unstructured.Unstructured
	if d.make != nil {
		object = d.make.DeepCopy()
		object.SetNamespace(o.namespace)
		err = c.Create(ctx, object)
	} else {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.FromAPIVersionAndKind(d.role.apiVersion, d.role.kind+"List"))
		if err := c.List(ctx, list, client.InNamespace(o.namespace)); err != nil {
			return "", err
		}
		i := slices.IndexFunc(list.Items, func(item unstructured.Unstructured) bool { return roleOf(&item) == d.role })
		if i < 0 {
			return "the operator did not make the object this time", nil
		}
		object = &list.Items[i]
		if len(d.path) > 0 {
			err = d.patch(ctx, c, object)
		} else {
			o.gone = append(o.gone, object.GetUID())
			err = remove(ctx, c, object)
		}
	}
	switch {
	case isRefused(err):
		return "the API server refused it", nil
	case err == nil:
		awaitHeard(ctx, o.journal, object, since)
	}
	return "", err
}

// remove deletes an object, and returns when it is gone.
func remove(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	if err := c.Delete(ctx, object, client.Preconditions{UID: new(object.GetUID())}); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, goneEvery, settlePatience, true, func(ctx context.Context) (bool, error) {
		now := object.DeepCopy()
		err := c.Get(ctx, client.ObjectKeyFromObject(object), now)
		return apierrors.IsNotFound(err) || err == nil && now.GetUID() != object.GetUID(), client.IgnoreNotFound(err)
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = fmt.Errorf("%s %s was deleted, and is still there after %v", object.GetKind(), object.GetName(), settlePatience)
	}
	return err
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
