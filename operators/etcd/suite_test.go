package etcd_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox"
)

// patience is how long a condition may take to come true. It only matters in tests that fail.
const patience = 60 * time.Second

// crdSet is which CRDs a sandbox has.
type crdSet string

const (
	hardenedCRDs crdSet = "hardened"
	classicCRDs  crdSet = "classic"
)

// nodes is how many nodes each sandbox has: one for each member of the usual cluster.
const nodes = 3

// boxes are one sandbox for each set of CRDs, since all have the same names. Each is started by the first test that
// needs it, and is real: Kubernetes' control plane, its kubelets, and members of etcd that are processes.
var boxes = map[crdSet]*box{hardenedCRDs: {}, classicCRDs: {}}

// imagesFile says which versions of etcd cannot be had: stuckVersion and those like it.
const imagesFile = "testdata/images.yaml"

type box struct {
	once   sync.Once
	lab    *sandbox.Sandbox
	scheme *runtime.Scheme
	err    error
}

func (b *box) start(set crdSet) (*sandbox.Sandbox, error) {
	b.once.Do(func() {
		b.scheme = runtime.NewScheme()
		crds, err := etcd.CRDs(etcd.Variant(set))
		b.err = errors.Join(err, clientgoscheme.AddToScheme(b.scheme), etcd.AddToScheme(b.scheme))
		if b.err == nil {
			b.lab, b.err = sandbox.Start(context.Background(), sandbox.Options{ //nolint:forbidigo // it outlives the test
				Ephemeral: true, CRDs: crds, Nodes: nodes, Images: imagesFile,
			})
		}
	})
	return b.lab, b.err
}

func TestMain(m *testing.M) {
	if os.Getenv("OPERATOR_LOG") == "" {
		log.SetLogger(logr.Discard()) // the operators' own logs would drown a failure
	} else {
		log.SetLogger(funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, time.Now().Format("05.000"), prefix, args) }, funcr.Options{}))
	}
	klog.SetLogger(logr.Discard())
	// These tests wait more than they compute, but each has several servers.
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	code := m.Run()
	for set, b := range boxes {
		if b.lab == nil {
			continue
		}
		if err := b.lab.Stop(); err != nil {
			fmt.Fprintf(os.Stderr, "stop the sandbox of %s: %v\n", set, err)
		}
	}
	os.Exit(code)
}

// stage is a namespace of a test's own.
type stage struct {
	client.Client // as an administrator
	t             *testing.T
	namespace     string
	set           crdSet
	lab           *sandbox.Sandbox
	scheme        *runtime.Scheme
}

// newStage makes a namespace in the sandbox that has a set of CRDs.
func newStage(t *testing.T, set crdSet) *stage {
	t.Helper()
	if os.Getenv(sandbox.BinaryEnv) == "" {
		t.Skipf("%s is not set: it names the operator-lab binary, whose members of etcd this test needs", sandbox.BinaryEnv)
	}
	b := boxes[set]
	lab, err := b.start(set)
	if err != nil {
		t.Fatalf("start a sandbox: %v", err)
	}
	s := &stage{t: t, set: set, lab: lab, scheme: b.scheme}
	if s.Client, err = client.New(unlimited(lab.Config()), client.Options{Scheme: s.scheme}); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "stage-"}}
	s.create(namespace)
	s.namespace = namespace.Name
	t.Cleanup(func() {
		if t.Failed() {
			s.explain(context.WithoutCancel(t.Context()))
		}
		// Members that nobody needs any more would keep the processors busy.
		if err := s.Delete(context.WithoutCancel(t.Context()), namespace); err != nil {
			t.Errorf("delete the namespace: %v", err)
		}
	})
	return s
}

// explain tells of the pods of a test that failed, and of the end of their logs.
func (s *stage) explain(ctx context.Context) {
	clients, err := kubernetes.NewForConfig(s.lab.Config())
	if err != nil {
		return
	}
	pods, err := clients.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	lines := int64(12)
	for _, pod := range pods.Items {
		s.t.Logf("Pod %s on %s is %s, deleted %v: %+v %+v", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.DeletionTimestamp,
			pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
		for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			o := &corev1.PodLogOptions{Container: c.Name, TailLines: &lines}
			if end, err := clients.CoreV1().Pods(s.namespace).GetLogs(pod.Name, o).DoRaw(ctx); err == nil {
				s.t.Logf("the log of %s in %s ends with\n%s", c.Name, pod.Name, end)
			}
		}
	}
}

// unlimited does not slow a client down.
func unlimited(cfg *rest.Config) *rest.Config {
	cfg.QPS = -1
	return cfg
}

// operate runs an operator in the test's process, for the stage's namespace, until the returned function, or the end of
// the test, stops it. It has the rights of its variant's role and no others, and the Dial of the sandbox unless another is
// given.
func (s *stage) operate(t *testing.T, o etcd.Options) (stop func()) {
	t.Helper()
	return s.operateAs(t, s.operatorConfig(t, o.Variant), o)
}

