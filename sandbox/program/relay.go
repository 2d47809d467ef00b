package program

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
)

// relay is a port of this machine's 127.0.0.1 that leads to one of the pod's own. It is for clients that compare a
// certificate with the address that they have asked: for these localhost has to be localhost.
type relay struct {
	listener net.Listener
	cancel   context.CancelFunc
}

// newRelay opens one, which is to be closed.
func newRelay(c *Container, port int) (*relay, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	life := make(life)
	ctx, cancel := context.WithCancel(life)
	r := &relay{listener: l, cancel: cancel}
	at := net.JoinHostPort("localhost", strconv.Itoa(port))
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			go pass(ctx, near, func() (net.Conn, error) { return c.Network.DialContext(ctx, "tcp", at) })
		}
	}()
	return r, nil
}

// port is the one of this machine.
func (r *relay) port() string {
	_, port, _ := net.SplitHostPort(r.listener.Addr().String())
	return port
}

// close ends it, and all that goes through it.
func (r *relay) close() {
	r.cancel()
	_ = r.listener.Close()
}

// pass connects a connection with another until one of them ends.
func pass(ctx context.Context, near net.Conn, dial func() (net.Conn, error)) {
	defer func() { _ = near.Close() }()
	far, err := dial()
	if err != nil {
		return // near is told by its end
	}
	defer func() { _ = far.Close() }()
	stop := context.AfterFunc(ctx, func() {
		_ = near.Close()
		_ = far.Close()
	})
	defer stop()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // who uses it is told by the end
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
	both.Wait()
}
