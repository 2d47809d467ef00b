package fault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/apirequest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// stream is a watch response on its way to the operator.
type stream struct {
	apirequest.Target
	transport *transport
	injector  *Injector
	ctx       context.Context // of the request; Read has no context of its own
	req       *http.Request
	body      io.ReadCloser
	opaque    bool // not JSON, although that was requested: events are not inspected

	// Only Read touches these.
	frames  frames
	out     []byte // the part of the last event that was not read yet
	initial bool   // the current events are the state that the watch begins with
	last    bool   // the stream ends after out
	tail    string // an event that follows the next one
	known   bool   // the kind of the objects was learned
	said    bool   // the reader was told that the watch is gone
	behind  behind // what was held up

	once  sync.Once
	ended chan struct{}
	err   error // the reason; set before ended is closed
}

// event holds the fields that the injector reads of a watch event.
type event struct {
	Type   string `json:"type"`
	Object head   `json:"object"`
}

// watch opens a watch stream.
func (t *transport) watch(req *http.Request) (*http.Response, error) {
	target, ok := apirequest.Parse(req.URL.Path)
	if !ok || exempt(target) {
		return t.pass(req)
	}
	if outside, _ := req.Context().Value(outsideKey{}).(bool); outside {
		return t.pass(req)
	}
	plain := req.Clone(req.Context())
	plain.Header.Set("Accept", readable(req.Header.Get("Accept")))
	initial, plain, err := t.initialEvents(plain)
	if err != nil {
		return nil, err
	}
	resp, err := t.next.RoundTrip(plain)
	if err != nil || resp.StatusCode != http.StatusOK {
		if t.injector.isDead.Load() {
			drop(resp)
			return nil, t.injector.ending(req)
		}
		return resp, err
	}
	s := &stream{
		Target: target, transport: t, injector: t.injector, ctx: req.Context(), req: plain, body: resp.Body, ended: make(chan struct{}),
		opaque:  !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") || resp.Header.Get("Content-Encoding") != "",
		initial: req.URL.Query().Get("sendInitialEvents") == "true",
	}
	s.frames.r = io.MultiReader(strings.NewReader(initial), s.body)
	if !t.injector.open(s) {
		drop(resp)
		return nil, t.injector.ending(req)
	}
	resp.Body = s
	return resp, nil
}

// readable returns an Accept header that asks for JSON instead of the binary formats. Parameters, such as those that
// ask for the metadata alone, stay.
func readable(accept string) string {
	if accept == "" {
		return "application/json"
	}
	var out []string
	for entry := range strings.SplitSeq(accept, ",") {
		kind, params, _ := strings.Cut(strings.TrimSpace(entry), ";")
		if kind == "application/vnd.kubernetes.protobuf" || kind == "application/cbor" {
			kind = "application/json"
		}
		if params != "" {
			kind += ";" + params
		}
		if !slices.Contains(out, kind) {
			out = append(out, kind)
		}
	}
	return strings.Join(out, ",")
}

// errGone ends a stream that tells its reader first that what it watches is gone.
var errGone = errors.New("410 Gone")

// Read is part of io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.read(p)
	if !errors.Is(err, errGone) {
		return n, err
	}
	if !s.said {
		s.said, s.out = true, []byte(gone)
	}
	if n = copy(p, s.out); n == 0 {
		return 0, io.EOF
	}
	s.out = s.out[n:]
	return n, nil
}

func (s *stream) read(p []byte) (int, error) {
	if s.opaque {
		return s.readOpaque(p)
	}
	for len(s.out) == 0 {
		if s.last {
			s.end(io.EOF)
		}
		if err := s.over(); err != nil {
			return 0, err
		}
		frame, err := s.frames.next()
		if err != nil {
			return 0, s.why(err)
		}
		if s.judge(frame) {
			s.out = frame
		}
		if s.tail != "" {
			s.out, s.tail = slices.Concat(s.out, []byte(s.tail)), ""
		}
		if err := s.over(); err != nil {
			return 0, err // the stream ended while the event was held up
		}
	}
	if s.injector.isDead.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

func (s *stream) readOpaque(p []byte) (int, error) {
	if err := s.over(); err != nil {
		return 0, err
	}
	n, err := s.body.Read(p)
	if err != nil {
		err = s.why(err)
	}
	return n, err
}

// over returns the reason if the stream was ended; nil if it was not.
func (s *stream) over() error {
	select {
	case <-s.ended:
		return s.err
	default:
		return nil
	}
}

// why returns the reason of a failed read: the stream's own if it was ended here, else the given one.
func (s *stream) why(err error) error {
	if own := s.over(); own != nil {
		return own
	}
	return err
}

// end ends the stream; only the first call has an effect.
func (s *stream) end(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.ended)
		s.injector.forget(s)
		_ = s.body.Close() // the stream is over, whatever Close returns
	})
}

