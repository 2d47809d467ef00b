//go:build go1.23

package link

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/operator-lab/operator-lab/sandbox/taps"
)

// member is a place for one manager of the process at a time.
type member struct {
	link *Link
	taps *taps.Taps
	busy bool // a manager has the place
}

// join returns a place for one more manager, in the mode that the lab asks for: that of a manager that has ended, or a
// new one.
func (l *Link) join() *member {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.members {
		if !m.busy {
			m.busy = true
			return m
		}
	}
	m := l.add()
	m.busy = true
	return m
}

// first returns the place of the first manager, which may have none yet: what is no manager shares it.
func (l *Link) first() *member {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.members) == 0 {
		return l.add()
	}
	return l.members[0]
}

// add makes a place that no manager has, in the mode that the lab asks for. The caller holds the lock.
func (l *Link) add() *member {
	name := l.settings.Operator
	if n := len(l.members); n > 0 {
		name += "-" + strconv.Itoa(n+1)
	}
	m := &member{link: l, taps: taps.New(l.journal, taps.Options{Operator: name, LogLevel: l.settings.LogLevel, Began: l.flush})}
	l.members = append(l.members, m)
	if l.mode.Paused {
		m.taps.Pause()
	}
	if l.mode.HoldWrites {
		m.taps.HoldWrites()
	}
	if l.mode.Closed {
		m.taps.Close()
	}
	go m.observe()
	return m
}

// leave gives the place back and returns when the events so far are sent, because the process may end now.
func (m *member) leave() {
	m.link.mu.Lock()
	m.busy = false
	m.link.mu.Unlock()
	m.link.flush()
}

// observe tells the stream of each change of the controllers.
func (m *member) observe() {
	for {
		_, changed := m.taps.Serving()
		m.link.stateChanged()
		select {
		case <-changed:
		case <-m.link.ended:
			return
		}
	}
}

// linked is a manager whose events are sent before its Start returns.
type linked struct {
	manager.Manager
	member *member
}

// Start runs the manager.
func (m linked) Start(ctx context.Context) error {
	defer m.member.leave()
	return m.Manager.Start(ctx)
}

// config returns a copy of cfg whose requests are observed and say where they come from.
func (m *member) config(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	// Below the taps, so that the requests that they hold are told, too.
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &origin{member: m, next: next} })
	return m.taps.RESTConfig(cfg)
}

// origin is a transport that says where requests come from.
type origin struct {
	member *member
	next   http.RoundTripper
}

// WrappedRoundTripper lets client-go reach the transport below.
func (o *origin) WrappedRoundTripper() http.RoundTripper { return o.next }

// RoundTrip adds the header to a request while the lab is there.
func (o *origin) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case <-o.member.link.ended:
		return o.next.RoundTrip(req)
	default:
	}
	r := o.member.taps.ReconcileOf(req.Context())
	value, err := json.Marshal(Origin{
		Seq: o.member.link.journal.Stats().Last, Reconcile: r.ID, Controller: r.Controller, Namespace: r.Key.Namespace, Name: r.Key.Name,
	})
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context()) // a transport must not change its request
	req.Header.Set(Header, string(value))
	return o.next.RoundTrip(req)
}
