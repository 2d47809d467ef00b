//go:build go1.23

package taps

import (
	"encoding/json"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/operator-lab/operator-lab/sandbox/apirequest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// exchange is a request that is recorded on its way to the API server, because no client was seen that made it, and its
// answer.
type exchange struct {
	taps   *Taps
	next   http.RoundTripper
	req    *http.Request
	target apirequest.Target
	named  bool // the path has a resource
	verb   string

	reconcile *runningReconcile // nil outside of one
	probably  bool              // that it belongs to the reconcile was concluded
	via       string            // of its event, unless it is a dry run
	holds     bool              // it is held if it is a write and writes are held
	to        *deliveries       // gets what the answers deliver, of a Recorder, whose requests wait while the loop is paused; else nil
}

func (t *Taps) exchange(next http.RoundTripper, req *http.Request) *exchange {
	x := &exchange{taps: t, next: next, req: req}
	x.target, x.named = apirequest.Parse(req.URL.Path)
	x.verb = apirequest.Verb(req, x.target)
	return x
}

// isMachinery reports whether a request is part of no operator's own work and is not recorded: discovery, leader
// election (which must never wait), and reviews of tokens and of access.
func (x *exchange) isMachinery() bool {
	switch x.target.Group {
	case "authentication.k8s.io", "authorization.k8s.io":
		return true
	}
	return !x.named || x.verb == "" || x.target.Resource == "leases"
}

// isStream reports whether the body of the request or of its answer is no object, but goes on for as long as it likes.
func (x *exchange) isStream() bool {
	switch sub, _, _ := strings.Cut(x.target.Subresource, "/"); sub {
	case "attach", "exec", "log", "portforward", "proxy":
		return true
	}
	return false
}

// hasContent reports whether the bodies are versions of objects that may be recorded. What is created by a subresource
// is none: it is an Eviction, a Binding, or a token, which must not get into the journal.
func (x *exchange) hasContent() bool {
	return !x.isStream() && (x.target.Subresource == "" || x.verb != trace.VerbCreate)
}

// await returns when the request may be sent, with the Seq of its last hold event; 0 if it did not wait.
func (x *exchange) await(op operation) (seq int64, err error) {
	if !x.holds {
		return 0, nil
	}
	t := x.taps
	planned := func() trace.Event {
		e := t.plannedEvent(x.reconcile, op, t.lastKnown(kindOf(op.object), x.target.Namespace, op.object.Name))
		e.Via, e.Probably = x.via, x.probably
		if seq > 0 {
			e.Cause = seq
		}
		return e
	}
	if x.to != nil { // else a reconcile that has begun goes on
		seq, err = t.pass(x.req.Context(), planned)
	}
	if err != nil || !trace.IsWriteVerb(x.verb) || op.dryRun {
		return seq, err
	}
	if held, err := t.holdNow(x.req.Context(), planned); held > 0 {
		return held, err
	}
	return seq, nil
}

// send sends the request and records it.
func (x *exchange) send() (*http.Response, error) {
	t := x.taps
	op, planned := x.operation()
	if x.to != nil {
		x.conclude(op.object, planned)
	}
	cause, err := x.await(op)
	if err != nil {
		x.drop()
		return nil, err
	}
	before := t.lastKnown(kindOf(op.object), x.target.Namespace, op.object.Name)
	e := op.event(x.reconcile)
	e.Source, e.Via, e.Probably = trace.Server, orElse(e.Via, x.via), x.probably
	if cause > 0 {
		e.Cause = cause
	}
	begun := t.journal.Elapsed()
	resp, err := x.next.RoundTrip(x.req)
	e.Duration = t.elapsedSince(begun)
	x.describe(&e, before, planned, resp, err)
	t.append(e)
	return resp, err
}

// drop closes the body of a request that is not sent.
func (x *exchange) drop() {
	if x.req.Body != nil {
		_ = x.req.Body.Close() // a RoundTripper has to, and nothing can be done about its error
	}
}

// operation describes the request as a client would, and what a write sends.
func (x *exchange) operation() (op operation, planned version) {
	query := x.req.URL.Query()
	op = operation{verb: x.verb, object: x.taps.knownRef(x.target), manager: query.Get("fieldManager"), dryRun: query.Has("dryRun")}
	if x.to == nil && x.reconcile != nil { // the program is this process
		op.line = callLine()
	}
	if !x.hasContent() {
		return op, planned
	}
	switch x.verb {
	case trace.VerbCreate, trace.VerbUpdate, trace.VerbApply:
		var raw []byte
		x.req, raw = requestBody(x.req)
		planned = decodeBody(raw)
		op.object = x.taps.named(x.target, planned.ref)
	case trace.VerbPatch:
		var raw []byte
		x.req, raw = requestBody(x.req)
		planned.raw = x.patch(raw, op.object)
	}
	op.planned = func() version { return planned }
	return op, planned
}

// patch returns the body of a patch as the journal shows it; nil if it is not JSON.
func (x *exchange) patch(raw []byte, object trace.Ref) json.RawMessage {
	if !json.Valid(raw) {
		return nil
	}
	kind := kindOf(object)
	if x.target.Group == "" && x.target.Resource == "secrets" {
		kind = secretKind.WithVersion("v1")
	}
	return redact(raw, kind)
}

// describe adds the API server's answer to the event of the request.
func (x *exchange) describe(e *trace.Event, before, planned version, resp *http.Response, err error) {
	write := trace.IsWriteVerb(x.verb)
	if write {
		e.Before = before.raw
	}
	switch {
	case err != nil:
		e.Error, e.After = err.Error(), planned.raw
	case resp.StatusCode >= http.StatusBadRequest:
		s := decodeStatus(peekBody(resp))
		e.Status, e.Reason, e.Error, e.After = resp.StatusCode, string(s.Reason), orElse(s.Message, resp.Status), planned.raw
	default:
		e.Status = resp.StatusCode
		x.describeObject(e, before, planned, resp)
	}
}

// describeObject adds the object in the answer to a request that succeeded.
func (x *exchange) describeObject(e *trace.Event, before, planned version, resp *http.Response) {
	switch {
	case !x.hasContent(), x.verb == trace.VerbDeleteAll, x.verb == trace.VerbWatch:
		return
	case x.verb == trace.VerbDelete:
		e.Object.UID, e.ResourceVersion = deletedVersion(peekBody(resp))
		return
	case x.verb == trace.VerbList:
		body := peek(resp, maxList)
		if x.to != nil {
			e.Count = x.to.list(x, body)
		} else {
			e.Count = len(x.taps.decodeList(x.target, body).items)
		}
		return
	}
	t := x.taps
	after := t.ofKind(decodeBody(peekBody(resp)), x.target)
	e.Object = t.named(x.target, after.ref)
	e.ResourceVersion, e.Generation = after.rv, after.generation
	if x.to != nil {
		x.to.saw(after.ref.UID)
	}
	whole := x.target.Subresource == "" && after.ref.Name != "" && !after.partial
	if whole {
		t.learnKind(x.target, after.ref.Kind)
	}
	if x.verb == trace.VerbGet {
		if whole {
			t.learnRead(after)
		}
		return
	}
	e.After = after.raw
	if before.rv == "" {
		before.rv = planned.rv // what the program read by other means
	}
	e.NoOp = x.verb != trace.VerbCreate && unchanged(before, after)
	if whole && e.Via != trace.ViaDryRun {
		t.learn(kindOf(after.ref), after, false)
	}
}

// sendEvent sends a request about Kubernetes Events, and records the Event that it creates.
func (x *exchange) sendEvent() (*http.Response, error) {
	if x.verb != trace.VerbCreate {
		return x.next.RoundTrip(x.req) // an increased count, or a read of Events
	}
	req, raw := requestBody(x.req)
	e := recordedEvent(raw)
	begun := x.taps.journal.Elapsed()
	resp, err := x.next.RoundTrip(req)
	e.Duration = x.taps.elapsedSince(begun)
	switch {
	case err != nil:
		e.Error = err.Error()
	case resp.StatusCode >= http.StatusBadRequest:
		e.Status, e.Error = resp.StatusCode, resp.Status
	default:
		e.Status = resp.StatusCode
	}
	x.taps.append(e)
	return resp, err
}

// recordedEvent converts a Kubernetes Event to an event of the journal. Its object is the one that the Event is about.
func recordedEvent(body []byte) trace.Event {
	e := trace.Event{Kind: trace.KindCall, Verb: trace.VerbCreate, Source: trace.Server, Via: trace.ViaRecorder}
	obj, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return e
	}
	var about corev1.ObjectReference
	var kind string
	switch o := obj.(type) {
	case *corev1.Event:
		about, kind, e.Reason, e.Message = o.InvolvedObject, o.Type, o.Reason, o.Message
	case *eventsv1.Event:
		about, kind, e.Reason, e.Message = o.Regarding, o.Type, o.Reason, o.Note
	default:
		return e
	}
	e.Values = trace.RecorderValues(kind)
	e.Object = trace.Ref{
		APIVersion: about.APIVersion, Kind: about.Kind, Namespace: about.Namespace, Name: about.Name, UID: string(about.UID),
	}
	return e
}
