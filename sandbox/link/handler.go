//go:build go1.23

package link

import (
	"net/http"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// AsReconcile returns a handler that passes requests on to next as part of a reconcile that runs in this process, so that what
// next does for them with a manager's cache and config belongs to it. of names the reconcile of a request: its controller and
// its key. A request for which no such reconcile runs is passed on as it is; without [SocketVariable] all are.
func AsReconcile(next http.Handler, of func(*http.Request) (controller, namespace, name string)) http.Handler {
	l, err := ofProcess()
	if err != nil || l == nil {
		return next
	}
	return l.AsReconcile(next, of)
}

// AsReconcile does what the function of that name does, for the reconciles of the first manager.
func (l *Link) AsReconcile(next http.Handler, of func(*http.Request) (controller, namespace, name string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		controller, namespace, name := of(r)
		ctx := l.first().taps.InReconcile(r.Context(), controller, trace.Key{Namespace: namespace, Name: name})
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
