package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/link"
	"github.com/operator-lab/operator-lab/sandbox/remote"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// reconcileEvents appends the ten events of a reconcile that updates an object of 1.5 KB, which are what most journals
// consist of.
func reconcileEvents(j *trace.Journal) {
	n := j.NewReconcile()
	of := func(e trace.Event) int64 {
		e.Operator, e.Actor, e.Controller, e.Key, e.Reconcile = "toy", "toy", "copier", trace.Key{Namespace: "ns", Name: "one"}, n
		return j.Append(e)
	}
	object := trace.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "one", UID: "0b5b4f0e-3c3e-4a53-8f0e-5a8a3f6b2f11"}
	raw := func() json.RawMessage { return []byte(`{"data":{"a":"` + strings.Repeat("x", 1500) + `"}}`) }
	read, written := raw(), raw()
	watch := of(trace.Event{Kind: trace.KindWatch, Verb: trace.Modified, Object: object, ResourceVersion: "1", After: read})
	dequeue := of(trace.Event{Kind: trace.KindDequeue, Cause: of(trace.Event{Kind: trace.KindEnqueue, Cause: watch})})
	start := of(trace.Event{Kind: trace.KindStart, Cause: dequeue})
	for range 3 {
		of(trace.Event{Kind: trace.KindCall, Verb: trace.VerbGet, Cause: start, Object: object, Source: trace.Cache, ResourceVersion: "1"})
	}
	of(trace.Event{Kind: trace.KindCall, Verb: trace.VerbUpdate, Cause: start, Object: object, Source: trace.Server, ResourceVersion: "2", Before: read, After: written, Status: 200})
	of(trace.Event{Kind: trace.KindEnd, Cause: start, Outcome: trace.OutcomeDone})
	of(trace.Event{Kind: trace.KindWatch, Verb: trace.Modified, Object: object, ResourceVersion: "2", After: written})
}

const eventsOfReconcile = 10

// BenchmarkJournal appends to a journal of the same process, to compare with BenchmarkLink. An operation is an event.
func BenchmarkJournal(b *testing.B) {
	j := trace.New(trace.Options{})
	b.ReportAllocs()
	for range (b.N + eventsOfReconcile - 1) / eventsOfReconcile {
		reconcileEvents(j)
	}
}

// connect returns a process's end of a connection over a unix socket, whose events get into a journal.
func connect(b *testing.B, journal *trace.Journal) (conn net.Conn, served <-chan error) {
	b.Helper()
	listener, err := net.Listen("unix", filepath.Join(b.TempDir(), "link"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	conn, err = net.Dial("unix", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	ours, err := listener.Accept()
	if err != nil {
		b.Fatal(err)
	}
	result := make(chan error, 1)
	go func() { result <- remote.New(journal, "toy").Serve(ours, link.Settings{}) }()
	return conn, result
}

// BenchmarkLink appends to a journal that is streamed to another one over a unix socket, until that has them. Both ends
// are in this process, so the time of an operation, an event, is that of both.
func BenchmarkLink(b *testing.B) {
	journal := trace.New(trace.Options{})
	conn, served := connect(b, journal)
	if err := json.NewDecoder(conn).Decode(&link.Settings{}); err != nil {
		b.Fatal(err)
	}
	j := trace.New(trace.Options{MaxEvents: 20_000, MaxBytes: 64 << 20})
	w, err := link.NewWriter(conn, j)
	b.ReportAllocs()
	for range (b.N + eventsOfReconcile - 1) / eventsOfReconcile {
		reconcileEvents(j)
		if err == nil {
			err = w.Update()
		}
	}
	if err == nil {
		err = conn.Close()
	}
	if err == nil {
		err = <-served
	}
	if err != nil || journal.Stats().Last < int64(b.N) {
		b.Fatal(journal.Stats(), err)
	}
}

// BenchmarkSend is the operator's part of BenchmarkLink: the lab's end only reads.
func BenchmarkSend(b *testing.B) {
	j := trace.New(trace.Options{MaxEvents: 20_000, MaxBytes: 64 << 20})
	w, err := link.NewWriter(discard{}, j)
	b.ReportAllocs()
	for range (b.N + eventsOfReconcile - 1) / eventsOfReconcile {
		reconcileEvents(j)
		if err == nil {
			err = w.Update()
		}
	}
	if err != nil {
		b.Fatal(err)
	}
}

type discard struct{}

// Write does nothing.
func (discard) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkReconcile lets a real manager reconcile keys one after the other: without taps, with taps and a journal of the
// same process, and over the link. A reconcile creates an object at a server of this process that answers at once, so
// its share of the time is far smaller than that of a real API server.
func BenchmarkReconcile(b *testing.B) {
	run := func(b *testing.B, newManager link.NewManagerFunc) {
		b.Helper()
		config := apiServer(b, func(*http.Request) {})
		config.QPS = -1
		done := make(chan struct{}, 100)
		add, stop := manage(b, newManager, config, func(ctx context.Context, c client.Client, name string) error {
			defer func() { done <- struct{}{} }()
			return create(ctx, c, name)
		})
		for i := 0; b.Loop(); i++ {
			add("key-" + strconv.Itoa(i))
			<-done
		}
		stop()
	}
	b.Run("plain", func(b *testing.B) { run(b, ctrl.NewManager) })
	b.Run("taps", func(b *testing.B) {
		run(b, func(config *rest.Config, o ctrl.Options) (ctrl.Manager, error) {
			t := taps.New(trace.New(trace.Options{}), taps.Options{})
			mgr, err := ctrl.NewManager(t.RESTConfig(config), t.ManagerOptions(o))
			return t.Manager(mgr), err
		})
	})
	b.Run("link", func(b *testing.B) {
		conn, served := connect(b, trace.New(trace.Options{}))
		linked, err := link.New(conn)
		if err != nil {
			b.Fatal(err)
		}
		run(b, linked.Wrap(ctrl.NewManager))
		if err := errors.Join(conn.Close(), <-served); err != nil {
			b.Fatal(err)
		}
	})
}
