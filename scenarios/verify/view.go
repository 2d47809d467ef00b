package verify

import (
	"errors"
	"net/http"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/sandbox/apirequest"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
)

// scoped is a cluster in which an operator sees one namespace only.
type scoped struct {
	operatorhost.Cluster
	view *view
}

// Config implements [operatorhost.Cluster].
func (s scoped) Config() *rest.Config {
	config := s.Cluster.Config()
	config.Wrap(s.view.wrap)
	return config
}

// User implements [operatorhost.Cluster].
func (s scoped) User(name string, groups ...string) (*rest.Config, error) {
	config, err := s.Cluster.User(name, groups...)
	if err == nil {
		config.Wrap(s.view.wrap)
	}
	return config, err
}

// view turns lists and watches of all namespaces into those of one.
type view struct {
	namespaced map[schema.GroupResource]bool
	namespace  atomic.Pointer[string]
}

func (v *view) wrap(next http.RoundTripper) http.RoundTripper { return &viewing{v, next} }

type viewing struct {
	*view
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (v *viewing) RoundTrip(req *http.Request) (*http.Response, error) {
	target, ok := apirequest.Parse(req.URL.Path)
	namespace := v.namespace.Load()
	if !ok || namespace == nil || target.Namespace != "" || target.Name != "" || req.Method != http.MethodGet || !v.namespaced[target.GroupResource()] {
		return v.next.RoundTrip(req)
	}
	scoped := req.Clone(req.Context())
	scoped.URL.Path = target.Path(*namespace)
	return v.next.RoundTrip(scoped)
}

// WrappedRoundTripper lets client-go reach the transport below.
func (v *viewing) WrappedRoundTripper() http.RoundTripper { return v.next }

// namespacedResources returns the resources of a cluster that belong to namespaces.
func namespacedResources(config *rest.Config) (map[schema.GroupResource]bool, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	_, lists, err := client.ServerGroupsAndResources()
	if partly, is := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); is && len(partly.Groups) > 0 {
		err = nil // an aggregated API that does not answer is no operator's
	}
	out := map[schema.GroupResource]bool{}
	for _, list := range lists {
		gv, parseErr := schema.ParseGroupVersion(list.GroupVersion)
		if parseErr != nil {
			return nil, parseErr
		}
		for _, r := range namespacedOf(list) {
			out[schema.GroupResource{Group: gv.Group, Resource: r}] = true
		}
	}
	return out, err
}

func namespacedOf(list *metav1.APIResourceList) []string {
	var names []string
	for _, r := range list.APIResources {
		if r.Namespaced {
			names = append(names, r.Name)
		}
	}
	return names
}
