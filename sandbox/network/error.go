package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// Error is a failure to connect. Its text is the short one that a program in a cluster sees:
//
//	dial tcp 10.96.14.3:8080: connect: connection refused
//
// It unwraps to a [net.OpError] and the [syscall.Errno] or [net.DNSError] below it, also when another process tried to
// connect.
type Error struct {
	// Asked is the requested address.
	Asked string
	// Reason adds details that only the lab knows; it may be empty.
	Reason string

	err error
}

// Error returns the short text that a program in a cluster sees.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap is for errors.Is.
func (e *Error) Unwrap() error { return e.err }

// Explain returns the whole story in one line:
//
//	connect web.shop.svc:8080: connection refused: the Service has no ready endpoints
func (e *Error) Explain() string {
	line := "connect " + e.Asked + ": " + e.cause()
	if e.Reason != "" {
		line += ": " + e.Reason
	}
	return oneLine(line)
}

// cause returns the text at the end of the chain of errors. The text before it only repeats the address.
func (e *Error) cause() string {
	if errno, is := errors.AsType[syscall.Errno](e.err); is {
		return errno.Error()
	}
	if dns, is := errors.AsType[*net.DNSError](e.err); is {
		return dns.Err
	}
	if op, is := errors.AsType[*net.OpError](e.err); is {
		return op.Err.Error()
	}
	return e.err.Error()
}

// Explain returns [Error.Explain] of an error that contains an [Error], and the error's own text otherwise.
func Explain(err error) string {
	if e, is := errors.AsType[*Error](err); is {
		return e.Explain()
	}
	return err.Error()
}

// failed is a connection to an address that the system would not make.
func failed(asked string, at netip.AddrPort, errno syscall.Errno, reason string) *Error {
	return &Error{asked, reason, &net.OpError{
		Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(at), Err: os.NewSyscallError("connect", errno),
	}}
}

func refused(asked string, at netip.AddrPort, reason string) *Error {
	return failed(asked, at, syscall.ECONNREFUSED, reason)
}

// unknown returns the error for a name that the cluster's DNS cannot resolve.
func unknown(asked, host, reason string) *Error {
	return &Error{asked, reason, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{
		Err: "no such host", Name: host, Server: DNSServerIP + ":53", IsNotFound: true,
	}}}
}

// other wraps an error whose text is kept.
func other(asked string, at net.Addr, err error) *Error {
	if _, is := errors.AsType[*net.OpError](err); !is {
		err = &net.OpError{Op: "dial", Net: "tcp", Addr: at, Err: err}
	}
	return &Error{asked, "", err}
}

// moved replaces the machine's address in an error by the cluster's address.
func moved(ctx context.Context, asked string, at netip.AddrPort, err error) *Error {
	if errno, is := errors.AsType[syscall.Errno](err); is {
		return failed(asked, at, errno, "")
	}
	if ctx.Err() != nil {
		err = asTimeout(ctx)
	}
	return other(asked, net.TCPAddrFromAddrPort(at), err)
}

// Headers that carry an error between processes.
const (
	causeHeader   = "Lab-Cause"
	addressHeader = "Lab-Address"
	reasonHeader  = "Lab-Reason"
)

// errnos are the errors that are passed on to clients as they are.
var errnos = map[string]syscall.Errno{
	"ECONNREFUSED": syscall.ECONNREFUSED,
	"ECONNRESET":   syscall.ECONNRESET,
	"EHOSTUNREACH": syscall.EHOSTUNREACH,
	"ENETUNREACH":  syscall.ENETUNREACH,
	"ETIMEDOUT":    syscall.ETIMEDOUT,
}

const (
	causeUnknown = "unknown host"
	causeTimeout = "timeout"
)

// encode writes an error into the header of an answer.
func encode(err error, h http.Header) {
	op, is := errors.AsType[*net.OpError](err)
	if !is {
		return
	}
	if op.Addr != nil {
		h.Set(addressHeader, op.Addr.String())
	}
	if e, is := errors.AsType[*Error](err); is && e.Reason != "" {
		h.Set(reasonHeader, oneLine(e.Reason))
	}
	if dns, is := errors.AsType[*net.DNSError](err); is && dns.IsNotFound {
		h.Set(causeHeader, causeUnknown)
		h.Set(addressHeader, oneLine(dns.Name))
		return
	}
	if op.Timeout() {
		h.Set(causeHeader, causeTimeout)
	}
	for text, errno := range errnos {
		if errors.Is(err, errno) {
			h.Set(causeHeader, text)
		}
	}
}

// decode reverses encode. The status is the text for clients that do not know the header.
func decode(asked, status string, h http.Header) *Error {
	where, reason := h.Get(addressHeader), h.Get(reasonHeader)
	if h.Get(causeHeader) == causeUnknown {
		return unknown(asked, where, reason)
	}
	at, err := netip.ParseAddrPort(where)
	if err != nil {
		return other(asked, nil, fmt.Errorf("the network answered %q", status))
	}
	if h.Get(causeHeader) == causeTimeout {
		return other(asked, net.TCPAddrFromAddrPort(at), os.ErrDeadlineExceeded)
	}
	if errno, is := errnos[h.Get(causeHeader)]; is {
		return failed(asked, at, errno, reason)
	}
	return other(asked, net.TCPAddrFromAddrPort(at), fmt.Errorf("the network answered %q", status))
}

// oneLine makes a text fit for a header and a terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
