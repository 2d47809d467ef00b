package images

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
)

// relay forwards a port of 127.0.0.1 to one of the pod's own. It is for clients that compare a certificate with the
// address that they connect to, which must remain localhost.
type relay struct {
	listener net.Listener
	cancel   context.CancelFunc
}

// newRelay opens a relay. The caller closes it.
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

// port returns the port on this machine.
func (r *relay) port() string {
	_, port, _ := net.SplitHostPort(r.listener.Addr().String())
	return port
}

// close closes the relay, and all connections through it.
func (r *relay) close() {
	r.cancel()
	_ = r.listener.Close()
}

// pass copies between two connections until one of them ends.
func pass(ctx context.Context, near net.Conn, dial func() (net.Conn, error)) {
	defer func() { _ = near.Close() }()
	far, err := dial()
	if err != nil {
		return // near is closed, which tells its client
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
			_, _ = io.Copy(way[0], way[1]) // closing the connections tells both ends
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
	both.Wait()
}
