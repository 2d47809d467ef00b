package fault_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// watches is a server whose watches send what a test specifies.
type watches struct {
	*server
	mu   sync.Mutex
	open []*watchEnd
}

// watchEnd is the server's end of a watch. Its pipe is unbounded, like a connection with large buffers.
type watchEnd struct {
	mu     sync.Mutex
	text   strings.Builder
	read   int
	closed bool
	wake   chan struct{}
	header http.Header
}

func (w *watchEnd) Read(p []byte) (int, error) {
	for {
		w.mu.Lock()
		if n := copy(p, w.text.String()[w.read:]); n > 0 {
			w.read += n
			w.mu.Unlock()
			return n, nil
		}
		if w.closed {
			w.mu.Unlock()
			return 0, io.EOF
		}
		wake := w.wake
		w.mu.Unlock()
		<-wake
	}
}

func (w *watchEnd) Close() error { w.change(func() { w.closed = true }); return nil }

func (w *watchEnd) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.wake)
	w.wake = make(chan struct{})
}

func (w *watchEnd) tell(lines ...string) {
	w.change(func() {
		for _, l := range lines {
			w.text.WriteString(l + "\n")
		}
	})
}

func (w *watches) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.Contains(req.URL.RawQuery, "watch=") {
		return w.server.RoundTrip(req)
	}
	end := &watchEnd{wake: make(chan struct{}), header: req.Header}
	w.mu.Lock()
	w.open = append(w.open, end)
	w.mu.Unlock()
	resp := response(req, http.StatusOK, "")
	resp.Body, resp.ContentLength = end, -1
	return resp, nil
}

// watching is the operator's end of a watch.
type watching struct {
	server *watchEnd
	body   io.Closer
	mu     sync.Mutex
	seen   []string
	err    error
}

// watch opens a watch and reads it to its end in the background.
func (b *bench) watch(w *watches, what string) *watching {
	b.Helper()
	resp, err := b.way.RoundTrip(b.request(b.Context(), "GET "+what, ""))
	if err != nil {
		b.Fatal(err)
	}
	out := &watching{server: w.open[len(w.open)-1], body: resp.Body}
	go func() {
		in := bufio.NewScanner(resp.Body)
		for in.Scan() {
			var e struct {
				Type   string
				Object struct{ Metadata metav1.ObjectMeta }
			}
			if json.Unmarshal(in.Bytes(), &e) == nil {
				out.mu.Lock()
				out.seen = append(out.seen, fmt.Sprint(e.Type, " ", e.Object.Metadata.Name, " ", e.Object.Metadata.ResourceVersion))
				out.mu.Unlock()
			}
		}
		out.mu.Lock()
		out.err = in.Err()
		if out.err == nil {
			out.err = io.EOF
		}
		out.mu.Unlock()
	}()
	return out
}

// got returns what has arrived so far, and clears it.
func (w *watching) got() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	s := strings.Join(w.seen, ", ")
	w.seen = nil
	return s
}

