//go:build go1.23

package taps

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// withApply adds the interceptors of server-side apply.
func (t tappedClient) withApply(f interceptor.Funcs) interceptor.Funcs {
	f.Apply = t.apply
	return t.withSubApply(f)
}

func (t tappedClient) apply(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	var o client.ApplyOptions
	o.ApplyOptions(opts)
	op := applyOperation(obj)
	op.manager, op.dryRun = o.FieldManager, slices.Contains(o.DryRun, "All")
	return t.do(ctx, op, func(ctx context.Context) error { return c.Apply(ctx, obj, opts...) })
}

// applyOperation returns the operation of a server-side apply. After the call, the configuration holds the server's
// answer.
func applyOperation(obj runtime.ApplyConfiguration) operation {
	planned := encodeAny(obj)
	op := operation{verb: trace.VerbApply, object: planned.ref, kind: kindOf(planned.ref)}
	op.planned = func() version { return planned }
	op.result = func() version { return encodeAny(obj) }
	return op
}
