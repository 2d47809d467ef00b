package operatorhost

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// pipes is a cluster in which every connection is one end of a pipe.
type pipes struct{ far chan net.Conn }

func (p pipes) Config() *rest.Config                         { return nil }
func (p pipes) User(string, ...string) (*rest.Config, error) { return nil, errors.ErrUnsupported }
func (p pipes) DialContext(_ context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	p.far <- far
	return near, nil
}

// TestConnectionsEndWithTheLife checks that connections end with the operator's run, and that no new ones can be made.
func TestConnectionsEndWithTheLife(t *testing.T) {
	lab := pipes{make(chan net.Conn, 2)}
	life, kill := context.WithCancel(t.Context())
	dial := dialler(life, lab)
	near, err := dial(t.Context(), "kv-0.kv.default.svc:2379")
	if err != nil {
		t.Fatal(err)
	}
	far := <-lab.far
	go func() { _, _ = near.Write([]byte("hello")) }()
	if err := far.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(far, got); err != nil || string(got) != "hello" {
		t.Fatalf("%q, %v", got, err)
	}
	kill()
	if _, err := far.Read(got); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := dial(t.Context(), "kv-0.kv.default.svc:2379"); !errors.Is(err, errOver) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := (<-lab.far).Read(got); !errors.Is(err, io.EOF) {
		t.Errorf("a connection that came too late is open: %v", err)
	}
	if err := near.Close(); err != nil {
		t.Error(err)
	}
}
