package etcd_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// nodes is how many nodes each sandbox has: one for each member of the usual cluster.
const nodes = 3

// sandboxes are one for the CRDs of each variant, since both have the same names. Each is real: Kubernetes' control
// plane, its kubelets, and members of etcd that are processes.
var sandboxes = map[etcd.Variant]*sandboxtest.Shared[*sandbox.Sandbox]{
	etcd.Hardened: share(etcd.Hardened),
	etcd.Classic:  share(etcd.Classic),
}

// imagesFile says which versions of etcd cannot be had: stuckVersion and those like it.
const imagesFile = "testdata/images.yaml"

func share(variant etcd.Variant) *sandboxtest.Shared[*sandbox.Sandbox] {
	return sandboxtest.ShareSandbox(func() (sandbox.Options, error) {
		crds, err := etcd.CRDs(variant)
		return sandbox.Options{CRDs: crds, Nodes: nodes, Images: imagesFile}, err
	})
}

func TestMain(m *testing.M) {
	// These tests wait more than they compute, but each has several servers.
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(sandboxtest.Main(m, sandboxes[etcd.Hardened], sandboxes[etcd.Classic]))
}

// testEnv is a namespace of a test's own in a sandbox.
type testEnv struct {
	*sandboxtest.Namespace
	t   *testing.T
	lab *sandbox.Sandbox
}

// newTestEnv makes a namespace in the sandbox that has the CRDs of a variant.
func newTestEnv(t *testing.T, crds etcd.Variant) *testEnv {
	t.Helper()
	return newTestEnvIn(t, sandboxes[crds].Get(t))
}

func newTestEnvIn(t *testing.T, lab *sandbox.Sandbox, more ...func(*runtime.Scheme) error) *testEnv {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range append(more, clientgoscheme.AddToScheme, etcd.AddToScheme) {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	env := &testEnv{Namespace: sandboxtest.NewNamespace(t, lab.Config(), scheme), t: t, lab: lab}
	sandboxtest.LogPods(t, lab.Config(), env.Name)
	return env
}

// operate runs an operator in the test's namespace until the returned function, or the end of the test, stops it. It has
// the rights of its variant's role and no others, and the Dial of the sandbox unless another is given.
func (env *testEnv) operate(t *testing.T, o etcd.Options) (stop func()) {
	t.Helper()
	return env.operateAs(t, env.operatorConfig(t, o.Variant), o)
}

func (env *testEnv) operateAs(t *testing.T, cfg *rest.Config, o etcd.Options) (stop func()) {
	t.Helper()
	if o.Dial == nil {
		o.Dial = env.dial
	}
	return env.Run(cfg, ctrl.Options{}, func(mgr ctrl.Manager) error { return etcd.SetupWithManager(mgr, o) })
}

// dial connects to what is in the sandbox, and outside of it, by the names that pods use.
func (env *testEnv) dial(ctx context.Context, address string) (net.Conn, error) {
	return env.lab.DialContext(ctx, "tcp", address)
}

// operatorConfig is that of a service account of the test, to which the role of a variant is bound.
func (env *testEnv) operatorConfig(t *testing.T, variant etcd.Variant) *rest.Config {
	t.Helper()
	cfg := env.lab.Config()
	account := "system:serviceaccount:" + env.Name + ":etcd-operator"
	env.Allow(etcd.Manifests(), "rbac/"+string(cmp.Or(variant, etcd.Hardened))+"/role.yaml", account)
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + env.Name, "system:authenticated"},
	}
	as, err := client.New(cfg, client.Options{Scheme: env.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, "the role is in force", func() error {
		return as.List(t.Context(), &v1beta2.EtcdClusterList{}, client.InNamespace(env.Name))
	})
	return cfg
}

// patient returns a context with a limit for a question to etcd: a client waits without end for a member that is gone.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sandboxtest.Patience)
	t.Cleanup(cancel)
	return ctx
}

// store is a client of a cluster, through the Service for clients.
func (env *testEnv) store(t *testing.T, cluster *v1beta2.EtcdCluster) *clientv3.Client {
	t.Helper()
	return env.storeAt(t, "http://"+cluster.Name+"-client."+cluster.Namespace+".svc:2379")
}

// storeAt is a client of one endpoint.
func (env *testEnv) storeAt(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	return env.storeWith(t, clientv3.Config{Endpoints: []string{endpoint}})
}

// storeWith is a client whose endpoints are in the sandbox.
func (env *testEnv) storeWith(t *testing.T, cfg clientv3.Config) *clientv3.Client {
	t.Helper()
	pace := backoff.DefaultConfig
	pace.BaseDelay, pace.MaxDelay = 100*time.Millisecond, time.Second
	cfg.Logger = zap.NewNop()
	cfg.DialOptions = append(cfg.DialOptions,
		grpc.WithContextDialer(env.dial),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pace, MinConnectTimeout: 2 * time.Second}))
	store, err := clientv3.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}
