package operatorhost_test

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// testGrants checks that a second start leaves permissions alone that nobody has touched, and applies them where somebody has.
func (w *fixture) testGrants(t *testing.T) {
	op, _ := operators.Find("zundoko")
	granted := &operatorhost.Granted{}
	c := newClient(t, op, w.lab.Config())
	startAgain := func() *rbacv1.ClusterRoleBinding {
		t.Helper()
		host, err := operatorhost.Start(context.WithoutCancel(t.Context()), w.lab, op, w.instance, operatorhost.Options{
			Taps: taps.New(trace.New(trace.Options{}), taps.Options{Operator: op.Name}), Granted: granted,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := host.Stop(); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.ClusterRoleBinding{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "zundoko-manager"}, binding); err != nil {
			t.Fatal(err)
		}
		return binding
	}
	first := startAgain()
	if again := startAgain(); again.UID != first.UID || again.ResourceVersion != first.ResourceVersion {
		t.Errorf("the permissions were written again: %+v", again)
	}
	if err := c.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if again := startAgain(); again.UID == first.UID {
		t.Errorf("the permissions that were deleted are not back: %+v", again)
	}
}
