package tutor

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
)

// inventory maps "Kind/name" to what was recorded of each object in the cluster.
type inventory map[string]record

// record holds the compared fields of an object.
type record struct {
	uid             types.UID
	generation      int64
	resourceVersion string
	deleting        bool
	content         digest
}

// digest is a digest of the wanted part of an object: without status and server-set metadata.
type digest [sha256.Size]byte

// fleeting are kinds whose objects come, go or change all the time by themselves.
var fleeting = map[string]bool{"Event": true, "Lease": true, "EndpointSlice": true, "Endpoints": true, "APIService": true, "Loop": true, "Fault": true}

// inventoryOf records the objects of the cluster. The key of an object in the namespace default is kind and name, as in
// "Pod/web"; in another namespace it is as in "Pod/kube-system/web".
func inventoryOf(ctx context.Context, config *rest.Config, running []v1alpha1.Operator) (inventory, error) {
	found, err := sandbox.Objects(ctx, config, func(kind schema.GroupKind) bool {
		// OLM's Operator would be taken for one of the lab's.
		return kind.Group != v1alpha1.GroupVersion.Group && kind.Kind != "Operator" && !fleeting[kind.Kind]
	})
	out := inventory{}
	for i := range found {
		out.add(found[i].GetKind(), &found[i], digestOf(found[i].Object))
	}
	out.addOperators(running)
	return out, err
}

func (s inventory) add(kind string, o metav1.Object, content digest) {
	name := o.GetName()
	if namespace := o.GetNamespace(); namespace != "" && namespace != metav1.NamespaceDefault {
		name = namespace + "/" + name
	}
	s[kind+"/"+name] = record{
		uid: o.GetUID(), generation: o.GetGeneration(), resourceVersion: o.GetResourceVersion(),
		deleting: o.GetDeletionTimestamp() != nil, content: content,
	}
}

// digestOf returns the digest of an object without its status and the metadata that the API server sets. The generation
// is left out too: for a kind without a status subresource each status update increases it. So are the rules of a ClusterRole that
// a controller gathers from others, which it may do before or after a task begins.
func digestOf(object map[string]any) digest {
	wanted := maps.Clone(object)
	delete(wanted, "status")
	if object["aggregationRule"] != nil {
		delete(wanted, "rules")
	}
	if meta, ok := object["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		for _, counted := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields"} {
			delete(meta, counted)
		}
		wanted["metadata"] = meta
	}
	text, err := json.Marshal(wanted)
	if err != nil {
		return digest{} // cannot happen: it came as JSON
	}
	return sha256.Sum256(text)
}

// addOperators adds the lab's operators by name only: their UIDs change with each undo.
func (s inventory) addOperators(running []v1alpha1.Operator) {
	for _, op := range running {
		s["Operator/"+op.Name] = record{}
	}
}

// values returns the objects for expressions.
func (s inventory) values() map[string]any {
	out := map[string]any{}
	for key, o := range s {
		out[key] = map[string]any{"uid": string(o.uid), "generation": float64(o.generation), "resourceVersion": o.resourceVersion}
	}
	return out
}

// isDefault reports whether Kubernetes' own controllers create this object in each namespace, a moment after the
// namespace. A task may begin before or after that moment, and after an undo the object is a new one.
func isDefault(key string) bool {
	return strings.HasPrefix(key, "ConfigMap/") && path.Base(key) == "kube-root-ca.crt" ||
		strings.HasPrefix(key, "ServiceAccount/") && path.Base(key) == metav1.NamespaceDefault
}

// differences describes for people what is gone, new, replaced or changed since s was recorded.
func (s inventory) differences(now inventory) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(s)) {
		was := s[key]
		is, there := now[key]
		switch {
		case isDefault(key) && is.uid != was.uid: // it was or will be created again
		case !there:
			out = append(out, key+" is gone")
		case is.uid != was.uid:
			out = append(out, key+" is another one")
		case is.deleting != was.deleting:
			out = append(out, key+" is being deleted")
		case is.content != was.content:
			out = append(out, key+" was changed")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if _, there := s[key]; !there && !isDefault(key) {
			out = append(out, key+" is new")
		}
	}
	return out
}

// gone names a missing or deleted object of a required kind that the task does not remove itself; empty if there is none.
func (t *Tutor) gone(ctx context.Context) string {
	now, err := requiredObjects(ctx, t.options.Sandbox.Config(), t.options.Lab.Operators())
	if err != nil {
		return "" // the API server cannot be reached; others report that
	}
	t.mu.Lock()
	was := t.start.objects
	t.mu.Unlock()
	meant := t.current().Removes
	for _, key := range slices.Sorted(maps.Keys(was)) {
		kind, name, _ := strings.Cut(key, "/")
		if !slices.Contains(book.RequiredKinds, kind) || slices.Contains(meant, key) {
			continue
		}
		if is, there := now[key]; there && (!is.deleting || was[key].deleting) {
			continue
		}
		return t.textf("The %s %s is gone, and this task needs it. Press u ('reset') to bring the cluster back to the start of the task.",
			"%s %s がなくなりました。このタスクには必要なので、u (reset) でタスクの開始時点に戻してください。", kind, name)
	}
	return ""
}

// requiredObjects records the objects of the kinds in [book.RequiredKinds].
func requiredObjects(ctx context.Context, config *rest.Config, running []v1alpha1.Operator) (inventory, error) {
	reader, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	out := inventory{}
	for _, kind := range []struct {
		resource schema.GroupVersionResource
		kind     string
	}{
		{schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "Namespace"},
		{schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "CustomResourceDefinition"},
	} {
		found, err := reader.Resource(kind.resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range found.Items {
			out.add(kind.kind, &found.Items[i], digest{})
		}
	}
	out.addOperators(running)
	return out, nil
}
