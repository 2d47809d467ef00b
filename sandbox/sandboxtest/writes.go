package sandboxtest

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
)

// Writes counts the writes of a client, can make one fail, and can let somebody else be faster.
type Writes struct {
	describe func(*http.Request) string

	mu      sync.Mutex
	counts  map[string]int
	failing string // the first write with this in its body fails
	before  func(write string)
}

// NewWrites returns a counter without any. describe returns what a request writes to, such as "pods/status"; if that is
// empty the request is not counted.
func NewWrites(describe func(*http.Request) string) *Writes {
	return &Writes{describe: describe, counts: map[string]int{}}
}

// Wrap is for the method Wrap of a rest.Config. A write is counted as its HTTP method, its description and the status of the
// answer, as in "POST pods Created".
func (w *Writes) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(req *http.Request) (*http.Response, error) {
		target := w.describe(req)
		if req.Method == http.MethodGet || req.Body == nil || target == "" {
			return next.RoundTrip(req)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		write := req.Method + " " + target
		fail, before := w.next(string(body))
		if before != nil {
			before(write)
		}
		if fail {
			return &http.Response{
				StatusCode: http.StatusInternalServerError, Status: "500 injected", Request: req, Header: http.Header{},
				Body: io.NopCloser(strings.NewReader("injected failure")),
			}, nil
		}
		resp, err := next.RoundTrip(req)
		if err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.counts[write+" "+http.StatusText(resp.StatusCode)]++
		}
		return resp, err
	})
}

// FailOnce makes the first write with a text in its body fail before it reaches the API server.
func (w *Writes) FailOnce(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing = text
}

// Failed tells whether what FailOnce asked for has happened.
func (w *Writes) Failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failing == ""
}

// BeforeEach calls do with each write, such as "POST pods", before the API server gets it.
func (w *Writes) BeforeEach(do func(write string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = do
}

func (w *Writes) next(body string) (fail bool, before func(string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failing != "" && strings.Contains(body, w.failing) {
		w.failing, fail = "", true
	}
	return fail, w.before
}

// Count returns the number of writes that contain a text, such as "POST pods".
func (w *Writes) Count(text string) (n int) {
	for write, count := range w.All() {
		if strings.Contains(write, text) {
			n += count
		}
	}
	return n
}

// All returns the number of each write.
func (w *Writes) All() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.counts)
}

// RoundTripper is a function as an [http.RoundTripper].
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f RoundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