// Close is part of io.Closer.
func (s *stream) Close() error {
	s.end(http.ErrBodyReadAfterClose)
	return nil
}

// cut ends the operator's watches of a resource, or all if it is empty, except for one stream; why is what their reads return,
// [io.EOF] or errGone. It returns how many.
func (in *Injector) cut(of schema.GroupResource, but *stream, why error) int {
	in.mu.Lock()
	var cut []*stream
	for f := range in.flows {
		if s, ok := f.(*stream); ok && s != but && (of.Empty() || s.GroupResource() == of) {
			cut = append(cut, s)
		}
	}
	in.mu.Unlock()
	for _, s := range cut {
		s.end(why)
	}
	return len(cut)
}

// initialEnd marks the bookmark that ends the initial events of a WatchList.
var initialEnd = []byte(`"k8s.io/initial-events-end"`)

// judge reports whether the operator gets an event. It blocks while a fault delays the event.
func (s *stream) judge(frame []byte) (pass bool) {
	armed := s.injector.faults.armed.Load()
	if s.known && !s.initial && len(armed.watches) == 0 && len(armed.views) == 0 && s.behind.newest == 0 {
		return true
	}
	var e event
	if json.Unmarshal(frame, &e) != nil {
		return true // the operator reports the error itself
	}
	if s.initial {
		s.initial = e.Type != "BOOKMARK" || !bytes.Contains(frame, initialEnd)
	}
	if !s.known {
		s.known = true
		if s.Subresource == "" {
			s.injector.faults.learn(s.GroupResource(), e.Object.Kind)
		}
	}
	if s.initial || e.Type != "BOOKMARK" && !slices.Contains(eventVerbs, e.Type) {
		return true
	}
	pass = true
	for _, x := range armed.watches {
		if !x.applies(s.injector.operator) {
			continue
		}
		pass = s.meet(x, &e, frame) && pass
	}
	return s.await(&e) && pass
}

// meet applies one fault to an event, and reports whether the operator gets the event.
func (s *stream) meet(x *fault, e *event, frame []byte) (pass bool) {
	f := s.injector.faults
	t := s.Target
	t.Namespace, t.Name = e.Object.Metadata.Namespace, e.Object.Metadata.Name
	if !slices.Contains(x.verbs, e.Type) || !x.target(t, orElse(f.kind(t.GroupResource()), e.Object.Kind)) || x.matcher.name != "" && !glob(x.matcher.name, t.Name) {
		return true
	}
	if x.spec.Stale != nil && x.isStale() {
		return true // it does not happen again while it lasts
	}
	id := eventID{s.injector.operator, t.GroupResource(), e.Object.Metadata.UID, e.Object.Metadata.ResourceVersion, e.Type}
	decision, known := f.decision(x, id)
	if !known {
		if x.field != nil {
			changes, err := s.transport.eventChanges(s, e, frame, x.field)
			if err != nil {
				f.complain(x, err)
			}
			if !changes {
				return true
			}
		}
		decision, known = f.decide(x, id)
	}
	if decision == nil {
		return true
	}
	if x.spec.Stale != nil {
		if !known {
			x.behindEvent(t.GroupResource(), s.event(t, e))
		}
		return true
	}
	switch x.spec.Watch.Action {
	case v1alpha1.WatchCoalesce:
		if !known {
			f.happened(x, s.event(t, e))
		}
		return false
	case v1alpha1.WatchCut, v1alpha1.WatchGone:
		if !known { // from another stream: the fault happened there already
			f.happened(x, s.event(t, e))
			s.injector.cut(s.GroupResource(), s, io.EOF)
			s.last = true
			if x.spec.Watch.Action == v1alpha1.WatchGone {
				s.tail = gone
			}
		}
	case v1alpha1.WatchDelay:
		if !known {
			f.happened(x, s.event(t, e))
		}
		s.delay(x, decision)
	}
	return true
}

// delay blocks the stream until the event's delay is over.
func (s *stream) delay(x *fault, decision *decision) {
	until, stop := decision.timer()
	defer stop()
	err := s.injector.faults.wait(s.ctx, s.injector, x, until, s.ended)
	if err != nil && !errors.Is(err, errDead) {
		s.end(err)
	}
}

// event describes a watch event that a fault happens at.
func (s *stream) event(t apirequest.Target, e *event) trace.Event {
	kind := orElse(s.injector.faults.kind(t.GroupResource()), e.Object.Kind)
	version := t.Version
	if t.Group != "" {
		version = t.Group + "/" + t.Version
	}
	out := trace.Event{
		Operator: s.injector.operator, Verb: e.Type, ResourceVersion: e.Object.Metadata.ResourceVersion,
		Object: trace.Ref{APIVersion: version, Kind: kind, Namespace: t.Namespace, Name: t.Name, UID: e.Object.Metadata.UID},
	}
	out.Message = fmt.Sprintf("%s %s on its way to %s", e.Type, objectText(out.Object), s.injector.operator)
	return out
}
