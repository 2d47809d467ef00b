package host

import (
	"context"
	"errors"
	"net"
)

// errOver is what an operator gets that connects after its life has ended.
var errOver = errors.New("the operator's life is over")

// dialler connects an operator to what runs in the cluster, as long as it lives: with a process its connections end too.
func dialler(life context.Context, lab Cluster) func(ctx context.Context, address string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		made, err := lab.DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		if life.Err() != nil {
			_ = made.Close() // it is not used
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: made.RemoteAddr(), Err: errOver}
		}
		c := &mortal{Conn: made}
		c.forget = context.AfterFunc(life, func() { _ = made.Close() })
		return c, nil
	}
}

// mortal is a connection that ends with a life.
type mortal struct {
	net.Conn

	forget func() bool
}

func (m *mortal) Close() error {
	m.forget()
	return m.Conn.Close()
}
