package verify

import (
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operator-lab/operator-lab/sandbox/apirequest"
)

// view turns lists and watches of all namespaces into those of one.
type view struct {
	mapper    meta.RESTMapper
	namespace atomic.Pointer[string]
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
	if !ok || namespace == nil || target.Namespace != "" || target.Name != "" || req.Method != http.MethodGet || !v.isNamespaced(target.GroupResource()) {
		return v.next.RoundTrip(req)
	}
	scoped := req.Clone(req.Context())
	scoped.URL.Path = target.Path(*namespace)
	return v.next.RoundTrip(scoped)
}

// WrappedRoundTripper lets client-go reach the transport below.
func (v *viewing) WrappedRoundTripper() http.RoundTripper { return v.next }

// isNamespaced reports whether objects of a resource belong to namespaces. The mapper learns of kinds that the operator brings.
func (v *view) isNamespaced(resource schema.GroupResource) bool {
	kind, err := v.mapper.KindFor(resource.WithVersion(""))
	if err != nil {
		return false // the API server says what is wrong with it
	}
	mapping, err := v.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace
}