func (w *watching) ended() error {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func happening(verb, name string, rv int, fields string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"apiVersion":"music.example.com/v1","kind":"Song","metadata":{"name":%q,"namespace":"default","uid":"u-%s","resourceVersion":"%d"}%s}}`,
		verb, name, name, rv, fields)
}

const initialEnd = `{"type":"BOOKMARK","object":{"kind":"Song","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}`

// watchBench runs a test in a synctest bubble, with a server that has watches; all of them are closed at its end.
func watchBench(t *testing.T, test func(t *testing.T, b *bench, w *watches)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		w := &watches{server: b.server}
		b.next = w
		b.live()
		test(t, b, w)
		b.faults.Close()
		b.injector.Die()
		for _, end := range w.open {
			_ = end.Close()
		}
	})
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestWatchPasses(t *testing.T) {
	watchBench(t, func(t *testing.T, b *bench, w *watches) {
		s := b.watch(w, songs+"?watch=true")
		s.server.tell(happening(trace.Added, "one", 1, ""), happening(trace.Modified, "one", 2, ""), `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}`)
		want(t, "events", s.got(), "ADDED one 1, MODIFIED one 2, BOOKMARK  7")
		s.server.tell(`{"type":"ERROR","object":{"kind":"Status","code":410}}`, `no JSON`)
		_ = s.server.Close()
		want(t, "events", s.got(), "ERROR  ")
		if err := s.ended(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
}

func TestAccept(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "application/json"},
		{"application/json", "application/json"},
		{"application/vnd.kubernetes.protobuf,application/json", "application/json"},
		{"application/vnd.kubernetes.protobuf", "application/json"},
		{"application/cbor;q=0.5, */*", "application/json;q=0.5,*/*"},
		{
			"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
			"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
		},
		{"application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v1"},
	} {
		watchBench(t, func(t *testing.T, b *bench, w *watches) {
			req := b.request(t.Context(), "GET "+songs+"?watch=true", "")
			req.Header.Set("Accept", c.in)
			resp, err := b.way.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			want(t, c.in, w.open[0].header.Get("Accept"), c.want)
			want(t, "the caller's own header", req.Header.Get("Accept"), c.in)
		})
	}
}

func TestCoalesce(t *testing.T) {
	watchBench(t, func(t *testing.T, b *bench, w *watches) {
		b.arm("f", v1alpha1.FaultSpec{
			Match: &v1alpha1.FaultMatch{Kind: "Song", Name: "o*", Nth: 2}, Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchCoalesce},
		})
		s := b.watch(w, songs+"?watch=true&sendInitialEvents=true")
		other := b.watch(w, songs+"?watch=true") // another informer of the same kind
		s.server.tell(happening(trace.Added, "one", 1, ""), happening(trace.Added, "on", 2, ""), initialEnd)
		want(t, "the state is not counted", s.got(), "ADDED one 1, ADDED on 2, BOOKMARK  9")
		b.wantStatus("f", v1alpha1.FaultArmed, 0, 0, false)
		events := []string{
			happening(trace.Modified, "one", 11, ""), happening(trace.Modified, "two", 12, ""),
			happening(trace.Modified, "one", 13, ""), happening(trace.Modified, "one", 14, ""),
		}
		s.server.tell(events...)
		want(t, "events", s.got(), "MODIFIED one 11, MODIFIED two 12, MODIFIED one 14")
		other.server.tell(events...)
		want(t, "the same events by another stream", other.got(), "MODIFIED one 11, MODIFIED two 12, MODIFIED one 14")
		again := b.watch(w, songs+"?watch=true&resourceVersion=12")
		again.server.tell(events[2:]...)
		want(t, "the same events again", again.got(), "MODIFIED one 14")
		st := b.wantStatus("f", v1alpha1.FaultInjected, 2, 1, true)
		want(t, "message", st.Message, "MODIFIED Song default/one on its way to zundoko")
		e := b.injected()[0]
		if len(b.injected()) != 1 || e.Verb != trace.Modified || e.ResourceVersion != "13" || e.Object.UID != "u-one" || e.Operator != "zundoko" {
			t.Errorf("%+v", e)
		}
		b.faults.Disarm("f")
		again.server.tell(events[2])
		want(t, "without the fault", again.got(), "MODIFIED one 13")
	})
}

func TestWatchVerbs(t *testing.T) {
	watchBench(t, func(t *testing.T, b *bench, w *watches) {
		b.arm("f", v1alpha1.FaultSpec{
			Match: &v1alpha1.FaultMatch{Verbs: []string{trace.Deleted}, Namespace: "default", Group: "music.example.com", Times: new(int32(0))},
			Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchCoalesce},
		})
		s := b.watch(w, "/apis/music.example.com/v1/songs?watch=1")
		s.server.tell(happening(trace.Added, "one", 1, ""), happening(trace.Deleted, "one", 2, ""), happening(trace.Added, "one", 3, ""), happening(trace.Deleted, "one", 4, ""))
		want(t, "events", s.got(), "ADDED one 1, ADDED one 3")
		b.wantStatus("f", v1alpha1.FaultInjected, 2, 2, false)
	})
}

func TestCut(t *testing.T) {
	watchBench(t, func(t *testing.T, b *bench, w *watches) {
		b.arm("f", v1alpha1.FaultSpec{
			Match: &v1alpha1.FaultMatch{Kind: "Song", Nth: 2}, Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchCut},
		})
		s, twin, other := b.watch(w, songs+"?watch=true"), b.watch(w, songs+"?watch=true"), b.watch(w, maps+"?watch=true")
		events := []string{happening(trace.Added, "one", 1, ""), happening(trace.Added, "two", 2, ""), happening(trace.Added, "three", 3, "")}
		s.server.tell(events...)
		want(t, "up to the event, with it", s.got(), "ADDED one 1, ADDED two 2")
		if err := s.ended(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		if err := twin.ended(); !errors.Is(err, io.EOF) {
			t.Error("the other watch of the kind goes on:", err)
		}
		if err := other.ended(); err != nil {
			t.Error("a watch of another kind was cut:", err)
		}
		again := b.watch(w, songs+"?watch=true&resourceVersion=0")
		again.server.tell(events...)
		want(t, "the next stream", again.got(), "ADDED one 1, ADDED two 2, ADDED three 3")
		if err := again.ended(); err != nil {
			t.Error("it was cut again:", err)
		}
		b.wantStatus("f", v1alpha1.FaultInjected, 2, 1, true)
		// Without a match all watches are cut, at once.
		b.arm("all", v1alpha1.FaultSpec{Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchCut}})
		if again.ended() == nil || other.ended() == nil {
			t.Error("a watch goes on")
		}
		if st := b.wantStatus("all", v1alpha1.FaultInjected, 1, 1, true); st.Message != "2 watches when the fault was made" {
			t.Error(st.Message)
		}
		// So are they with 410 Gone, and their readers are told.
		s, other = b.watch(w, songs+"?watch=true"), b.watch(w, maps+"?watch=true")
		s.server.tell(events[0])
		want(t, "before", s.got(), "ADDED one 1")
		b.arm("gone", v1alpha1.FaultSpec{Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchGone}})
		for _, one := range []*watching{s, other} {
			if got, err := one.got(), one.ended(); !strings.HasPrefix(got, "ERROR") || !errors.Is(err, io.EOF) {
				t.Errorf("%q, %v", got, err)
			}
		}
		b.wantStatus("gone", v1alpha1.FaultInjected, 1, 1, true)
	})
}

