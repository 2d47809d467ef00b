//go:build go1.23

package taps

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

type watchInterface = watch.Interface

// tappedClient has an interceptor for each method of a client, which observes the call.
type tappedClient struct{ *Taps }

// funcs returns the interceptors.
func (t tappedClient) funcs() interceptor.Funcs {
	return t.withApply(interceptor.Funcs{
		Get: t.get, List: t.list,
		Create: t.create, Update: t.update, Patch: t.patch,
		Delete: t.delete, DeleteAllOf: t.deleteAllOf,
		SubResourceGet: t.subGet, SubResourceCreate: t.subCreate,
		SubResourceUpdate: t.subUpdate, SubResourcePatch: t.subPatch,
	})
}

// reader is what a client and a cache have in common.
type reader interface {
	client.Reader
	GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error)
}

// operationOn returns the operation of a call on an object.
func operationOn(c reader, verb string, obj client.Object) operation {
	kind, err := c.GroupVersionKindFor(obj)
	if err != nil { // the call will fail for the same reason, and say so
		kind = obj.GetObjectKind().GroupVersionKind()
	}
	op := operation{verb: verb, kind: kind, object: reference(obj, kind)}
	if op.object.Name == "" && obj.GetGenerateName() != "" {
		op.object.Name = obj.GetGenerateName() + "*"
	}
	return op
}

func (t tappedClient) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return t.getBy(ctx, c, key, obj, opts...)
}

func (t tappedClient) list(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	return t.listBy(ctx, c, list, opts...)
}

// getBy reads an object.
func (t tappedClient) getBy(ctx context.Context, c reader, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	op := operationOn(c, trace.VerbGet, obj)
	op.object.Namespace, op.object.Name, op.object.UID = key.Namespace, key.Name, ""
	op.result = versionOf(obj, op.kind)
	return t.do(ctx, op, func(ctx context.Context) error { return c.Get(ctx, key, obj, opts...) })
}

// listBy reads a list.
func (t tappedClient) listBy(ctx context.Context, c reader, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	kind, err := c.GroupVersionKindFor(list)
	if err != nil {
		kind = list.GetObjectKind().GroupVersionKind()
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	op := operation{verb: trace.VerbList, kind: kind, count: itemCount(list)}
	op.object.APIVersion, op.object.Kind = kind.ToAPIVersionAndKind()
	op.object.Namespace = o.Namespace
	return t.do(ctx, op, func(ctx context.Context) error { return c.List(ctx, list, opts...) })
}

func (t tappedClient) create(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
	var o client.CreateOptions
	o.ApplyOptions(opts)
	op := operationOn(c, trace.VerbCreate, obj)
	op.manager, op.dryRun = o.FieldManager, slices.Contains(o.DryRun, "All")
	op.planned, op.result = encoded(obj, op.kind), t.answered(obj, op)
	return t.do(ctx, op, func(ctx context.Context) error { return c.Create(ctx, obj, opts...) })
}

func (t tappedClient) update(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
	var o client.UpdateOptions
	o.ApplyOptions(opts)
	op := operationOn(c, trace.VerbUpdate, obj)
	op.manager, op.dryRun = o.FieldManager, slices.Contains(o.DryRun, "All")
	op.planned, op.result = encoded(obj, op.kind), t.answered(obj, op)
	return t.do(ctx, op, func(ctx context.Context) error { return c.Update(ctx, obj, opts...) })
}

func (t tappedClient) patch(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	var o client.PatchOptions
	o.ApplyOptions(opts)
	op := operationOn(c, patchVerb(patch), obj)
	op.manager, op.dryRun = o.FieldManager, slices.Contains(o.DryRun, "All")
	op.planned, op.result = patchOr(obj, op.kind, patch), t.answered(obj, op)
	return t.do(ctx, op, func(ctx context.Context) error { return c.Patch(ctx, obj, patch, opts...) })
}

// patchVerb distinguishes server-side apply from other patches.
func patchVerb(p client.Patch) string {
	if p == client.Apply { //nolint:staticcheck // SA1019: operators still use it
		return trace.VerbApply
	}
	return trace.VerbPatch
}

func (t tappedClient) delete(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
	var o client.DeleteOptions
	o.ApplyOptions(opts)
	op := operationOn(c, trace.VerbDelete, obj)
	op.dryRun = slices.Contains(o.DryRun, "All")
	return t.do(ctx, op, func(ctx context.Context) error { return c.Delete(ctx, obj, opts...) })
}

func (t tappedClient) deleteAllOf(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
	var o client.DeleteAllOfOptions
	o.ApplyOptions(opts)
	op := operationOn(c, trace.VerbDeleteAll, obj)
	op.object.Namespace, op.object.Name = o.Namespace, ""
	op.dryRun = slices.Contains(o.DryRun, "All")
	return t.do(ctx, op, func(ctx context.Context) error { return c.DeleteAllOf(ctx, obj, opts...) })
}

func (t tappedClient) subGet(ctx context.Context, c client.Client, sub string, obj, into client.Object, opts ...client.SubResourceGetOption) error {
	op := operationOn(c, trace.VerbGet, obj)
	op.object.Subresource, op.result = sub, versionOf(into, op.kind)
	return t.do(ctx, op, func(ctx context.Context) error { return c.SubResource(sub).Get(ctx, obj, into, opts...) })
}

func (t tappedClient) subCreate(ctx context.Context, c client.Client, sub string, obj, body client.Object, opts ...client.SubResourceCreateOption) error {
	var o client.SubResourceCreateOptions
	o.ApplyOptions(opts)
	op := operationOn(c, trace.VerbCreate, obj)
	op.object.Subresource, op.manager, op.dryRun = sub, o.FieldManager, slices.Contains(o.DryRun, "All")
	// The answer is an Eviction, a TokenRequest…, not a version of obj. Its content, such as a token, must not get into
	// the journal.
	return t.do(ctx, op, func(ctx context.Context) error { return c.SubResource(sub).Create(ctx, obj, body, opts...) })
}

func (t tappedClient) subUpdate(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	var o client.SubResourceUpdateOptions
	o.ApplyOptions(opts)
	op := operationOn(c, trace.VerbUpdate, obj)
	op.object.Subresource, op.manager, op.dryRun = sub, o.FieldManager, slices.Contains(o.DryRun, "All")
	op.planned = encoded(obj, op.kind)
	if o.SubResourceBody == nil {
		op.result = t.answered(obj, op)
	}
	return t.do(ctx, op, func(ctx context.Context) error { return c.SubResource(sub).Update(ctx, obj, opts...) })
}

func (t tappedClient) subPatch(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	var o client.SubResourcePatchOptions
	o.ApplyOptions(opts)
	op := operationOn(c, patchVerb(patch), obj)
	op.object.Subresource, op.manager, op.dryRun = sub, o.FieldManager, slices.Contains(o.DryRun, "All")
	op.planned = patchOr(obj, op.kind, patch)
	if o.SubResourceBody == nil {
		op.result = t.answered(obj, op)
	}
	return t.do(ctx, op, func(ctx context.Context) error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
}
