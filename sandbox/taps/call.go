//go:build go1.23

package taps

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// call is an API call under way. The client begins it; the cache or the transport below record who answered. It travels
// in the context.
type call struct {
	mu     sync.Mutex
	source trace.Source
	status int
	uid    string // from the answer to a delete
	rv     string
}

type callKey struct{}

// callOf returns the call of a context, or nil.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

func (c *call) answeredBy(s trace.Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.source = s
}

// operation describes a call as the client sees it.
type operation struct {
	verb    string
	object  trace.Ref
	kind    feedKey
	manager string // field manager
	dryRun  bool
	line    string // of the source that makes the call
	// planned returns the object that a write would send; nil for deletes and reads.
	planned func() version
	// result returns the object after a successful call; nil for deletes.
	result func() version
	// count returns the number of items listed.
	count func() int
}

// do carries out a call and records it.
func (t *Taps) do(ctx context.Context, op operation, send func(context.Context) error) error {
	if callOf(ctx) != nil { // a wrapped client inside another one: already observed
		return send(ctx)
	}
	r := t.reconcileOf(ctx)
	if r != nil {
		op.line = callLine()
	}
	c := &call{}
	write := trace.IsWriteVerb(op.verb)
	var before version
	if write {
		before = t.lastKnown(op.kind, op.object.Namespace, op.object.Name)
	}
	var cause int64
	if write && !op.dryRun {
		seq, err := t.holdWrite(ctx, r, func() trace.Event { return t.plannedEvent(r, op, before) })
		if err != nil {
			e := t.plannedEvent(r, op, before)
			e.Kind, e.Cause, e.Error = trace.KindCall, seq, err.Error()
			t.append(e)
			return err
		}
		cause = seq
	}
	begun := t.journal.Elapsed()
	err := send(context.WithValue(ctx, callKey{}, c))
	t.append(t.callEvent(r, op, c, before, cause, t.elapsedSince(begun), err))
	return err
}

// event returns the fields that all events of a call have.
func (op operation) event(r *runningReconcile) trace.Event {
	e := trace.Event{Kind: trace.KindCall, Verb: op.verb, Object: op.object, FieldManager: op.manager, Line: op.line}
	if r != nil {
		e.Controller, e.Key, e.Reconcile, e.Cause = r.controller, r.key, r.id, r.start
	}
	if op.dryRun {
		e.Via = trace.ViaDryRun
	}
	return e
}

// plannedEvent describes a write that was not sent yet.
func (t *Taps) plannedEvent(r *runningReconcile, op operation, before version) trace.Event {
	e := op.event(r)
	e.Before = before.raw
	e.Object.UID = before.ref.UID
	if op.planned != nil {
		e.After = op.planned().raw
	}
	return e
}

// callEvent describes a call that returned.
func (t *Taps) callEvent(r *runningReconcile, op operation, c *call, before version, cause int64, took time.Duration, err error) trace.Event {
	e := op.event(r)
	if cause > 0 {
		e.Cause = cause
	}
	c.mu.Lock()
	e.Source, e.Status = c.source, c.status
	uid, rv := c.uid, c.rv
	c.mu.Unlock()
	e.Duration = took
	if op.count != nil && err == nil {
		e.Count = op.count()
	}
	if !trace.IsWriteVerb(op.verb) {
		t.describeRead(&e, op, err)
		return e
	}
	e.Before = before.raw
	if err != nil {
		e.Error, e.Reason = err.Error(), reasonOf(err)
		if op.planned != nil {
			e.After = op.planned().raw
		}
		return e
	}
	t.describeWrite(&e, op, before)
	if e.Object.UID == "" {
		e.Object.UID = uid
	}
	if e.Object.UID == "" {
		e.Object.UID = before.ref.UID
	}
	if e.ResourceVersion == "" {
		e.ResourceVersion = rv
	}
	return e
}

func (t *Taps) describeRead(e *trace.Event, op operation, err error) {
	if err != nil {
		e.Error, e.Reason = err.Error(), reasonOf(err)
		return
	}
	if op.result == nil {
		return
	}
	v := op.result()
	e.Object.UID, e.ResourceVersion, e.Generation = v.ref.UID, v.rv, v.generation
}

// describeWrite adds the result of a successful write.
func (t *Taps) describeWrite(e *trace.Event, op operation, before version) {
	if op.result == nil {
		return
	}
	after := op.result()
	if after.ref.Name != "" {
		e.Object.Name = after.ref.Name // the server may have generated it
	}
	e.Object.UID, e.ResourceVersion, e.Generation, e.After = after.ref.UID, after.rv, after.generation, after.raw
	e.NoOp = op.verb != trace.VerbCreate && unchanged(before, after)
	if !op.dryRun && after.ref.Kind != "" {
		t.learn(op.kind, after, false)
	}
}

// unchanged reports whether a write left an object as it was. A write that removes the last finalizer also returns the
// old resourceVersion, but ends the object.
func unchanged(before, after version) bool {
	return before.rv != "" && before.rv == after.rv && !after.deleting
}

// noWatch turns a client that cannot watch into a client.WithWatch.
type noWatch struct{ client.Client }

// errNoWatch is returned by the Watch of such a client.
var errNoWatch = errors.New("this client cannot watch")

// Watch always fails.
func (noWatch) Watch(context.Context, client.ObjectList, ...client.ListOption) (watchInterface, error) {
	return nil, errNoWatch
}

// itemCount returns a function that counts a list's items.
func itemCount(list client.ObjectList) func() int {
	return func() int { return meta.LenList(list) }
}

// versionOf returns an object's reference and versions without its content, for reads.
func versionOf(obj client.Object, kind feedKey) func() version {
	return func() version {
		return version{ref: reference(obj, kind), rv: obj.GetResourceVersion(), generation: obj.GetGeneration()}
	}
}

// encoded returns an object with its content, for writes.
func encoded(obj client.Object, kind feedKey) func() version {
	return func() version { return encode(obj, kind) }
}

// answered returns an object as the server returned it after a write. If its watch event came first, the object need
// not be encoded again.
func (t *Taps) answered(obj client.Object, op operation) func() version {
	return func() version {
		last := t.lastKnown(op.kind, obj.GetNamespace(), obj.GetName())
		if !op.dryRun && last.is(obj) {
			return last
		}
		return encode(obj, op.kind)
	}
}

// is reports whether obj is exactly this version, so that its JSON can be reused. For an object that is being deleted
// the resourceVersion does not suffice: the answer to the write that removes the last finalizer has the old one.
func (v version) is(obj client.Object) bool {
	return obj.GetDeletionTimestamp() == nil && v.raw != nil && v.rv == obj.GetResourceVersion() && v.ref.UID == string(obj.GetUID())
}

// patchOr returns what a patch would send: the desired object if the caller has it, else the patch itself.
func patchOr(obj client.Object, kind feedKey, patch client.Patch) func() version {
	return func() version {
		v := encode(obj, kind)
		if raw, ok := rawPatch(obj, patch); ok {
			v.raw = redact(raw, kind)
		}
		return v
	}
}

// rawPatch returns the body of a patch whose object holds no desired state.
func rawPatch(obj client.Object, patch client.Patch) (json.RawMessage, bool) {
	if obj.GetResourceVersion() != "" || patch == client.Apply { //nolint:staticcheck // SA1019: operators still use it
		return nil, false
	}
	raw, err := patch.Data(obj)
	return raw, err == nil && json.Valid(raw)
}
