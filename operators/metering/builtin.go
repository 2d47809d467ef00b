package metering

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/kit"
)

// builtins are the ReportDataSources and ReportQueries of config/builtin, which the operator keeps in its own namespace.
type builtins struct {
	client    client.Client
	namespace string
}

// Start applies them once, when the operator begins to lead.
func (b *builtins) Start(ctx context.Context) error {
	objects, err := kit.Objects(Manifests(), "builtin")
	if err != nil {
		return err
	}
	for _, o := range objects {
		o.SetNamespace(b.namespace)
		if err := b.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}
