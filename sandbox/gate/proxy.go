package gate

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
)

// Handler returns the gate as a reverse proxy, for an operator in a process or a language of its own: serve it on loopback
// and give the operator a kubeconfig with that address. The proxy sends with next whatever credentials next has, besides
// those that the operator sends. Watches, logs and upgraded connections pass as they come.
//
// Where a fault means that there is no answer, the connection is closed, but for a timeout, which is answered with 504: a
// client would otherwise send a read again of its own accord. A client may do so with a read whose reply is lost. When the
// operator dies, the connections of all its requests are closed; its process is for [Effects] to end.
func (g *Gate) Handler(target *url.URL, next http.RoundTripper) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			// What is compressed on its way cannot be looked into; the transport compresses for itself.
			r.Out.Header.Del("Accept-Encoding")
		},
		Transport:     g.Wrap(next),
		FlushInterval: -1, // at once: an event is not to wait for the next
		ErrorHandler:  hangUp,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
}

// hangUp closes the connection of a request that has no answer.
func hangUp(w http.ResponseWriter, req *http.Request, err error) {
	if !errors.Is(err, errTimeout) {
		panic(http.ErrAbortHandler)
	}
	c := &call{req: req}
	c.Target, _ = parseTarget(req.URL.Path)
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
