package operators_test

import (
	"io/fs"
	"path"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operator-lab/operator-lab/operators"
)

// TestOperators checks what the lab requires of each bundled operator.
func TestOperators(t *testing.T) {
	for _, op := range operators.All() {
		t.Run(op.Name, func(t *testing.T) {
			instance := op.New()
			flags := pflag.NewFlagSet(op.Name, pflag.ContinueOnError)
			instance.Flags(flags)
			if err := flags.Set("variant", instance.Variant()); err != nil {
				t.Errorf("it needs a flag variant that takes its own variant: %v", err)
			}
			if crds, err := instance.CRDs(); err != nil || len(crds) == 0 {
				t.Errorf("it has %d CRDs: %v", len(crds), err)
			}
			for _, dir := range []string{"rbac", path.Join("rbac", instance.Variant()), "manager"} {
				if _, err := fs.ReadDir(op.Manifests, dir); err != nil {
					t.Errorf("its manifests: %v", err)
				}
			}
			if op.Summary == "" || op.Namespace == "" || op.ServiceAccount == "" || op.LeaderElectionID == "" {
				t.Errorf("a field is empty: %+v", op)
			}
			if err := op.AddToScheme(runtime.NewScheme()); err != nil {
				t.Error(err)
			}
		})
	}
}
