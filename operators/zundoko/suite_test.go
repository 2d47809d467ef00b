package zundoko_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/operator-lab/operator-lab/operators/zundoko"
	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
)

// patience is how long a condition may take to come true. It only matters in tests that fail.
const patience = 60 * time.Second

// servers are one API server for the CRDs of each variant, since both have the same names. Each is
// started by the first test that needs it.
var servers = map[zundoko.Variant]*server{zundoko.Hardened: {}, zundoko.Classic: {}}

type server struct {
	once   sync.Once
	env    envtest.Environment
	config *rest.Config
	err    error
}

func (s *server) start(variant zundoko.Variant) (*rest.Config, error) {
	s.once.Do(func() {
		s.env.CRDs, s.err = zundoko.CRDs(variant)
		if s.err != nil {
			return
		}
		// The defaults are for a machine that does nothing else.
		s.env.ControlPlaneStartTimeout, s.env.CRDInstallOptions.MaxTime = 2*patience, patience
		s.config, s.err = s.env.Start()
		if s.err == nil {
			s.config.QPS = -1 // the client must not slow the song down
		}
	})
	return s.config, s.err
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // the operators' own logs would drown a failure
	// These tests wait more than they compute, so more of them than there are processors run at once.
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	code := m.Run()
	for variant, s := range servers {
		// A control plane that started half-way has to be stopped as well.
		if err := s.env.Stop(); err != nil && s.config != nil {
			fmt.Fprintf(os.Stderr, "stop the API server of %s: %v\n", variant, err)
		}
	}
	os.Exit(code)
}

// stage is a namespace of a test's own.
type stage struct {
	client.Client
	t         *testing.T
	namespace string
	config    *rest.Config
	scheme    *runtime.Scheme
	traffic   traffic
}

// newStage makes a namespace in the API server that has the CRDs of a variant.
func newStage(t *testing.T, crds zundoko.Variant) *stage {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set: it names the directory of the etcd and kube-apiserver this test needs")
	}
	config, err := servers[crds].start(crds)
	if err != nil {
		t.Fatalf("start an API server: %v", err)
	}
	s := &stage{t: t, config: config, scheme: runtime.NewScheme()}
	if err := errors.Join(clientgoscheme.AddToScheme(s.scheme), zundoko.AddToScheme(s.scheme)); err != nil {
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
func (s *stage) operate(o zundoko.Options) (stop func()) {
	s.t.Helper()
	cfg := rest.CopyConfig(s.config)
	cfg.Wrap(s.traffic.wrap)
	return s.operateAs(cfg, o)
}

func (s *stage) operateAs(cfg *rest.Config, o zundoko.Options) (stop func()) {
	s.t.Helper()
	sameName := true // every test has a controller of that name
	noGrace := time.Duration(0)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                  s.scheme,
		Cache:                   cache.Options{DefaultNamespaces: map[string]cache.Config{s.namespace: {}}},
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Controller:              config.Controller{SkipNameValidation: &sameName},
		GracefulShutdownTimeout: &noGrace, // classic sleeps through any
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := zundoko.SetupWithManager(mgr, o); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
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

// hikawa starts a song.
func (s *stage) hikawa(name string, interval time.Duration) *v1beta1.Hikawa {
	s.t.Helper()
	hikawa := s.newHikawa(name, interval)
	s.create(hikawa)
	return hikawa
}

func (s *stage) newHikawa(name string, interval time.Duration) *v1beta1.Hikawa {
	return &v1beta1.Hikawa{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec:       v1beta1.HikawaSpec{IntervalMillis: interval.Milliseconds()},
	}
}

// read brings an object up to date.
func (s *stage) read(obj client.Object) {
	s.t.Helper()
	if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		s.t.Fatalf("get: %v", err)
	}
}

func (s *stage) delete(obj client.Object) {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), obj); err != nil {
		s.t.Fatalf("delete: %v", err)
	}
}

// word is the n-th word by name, to delete for instance.
func (s *stage) word(singer string, n int) *v1beta1.Zundoko {
	return &v1beta1.Zundoko{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("%s-zundoko-%03d", singer, n)}}
}

func (s *stage) kiyoshi(singer string) *v1beta1.Kiyoshi {
	return &v1beta1.Kiyoshi{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: singer + "-kiyoshi"}}
}

// exists tells whether an object does.
func (s *stage) exists(obj client.Object) bool {
	s.t.Helper()
	err := s.Get(s.t.Context(), client.ObjectKeyFromObject(obj), obj)
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatalf("get: %v", err)
	}
	return err == nil
}

// words are those controlled by a Hikawa, by their names.
func (s *stage) words(uid types.UID) []v1beta1.Zundoko {
	s.t.Helper()
	var list v1beta1.ZundokoList
	if err := s.List(s.t.Context(), &list, client.InNamespace(s.namespace)); err != nil {
		s.t.Fatalf("list: %v", err)
	}
	// The API server lists by name.
	return slices.DeleteFunc(list.Items, func(word v1beta1.Zundoko) bool {
		owner := metav1.GetControllerOf(&word)
		return owner == nil || owner.UID != uid
	})
}

// lyrics are the words of a Hikawa in a row, as "Zun,Zun,Doko".
func (s *stage) lyrics(uid types.UID) string {
	s.t.Helper()
	var text string
	for i, word := range s.words(uid) {
		if i > 0 {
			text += ","
		}
		text += string(word.Spec.Say)
	}
	return text
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

// sung tells whether the status says that the song is over.
func (s *stage) sung(hikawa *v1beta1.Hikawa) bool {
	s.t.Helper()
	s.read(hikawa)
	return hikawa.Status.Kiyoshied
}

// othersHadTheirTurn lets the operator say five words for somebody else: what it has not done by then
// about something that happened before, it is not going to do.
func (s *stage) othersHadTheirTurn(interval time.Duration) {
	s.t.Helper()
	other := s.newHikawa("", interval)
	other.GenerateName = "other-"
	s.create(other)
	s.eventually("somebody else has five words", func() bool { return len(s.words(other.UID)) >= 5 })
	s.delete(other)
}
