package metacontroller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
)

// kind is a kind of objects that a controller works with.
type kind struct {
	schema.GroupVersionKind
	resource   string
	namespaced bool
	// status reports whether it has the subresource status.
	status bool
}

// object returns an empty object of the kind.
func (k kind) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.GroupVersionKind)
	return u
}

// list returns an empty list of the kind.
func (k kind) list() *unstructured.UnstructuredList {
	u := &unstructured.UnstructuredList{}
	u.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
	return u
}

// objects are objects by kind, and by namespace/name; of cluster-scoped ones by name. A kind may have none.
type objects map[schema.GroupVersionKind]map[string]*unstructured.Unstructured

// add adds objects of a kind.
func (o objects) add(gvk schema.GroupVersionKind, all ...*unstructured.Unstructured) {
	if o[gvk] == nil {
		o[gvk] = map[string]*unstructured.Unstructured{}
	}
	for _, u := range all {
		o[gvk][fullName(u)] = u
	}
}

// fullName returns namespace/name, or the name alone without a namespace.
func fullName(u *unstructured.Unstructured) string {
	if ns := u.GetNamespace(); ns != "" {
		return ns + "/" + u.GetName()
	}
	return u.GetName()
}

// find returns the object of a kind, of any version, with a full name; nil if there is none.
func (o objects) find(gk schema.GroupKind, name string) *unstructured.Unstructured {
	for gvk, named := range o {
		if gvk.GroupKind() == gk && named[name] != nil {
			return named[name]
		}
	}
	return nil
}

// list returns all objects, sorted by kind and name.
func (o objects) list() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, gvk := range slices.SortedFunc(maps.Keys(o), func(a, b schema.GroupVersionKind) int { return cmp.Compare(keyOf(a), keyOf(b)) }) {
		for _, name := range slices.Sorted(maps.Keys(o[gvk])) {
			out = append(out, o[gvk][name])
		}
	}
	return out
}

// keyOf returns the key of a kind in requests, as in Pod.v1 or Deployment.apps/v1.
func keyOf(gvk schema.GroupVersionKind) string { return gvk.Kind + "." + gvk.GroupVersion().String() }

// written is the form of objects in a request: kind.version, then a name, then the object.
type written map[string]map[string]*unstructured.Unstructured

// write returns the objects as a hook of a version takes them about a parent. A v1 hook of a namespaced parent is given
// what is in the namespace of the parent, and what is in none.
func (o objects) write(version v1alpha1.HookVersion, parent *unstructured.Unstructured) written {
	out := written{}
	for gvk, named := range o {
		key := keyOf(gvk)
		out[key] = map[string]*unstructured.Unstructured{}
		for name, u := range named {
			if version == v1alpha1.V1 && parent.GetNamespace() != "" {
				if u.GetNamespace() != "" && u.GetNamespace() != parent.GetNamespace() {
					continue
				}
				name = u.GetName()
			}
			out[key][name] = u
		}
	}
	return out
}

// kinds are the kinds that a hook may answer, with how they are updated.
type kinds []childKind

type childKind struct {
	kind
	strategy v1alpha1.UpdateStrategy
}

func (k kinds) find(gvk schema.GroupVersionKind) *childKind {
	i := slices.IndexFunc(k, func(c childKind) bool { return c.GroupVersionKind == gvk })
	if i < 0 {
		return nil
	}
	return &k[i]
}

// wanted checks the objects that a hook answers for a parent, gives those without a namespace that of the parent, and
// returns them by kind and name. What the parent could not own, or what is not declared, is an error and nothing of the
// answer is done: a part of it might be worse than none.
func (k kinds) wanted(answered []*unstructured.Unstructured, parent *unstructured.Unstructured) (objects, error) {
	out := objects{}
	for i, u := range answered {
		if u == nil || u.GetKind() == "" || u.GetAPIVersion() == "" {
			return nil, fmt.Errorf("object %d of its answer has no apiVersion and kind", i+1)
		}
		child := k.find(u.GroupVersionKind())
		if child == nil {
			return nil, fmt.Errorf("object %d of its answer is %s, which the controller does not declare", i+1, keyOf(u.GroupVersionKind()))
		}
		if u.GetName() == "" {
			return nil, fmt.Errorf("object %d of its answer, of kind %s, has no name", i+1, u.GetKind())
		}
		switch ns := u.GetNamespace(); {
		case !child.namespaced && ns != "":
			return nil, fmt.Errorf("%s %s of its answer has the namespace %s, and its kind has none", u.GetKind(), u.GetName(), ns)
		case !child.namespaced && parent.GetNamespace() != "":
			return nil, fmt.Errorf("%s %s of its answer has no namespace, and %s %s could not own it: that is in one",
				u.GetKind(), u.GetName(), parent.GetKind(), parent.GetName())
		case child.namespaced && ns == "" && parent.GetNamespace() == "":
			return nil, fmt.Errorf("%s %s of its answer names no namespace", u.GetKind(), u.GetName())
		case child.namespaced && ns == "":
			u.SetNamespace(parent.GetNamespace())
		case child.namespaced && parent.GetNamespace() != "" && ns != parent.GetNamespace():
			return nil, fmt.Errorf("%s %s of its answer is in the namespace %s, and can only be in %s, where its parent is",
				u.GetKind(), u.GetName(), ns, parent.GetNamespace())
		}
		if out[u.GroupVersionKind()][fullName(u)] != nil {
			return nil, fmt.Errorf("its answer has %s %s twice", u.GetKind(), u.GetName())
		}
		out.add(u.GroupVersionKind(), u)
	}
	return out, nil
}
