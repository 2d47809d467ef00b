//go:build go1.23

package taps

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operator-lab/operator-lab/sandbox/apirequest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Recorder returns a transport that records what passes, for one run of a program of which nothing else is seen: of any
// language, with any client. A reverse proxy has it between the program and next, which reaches the API server. Such a
// program has no reconciles, no queue and no cache in the journal, only:
//
//   - its calls, with what changed, also those that opened or broke a watch;
//   - what its watches deliver;
//   - the items of the first list of each collection, as the Initial events that an informer would make of them. The
//     items of later lists are counted only.
//
// If its log tells of reconciles, they are in the journal too: give the log to [Taps.LogLine]. Before each request, told is
// called: it returns once LogLine has had all that the program had logged until then. It may be nil.
//
// Control pauses and holds its requests. Leases, discovery, and reviews of tokens and of access are not recorded.
func (t *Taps) Recorder(next http.RoundTripper, told func()) http.RoundTripper {
	if told == nil {
		told = func() {}
	}
	logged := newLogged(t)
	t.logged.Store(logged)
	t.forgetAsked()
	return &recorder{taps: t, next: next, told: told, deliveries: &deliveries{
		taps: t, logged: logged, feeds: map[feedKey]*feed{}, seen: map[string]bool{}, listed: map[string]bool{},
	}}
}

type recorder struct {
	taps       *Taps
	next       http.RoundTripper
	told       func()
	deliveries *deliveries
	first      sync.Once
}

// WrappedRoundTripper lets client-go reach the transport below.
func (r *recorder) WrappedRoundTripper() http.RoundTripper { return r.next }

// RoundTrip is part of http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.first.Do(r.taps.nowAsked)
	r.told()
	x := r.taps.exchange(r.next, req)
	switch {
	case x.isMachinery():
		return r.next.RoundTrip(req)
	case x.verb == trace.VerbWatch:
		return r.deliveries.watch(x)
	case x.target.Resource == "events":
		return x.sendEvent()
	}
	x.holds, x.via, x.to = true, trace.ViaGate, r.deliveries
	return x.send()
}

// deliveries records what lists and watches deliver in one run of a program: the next run lists everything anew.
type deliveries struct {
	taps   *Taps
	logged *logged

	mu     sync.Mutex
	feeds  map[feedKey]*feed
	seen   map[string]bool // the uids of the objects that this run has got
	listed map[string]bool // by path: whether a list came to its end
}

// saw remembers that the program has got an object, and reports whether it had before.
func (d *deliveries) saw(uid string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.seen[uid]
	d.seen[uid] = true
	return before
}

// deliver records a watch event.
func (d *deliveries) deliver(verb string, v version, initial bool) {
	kind := kindOf(v.ref)
	d.mu.Lock()
	f := d.feeds[kind]
	if f == nil {
		f = newFeed(d.taps, kind)
		f.via = trace.ViaGate
		d.feeds[kind] = f
	}
	d.mu.Unlock()
	seq := f.append(delivery{v.ref.UID, v.rv, verb}, initial, func() (version, json.RawMessage) {
		last := d.taps.lastKnown(kind, v.ref.Namespace, v.ref.Name)
		switch {
		case v.partial:
			return v, nil
		case verb != trace.Deleted && !v.deleting && last.raw != nil && last.rv == v.rv && last.ref.UID == v.ref.UID:
			return last, last.before
		}
		d.taps.learn(kind, v, verb == trace.Deleted)
		return v, last.raw
	})
	d.logged.hear(seq, v)
}

// list takes a list that was answered, and returns the number of its items.
func (d *deliveries) list(x *exchange, body []byte) (count int) {
	l := d.taps.decodeList(x.target, body)
	path := x.req.URL.Path
	d.mu.Lock()
	first := !d.listed[path]
	d.listed[path] = d.listed[path] || !l.more
	d.mu.Unlock()
	for _, v := range l.items {
		switch {
		case !d.saw(v.ref.UID) && first:
			d.deliver(trace.Added, v, true)
		case !v.partial:
			d.taps.learnRead(v)
		}
	}
	return len(l.items)
}

