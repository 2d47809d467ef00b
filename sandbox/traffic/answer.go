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

// Answer is the outcome of one request.
type Answer struct {
	// Sent is the time at which the request began.
	Sent time.Time
	// Status is the HTTP status; 0 if there was no answer.
	Status int
	// Body is the first non-empty line of the answer's body, shortened and without control characters.
	Body string
	// Latency is the duration of the whole exchange: connecting, the request and the answer.
	Latency time.Duration
	// Err is the reason why there is no answer, or only part of one.
	Err error
}

// OK reports whether the request succeeded: no error, and a status below 400.
func (a Answer) OK() bool { return a.Err == nil && a.Status < http.StatusBadRequest }

// Problem describes in a few words what is wrong with the answer. It is empty for a good answer.
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

// Text returns the body of a good answer, otherwise the problem in brackets.
func (a Answer) Text() string {
	if problem := a.Problem(); problem != "" {
		return "(" + problem + ")"
	}
	return a.Body
}

// String returns the text with the time of the request, such as "23:55:59: Maintenance Page !".
func (a Answer) String() string { return a.Sent.Format(time.TimeOnly) + ": " + a.Text() }

// explain returns the usual words for common errors, followed by the error's own text.
func explain(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // the URL is known
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
		// The local port differs each time, which would make every equal error look new.
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

// longestBody is the number of bytes of an answer that are read, longestLine the number of characters that are kept.
const (
	longestBody = 16 << 10
	longestLine = 120
)

// firstLine returns the first non-empty line.
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

// clean turns a text into one line without control characters or other invisible characters.
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

// shorten cuts a line to longestLine characters.
func shorten(line string) string {
	if short := []rune(line); len(short) > longestLine {
		return string(short[:longestLine-1]) + "…"
	}
	return line
}
