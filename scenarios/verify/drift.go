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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// at says to which field of which object something is done.
func (d *deed) at() string { return d.role.String() + " " + pathText(d.path) }

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

// hides reports whether the operator hears of its drift only when all is done, by a list.
func (p *Plan) hides() bool { return p.drift != nil && p.Fault.Stale != nil }

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
		of := s.role()
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
			of := s.role()
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
		of := role{second.GetAPIVersion(), second.GetKind(), second.GetName()}
		out = append(out, drift{at: s.role().String(), deeds: []deed{{role: of, make: second, then: compareOthers}, {role: of}}})
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

// do carries out a deed, on the first object of the role, and returns when the operator has heard of it, unless it is not to. Without
// an object, or if the API server refuses it, it says why.
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
		i := slices.IndexFunc(list.Items, func(item unstructured.Unstructured) bool { return o.names.roleOf(&item) == d.role })
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
	case err == nil && !o.plan.hides():
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
