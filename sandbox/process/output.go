package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// output takes what a program prints: it goes into a file, and the last lines are kept for error messages.
type output struct {
	file io.Writer
	line func(string) // called with each line; nil: nothing is
	// from is what the program prints to, into.
	from, into *os.File

	mu      sync.Mutex
	buf     []byte
	partial []byte
	lines   []string
}

// The lines of the output that are kept, and the bytes that a line without an end may have.
const (
	keptLines = 200 // a program that does not know a flag explains all that it knows
	maxLine   = 64 << 10
)

// mostInPipe is more than a pipe holds.
const mostInPipe = 1 << 20

// newOutput returns an output that takes what is written to its end into.
func newOutput(file io.Writer, line func(string)) (*output, error) {
	from, into, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &output{file: file, line: line, from: from, into: into, buf: make([]byte, maxLine)}, nil
}

// follow takes what comes, until there is nothing more or the output is closed.
func (o *output) follow() {
	pipe, err := o.from.SyscallConn()
	if err != nil {
		return // it is closed
	}
	for ended := false; err == nil && !ended; {
		err = pipe.Read(func(fd uintptr) bool {
			some := false
			some, ended = o.take(int(fd))
			return some || ended
		})
	}
}

// drain returns when all is taken that the program had printed when it was called.
func (o *output) drain() {
	if pipe, err := o.from.SyscallConn(); err == nil {
		_ = pipe.Control(func(fd uintptr) { o.take(int(fd)) }) // closed: the program has ended
	}
}

// take takes what is in the pipe; ended says that nothing more will come. It does not wait.
func (o *output) take(fd int) (some, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for taken := 0; taken < mostInPipe; {
		n, err := syscall.Read(fd, o.buf)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return some, false
		case n <= 0:
			return some, true
		default:
			o.write(o.buf[:n])
			some, taken = true, taken+n
		}
	}
	return some, false
}

// close ends the output; what was not taken is lost.
func (o *output) close() {
	_ = o.into.Close() // the program has its own
	_ = o.from.Close()
}

// write takes some output. It never fails: a full disk must not stop the operator. The caller holds the lock.
func (o *output) write(p []byte) {
	_, _ = o.file.Write(p)
	o.partial = append(o.partial, p...)
	for {
		line, rest, found := bytes.Cut(o.partial, []byte("\n"))
		if !found && len(o.partial) < maxLine {
			return
		}
		o.add(string(line))
		o.partial = append(o.partial[:0], rest...)
	}
}

// flush ends the last line.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.partial) > 0 {
		o.add(string(o.partial))
		o.partial = nil
	}
}

func (o *output) add(line string) {
	line = strings.TrimRight(line, "\r")
	if o.line != nil {
		o.line(line)
	}
	o.lines = append(o.lines, line)
	if len(o.lines) > keptLines {
		o.lines = o.lines[1:]
	}
}

// last returns the last lines.
func (o *output) last() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.lines...)
}

// Exit is the error of a program that ended by itself.
type Exit struct {
	// How is how it ended, such as "exit status 1".
	How string
	// Last are the last lines that it printed.
	Last []string
}

// restartPause is the time until a program that ended by itself is started again.
const restartPause = time.Second

// RestartAfter returns the time until the program is to be started again.
func (e *Exit) RestartAfter() time.Duration { return restartPause }

// Error returns how the program ended, and the line of its output that says most.
func (e *Exit) Error() string {
	if line := e.lastLine(); line != "" {
		return fmt.Sprintf("%s; it printed: %s", e.How, line)
	}
	return e.How + ", without a word"
}

// reasons are the beginnings of lines that say why a program ends, and are not its last: of a Go program's crash, and of
// flags that it does not know, by flag and pflag.
var reasons = regexp.MustCompile(`^(panic: |fatal error: |flag provided but not defined: |(Error: )?unknown (shorthand )?flag: )`)

// lastLine returns the line to show: one that says the reason, else the last that is not empty.
func (e *Exit) lastLine() string {
	last := ""
	for _, line := range e.Last {
		if reasons.MatchString(line) {
			return line
		}
		if s := strings.TrimSpace(line); s != "" {
			last = s
		}
	}
	return last
}
