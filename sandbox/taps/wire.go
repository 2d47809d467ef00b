//go:build go1.23

package taps

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/apirequest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// wire is the transport to the API server. It marks the client's calls as sent, and records writes that did not come
// from the client.
type wire struct {
	taps *Taps
	next http.RoundTripper
}

// WrappedRoundTripper lets client-go reach the transport below.
func (w *wire) WrappedRoundTripper() http.RoundTripper { return w.next }

// RoundTrip is part of http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if c := callOf(req.Context()); c != nil {
		return w.sent(c, req)
	}
	p, ok := apirequest.Parse(req.URL.Path)
	verb := apirequest.Verb(req, p)
	switch {
	case !ok, p.Resource == "leases", verb == trace.VerbWatch, verb == "":
		// Discovery, leader election (which must never wait), and watches.
		return w.next.RoundTrip(req)
	case p.Resource == "events":
		return w.recorder(req, verb)
	case trace.IsWriteVerb(verb), w.taps.reconcileOf(req.Context()) != nil:
		return w.direct(req, p, verb)
	}
	return w.next.RoundTrip(req) // an informer's list
}

// sent sends a request of the client.
func (w *wire) sent(c *call, req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.source = trace.Server
	if err != nil {
		return resp, err
	}
	c.status = resp.StatusCode
	// The client discards the answer to a delete, so it is read here.
	if req.Method == http.MethodDelete && resp.StatusCode < http.StatusMultipleChoices {
		c.uid, c.rv = deletedVersion(peekBody(resp))
	}
	return resp, nil
}

// direct sends and records a request that did not come from the client.
func (w *wire) direct(req *http.Request, p apirequest.Target, verb string) (*http.Response, error) {
	t := w.taps
	r := t.reconcileOf(req.Context())
	query := req.URL.Query()
	op := operation{verb: verb, object: t.knownRef(p), manager: query.Get("fieldManager"), dryRun: query.Has("dryRun")}
	var planned version
	if verb == trace.VerbCreate || verb == trace.VerbUpdate || verb == trace.VerbApply {
		planned = decodeBody(requestBody(req))
		op.object = named(p, planned.ref)
	}
	before := t.lastKnown(kindOf(op.object), p.Namespace, op.object.Name)
	op.planned = func() version { return planned }
	var cause int64
	if trace.IsWriteVerb(verb) && !op.dryRun {
		seq, err := t.holdWrite(req.Context(), r, func() trace.Event { return t.plannedEvent(r, op, before) })
		if err != nil {
			return nil, err
		}
		cause = seq
	}
	e := op.event(r)
	e.Source = trace.Server
	if e.Via == "" {
		e.Via = trace.ViaWire
	}
	if cause > 0 {
		e.Cause = cause
	}
	begun := t.journal.Elapsed()
	resp, err := w.next.RoundTrip(req)
	e.Duration = t.elapsedSince(begun)
	t.describeAnswer(&e, p, before, resp, err)
	t.append(e)
	return resp, err
}

// describeAnswer adds the API server's answer to the event of a request.
func (t *Taps) describeAnswer(e *trace.Event, p apirequest.Target, before version, resp *http.Response, err error) {
	if err != nil {
		e.Error = err.Error()
		return
	}
	e.Status = resp.StatusCode
	write := trace.IsWriteVerb(e.Verb)
	if resp.StatusCode >= http.StatusBadRequest {
		s := decodeStatus(peekBody(resp))
		e.Reason, e.Error = string(s.Reason), orElse(s.Message, resp.Status)
		return
	}
	if !write || e.Verb == trace.VerbDeleteAll {
		return
	}
	e.Before = before.raw
	if e.Verb == trace.VerbDelete {
		e.Object.UID, e.ResourceVersion = deletedVersion(peekBody(resp))
		return
	}
	after := decodeBody(peekBody(resp))
	e.Object = named(p, after.ref)
	t.learnKind(p, after.ref.Kind)
	e.ResourceVersion, e.Generation, e.After = after.rv, after.generation, after.raw
	e.NoOp = e.Verb != trace.VerbCreate && unchanged(before, after)
	if p.Subresource == "" && after.ref.Name != "" && e.Via != trace.ViaDryRun {
		t.learn(kindOf(after.ref), after, false)
	}
}

// recorder sends an event recorder's request and records the Event in it.
func (w *wire) recorder(req *http.Request, verb string) (*http.Response, error) {
	if verb != trace.VerbCreate {
		return w.next.RoundTrip(req) // an increased count, or a read of Events
	}
	e := recordedEvent(requestBody(req))
	begun := w.taps.journal.Elapsed()
	resp, err := w.next.RoundTrip(req)
	e.Duration = w.taps.elapsedSince(begun)
	switch {
	case err != nil:
		e.Error = err.Error()
	case resp.StatusCode >= http.StatusBadRequest:
		e.Status, e.Error = resp.StatusCode, resp.Status
	default:
		e.Status = resp.StatusCode
	}
	w.taps.append(e)
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

// decodeBody returns the version in a request's or an answer's body, JSON or protobuf.
func decodeBody(body []byte) version {
	if len(body) == 0 {
		return version{}
	}
	if body[0] == '{' {
		return decode(body)
	}
	obj, kind, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return version{}
	}
	if o, ok := obj.(client.Object); ok {
		return encode(o, *kind)
	}
	return version{}
}

// deletedVersion returns the uid of a deleted object, and its resourceVersion if finalizers keep it for now.
func deletedVersion(body []byte) (uid, rv string) {
	if s := decodeStatus(body); s.Details != nil {
		return string(s.Details.UID), ""
	}
	v := decodeBody(body)
	if !v.deleting { // some kinds answer with the deleted object
		return v.ref.UID, ""
	}
	return v.ref.UID, v.rv
}

// decodeStatus decodes a Status, JSON or protobuf; the result is empty for anything else.
func decodeStatus(body []byte) (s metav1.Status) {
	if len(body) == 0 {
		return s
	}
	if body[0] == '{' {
		if json.Unmarshal(body, &s) != nil || s.Kind != "Status" {
			return metav1.Status{}
		}
		return s
	}
	obj, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if p, ok := obj.(*metav1.Status); err == nil && ok {
		return *p
	}
	return s
}

// maxBody bounds how many bytes of a body are read; etcd takes no larger object.
const maxBody = 4 << 20

// requestBody returns a request's body without consuming it.
func requestBody(req *http.Request) []byte {
	if req.Body == nil || req.GetBody == nil {
		return nil
	}
	r, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer func() { _ = r.Close() }()
	b, err := io.ReadAll(io.LimitReader(r, maxBody))
	if err != nil {
		return nil
	}
	return plain(b, req.Header)
}

// peekBody returns an answer's body and leaves it readable.
func peekBody(resp *http.Response) []byte {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	rest := resp.Body
	var again io.Reader = io.MultiReader(bytes.NewReader(b), rest)
	if err != nil {
		again = io.MultiReader(bytes.NewReader(b), failing{err})
	}
	resp.Body = body{Reader: again, Closer: rest}
	return plain(b, resp.Header)
}

// plain returns a body if it can be decoded here: nothing if it is compressed.
func plain(b []byte, h http.Header) []byte {
	if h.Get("Content-Encoding") != "" {
		return nil
	}
	return b
}

type body struct {
	io.Reader
	io.Closer
}

// failing is a reader that returns an error met while peeking.
type failing struct{ err error }

// Read returns the error.
func (f failing) Read([]byte) (int, error) { return 0, f.err }
