package labapi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/labapi"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

func clientset(tb testing.TB, in *sandbox.Sandbox) *kubernetes.Clientset {
	tb.Helper()
	c, err := kubernetes.NewForConfig(in.Config())
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// said returns a function that returns what a program of the shared cluster has logged since.
func said(t *testing.T, program string) func() string {
	t.Helper()
	read := func() string {
		b, err := os.ReadFile(cluster.LogFile(program))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	before := len(read())
	return func() string { return read()[before:] }
}

// TestControllersAreNotDisturbed deletes a namespace and the owner of an object while the API is served, while it is
// not, and while it is served again, and checks that no program logs errors about the group.
func TestControllersAreNotDisturbed(t *testing.T) {
	logs := map[string]func() string{}
	for _, program := range []string{"kube-controller-manager", "kube-apiserver"} {
		logs[program] = said(t, program)
	}
	l := newLab()
	for i, served := range []bool{true, false, true} {
		name := fmt.Sprintf("disturbed-%d", i)
		l.loops = []v1alpha1.Loop{loop(name, "disturbed", "zundoko")}
		stop := func(context.Context) error { return nil }
		if served {
			s, err := labapi.Start(t.Context(), cluster.Config(), labapi.Options{Backend: l})
			if err != nil {
				t.Fatal(err)
			}
			stop = s.Stop
		}
		deleteNamespace(t, cluster, name)
		if err := stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for program, log := range logs {
		for line := range strings.Lines(log()) {
			if program == "kube-apiserver" && isRetried(line) {
				continue
			}
			if strings.Contains(line, v1alpha1.GroupVersion.Group) && strings.ContainsAny(line[:1], "EW") {
				t.Errorf("%s complains: %s", program, line)
			}
		}
	}
}

// isRetried reports whether a line of kube-apiserver's log is about an operation that it retries, because the
// registration changed meanwhile.
func isRetried(line string) bool {
	return slices.ContainsFunc([]string{"the object has been modified", "not found", "loading OpenAPI spec"}, func(race string) bool {
		return strings.Contains(line, race)
	})
}

// deleteNamespace creates a namespace with an owned object, and waits until both deletions are finished.
func deleteNamespace(t *testing.T, in *sandbox.Sandbox, name string) {
	t.Helper()
	c := clientset(t, in)
	if _, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	maps := c.CoreV1().ConfigMaps(name)
	owner, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "child", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID,
	}}}}
	if _, err := maps.Create(t.Context(), child, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := maps.Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, "the child to go", func(ctx context.Context) error {
		return gone(maps.Get(ctx, "child", metav1.GetOptions{}))
	})
	collected := time.Since(began)
	began = time.Now()
	if err := c.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, "the namespace to go", func(ctx context.Context) error {
		return gone(c.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}))
	})
	t.Logf("%s: child collected after %v, namespace gone after %v", name, collected, time.Since(began))
}

func gone[T any](_ T, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	default:
		return errors.New("it is there")
	}
}

func TestRestOfKubectlIsTheSame(t *testing.T) {
	resources := kubectl(t, "api-resources", "--no-headers")
	all := kubectl(t, "get", "all", "-A", "-o", "name")
	s := serve(t, newLab())
	var others []string
	for line := range strings.Lines(kubectl(t, "api-resources", "--no-headers")) {
		if !strings.Contains(line, v1alpha1.GroupVersion.String()) {
			others = append(others, line)
		}
	}
	if got := strings.Join(others, ""); squeeze(got) != squeeze(resources) {
		t.Errorf("the resources are\n%s\nand were\n%s", got, resources)
	}
	if got := kubectl(t, "get", "all", "-A", "-o", "name"); got != all+"service/lab-api\n" {
		t.Errorf("all is\n%s\nand was\n%s", got, all)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := kubectl(t, "api-resources", "--no-headers"); squeeze(got) != squeeze(resources) {
		t.Errorf("the resources are\n%s\nand were\n%s", got, resources)
	}
	if said := refused(t, "", "get", "loops"); !strings.Contains(said, "the server doesn't have a resource type") {
		t.Error(said)
	}
}

func squeeze(table string) string { return strings.Join(strings.Fields(table), " ") }

func TestSurvivesTheAPIServer(t *testing.T) {
	sandboxtest.Long(t)
	in := another(t)
	serveIn(t, in, newLab())
	faults := client(t, in.Config(), "faults")
	if _, err := faults.Create(t.Context(), newFault("survivor"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	was := in.PIDs()["kube-apiserver"]
	if err := syscall.Kill(was, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, "another kube-apiserver to serve the lab", func(ctx context.Context) error {
		if in.PIDs()["kube-apiserver"] == was {
			return errors.New("the killed one is not replaced")
		}
		_, err := faults.Get(ctx, "survivor", metav1.GetOptions{})
		return err
	})
	sandboxtest.Eventually(t, "discovery to name it", func(context.Context) error {
		resources, err := clientset(t, in).Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
		if err != nil {
			return err
		}
		var names []string
		for _, r := range resources.APIResources {
			names = append(names, r.Name)
		}
		if slices.Sort(names); !slices.Equal(names, []string{"faults", "loops", "operators", "operators/metrics"}) {
			return fmt.Errorf("it names %v", names)
		}
		return nil
	})
	deleteNamespace(t, in, "survived")
}
