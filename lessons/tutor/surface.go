package tutor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
)

// surface is what there is in a cluster, by kind and name.
type surface map[string]seen

// seen is what is taken down of an object.
type seen struct {
	uid             types.UID
	generation      int64
	resourceVersion string
	deleting        bool
}

// fleeting are kinds whose objects come and go, or change all the time, without anybody's doing.
var fleeting = map[string]bool{"Event": true, "Lease": true, "EndpointSlice": true, "Endpoints": true, "APIService": true, "Loop": true, "Fault": true}

// surfaceOf takes down what there is. An object of the namespace default goes by its kind and name, as in "Pod/web"; one
// of another namespace by "Pod/kube-system/web".
func surfaceOf(ctx context.Context, config *rest.Config, running []v1alpha1.Operator) (surface, error) {
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	reader, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := finder.ServerPreferredResources()
	if err != nil && len(lists) == 0 { // what could be discovered is there also with an error
		return nil, err
	}
	var mu sync.Mutex
	var work sync.WaitGroup
	out, first := surface{}, error(nil)
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || gv.Group == v1alpha1.GroupVersion.Group {
			continue
		}
		for _, kind := range list.APIResources {
			if fleeting[kind.Kind] {
				continue
			}
			work.Go(func() {
				found, err := reader.Resource(gv.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
				mu.Lock()
				defer mu.Unlock()
				if err != nil && !apierrors.IsNotFound(err) && first == nil {
					first = err
				}
				if err == nil {
					out.add(kind.Kind, found.Items)
				}
			})
		}
	}
	work.Wait()
	out.addOperators(running)
	return out, first
}

func (s surface) add(kind string, objects []metav1.PartialObjectMetadata) {
	for _, o := range objects {
		name := o.Name
		if o.Namespace != "" && o.Namespace != metav1.NamespaceDefault {
			name = o.Namespace + "/" + o.Name
		}
		s[kind+"/"+name] = seen{
			uid: o.UID, generation: o.Generation, resourceVersion: o.ResourceVersion,
			deleting: o.DeletionTimestamp != nil,
		}
	}
}

// addOperators adds those of the lab by their names: their UIDs are of a round, and there is a new one after an undo.
func (s surface) addOperators(running []v1alpha1.Operator) {
	for _, op := range running {
		s["Operator/"+op.Name] = seen{}
	}
}

// values are the objects as expressions see them.
func (s surface) values() map[string]any {
	out := map[string]any{}
	for key, o := range s {
		out[key] = map[string]any{"uid": string(o.uid), "generation": float64(o.generation), "resourceVersion": o.resourceVersion}
	}
	return out
}

// differences between what there was and what there is, for people: what is gone, new, another, or changed.
func (s surface) differences(now surface) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(s)) {
		was := s[key]
		is, there := now[key]
		switch {
		case !there:
			out = append(out, key+" is gone")
		case is.uid != was.uid:
			out = append(out, key+" is another one")
		case is.deleting != was.deleting:
			out = append(out, key+" is being deleted")
		case is.generation != was.generation && !strings.HasPrefix(key, "CustomResourceDefinition/"):
			out = append(out, fmt.Sprintf("%s has the generation %d, not %d", key, is.generation, was.generation))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if _, there := s[key]; !there {
			out = append(out, key+" is new")
		}
	}
	return out
}

// needed are the kinds without whose objects nothing goes on: when one of those is gone the learner is told.
var needed = []string{"Namespace/", "CustomResourceDefinition/", "Operator/"}

// gone says what of that is missing, or about to go; empty if nothing is.
func (t *Tutor) gone(ctx context.Context) string {
	now, err := t.pillars(ctx)
	if err != nil {
		return "" // the API server is away; that is told by others
	}
	t.mu.Lock()
	was := t.start.surface
	t.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if !slices.ContainsFunc(needed, func(kind string) bool { return strings.HasPrefix(key, kind) }) {
			continue
		}
		if is, there := now[key]; there && (!is.deleting || was[key].deleting) {
			continue
		}
		kind, name, _ := strings.Cut(key, "/")
		return t.t("The %s %s is gone, and this task needs it. Press u ('reset') to bring the cluster back to the start of the task.",
			"%s %s がなくなりました。このタスクには必要なので、u (reset) でタスクの開始時点に戻してください。", kind, name)
	}
	return ""
}

// pillars are the objects of those kinds.
func (t *Tutor) pillars(ctx context.Context) (surface, error) {
	reader, err := metadata.NewForConfig(t.options.Room.Sandbox.Config())
	if err != nil {
		return nil, err
	}
	out := surface{}
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
		out.add(kind.kind, found.Items)
	}
	out.addOperators(t.options.Room.Lab.Operators())
	return out, nil
}
