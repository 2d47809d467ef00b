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

// Error is why a connection was not made. Its text is what a program in a cluster is told, which is little:
//
//	dial tcp 10.96.14.3:8080: connect: connection refused
//
// It unwraps to a [net.OpError] and the [syscall.Errno] or [net.DNSError] below it, also when the connection was made
// by another process.
type Error struct {
	// Asked is what was to be connected to.
	Asked string
	// Reason is what the lab knows beyond the error; it may be empty.
	Reason string

	err error
}

func (e *Error) Error() string { return e.err.Error() }

// Unwrap is for errors.Is.
func (e *Error) Unwrap() error { return e.err }

// Explain says all there is to say, in one line:
//
//	connect web.shop.svc:8080: connection refused: the Service has no ready endpoints
func (e *Error) Explain() string {
	line := "connect " + e.Asked + ": " + e.cause()
	if e.Reason != "" {
		line += ": " + e.Reason
	}
	return oneLine(line)
}

// cause is the end of the chain: the beginning repeats the address.
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

// Explain is what [Error.Explain] says of an error that contains one, and the error's own text of any other.
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

// unknown is a name that the cluster's DNS has no answer for.
func unknown(asked, host, reason string) *Error {
	return &Error{asked, reason, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{
		Err: "no such host", Name: host, Server: DNSServerIP + ":53", IsNotFound: true,
	}}}
}

// other is an error that is told as it is.
func other(asked string, at net.Addr, err error) *Error {
	if _, is := errors.AsType[*net.OpError](err); !is {
		err = &net.OpError{Op: "dial", Net: "tcp", Addr: at, Err: err}
	}
	return &Error{asked, "", err}
}

// moved tells an error of an address of this machine as one of the cluster's address.
func moved(ctx context.Context, asked string, at netip.AddrPort, err error) *Error {
	if errno, is := errors.AsType[syscall.Errno](err); is {
		return failed(asked, at, errno, "")
	}
	if ctx.Err() != nil {
		err = asTimeout(ctx)
	}
	return other(asked, net.TCPAddrFromAddrPort(at), err)
}

// What an error is told with between processes.
const (
	causeHeader   = "Lab-Cause"
	addressHeader = "Lab-Address"
	reasonHeader  = "Lab-Reason"
)

// errnos are the errors that a client may want to tell apart.
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

// decode is the reverse of encode; the status is what a client is told that knows nothing of the header.
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
