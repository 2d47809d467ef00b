package operatorhost_test

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// testGrants checks that a second start leaves permissions alone that nobody has touched, and applies them where somebody has.
func (w *fixture) testGrants(t *testing.T) {
	op, _ := operators.Find("zundoko")
	known := &operatorhost.Known{}
	c := newClient(t, op, w.lab.Config())
	binding := &rbacv1.ClusterRoleBinding{}
	start := func() error {
		t.Helper()
		host, err := operatorhost.Start(context.WithoutCancel(t.Context()), w.lab, op, w.instance, operatorhost.Options{
			Taps: taps.New(trace.New(trace.Options{}), taps.Options{Operator: op.Name}), Known: known,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := host.Stop(); err != nil {
			t.Fatal(err)
		}
		return c.Get(t.Context(), client.ObjectKey{Name: "zundoko-manager"}, binding)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(start())
	first := binding.DeepCopy()
	must(start())
	if binding.UID != first.UID || binding.ResourceVersion != first.ResourceVersion {
		t.Errorf("the permissions were written again: %+v", binding)
	}
	must(c.Delete(t.Context(), first))
	known.Unchanging = true
	if err := start(); !apierrors.IsNotFound(err) {
		t.Errorf("permissions that nobody touches were looked at: %v", err)
	}
	known.Unchanging = false
	must(start())
	if binding.UID == first.UID {
		t.Errorf("the permissions that were deleted are not back: %+v", binding)
	}
}
