package operatorhost_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func TestMain(m *testing.M) {
	if _, err := sandbox.FindBinary(); err != nil {
		fmt.Printf("skipping the tests of host: %v; 'make test' builds it\n", err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fixture is a sandbox with one running bundled operator.
type fixture struct {
	lab      *sandbox.Sandbox
	operator *operatorhost.Host
	instance operators.Instance
	journal  *trace.Journal
	client   client.Client
}

// start runs an operator with flags given as pairs of name and value.
func start(t *testing.T, name string, flags ...string) *fixture {
	t.Helper()
	op, ok := operators.Find(name)
	if !ok {
		t.Fatalf("no operator %s", name)
	}
	w := &fixture{instance: op.New(), journal: trace.New(trace.Options{})}
	set := newFlagSet(w.instance)
	for i := 0; i < len(flags); i += 2 {
		if err := set.Set(flags[i], flags[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	crds, err := w.instance.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	w.lab, err = sandbox.Start(t.Context(), sandbox.Options{
		Ephemeral: true, CRDs: crds, OnAudit: operatorhost.NewOthers(w.journal, name, "host.test").Note,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.lab.Stop(); err != nil {
			t.Error(err)
		}
	})
	w.client = newClient(t, op, w.lab.Config())
	// The operator must stop before the sandbox, so it does not use the test's context, which ends before both.
	w.operator, err = operatorhost.Start(context.WithoutCancel(t.Context()), w.lab, op, w.instance, operatorhost.Options{
		Taps: taps.New(w.journal, taps.Options{Operator: op.Name}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.operator.Stop(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func newClient(t *testing.T, op operators.Operator, config *rest.Config) client.Client {
	t.Helper()
	scheme, err := operatorhost.Scheme(op)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