func TestWatchDelay(t *testing.T) {
	watchBench(t, func(t *testing.T, b *bench, w *watches) {
		b.arm("f", v1alpha1.FaultSpec{
			Match: &v1alpha1.FaultMatch{Kind: "Song", Nth: 2, Times: new(int32(2))},
			Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchDelay, For: &metav1.Duration{Duration: time.Minute}},
		})
		s := b.watch(w, songs+"?watch=true")
		events := []string{
			happening(trace.Added, "one", 1, ""), happening(trace.Added, "two", 2, ""),
			happening(trace.Added, "three", 3, ""), happening(trace.Added, "four", 4, ""),
		}
		s.server.tell(events...)
		want(t, "before the event", s.got(), "ADDED one 1")
		b.wantStatus("f", v1alpha1.FaultInjected, 2, 1, false)
		again := b.watch(w, songs+"?watch=true") // the same event is held up there too, equally long
		again.server.tell(events...)
		want(t, "the other stream", again.got(), "ADDED one 1")
		time.Sleep(61 * time.Second) //nolint:forbidigo // in a bubble
		want(t, "after its time, up to the next", s.got(), "ADDED two 2")
		want(t, "the other stream", again.got(), "ADDED two 2")
		b.faults.Release("f")
		want(t, "released", s.got(), "ADDED three 3, ADDED four 4")
		want(t, "the other stream", again.got(), "ADDED three 3, ADDED four 4")
		b.wantStatus("f", v1alpha1.FaultReleased, 3, 2, true)
	})
}

// TestDelayedStreamEnds checks that a delayed stream ends when the operator closes it, when it is cut, and when the
// operator dies, without delivering the event.
func TestDelayedStreamEnds(t *testing.T) {
	for _, how := range []string{"closed", "cut", "death"} {
		watchBench(t, func(t *testing.T, b *bench, w *watches) {
			b.arm("f", v1alpha1.FaultSpec{Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchDelay}})
			s := b.watch(w, songs+"?watch=true")
			s.server.tell(happening(trace.Added, "one", 1, ""))
			want(t, how, s.got(), "")
			switch how {
			case "closed":
				_ = s.body.Close()
			case "cut":
				b.arm("cut", v1alpha1.FaultSpec{Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchCut}})
			case "death":
				b.injector.Die()
			}
			want(t, how, s.got(), "")
			if err := s.ended(); err == nil {
				t.Error(how, "it is still held up")
			}
			if how != "death" {
				again := b.watch(w, songs+"?watch=true")
				again.server.tell(happening(trace.Added, "one", 1, ""))
				want(t, "the next stream is held up too", again.got(), "")
				b.faults.Release("f")
				want(t, "released", again.got(), "ADDED one 1")
			}
		})
	}
}

func TestDeathCutsStreams(t *testing.T) {
	watchBench(t, func(t *testing.T, b *bench, w *watches) {
		s := b.watch(w, songs+"?watch=true")
		b.arm("f", crash(v1alpha1.After, &v1alpha1.FaultMatch{}))
		if _, _, err := b.send("POST "+songs, "{}"); err == nil {
			t.Error("the answer came")
		}
		s.server.tell(happening(trace.Added, "one", 1, ""))
		want(t, "after death", s.got(), "")
		if err := s.ended(); err == nil {
			t.Error("it goes on")
		}
	})
}

// TestWatchField checks that the injector reads what the object was before.
func TestWatchField(t *testing.T) {
	watchBench(t, func(t *testing.T, b *bench, w *watches) {
		b.arm("f", v1alpha1.FaultSpec{
			Match: &v1alpha1.FaultMatch{Field: "spec.loud", Times: new(int32(0))}, Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchCoalesce},
		})
		b.server.answers["GET "+songs] = `{"items":[{"spec":{"loud":true}}]}`
		s := b.watch(w, "/apis/music.example.com/v1/songs?watch=true")
		s.server.tell(
			happening(trace.Added, "one", 1, `,"spec":{"loud":true}`), happening(trace.Added, "two", 2, ""),
			happening(trace.Modified, "one", 3, `,"spec":{"loud":true,"more":1}`), happening(trace.Modified, "one", 4, `,"spec":{"loud":false}`),
			happening(trace.Deleted, "one", 5, `,"spec":{"loud":true}`),
		)
		want(t, "events", s.got(), "ADDED two 2, MODIFIED one 3, DELETED one 5")
		b.server.mu.Lock()
		defer b.server.mu.Unlock()
		if diff := cmp.Diff([]string{"GET " + songs, "GET " + songs}, b.server.seen); diff != "" {
			t.Error(diff)
		}
	})
}
