// Package operatorpod_test runs the bundled operators as pods. It is apart from the tests of the package program, since
// it needs all of Kubernetes' client, which a fuzzer would have to build for itself.
package operatorpod_test

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/maintpage"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest/output"
)

// TestAnOperatorMayDoWhatItsRoleSays runs the binary as the article's operator in a pod, on a real API server: without its
// role it may do nothing, and with it, it works, without being started again.
func TestAnOperatorMayDoWhatItsRoleSays(t *testing.T) {
	t.Parallel()
	binary, err := sandbox.FindBinary()
	if err != nil || os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("it needs the binary, which 'make test' gives it")
	}
	log.SetLogger(logr.Discard())
	crds, err := maintpage.CRDs(maintpage.Classic)
	if err != nil {
		t.Fatal(err)
	}
	const patience = 2 * time.Minute // of a busy machine
	env := &envtest.Environment{
		CRDInstallOptions:        envtest.CRDInstallOptions{CRDs: crds, MaxTime: patience},
		ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience,
	}
	config, err := env.Start()
	t.Cleanup(func() { _ = env.Stop() })
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := maintpage.AddToScheme(env.Scheme); err != nil {
		t.Fatal(err)
	}
	const namespace = "maintpage-operator"
	create := func(o client.Object) {
		t.Helper()
		if o.GetNamespace() == "" {
			o.SetNamespace(namespace)
		}
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	account := &corev1.ServiceAccount{}
	manifest(t, "deploy/service_account.yaml", account)
	create(account)
	token := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	page, err := maintpage.Sample()
	if err != nil {
		t.Fatal(err)
	}
	create(page)

	images, err := images.NewCatalogue(binary, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(images.Close)
	const image = "quay.io/daein/maintpage-operator:v0.0.1"
	in, said := container(t, image, token.Status.Token, string(config.CAData))
	in.APIServer, in.Namespace = config.Host, namespace
	in.Command = []string{"maintpage-operator"}
	in.Env = []string{"WATCH_NAMESPACE=" + namespace, "POD_NAME=x", "OPERATOR_NAME=maintpage-operator"}
	operator := start(t, images, in)
	said.Await(t, `is forbidden: User \"system:serviceaccount:maintpage-operator:maintpage-operator\" cannot list resource`)

	role, binding := &rbacv1.Role{}, &rbacv1.RoleBinding{}
	manifest(t, "deploy/role.yaml", role)
	create(role)
	manifest(t, "deploy/role_binding.yaml", binding)
	create(binding)
	key := client.ObjectKey{Namespace: namespace, Name: page.Spec.AppConfig.AppName}
	sandboxtest.Eventually(t, "the Deployment that the operator makes", func() bool {
		return c.Get(t.Context(), key, &appsv1.Deployment{}) == nil
	})
	operator.Signal(syscall.SIGTERM)
	sandboxtest.Eventually(t, "its end", func() bool {
		select {
		case <-operator.Done():
			return true
		default:
			return false
		}
	})
	if code := operator.Code(); code != 0 {
		t.Errorf("it exits with %d:\n%s", code, said)
	}
	if strings.Contains(said.String(), token.Status.Token) {
		t.Error("the token is in the log")
	}
}

// TestItsFlagsAreKnown: what 'operator-lab operator' binds beside these is in cmd/operator-lab.
func TestItsFlagsAreKnown(t *testing.T) {
	t.Parallel()
	c, err := images.NewCatalogue(os.Args[0], "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	images := map[string]string{
		"zundoko": "kaitoy/zundoko-operator", "maintpage": "quay.io/daein/maintpage-operator", "etcd": "quay.io/coreos/etcd-operator",
		"visitors": "jdob/visitors-operator", "metering": "quay.io/operator-lab/reporting-operator",
	}
	for _, op := range operators.All() {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		op.New().Flags(flags)
		in, log := container(t, cmp.Or(images[op.Name], "quay.io/operator-lab/"+op.Name+"-operator"), "token", "ca")
		flags.VisitAll(func(f *pflag.Flag) { in.Args = append(in.Args, "--"+f.Name+"="+f.DefValue) })
		start(t, c, in)
		log.Await(t, "called as operator "+op.Name)
		if strings.Contains(log.String(), "does not know") {
			t.Errorf("the flags of %s are not all known:\n%s", op.Name, log)
		}
	}
}

// TestMain says how it was called when a catalogue takes this program for the binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "operator" {
		fmt.Println("called as", strings.Join(os.Args[1:], " "))
		return
	}
	os.Exit(m.Run())
}

// nowhere is a network that is not asked for anything but a proxy, of which there is none.
type nowhere struct{ images.Network }

func (nowhere) Proxy() string { return "" }

// container is one of a pod with a service account, and its log.
func container(t *testing.T, image, token, ca string) (*images.Container, *output.Output) {
	t.Helper()
	log, account := &output.Output{}, t.TempDir()
	for name, text := range map[string]string{"token": token, "ca.crt": ca} {
		if err := os.WriteFile(filepath.Join(account, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &images.Container{
		Pod: "pod", Namespace: "default", Image: image, Dir: t.TempDir(), Stdout: log, Stderr: log, Network: nowhere{},
		APIServer: "https://127.0.0.1:1",
		Mounts:    []images.Mount{{ContainerPath: "/var/run/secrets/kubernetes.io/serviceaccount", HostPath: account}},
	}, log
}

func start(t *testing.T, c *images.Catalogue, in *images.Container) images.Running {
	t.Helper()
	image, err := c.Lookup(in.Image)
	if err != nil {
		t.Fatal(err)
	}
	r, err := image.Program.Start(in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Signal(syscall.SIGKILL)
		<-r.Done()
	})
	return r
}

func manifest(t *testing.T, file string, into client.Object) {
	t.Helper()
	text, err := fs.ReadFile(maintpage.Manifests(), file)
	if err == nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
