package sandbox

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// TestAwaitStatus checks that an answer that is to be waited for is asked for again at once, whatever Retry-After says.
func TestAwaitStatus(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	if err := awaitStatus(t.Context(), server.Client(), server.URL, http.StatusNotFound); err != nil || asked.Load() != 3 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}
