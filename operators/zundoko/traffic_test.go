package zundoko_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
)

// traffic counts the writes of an operator to its own kinds, and can make one fail.
type traffic struct {
	mu      sync.Mutex
	writes  map[string]int // by "POST zundokos 201"
	failing string         // the first write with this in its body fails
}

func (tr *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resource, ours := ownResource(req)
		if req.Method == http.MethodGet || !ours {
			return next.RoundTrip(req)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		if tr.fails(string(body)) {
			return &http.Response{
				StatusCode: http.StatusInternalServerError, Status: "500 injected", Request: req, Header: http.Header{},
				Body: io.NopCloser(strings.NewReader("injected failure")),
			}, nil
		}
		resp, err := next.RoundTrip(req)
		if err == nil {
			tr.count(req.Method + " " + resource + " " + http.StatusText(resp.StatusCode))
		}
		return resp, err
	})
}

// ownResource returns the resource of a request to the operator's own group, with its subresource.
func ownResource(req *http.Request) (string, bool) {
	_, rest, ok := strings.Cut(req.URL.Path, "/zundokokiyoshi.kaitoy.github.com/v1beta1/namespaces/")
	parts := strings.Split(rest, "/") // namespace, resource, name, subresource
	if !ok || len(parts) < 2 {
		return "", false
	}
	if len(parts) > 3 {
		return parts[1] + "/" + parts[3], true
	}
	return parts[1], true
}

// failOnce makes the first write with this text in its body fail before it reaches the API server.
func (tr *traffic) failOnce(text string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.failing = text
}

func (tr *traffic) fails(body string) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.failing == "" || !strings.Contains(body, tr.failing) {
		return false
	}
	tr.failing = ""
	return true
}

func (tr *traffic) count(write string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.writes == nil {
		tr.writes = map[string]int{}
	}
	tr.writes[write]++
}

// number counts the writes whose description has a prefix.
func (tr *traffic) number(prefix string) int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	total := 0
	for write, n := range tr.writes {
		if strings.HasPrefix(write, prefix) {
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
