package labapi_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestOnlyTheFrontProxyGetsAnAnswer sends requests to the server directly, not through kube-apiserver.
func TestOnlyTheFrontProxyGetsAnAnswer(t *testing.T) {
	serve(t, newLab())
	c, err := aggregator.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	registered, err := c.APIServices().Get(t.Context(), "v1alpha1.operator-lab.dev", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := tls.X509KeyPair(cluster.Config().CertData, cluster.Config().KeyData)
	if err != nil {
		t.Fatal(err)
	}
	for name, certificates := range map[string][]tls.Certificate{"nobody": nil, "administrator": {admin}} {
		t.Run(name, func(t *testing.T) {
			client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
				InsecureSkipVerify: true, Certificates: certificates,
			}}}
			defer client.CloseIdleConnections()
			url := fmt.Sprintf("https://127.0.0.1:%d/apis/operator-lab.dev/v1alpha1/operators", *registered.Spec.Service.Port)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("X-Remote-User", "admin")
			request.Header.Set("X-Remote-Group", "system:masters")
			if response, err := client.Do(request); err == nil {
				_ = response.Body.Close()
				t.Errorf("there is an answer: %s", response.Status)
			}
		})
	}
}

func TestRights(t *testing.T) {
	l := newLab()
	serve(t, l)
	rights := clientset(t, cluster).RbacV1()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		err := errors.Join(
			rights.ClusterRoles().Delete(ctx, "patch-only", metav1.DeleteOptions{}),
			rights.ClusterRoleBindings().Delete(ctx, "viewer", metav1.DeleteOptions{}),
			rights.ClusterRoleBindings().Delete(ctx, "patcher", metav1.DeleteOptions{}),
		)
		if err != nil {
			t.Error(err)
		}
	})
	bind := func(user, role string) {
		t.Helper()
		_, err := rights.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := rights.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "patch-only"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"operator-lab.dev"}, Resources: []string{"faults"}, Verbs: []string{"patch"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bind("viewer", "view")
	bind("patcher", "patch-only")
	as := func(name string) *rest.Config {
		t.Helper()
		config, err := cluster.User(name)
		if err != nil {
			t.Fatal(err)
		}
		return config
	}
	ctx := t.Context()
	if _, err := client(t, as("stranger"), "operators").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a stranger reads: %v", err)
	}
	sandboxtest.Eventually(t, "the viewer to read", func(ctx context.Context) error {
		_, err := client(t, as("viewer"), "operators").List(ctx, metav1.ListOptions{})
		return err
	})
	if _, err := client(t, as("viewer"), "faults").Create(ctx, newFault("viewed"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the viewer writes: %v", err)
	}
	patcher := client(t, as("patcher"), "faults")
	apply := metav1.ApplyOptions{FieldManager: "patcher"}
	sandboxtest.Eventually(t, "the patcher's right to be known", func(ctx context.Context) error {
		_, err := patcher.Apply(ctx, "patched", newFault("patched"), apply)
		if err == nil || !apierrors.IsForbidden(err) {
			return fmt.Errorf("who may only patch creates: %w", err)
		}
		return nil
	})
	if phase := l.phaseOf("patched"); phase != "" {
		t.Errorf("it is %s", phase)
	}
	if _, err := client(t, cluster.Config(), "faults").Create(ctx, newFault("patched"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, "the patcher to patch", func(ctx context.Context) error {
		o := newFault("patched")
		o.SetLabels(map[string]string{"by": "patcher"})
		_, err := patcher.Apply(ctx, "patched", o, metav1.ApplyOptions{FieldManager: "patcher", Force: true})
		return err
	})
	if got := l.phaseOf("patched"); got != v1alpha1.FaultArmed {
		t.Errorf("it is %q", got)
	}
}
