package sandbox

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Objects lists the objects of a cluster whose kinds are wanted and can be listed and deleted, in no order. With an error it
// returns what could be listed.
func Objects(ctx context.Context, config *rest.Config, wanted func(schema.GroupKind) bool) ([]unstructured.Unstructured, error) {
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	reader, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := finder.ServerPreferredResources()
	if err != nil && len(lists) == 0 { // with an error, some groups may have been discovered all the same
		return nil, err
	}
	var mu sync.Mutex
	var work sync.WaitGroup
	out, first := []unstructured.Unstructured{}, error(nil)
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, kind := range list.APIResources {
			if !wanted(schema.GroupKind{Group: gv.Group, Kind: kind.Kind}) {
				continue
			}
			work.Go(func() {
				found, err := reader.Resource(gv.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					out = append(out, found.Items...)
				} else if !apierrors.IsNotFound(err) && first == nil {
					first = err
				}
			})
		}
	}
	work.Wait()
	return out, first
}
