//go:build go1.23

package taps

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// withSubApply adds the interceptor of server-side apply of subresources.
func (t tappedClient) withSubApply(f interceptor.Funcs) interceptor.Funcs {
	f.SubResourceApply = t.subApply
	return f
}

func (t tappedClient) subApply(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	var o client.SubResourceApplyOptions
	o.ApplyOpts(opts)
	op := applyOperation(obj)
	op.object.Subresource, op.manager, op.dryRun = sub, o.FieldManager, slices.Contains(o.DryRun, "All")
	return t.do(ctx, op, func(ctx context.Context) error { return c.SubResource(sub).Apply(ctx, obj, opts...) })
}
