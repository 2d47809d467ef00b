package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

// cannotResolve reports whether an error is that of an unknown name.
func cannotResolve(err error) bool {
	var unknown *net.DNSError
	return errors.As(err, &unknown)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

// errnoText returns the system's text of an error: Connection refused.
func errnoText(err error) string {
	if errno, is := errors.AsType[syscall.Errno](err); is {
		return why(errno)
	}
	if isTimeout(err) {
		return "Connection timed out"
	}
	return err.Error()
}

func (p *process) lookup(name string) ([]string, error) {
	if net.ParseIP(name) != nil {
		return []string{name}, nil
	}
	if p.container.Lookup == nil {
		return nil, unsupported("looking up names")
	}
	return p.container.Lookup(p.ctx, name)
}

func nslookup(p *process, argv []string, io streams) int {
	o, err := parse(argv, "")
	if err != nil || len(o.names) == 0 {
		return problem(io, argv, "usage: nslookup HOST")
	}
	addresses, err := p.lookup(o.names[0])
	var syntax syntaxError
	switch {
	case errors.As(err, &syntax):
		return problem(io, argv, "%v", err)
	case err != nil || len(addresses) == 0:
		fmt.Fprintf(io.out, "** server can't find %s: NXDOMAIN\n\n", o.names[0])
		return 1
	}
	for _, a := range addresses {
		fmt.Fprintf(io.out, "Name:\t%s\nAddress: %s\n", o.names[0], a)
	}
	return 0
}

func getent(p *process, argv []string, io streams) int {
	if len(argv) < 3 || argv[1] != "hosts" && argv[1] != "ahosts" {
		return problem(io, argv, "usage: getent hosts NAME...")
	}
	code := 0
	for _, name := range argv[2:] {
		addresses, err := p.lookup(name)
		if _, is := errors.AsType[syntaxError](err); is {
			return problem(io, argv, "%v", err)
		}
		if err != nil || len(addresses) == 0 {
			code = 2
		}
		for _, a := range addresses {
			fmt.Fprintf(io.out, "%-15s %s\n", a, name)
		}
	}
	return code
}

// nc connects: with -z it only tries.
func nc(p *process, argv []string, s streams) int {
	o, err := parse(argv, "z v n w:")
	if err != nil || len(o.names) != 2 {
		return problem(s, argv, "usage: nc [-zv] [-w SECS] HOST PORT")
	}
	ctx := p.ctx
	if text, ok := o.value("w"); ok {
		d, err := duration(text)
		if err != nil {
			return problem(s, argv, "invalid number '%s'", text)
		}
		limited, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		ctx = limited
	}
	conn, err := p.container.Dial(ctx, "tcp4", net.JoinHostPort(o.names[0], o.names[1]))
	switch {
	case cannotResolve(err):
		return problem(s, argv, "bad address '%s'", o.names[0])
	case err != nil:
		return problem(s, argv, "%s (%s:%s): %s", o.names[0], o.names[0], o.names[1], errnoText(err))
	}
	defer func() { _ = conn.Close() }()
	if o.has("v") {
		fmt.Fprintf(s.err, "%s (%s) open\n", o.names[0], conn.RemoteAddr())
	}
	if o.has("z") {
		return 0
	}
	stop := context.AfterFunc(p.ctx, func() { _ = conn.Close() })
	defer stop()
	go func() {
		_, _ = io.Copy(conn, s.in)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	if _, err := io.Copy(s.out, conn); err != nil && p.ctx.Err() == nil {
		return problem(s, argv, "%s", errnoText(err))
	}
	return 0
}

// seconds is a duration as commands take it.
func seconds(text string) (time.Duration, error) {
	if strings.TrimLeft(text, "0123456789.") != "" {
		return 0, fmt.Errorf("%q is no number of seconds", text)
	}
	return duration(text)
}
