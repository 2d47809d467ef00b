package network

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"
)

// client identifies the peer that connects.
type client struct {
	// address is a pod's or a node's; not valid where it is not known.
	address netip.Addr
	// namespace is the namespace in which short names are resolved first.
	namespace string
}

// isPod reports whether the client is a pod, whose loopback address is its own.
func (c client) isPod() bool {
	_, isPod, _ := nodeOf(c.address)
	return isPod
}

// Headers that identify the client between processes.
const (
	clientHeader    = "Lab-Client"
	namespaceHeader = "Lab-Namespace"
)

// clientOf reads the headers that tunnel wrote. They are only read on the unix sockets, whose users are trusted.
func clientOf(h http.Header) client {
	c := client{namespace: h.Get(namespaceHeader)}
	if a, err := netip.ParseAddr(h.Get(clientHeader)); err == nil {
		if _, _, ok := nodeOf(a); ok {
			c.address = a
		}
	}
	return c
}

// errAbsent is returned if no process serves the socket.
var errAbsent = errors.New("nobody answers")

// tunnel asks at a unix socket for a connection to an address. errAbsent is returned as it is.
func tunnel(ctx context.Context, socket, address string, from client) (duplex, error) {
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, "unix", socket)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, errAbsent
	case ctx.Err() != nil && err != nil:
		return nil, other(address, nil, asTimeout(ctx))
	case err != nil:
		return nil, other(address, nil, err)
	}
	c := raw.(*net.UnixConn)
	cancel := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	through, err := ask(c, address, from)
	if !cancel() {
		// The connection may have been made, but its deadline has passed.
		err = asTimeout(ctx)
	}
	if err != nil {
		_ = c.Close()
		if e, is := errors.AsType[*Error](err); is {
			return nil, e
		}
		return nil, other(address, nil, err)
	}
	return through, nil
}

// asTimeout returns the error of a context as the error of a connection.
func asTimeout(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return os.ErrDeadlineExceeded // whose text is that of a connection that timed out
	}
	return ctx.Err()
}

// ask makes a tunnel of a connection.
func ask(c duplex, address string, from client) (duplex, error) {
	header := http.Header{}
	if from.address.IsValid() {
		header.Set(clientHeader, from.address.String())
	}
	if from.namespace != "" {
		header.Set(namespaceHeader, from.namespace)
	}
	return connectOver(c, address, header)
}

// connectOver asks who is at the other end to connect to an address.
func connectOver(c duplex, address string, header http.Header) (duplex, error) {
	request := &strings.Builder{}
	fmt.Fprintf(request, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", address, address)
	_ = header.Write(request) // a Builder takes everything
	request.WriteString("\r\n")
	if _, err := io.WriteString(c, request.String()); err != nil {
		return nil, err
	}
	reader := bufio.NewReaderSize(c, 1024)
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = syscall.ECONNRESET // the process that was asked has died
		}
		return nil, err
	}
	_ = response.Body.Close() // what follows is no body, or of no interest
	if response.StatusCode != http.StatusOK {
		return nil, decode(address, response.Status, response.Header)
	}
	through := &conn{duplex: c, local: c.LocalAddr(), remote: c.RemoteAddr()}
	if reader.Buffered() > 0 { // the other side spoke at once
		early, _ := reader.Peek(reader.Buffered()) // it is buffered
		through.duplex = &primed{c, bytes.NewReader(early)}
	}
	if at, err := netip.ParseAddrPort(response.Header.Get(addressHeader)); err == nil {
		through.remote = net.TCPAddrFromAddrPort(at)
	}
	return through, nil
}

// connector makes a connection to an address for a client.
type connector func(ctx context.Context, address string, from client) (duplex, error)

// serveTunnel serves CONNECT: it copies between the client and the connection that connect makes. The connection
// belongs to the lot.
func serveTunnel(w http.ResponseWriter, r *http.Request, l *lot, from client, connect connector) {
	ctx, cancel := context.WithTimeout(r.Context(), connectPatience)
	defer cancel()
	to, err := connect(ctx, r.Host, from)
	near, buffered, hijackErr := http.NewResponseController(w).Hijack()
	if hijackErr != nil { // the client has gone
		if err == nil {
			_ = to.Close()
		}
		return
	}
	here := near.(duplex)
	if err != nil {
		_ = refuse(here, err) // a client that has gone does not matter
		_ = here.Close()
		return
	}
	_, err = fmt.Fprintf(here, "HTTP/1.1 200 Connection established\r\n%s: %s\r\n\r\n", addressHeader, to.RemoteAddr())
	// A client that does not wait for the answer has sent something already.
	if n := buffered.Reader.Buffered(); n > 0 && err == nil {
		early, _ := buffered.Reader.Peek(n) // it is buffered
		_, err = to.Write(early)
	}
	if err != nil {
		cut(to)
		cut(here)
		return
	}
	pipe(here, to, l)
}

// connectPatience limits the time to make a connection for a client.
const connectPatience = 30 * time.Second

// refuse answers with the reason why there is no connection. The status line contains it too, because some clients,
// such as the API server, show nothing else.
func refuse(w io.Writer, err error) error {
	line := oneLine(Explain(err))
	header := http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "Connection": {"close"}}
	encode(err, header)
	answer := &strings.Builder{}
	fmt.Fprintf(answer, "HTTP/1.1 %d %s\r\nContent-Length: %d\r\n", http.StatusBadGateway, line, len(line)+1)
	_ = header.Write(answer) // a Builder takes everything
	fmt.Fprintf(answer, "\r\n%s\n", line)
	_, err = io.WriteString(w, answer.String())
	return err
}

// listenUnix listens on a socket in the sandbox's directory. It removes a socket that a killed process left behind.
func listenUnix(path string) (net.Listener, error) {
	address := &net.UnixAddr{Net: "unix", Name: path}
	l, err := net.ListenUnix("unix", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		if c, err := net.DialUnix("unix", nil, address); err == nil {
			_ = c.Close() // it was only a question
			return nil, fmt.Errorf("%s is in use by another process", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
		l, err = net.ListenUnix("unix", address)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close() // the first error counts
		return nil, err
	}
	return l, nil
}

// serve serves HTTP until the server is closed. Requests under way belong to the lot.
func serve(listener net.Listener, l *lot, handle http.HandlerFunc) *http.Server {
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !l.enter() {
				panic(http.ErrAbortHandler) // it is being closed
			}
			defer l.leave()
			handle(w, r)
		}),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // clients that went away
	}
	l.work.Go(func() { _ = server.Serve(listener) }) // its error is that it was closed
	return server
}