// watch opens a watch.
func (d *deliveries) watch(x *exchange) (*http.Response, error) {
	e := operation{verb: x.verb, object: d.taps.knownRef(x.target)}.event(nil)
	e.Source, e.Via = trace.Server, trace.ViaGate
	begun := d.taps.journal.Elapsed()
	resp, err := x.next.RoundTrip(x.req)
	e.Duration = d.taps.elapsedSince(begun)
	x.describe(&e, version{}, version{}, resp, err)
	d.taps.append(e)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	w := &watched{ReadCloser: resp.Body, deliveries: d, target: x.target}
	switch of := resp.Header.Get("Content-Type"); {
	case strings.HasPrefix(of, runtime.ContentTypeProtobuf):
		w.binary = true
	case !strings.HasPrefix(of, runtime.ContentTypeJSON):
		return resp, nil
	}
	query := x.req.URL.Query()
	switch rv := query.Get("resourceVersion"); {
	case query.Get("sendInitialEvents") == "true":
		w.initial = true
	case rv == "" || rv == "0":
		// The state comes first here too, but nothing marks its end: what was made before the watch began is the state.
		if began, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			w.initial, w.began = true, began
		}
	}
	resp.Body = w
	return resp, nil
}

// watched is the answer to a watch. Events are recorded when the program gets them.
type watched struct {
	io.ReadCloser
	deliveries *deliveries
	target     apirequest.Target

	initial bool      // the current events are the state that the watch begins with
	began   time.Time // ends the initial events where no bookmark does
	buf     []byte    // an event that has not come to its end
	deaf    bool      // an event was too long
	binary  bool      // it is protobuf, in frames with their length before them
}

// Read is part of io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	switch {
	case w.deaf:
	case w.binary:
		w.takeFrames(p[:n])
	default:
		w.take(p[:n])
	}
	return n, err
}

// frameHead is the number of bytes before a frame: its length, the highest byte first.
const frameHead = 4

// takeFrames takes the next bytes of a watch in protobuf.
func (w *watched) takeFrames(p []byte) {
	w.buf = append(w.buf, p...)
	for len(w.buf) >= frameHead {
		n := int64(binary.BigEndian.Uint32(w.buf))
		if n > maxBody {
			w.deaf = true
			return
		}
		if int64(len(w.buf)) < frameHead+n {
			return
		}
		var e metav1.WatchEvent
		if e.Unmarshal(w.buf[frameHead:frameHead+n]) == nil {
			w.event(e.Type, e.Object.Raw)
		}
		w.buf = w.buf[frameHead+n:]
	}
}

// take takes the next bytes. An event ends at the end of a line.
func (w *watched) take(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		line := p[:i]
		p = p[i+1:]
		if len(w.buf) > 0 {
			w.buf = append(w.buf, line...)
			line = w.buf
		}
		if w.line(line) {
			w.buf = w.buf[:0]
		} else if len(w.buf) == 0 {
			w.buf = append(w.buf, line...) // an event of several lines
		}
	}
	w.buf = append(w.buf, p...)
	w.deaf = len(w.buf) > maxBody
}

// initialEnd marks the bookmark that ends the initial events.
var initialEnd = []byte(metav1.InitialEventsAnnotationKey)

// line records the event in a line; false if it has not come to its end.
func (w *watched) line(line []byte) bool {
	var e struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return len(bytes.TrimSpace(line)) == 0
	}
	w.event(e.Type, e.Object)
	return true
}

// event records an event.
func (w *watched) event(verb string, object []byte) {
	t := w.deliveries.taps
	switch verb {
	case "BOOKMARK":
		w.initial = w.initial && !bytes.Contains(object, initialEnd)
	case "ERROR":
		s := decodeStatus(object)
		t.append(trace.Event{
			Kind: trace.KindCall, Verb: trace.VerbWatch, Source: trace.Server, Via: trace.ViaGate, Object: t.knownRef(w.target),
			Status: int(s.Code), Reason: string(s.Reason), Error: orElse(s.Message, "the watch broke"),
		})
	case trace.Added, trace.Modified, trace.Deleted:
		for _, raw := range rows(object) {
			v, created := t.decodeItem(raw, w.target, trace.Ref{})
			w.initial = w.initial && (w.began.IsZero() || verb == trace.Added && created.Before(w.began))
			w.deliveries.saw(v.ref.UID)
			w.deliveries.deliver(verb, v, w.initial)
		}
	}
}

// rows returns the objects of a table; any other object is one row.
func rows(raw json.RawMessage) []json.RawMessage {
	var table struct {
		Kind string `json:"kind"`
		Rows []struct {
			Object json.RawMessage `json:"object"`
		} `json:"rows"`
	}
	if !bytes.Contains(raw, []byte(`"Table"`)) || json.Unmarshal(raw, &table) != nil || table.Kind != "Table" {
		return []json.RawMessage{raw}
	}
	out := make([]json.RawMessage, 0, len(table.Rows))
	for _, r := range table.Rows {
		out = append(out, r.Object)
	}
	return out
}
