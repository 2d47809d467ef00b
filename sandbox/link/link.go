//go:build go1.23

// Package link joins an operator that runs in a process of its own with the lab: it puts taps into each manager that the
// program makes, streams their journal to the lab over a unix socket, and carries out the lab's orders. It is compiled
// into the operator, from [github.com/operator-lab/operator-lab/sandbox/portable]; the lab's end is
// [github.com/operator-lab/operator-lab/sandbox/remote].
//
// The lab begins the connection with a line of [Settings]. From then on the process sends each [Frame] of its journal, and
// between the events those of a [Message]; the lab sends lines of [Order].
package link

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// NewManagerFunc is manager.New, or what replaces it.
type NewManagerFunc = func(*rest.Config, manager.Options) (manager.Manager, error)

// Wrap returns inner with the taps in each manager that it makes. Without [SocketVariable] it has none, and is inner unless there is
// [PodVariable]; if the lab cannot be reached, each call of the result says so.
func Wrap(inner NewManagerFunc) NewManagerFunc {
	l, err := ofProcess()
	switch namespace := podOfProcess(); {
	case err != nil:
		return func(*rest.Config, manager.Options) (manager.Manager, error) { return nil, err }
	case l != nil:
		return l.Wrap(inner)
	case namespace != "":
		return func(cfg *rest.Config, o manager.Options) (manager.Manager, error) {
			Settings{Namespace: namespace, InPod: true}.adapt(&o)
			return inner(cfg, o)
		}
	}
	return inner
}

// podOfProcess returns the value of PodVariable. Programs that this one starts do not have it.
var podOfProcess = sync.OnceValue(func() string {
	namespace := os.Getenv(PodVariable)
	_ = os.Unsetenv(PodVariable)
	return namespace
})

// NewClusterFunc is cluster.New.
type NewClusterFunc = func(*rest.Config, ...cluster.Option) (cluster.Cluster, error)

// WrapCluster returns inner with the taps in each cluster that it makes of the API server that the lab gave the program;
// others would mix their objects with its. Its caches and clients are those of the first manager in the journal. It goes
// on as [Wrap] does without the variable, and if the lab cannot be reached.
func WrapCluster(inner NewClusterFunc) NewClusterFunc {
	l, err := ofProcess()
	switch {
	case err != nil:
		return func(*rest.Config, ...cluster.Option) (cluster.Cluster, error) { return nil, err }
	case l == nil:
		return inner
	}
	return l.WrapCluster(inner)
}

// ofProcess returns the link of this process, which all calls of Wrap share; nil if it has none. Programs that this one
// starts are not linked.
var ofProcess = sync.OnceValues(func() (*Link, error) {
	socket := os.Getenv(SocketVariable)
	if socket == "" {
		return nil, nil
	}
	if err := os.Unsetenv(SocketVariable); err != nil {
		return nil, err
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("operator-lab cannot be reached at %s, which is in the variable %s: %w", socket, SocketVariable, err)
	}
	l, err := New(conn)
	if err != nil {
		return nil, fmt.Errorf("operator-lab does not answer at %s: %w", socket, err)
	}
	return l, nil
})

// settingsPatience is how long the lab may take to send its settings.
const settingsPatience = 10 * time.Second

// The journal of the process keeps little: what was sent is not needed any more.
const (
	maxEvents = 20_000
	maxBytes  = 64 << 20
)

// Link is the process's end of a connection with the lab. All methods may be called from any goroutine.
type Link struct {
	conn     net.Conn
	settings Settings
	journal  *trace.Journal

	// Only the goroutine of stream uses these.
	writer *Writer
	told   *State // the last state that was sent

	orders  chan Order
	flushes chan chan struct{} // each is closed when the events so far are sent
	changed chan struct{}      // gets a token when the state may have changed
	ended   chan struct{}      // closed when the stream has ended

	mu      sync.Mutex
	mode    Mode
	members []*member
}

// New reads the settings from a connection and begins to stream. When the connection ends, everything that the lab holds
// is released, and the operator goes on without it.
func New(conn net.Conn) (*Link, error) {
	l := &Link{
		conn: conn, journal: trace.New(trace.Options{MaxEvents: maxEvents, MaxBytes: maxBytes}),
		orders: make(chan Order), flushes: make(chan chan struct{}),
		changed: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	in := json.NewDecoder(conn)
	err := conn.SetReadDeadline(time.Now().Add(settingsPatience))
	if err == nil {
		err = in.Decode(&l.settings)
	}
	if err == nil {
		err = conn.SetReadDeadline(time.Time{})
	}
	if err == nil {
		l.writer, err = NewWriter(conn, l.journal)
	}
	if err != nil {
		_ = conn.Close() // the first error says more
		return nil, fmt.Errorf("begin the link: %w", err)
	}
	l.mode = l.settings.Mode
	go l.stream()
	go l.receive(in)
	return l, nil
}

// Wrap returns inner with the taps in each manager that it makes.
func (l *Link) Wrap(inner NewManagerFunc) NewManagerFunc {
	return func(cfg *rest.Config, o manager.Options) (manager.Manager, error) {
		if cfg == nil { // its own error is the best
			return inner(cfg, o)
		}
		m := l.join()
		l.settings.adapt(&o)
		mgr, err := inner(m.config(cfg), m.taps.ManagerOptions(o))
		if err != nil {
			m.leave()
			return nil, err
		}
		return linked{Manager: m.taps.Manager(mgr), member: m}, nil
	}
}

// WrapCluster returns inner with the taps in each cluster of the API server in the lab's settings.
func (l *Link) WrapCluster(inner NewClusterFunc) NewClusterFunc {
	return func(cfg *rest.Config, options ...cluster.Option) (cluster.Cluster, error) {
		if cfg == nil || cfg.Host != l.settings.APIServer {
			return inner(cfg, options...)
		}
		m := l.first()
		return inner(m.config(cfg), append(slices.Clip(options), m.taps.ClusterOptions)...)
	}
}
