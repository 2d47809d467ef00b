package fault_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// asked records the queries of requests.
type asked struct {
	http.RoundTripper
	mu      sync.Mutex
	queries []string
}

func (a *asked) RoundTrip(req *http.Request) (*http.Response, error) {
	a.mu.Lock()
	a.queries = append(a.queries, req.URL.RawQuery)
	a.mu.Unlock()
	return a.RoundTripper.RoundTrip(req)
}

// details returns what the journal says of a fault.
func details(b *bench) string {
	var out []string
	for _, e := range b.injected() {
		out = append(out, e.Fault().Detail)
	}
	return strings.Join(out, " ")
}

// TestStale shows an older view from an event on: events are held up, in all streams of the kind and in no others, lists
// are as of before, and in the end all is delivered.
func TestStale(t *testing.T) {
	watchBench(t, func(t *testing.T, b *bench, w *watches) {
		to := &asked{RoundTripper: w}
		b.next = to
		b.live()
		b.arm("s", spec{Stale: &v1alpha1.StaleFault{}, Match: &match{Kind: "Song", Verbs: []string{trace.Modified}}})
		one, other, calm := b.watch(w, songs+"?watch=true"), b.watch(w, songs+"?watch=true&labelSelector=a"), b.watch(w, maps+"?watch=true")
		one.server.tell(happening(trace.Added, "one", 1, ""), happening(trace.Modified, "one", 5, ""), happening(trace.Deleted, "one", 6, ""))
		want(t, "events", one.got(), "ADDED one 1")
		other.server.tell(happening(trace.Added, "two", 4, ""), `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}`)
		want(t, "older events", other.got(), "ADDED two 4")
		calm.server.tell(happening(trace.Added, "map", 9, ""))
		want(t, "another kind", calm.got(), "ADDED map 9")
		b.wantStatus("s", v1alpha1.FaultInjected, 1, 1, false)
		b.must("GET "+songs+"?resourceVersion=0&limit=500", "")
		want(t, "list", to.queries[len(to.queries)-1], "limit=500&resourceVersion=4&resourceVersionMatch=Exact")
		for _, query := range []string{"continue=abc", "limit=7", "resourceVersion=5"} {
			b.must("GET "+songs+"?"+query, "")
			want(t, "list of what is newer", to.queries[len(to.queries)-1], query)
		}
		b.must("GET "+songs+"/one", "")
		want(t, "get", to.queries[len(to.queries)-1], "")
		b.must("GET "+maps, "")
		want(t, "list of another kind", to.queries[len(to.queries)-1], "")
		b.faults.Release("s")
		want(t, "events", one.got(), "MODIFIED one 5, DELETED one 6")
		want(t, "events", other.got(), "BOOKMARK  7")
		b.must("GET "+songs, "")
		want(t, "list", to.queries[len(to.queries)-1], "")
		want(t, "journal", details(b), "Began Over")
		b.wantStatus("s", v1alpha1.FaultReleased, 1, 1, true)
	})
}

// TestStaleCatchesUp checks that what was held up is delivered one by one, each when the operator has dealt with the one before, and
// what came after that at once; and all at once when the operator takes too long.
func TestStaleCatchesUp(t *testing.T) {
	for _, slow := range []bool{false, true} {
		watchBench(t, func(t *testing.T, b *bench, w *watches) {
			b.server.answers["GET "+songs] = `{"metadata":{"resourceVersion":"7"}}`
			dealt := make(chan struct{})
			var waits []string
			b.effects.onAwait = func(ctx context.Context, kind, version string) {
				waits = append(waits, kind+" "+version)
				select {
				case <-dealt:
				case <-ctx.Done():
				}
			}
			b.arm("s", spec{Stale: &v1alpha1.StaleFault{}, Match: &match{Kind: "Song", Verbs: []string{trace.Modified}}})
			s := b.watch(w, songs+"?watch=true")
			s.server.tell(happening(trace.Added, "one", 1, ""), happening(trace.Modified, "one", 5, ""),
				happening(trace.Deleted, "one", 6, ""), happening(trace.Added, "one", 7, ""))
			want(t, "events", s.got(), "ADDED one 1")
			b.faults.Release("s")
			want(t, "events", s.got(), "")
			dealt <- struct{}{} // with what it knew
			want(t, "events", s.got(), "MODIFIED one 5")
			if slow {
				time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble
			} else {
				dealt <- struct{}{}
				want(t, "events", s.got(), "DELETED one 6")
				dealt <- struct{}{}
				want(t, "events", s.got(), "ADDED one 7")
			}
			s.server.tell(happening(trace.Modified, "one", 8, ""), happening(trace.Modified, "one", 9, ""))
			if slow {
				want(t, "events", s.got(), "DELETED one 6, ADDED one 7, MODIFIED one 8, MODIFIED one 9")
			} else {
				want(t, "events", s.got(), "MODIFIED one 8, MODIFIED one 9")
			}
			want(t, "waits", strings.Join(waits, ", "), "Song , Song 5, Song 6")
		})
	}
}

