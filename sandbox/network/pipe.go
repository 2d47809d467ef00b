package network

import (
	"io"
	"net"
	"sync"
)

// duplex is a connection whose write direction can be closed separately.
type duplex interface {
	net.Conn
	CloseWrite() error
}

// lot is a set of connections and listeners that end together.
type lot struct {
	mu      sync.Mutex
	over    bool
	members map[io.Closer]struct{}
	work    sync.WaitGroup
}

// add reports whether the lot still exists; if not, it is not for the lot to close the member.
func (l *lot) add(member io.Closer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	if l.members == nil {
		l.members = map[io.Closer]struct{}{}
	}
	l.members[member] = struct{}{}
	return true
}

func (l *lot) remove(member io.Closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.members, member)
}

// enter begins a piece of work that end waits for. It reports false if the lot has ended.
func (l *lot) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.work.Add(1)
	}
	return !l.over
}

func (l *lot) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

func (l *lot) leave() { l.work.Done() }

// end cuts everything, and reports whether it did so for the first time.
func (l *lot) end() bool {
	l.mu.Lock()
	members, first := l.members, !l.over
	l.members, l.over = nil, true
	l.mu.Unlock()
	for member := range members {
		cut(member)
	}
	return first
}

// cut closes a connection as the death of a process or the loss of an address would: the other side is to know that
// this was not the regular end.
func cut(c io.Closer) {
	if tcp, is := c.(interface{ SetLinger(sec int) error }); is {
		_ = tcp.SetLinger(0) // of a connection that is closed already
	}
	_ = c.Close() // the peers see the end
}

// pipe copies between two connections until both directions have ended, and closes them. The end of one direction is
// passed on and leaves the other one open. It does nothing but close them if one of the lots has ended; the lots can
// also end it at any time.
func pipe(a, b duplex, lots ...*lot) {
	both := &pair{a: a, b: b}
	for _, l := range lots {
		if !l.add(both) {
			_ = both.Close()
			return
		}
		defer l.remove(both)
	}
	var ways sync.WaitGroup
	ways.Go(func() { both.copy(a, b) })
	both.copy(b, a)
	ways.Wait()
	_ = a.Close()
	_ = b.Close()
}

// pair is two connections that are closed together.
type pair struct{ a, b duplex }

// copy does not buffer. Between sockets it is done by the kernel, where that can.
func (p *pair) copy(to, from duplex) {
	if _, err := io.Copy(bare(to), bare(from)); err != nil {
		_ = p.Close()
		return
	}
	_ = to.CloseWrite() // if the connection is dead already, the other direction notices
}

// bare returns the socket of a connection.
func bare(d duplex) duplex {
	for {
		c, is := d.(*conn)
		if !is {
			return d
		}
		d = c.duplex
	}
}

// Close cuts both connections.
func (p *pair) Close() error {
	cut(p.a)
	cut(p.b)
	return nil
}

// conn is a connection that reports the cluster's addresses instead of this machine's. Its lots can cut it.
type conn struct {
	duplex

	local, remote net.Addr
	lots          []*lot
}

// join adds the connection to its lots. If one of them has ended, it cuts the connection and reports false.
func (c *conn) join() bool {
	for _, l := range c.lots {
		if !l.add(c) {
			cut(c)
			return false
		}
	}
	return true
}

func (c *conn) LocalAddr() net.Addr { return c.local }

func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetLinger is for [cut].
func (c *conn) SetLinger(sec int) error {
	if tcp, is := bare(c).(*net.TCPConn); is {
		return tcp.SetLinger(sec)
	}
	return nil
}

func (c *conn) Close() error {
	for _, l := range c.lots {
		l.remove(c)
	}
	return c.duplex.Close()
}

// primed is a connection of which something was read already.
type primed struct {
	duplex

	first io.Reader
}

func (p *primed) Read(b []byte) (int, error) {
	if p.first != nil {
		if n, err := p.first.Read(b); err == nil {
			return n, nil
		}
		p.first = nil
	}
	return p.duplex.Read(b)
}
