package fault

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/apirequest"
)

// Proxy returns a reverse proxy to the API server at target, for an operator in its own process: serve it on loopback and
// give the operator a kubeconfig with that address. Requests go through next, which contains the transport of
// [Injector.Wrap]; its credentials are added to those that the operator sends. Watches, logs and upgraded connections
// are streamed.
//
// Where a fault means that there is no answer, the connection is closed. Only a timeout is answered, with 504, because
// a client would otherwise repeat a read by itself; it may still do so with a read whose reply is lost. When the
// operator dies, the connections of all its requests are closed; [Effects] ends its process.
func Proxy(target *url.URL, next http.RoundTripper) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			// Compressed answers cannot be inspected; the transport negotiates its own compression.
			r.Out.Header.Del("Accept-Encoding")
		},
		Transport:     next,
		FlushInterval: -1, // flush at once: an event must not wait for the next
		ErrorHandler:  hangUp,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
}

// hangUp is the proxy's error handler: it closes the connection, or answers a timeout with 504.
func hangUp(w http.ResponseWriter, req *http.Request, err error) {
	if !errors.Is(err, errTimeout) {
		panic(http.ErrAbortHandler)
	}
	c := &call{req: req}
	c.Target, _ = apirequest.Parse(req.URL.Path)
	c.verb = strings.ToLower(req.Method)
	status := statusOf(c, v1alpha1.ReplyTimeout)
	raw, err := json.Marshal(status)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(raw) // the operator may have gone
}