// TestStaleEnds checks that an older view ends by itself, and that a watch is ended where a new list is asked for.
func TestStaleEnds(t *testing.T) {
	watchBench(t, func(t *testing.T, b *bench, w *watches) {
		b.arm("s", spec{Stale: &v1alpha1.StaleFault{For: &metav1.Duration{Duration: time.Minute}, Relist: true}})
		s := b.watch(w, songs+"?watch=true")
		s.server.tell(happening(trace.Added, "one", 5, ""), happening(trace.Modified, "one", 6, ""))
		want(t, "events", s.got(), "")
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		want(t, "events", s.got(), "ERROR  ")
		if s.ended() == nil {
			t.Error("the watch goes on")
		}
		b.wantStatus("s", v1alpha1.FaultInjected, 1, 1, true)
	})
}

// TestStaleRestart ends the operator after a write, or after the write that follows an event. It then begins with what was
// before, also with a watch that asks for the initial events.
func TestStaleRestart(t *testing.T) {
	for name, verbs := range map[string][]string{"write": {trace.VerbCreate}, "event": {trace.Added}} {
		watchBench(t, func(t *testing.T, b *bench, w *watches) {
			b.server.answers["GET "+songs] = `{"apiVersion":"music.example.com/v1","kind":"SongList","metadata":{"resourceVersion":"4"},
				"items":[{"metadata":{"name":"old","resourceVersion":"3"}}]}`
			b.arm("s", spec{Stale: &v1alpha1.StaleFault{Restart: true, For: &metav1.Duration{Duration: time.Second}}, Match: &match{Kind: "Song", Verbs: verbs}})
			s := b.watch(w, songs+"?watch=true")
			if name == "event" {
				s.server.tell(happening(trace.Added, "one", 5, ""))
				want(t, "events", s.got(), "ADDED one 5")
				b.must("GET "+songs, "")
			}
			if _, _, err := b.send("POST "+songs, song("two", "")); err == nil {
				t.Fatalf("%s: the operator lives", name)
			}
			want(t, "crashes", strings.Join(b.effects.crashed(), ", "), "zundoko 0s")
			b.wantStatus("s", v1alpha1.FaultInjected, 1, 1, false)
			to := &asked{RoundTripper: w}
			b.next = to
			time.Sleep(5 * time.Second) //nolint:forbidigo // in a bubble: its time counts when it lists
			b.live()
			s = b.watch(w, songs+"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&labelSelector=a&timeoutSeconds=9")
			want(t, "requests", strings.Join(to.queries, " "),
				"labelSelector=a&resourceVersion=4&resourceVersionMatch=Exact labelSelector=a&resourceVersion=4&timeoutSeconds=9&watch=true")
			s.server.tell(happening(trace.Added, "one", 5, ""))
			want(t, "events", s.got(), "ADDED old 3, BOOKMARK  4")
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
			want(t, "events", s.got(), "ADDED one 5")
			want(t, "journal", details(b), "Restart Over")
		})
	}
}

// TestGone ends a watch for good after an event.
func TestGone(t *testing.T) {
	watchBench(t, func(t *testing.T, b *bench, w *watches) {
		b.arm("g", spec{Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchGone}, Match: &match{Nth: 2}})
		s := b.watch(w, songs+"?watch=true")
		s.server.tell(happening(trace.Added, "one", 1, ""), happening(trace.Added, "two", 2, ""), happening(trace.Added, "three", 3, ""))
		want(t, "events", s.got(), "ADDED one 1, ADDED two 2, ERROR  ")
		if s.ended() == nil {
			t.Error("the watch goes on")
		}
		b.wantStatus("g", v1alpha1.FaultInjected, 2, 1, true)
	})
}