func (s *stage) operateAs(t *testing.T, cfg *rest.Config, o etcd.Options) (stop func()) {
	t.Helper()
	if o.Dial == nil {
		o.Dial = s.dial
	}
	sameName := true // every test has controllers of those names
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:     s.scheme,
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{s.namespace: {}}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &sameName},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := etcd.SetupWithManager(mgr, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the operator ended with: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// dial connects to what is in the sandbox, and outside of it, by the names that pods use.
func (s *stage) dial(ctx context.Context, address string) (net.Conn, error) {
	return s.lab.Hub().DialContext(ctx, "tcp", address)
}

// operatorConfig is that of a service account of the stage, to which the role of a variant is bound. A variant whose role
// has not been written yet gets an administrator's.
func (s *stage) operatorConfig(t *testing.T, variant etcd.Variant) *rest.Config {
	t.Helper()
	cfg := unlimited(s.lab.Config())
	rules := clusterRules(t, variant)
	if len(rules) == 0 {
		return cfg
	}
	account := "system:serviceaccount:" + s.namespace + ":etcd-operator"
	name := s.namespace + "-" + string(variant)
	if variant == "" {
		name += string(etcd.Hardened)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account}},
	}
	for _, obj := range []client.Object{role, binding} {
		if err := s.Create(t.Context(), obj); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("create: %v", err)
		}
	}
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + s.namespace, "system:authenticated"},
	}
	as, err := client.New(cfg, client.Options{Scheme: s.scheme})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the role is in force", func() error {
		return as.List(t.Context(), &v1beta2.EtcdClusterList{}, client.InNamespace(s.namespace))
	})
	return cfg
}

// clusterRules are those that the manifests give a variant: of its ClusterRole, or, if there is none, of its Roles.
func clusterRules(t *testing.T, variant etcd.Variant) (rules []rbacv1.PolicyRule) {
	t.Helper()
	if variant == "" {
		variant = etcd.Hardened
	}
	data, err := fs.ReadFile(etcd.Manifests(), "rbac/"+string(variant)+"/role.yaml")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []rbacv1.PolicyRule
	for doc := range strings.SplitSeq(string(data), "\n---") {
		role := &rbacv1.ClusterRole{}
		if err := yaml.Unmarshal([]byte(doc), role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "ClusterRole" {
			rules = append(rules, role.Rules...)
		}
		all = append(all, role.Rules...)
	}
	if len(rules) == 0 {
		return all
	}
	return rules
}

// store is a client of a cluster, through the Service for clients.
func (s *stage) store(t *testing.T, cluster *v1beta2.EtcdCluster) *clientv3.Client {
	t.Helper()
	return s.storeAt(t, "http://"+cluster.Name+"-client."+cluster.Namespace+".svc:2379")
}

// storeAt is a client of one endpoint.
func (s *stage) storeAt(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	return s.storeWith(t, clientv3.Config{Endpoints: []string{endpoint}})
}

// storeWith is a client whose endpoints are in the sandbox.
func (s *stage) storeWith(t *testing.T, cfg clientv3.Config) *clientv3.Client {
	t.Helper()
	pace := backoff.DefaultConfig
	pace.BaseDelay, pace.MaxDelay = 100*time.Millisecond, time.Second
	cfg.Logger = zap.NewNop()
	cfg.DialOptions = append(cfg.DialOptions,
		grpc.WithContextDialer(s.dial),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pace, MinConnectTimeout: 2 * time.Second}))
	store, err := clientv3.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
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

// exists tells whether an object does, and brings it up to date.
func (s *stage) exists(obj client.Object) bool {
	s.t.Helper()
	err := s.Get(s.t.Context(), client.ObjectKeyFromObject(obj), obj)
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatalf("get: %v", err)
	}
	return err == nil
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

// changeStatus is change for the status of an object.
func (s *stage) changeStatus(obj client.Object, how func()) {
	s.t.Helper()
	s.retry(func() error {
		s.read(obj)
		how()
		return s.Status().Update(s.t.Context(), obj)
	})
}

// retry tries until there is no conflict.
func (s *stage) retry(try func() error) {
	s.t.Helper()
	eventually(s.t, "there is no conflict", func() error {
		err := try()
		if err != nil && !apierrors.IsConflict(err) {
			s.t.Fatalf("change: %v", err)
		}
		return err
	})
}

func (s *stage) delete(obj client.Object) {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), obj); err != nil {
		s.t.Fatalf("delete: %v", err)
	}
}

// eventually waits until something is true, and fails with its last error.
func eventually(t *testing.T, what string, is func() error) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	err := is()
	for ; err != nil; err = is() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("waited %v in vain: %s: %v", patience, what, err)
		}
	}
}

// unstructuredOf has all fields of a cluster, those that are zero too.
func unstructuredOf(cluster *v1beta2.EtcdCluster) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cluster)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{Object: fields}
	obj.SetGroupVersionKind(v1beta2.GroupVersion.WithKind("EtcdCluster"))
	return obj, unstructured.SetNestedField(obj.Object, int64(cluster.Spec.Size), "spec", "size")
}
