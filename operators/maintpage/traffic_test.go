package maintpage_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
)

// traffic counts the writes of an operator to the objects of the test, can make one fail, and can let
// somebody else be faster.
type traffic struct {
	mu      sync.Mutex
	writes  map[string]int // by "POST services/httpd Created"
	failing string         // the first write with this in its body fails
	before  func(write string)
}

func (tr *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodGet || req.Body == nil {
			return next.RoundTrip(req)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		target, ours := target(req)
		if !ours {
			return next.RoundTrip(req)
		}
		write := req.Method + " " + target
		fail, before := tr.next(string(body))
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
			tr.count(write + " " + http.StatusText(resp.StatusCode))
		}
		return resp, err
	})
}

// target returns the resource of a request, with the name and the subresource if it has them. Events are
// not counted.
func target(req *http.Request) (string, bool) {
	_, rest, ok := strings.Cut(req.URL.Path, "/namespaces/")
	_, target, named := strings.Cut(rest, "/")
	return target, ok && named && !strings.HasPrefix(target, "events")
}

// failOnce makes the first write with this text in its body fail before it reaches the API server.
func (tr *traffic) failOnce(text string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.failing = text
}

// beforeEach calls do with each write before the API server gets it.
func (tr *traffic) beforeEach(do func(write string)) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.before = do
}

func (tr *traffic) next(body string) (fail bool, before func(string)) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.failing != "" && strings.Contains(body, tr.failing) {
		tr.failing, fail = "", true
	}
	return fail, tr.before
}

// failed tells whether what failOnce asked for has happened.
func (tr *traffic) failed() bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.failing == ""
}

func (tr *traffic) count(write string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.writes == nil {
		tr.writes = map[string]int{}
	}
	tr.writes[write]++
}

// number counts the writes whose description contains a text.
func (tr *traffic) number(text string) int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	total := 0
	for write, n := range tr.writes {
		if strings.Contains(write, text) {
			total += n
		}
	}
	return total
}

// all returns the count of each write.
func (tr *traffic) all() map[string]int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return maps.Clone(tr.writes)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
