package operatorhost

import (
	"context"
	"errors"
	"net"
)

// errOver is returned to an operator that connects after its run has ended.
var errOver = errors.New("the operator's life is over")

// dialler returns a function that connects an operator to what runs in the cluster. The connections end with the
// operator's run, as they do with a process.
func dialler(life context.Context, lab Cluster) func(ctx context.Context, address string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		made, err := lab.DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		if life.Err() != nil {
			_ = made.Close() // closed unused
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: made.RemoteAddr(), Err: errOver}
		}
		c := &mortal{Conn: made}
		c.forget = context.AfterFunc(life, func() { _ = made.Close() })
		return c, nil
	}
}

// mortal is a connection that ends with an operator's run.
type mortal struct {
	net.Conn

	forget func() bool
}

// Close closes the connection.
func (m *mortal) Close() error {
	m.forget()
	return m.Conn.Close()
}
