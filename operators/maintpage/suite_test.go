package maintpage_test

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/maintpage"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// servers are one API server for the CRD of each variant, since both have the same name.
var servers = map[maintpage.Variant]*sandboxtest.Shared[*rest.Config]{
	maintpage.Hardened: share(maintpage.Hardened),
	maintpage.Classic:  share(maintpage.Classic),
}

func share(variant maintpage.Variant) *sandboxtest.Shared[*rest.Config] {
	return sandboxtest.ShareAPIServer(func() ([]*apiextensionsv1.CustomResourceDefinition, error) { return maintpage.CRDs(variant) })
}

func TestMain(m *testing.M) {
	// These tests wait more than they compute, so more of them than there are processors run at once.
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(sandboxtest.Main(m, servers[maintpage.Hardened], servers[maintpage.Classic]))
}

// testEnv is a namespace of a test's own, and the operators that run in it.
type testEnv struct {
	*sandboxtest.Namespace
	t      *testing.T
	writes *sandboxtest.Writes // of the operator to objects of the namespace
	caches []cache.Cache       // of the operators that run
	others int                 // MaintPages of others, see othersHadTheirTurn
}

// newTestEnv makes a namespace in the API server that has the CRD of a variant.
func newTestEnv(t *testing.T, crds maintpage.Variant) *testEnv {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), maintpage.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return &testEnv{Namespace: sandboxtest.NewNamespace(t, servers[crds].Get(t), scheme), t: t, writes: sandboxtest.NewWrites(target)}
}

// target returns the resource of a request, with the name and the subresource if it has them. Events are
// left out.
func target(req *http.Request) string {
	_, rest, ok := strings.Cut(req.URL.Path, "/namespaces/")
	_, target, named := strings.Cut(rest, "/")
	if !ok || !named || strings.HasPrefix(target, "events") {
		return ""
	}
	return target
}

// operate runs an operator in the test's namespace until the returned function, or the end of the test, stops it.
func (env *testEnv) operate(o maintpage.Options) (stop func()) {
	env.t.Helper()
	cfg := rest.CopyConfig(env.Config)
	cfg.Wrap(env.writes.Wrap)
	return env.operateAs(cfg, o)
}

func (env *testEnv) operateAs(cfg *rest.Config, o maintpage.Options) (stop func()) {
	env.t.Helper()
	var caching cache.Cache
	end := env.Run(cfg, ctrl.Options{}, func(mgr ctrl.Manager) error {
		caching = mgr.GetCache()
		return maintpage.SetupWithManager(mgr, o)
	})
	env.caches = append(env.caches, caching)
	return func() {
		env.caches = slices.DeleteFunc(env.caches, func(c cache.Cache) bool { return c == caching })
		end()
	}
}

// changeStatus is MustUpdateStatus, and the operators know of it when it returns: each kind has a watch of its own, so
// they might hear first of what the test changes next.
func (env *testEnv) changeStatus(obj client.Object, how func()) {
	env.t.Helper()
	env.MustUpdateStatus(obj, how)
	for _, operator := range env.caches {
		sandboxtest.Eventually(env.t, "the operator has seen it", func() bool { return env.isIn(operator, obj) })
	}
}

// isIn tells whether a cache has an object as it is here, or as it is by now.
func (env *testEnv) isIn(operator cache.Cache, obj client.Object) bool {
	env.t.Helper()
	seen := obj.DeepCopyObject().(client.Object)
	err := operator.Get(env.t.Context(), client.ObjectKeyFromObject(obj), seen)
	if apierrors.IsNotFound(err) {
		return !env.Exists(seen)
	}
	if err != nil {
		env.t.Fatalf("read the operator's cache: %v", err)
	}
	order, err := resourceversion.CompareResourceVersion(seen.GetResourceVersion(), obj.GetResourceVersion())
	if err != nil {
		env.t.Fatal(err)
	}
	return order >= 0
}
