package traffic

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

// Answer is what came of one request.
type Answer struct {
	// Sent is when the request began.
	Sent time.Time
	// Status is the HTTP status; 0 without an answer.
	Status int
	// Body is the first line of the answer's text that is not empty, cut short and without what would disturb a
	// terminal.
	Body string
	// Latency is how long all of it took: a new connection, the request and the answer.
	Latency time.Duration
	// Err is why there is no answer, or not all of one.
	Err error
}

// OK reports whether the request got what it asked for.
func (a Answer) OK() bool { return a.Err == nil && a.Status < http.StatusBadRequest }

// Problem says in a few words what is wrong with the answer; empty if nothing is.
func (a Answer) Problem() string {
	switch {
	case a.Err != nil:
		return shorten(clean(explain(a.Err)))
	case a.Status >= http.StatusBadRequest:
		text := fmt.Sprintf("%d %s", a.Status, http.StatusText(a.Status))
		if a.Body != "" {
			text += ": " + a.Body
		}
		return text
	}
	return ""
}

// Text is what the answer says: the body, or in brackets what is wrong.
func (a Answer) Text() string {
	if problem := a.Problem(); problem != "" {
		return "(" + problem + ")"
	}
	return a.Body
}

// String is the text with the time of the request, as in 23:55:59: Maintenance Page !
func (a Answer) String() string { return a.Sent.Format(time.TimeOnly) + ": " + a.Text() }

// explain says what people call the usual errors, then the rest.
func explain(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // the URL is known
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
		// Our own side's port is another each time, which would make each of the same errors a new one.
		err = fmt.Errorf("%s %s %s: %w", op.Op, op.Net, op.Addr, op.Err)
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	var usual string
	switch dns, unresolved := errors.AsType[*net.DNSError](err); {
	case errors.Is(err, syscall.ECONNREFUSED):
		usual = "connection refused"
	case errors.Is(err, syscall.ECONNRESET):
		usual = "connection reset by peer"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		usual = "the connection was closed without an answer"
	case unresolved:
		return "no such host: " + dns.Name
	}
	switch {
	case usual == "":
		return text
	case strings.HasSuffix(text, ": "+usual):
		return usual + ": " + strings.TrimSuffix(text, ": "+usual)
	}
	return usual + ": " + text
}

// longestBody and longestLine bound what is read of an answer and what is kept of it.
const (
	longestBody = 16 << 10
	longestLine = 120
)

// firstLine reads up to the end of the first line that is not empty.
func firstLine(r io.Reader) (string, error) {
	lines := bufio.NewReader(io.LimitReader(r, longestBody))
	for {
		line, err := lines.ReadString('\n')
		if text := clean(line); text != "" {
			return text, nil
		}
		if errors.Is(err, io.EOF) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
	}
}

// clean makes one line of a text, without control characters or anything else that cannot be seen.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == utf8.RuneError:
			return '?'
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return strings.TrimSpace(text)
}

// shorten cuts a line that is too long.
func shorten(line string) string {
	if short := []rune(line); len(short) > longestLine {
		return string(short[:longestLine-1]) + "…"
	}
	return line
}
