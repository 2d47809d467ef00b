package maintpage_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/maintpage"
)

// patience is how long a condition may take to come true. It only matters in tests that fail.
const patience = 60 * time.Second

// crdSet is which CRD an API server has.
type crdSet string

const (
	hardenedCRDs crdSet = "hardened"
	classicCRDs  crdSet = "classic"
	// movedCRDs is the published CRD as a careless migration leaves it.
	movedCRDs crdSet = "migration"
)

// servers are one API server for each CRD, since all have the same name. Each is started by the first
// test that needs it. It is an API server and nothing else: there are no controllers and no kubelet, so
// a Pod is Ready when a test says so, and nobody collects garbage.
var servers = map[crdSet]*server{hardenedCRDs: {}, classicCRDs: {}, movedCRDs: {}}

type server struct {
	once   sync.Once
	env    envtest.Environment
	config *rest.Config
	err    error
}

func (s *server) start(set crdSet) (*rest.Config, error) {
	s.once.Do(func() {
		s.env.CRDs, s.err = set.load()
		if s.err != nil {
			return
		}
		// The defaults are for a machine that does nothing else.
		s.env.ControlPlaneStartTimeout, s.env.CRDInstallOptions.MaxTime = 2*patience, patience
		s.config, s.err = s.env.Start()
		if s.err == nil {
			s.config.QPS = -1 // the client must not slow the operator down
		}
	})
	return s.config, s.err
}

func (set crdSet) load() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if set != movedCRDs {
		return maintpage.CRDs(maintpage.Variant(set))
	}
	data, err := fs.ReadFile(maintpage.Manifests(), "migration/maintpages.yaml")
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return []*apiextensionsv1.CustomResourceDefinition{crd}, yaml.UnmarshalStrict(data, crd)
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // the operators' own logs would drown a failure
	// These tests wait more than they compute, so more of them than there are processors run at once.
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	code := m.Run()
	for set, s := range servers {
		// A control plane that started half-way has to be stopped as well.
		if err := s.env.Stop(); err != nil && s.config != nil {
			fmt.Fprintf(os.Stderr, "stop the API server of %s: %v\n", set, err)
		}
	}
	os.Exit(code)
}

// stage is a namespace of a test's own.
type stage struct {
	client.Client
	t           *testing.T
	namespace   string
	config      *rest.Config
	scheme      *runtime.Scheme
	traffic     traffic
	watchErrors atomic.Int32  // lists and watches of the operator that failed
	caches      []cache.Cache // of the operators that run
	others      int           // MaintPages of others, see othersHadTheirTurn
}

// newStage makes a namespace in the API server that has a set of CRDs.
func newStage(t *testing.T, crds crdSet) *stage {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set: it names the directory of the etcd and kube-apiserver this test needs")
	}
	config, err := servers[crds].start(crds)
	if err != nil {
		t.Fatalf("start an API server: %v", err)
	}
	s := &stage{t: t, config: config, scheme: runtime.NewScheme()}
	if err := errors.Join(clientgoscheme.AddToScheme(s.scheme), maintpage.AddToScheme(s.scheme)); err != nil {
		t.Fatal(err)
	}
	if s.Client, err = client.New(config, client.Options{Scheme: s.scheme}); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "stage-"}}
	s.create(namespace)
	s.namespace = namespace.Name
	return s
}

// operate runs an operator in the stage's namespace until the returned function, or the end of the
// test, stops it.
func (s *stage) operate(o maintpage.Options) (stop func()) {
	s.t.Helper()
	cfg := rest.CopyConfig(s.config)
	cfg.Wrap(s.traffic.wrap)
	return s.operateAs(cfg, o)
}

func (s *stage) operateAs(cfg *rest.Config, o maintpage.Options) (stop func()) {
	s.t.Helper()
	sameName := true // every test has a controller of that name
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: s.scheme,
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{s.namespace: {}},
			DefaultWatchErrorHandler: func(context.Context, *toolscache.Reflector, error) {
				s.watchErrors.Add(1)
			},
		},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &sameName},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := maintpage.SetupWithManager(mgr, o); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	s.caches = append(s.caches, mgr.GetCache())
	stop = sync.OnceFunc(func() {
		s.caches = slices.DeleteFunc(s.caches, func(c cache.Cache) bool { return c == mgr.GetCache() })
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("the operator ended with: %v", err)
		}
	})
	s.t.Cleanup(stop)
	return stop
}

func (s *stage) create(obj client.Object) {
	s.t.Helper()
	if err := s.Create(s.t.Context(), obj); err != nil {
		s.t.Fatalf("create: %v", err)
	}
}

// read brings an object up to date.
func (s *stage) read(obj client.Object) {
	s.t.Helper()
	if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		s.t.Fatalf("get: %v", err)
	}
}

// change changes an object as it is now, again if somebody else was faster.
func (s *stage) change(obj client.Object, how func()) {
	s.t.Helper()
	s.retry(func() error {
		s.read(obj)
		how()
		return s.Update(s.t.Context(), obj)
	})
}

// changeStatus is change for the status of an object. The operators know of it when it returns: each kind has a watch of
// its own, so they might hear first of what the test changes next.
func (s *stage) changeStatus(obj client.Object, how func()) {
	s.t.Helper()
	s.retry(func() error {
		s.read(obj)
		how()
		return s.Status().Update(s.t.Context(), obj)
	})
	for _, operator := range s.caches {
		s.eventually("the operator has seen it", func() bool { return s.isIn(operator, obj) })
	}
}

// isIn tells whether a cache has an object as it is here, or as it is by now.
func (s *stage) isIn(operator cache.Cache, obj client.Object) bool {
	s.t.Helper()
	seen := obj.DeepCopyObject().(client.Object)
	err := operator.Get(s.t.Context(), client.ObjectKeyFromObject(obj), seen)
	if apierrors.IsNotFound(err) {
		return !s.exists(seen)
	}
	if err != nil {
		s.t.Fatalf("read the operator's cache: %v", err)
	}
	order, err := resourceversion.CompareResourceVersion(seen.GetResourceVersion(), obj.GetResourceVersion())
	if err != nil {
		s.t.Fatal(err)
	}
	return order >= 0
}

func (s *stage) delete(obj client.Object) {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), obj); err != nil {
		s.t.Fatalf("delete: %v", err)
	}
}

// exists tells whether an object does, and brings it up to date.
func (s *stage) exists(obj client.Object) bool {
	s.t.Helper()
	err := s.Get(s.t.Context(), client.ObjectKeyFromObject(obj), obj)
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatalf("get: %v", err)
	}
	return err == nil
}

// eventually waits until something is true.
func (s *stage) eventually(what string, is func() bool) {
	s.t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !is() {
		select {
		case <-ticker.C:
		case <-deadline:
			s.t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}
