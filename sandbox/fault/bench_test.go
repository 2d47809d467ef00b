package fault_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// armSome arms faults that never happen.
func (b *bench) armSome(n int, spec v1alpha1.FaultSpec) {
	for i := range n {
		b.arm(fmt.Sprint("f", i), spec)
	}
}

// BenchmarkCall measures a call through the injector: bare is without one.
func BenchmarkCall(b *testing.B) {
	body := []byte(song("one", `,"spec":{"words":["Zun","Doko"]}`))
	never := fail(v1alpha1.FaultMatch{Kind: "Song", Name: "other-*", Nth: 1 << 30})
	for _, c := range []struct {
		name  string
		armed int
		spec  v1alpha1.FaultSpec
		bare  bool
	}{
		{"bare", 0, never, true},
		{"none armed", 0, never, false},
		{"10 armed", 10, never, false},
		{"10 armed of another operator", 10, v1alpha1.FaultSpec{Operator: "other", Match: never.Match, API: never.API}, false},
		{"10 armed that count", 10, fail(v1alpha1.FaultMatch{Kind: "Song", Nth: 1 << 30}), false},
	} {
		b.Run(c.name, func(b *testing.B) {
			t := newBench(b)
			t.next = roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusCreated, Body: http.NoBody}, nil
			})
			t.live()
			t.armSome(c.armed, c.spec)
			way := t.way
			if c.bare {
				way = t.next
			}
			req := t.request(b.Context(), "POST "+songs, "")
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
			req.Body = io.NopCloser(bytes.NewReader(body))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := way.RoundTrip(req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWatch measures an event of 2 kB on its way through the injector; bare is without one.
func BenchmarkWatch(b *testing.B) {
	event := happening(trace.Modified, "one", 7, fmt.Sprintf(`,"data":{"word":"%02000d"}`, 0)) + "\n"
	never := v1alpha1.FaultSpec{
		Match: &v1alpha1.FaultMatch{Kind: "Song", Name: "other"}, Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchCoalesce},
	}
	for _, c := range []struct {
		name  string
		armed int
		bare  bool
	}{{"bare", 0, true}, {"none armed", 0, false}, {"10 armed", 10, false}} {
		b.Run(c.name, func(b *testing.B) {
			t := newBench(b)
			t.next = roundTrip(func(req *http.Request) (*http.Response, error) {
				resp := response(req, http.StatusOK, "")
				resp.Body = io.NopCloser(&endlessly{text: []byte(event)})
				return resp, nil
			})
			t.live()
			t.armSome(c.armed, never)
			way := t.way
			if c.bare {
				way = t.next
			}
			resp, err := way.RoundTrip(t.request(b.Context(), "GET "+songs+"?watch=true", ""))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(event)))
			b.ReportAllocs()
			buf := make([]byte, len(event))
			for b.Loop() {
				if _, err := io.ReadFull(resp.Body, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// endlessly repeats a text.
type endlessly struct {
	text []byte
	at   int
}

func (e *endlessly) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}
