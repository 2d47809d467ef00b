package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

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

// role returns that of the object.
func (s *served) role() role {
	return role{s.again.GetAPIVersion(), s.again.GetKind(), s.again.GetName()}
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
			made := slices.ContainsFunc(o.children, func(c *child) bool { return c.role == o.names.roleOf(object) })
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
					d, err := changeOf(ctx, c, object, deed{role: o.names.roleOf(object), path: path, value: value})
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
		case object.GetDeletionTimestamp() != nil:
		case !known[o.names.roleOf(object)]:
			of := o.names.roleOf(object)
			known[of] = true
			changes, err := changesOf(ctx, c, object, of)
			if apierrors.IsNotFound(err) {
				continue // it is gone now
			}
			if err != nil {
				return nil, err
			}
			out = append(out, &child{of, changes})
		}
	}
	return out, nil
}

// changesOf returns a change of each field of an object that is not the API server's, and that has another value than it would
// have if nobody had set it.
func changesOf(ctx context.Context, c client.Client, o *unstructured.Unstructured, of role) ([]drift, error) {
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
		d, err := changeOf(ctx, c, o, deed{role: of, path: path, value: changed})
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// changeOf returns the drift that gives a field of an object another value.
func changeOf(ctx context.Context, c client.Client, o *unstructured.Unstructured, change deed) (drift, error) {
	d := drift{at: change.at(), deeds: []deed{change}}
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
