package process

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"
)

// output takes what a program prints: it goes into a file, and the last lines are kept for error messages.
type output struct {
	file io.Writer
	line func(string) // called with each line; nil: nothing is

	mu      sync.Mutex
	partial []byte
	lines   []string
}

// The lines of the output that are kept, and the bytes that a line without an end may have.
const (
	keptLines = 200 // a program that does not know a flag explains all that it knows
	maxLine   = 64 << 10
)

// write takes some output. It never fails: a full disk must not stop the operator.
func (o *output) write(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
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
	if line := LastWords(e.Last); line != "" {
		return fmt.Sprintf("%s; it printed: %s", e.How, line)
	}
	return e.How + ", without a word"
}

// reasons are the beginnings of lines that say why a program ends, and are not its last: of a Go program's crash, and of
// flags that it does not know, by flag and pflag.
var reasons = regexp.MustCompile(`^(panic: |fatal error: |flag provided but not defined: |(Error: )?unknown (shorthand )?flag: )`)

// LastWords returns the line to show of the last ones that a program printed: one that says the reason, else the last that is not empty.
func LastWords(lines []string) string {
	last := ""
	for _, line := range lines {
		if reasons.MatchString(line) {
			return line
		}
		if s := strings.TrimSpace(line); s != "" {
			last = s
		}
	}
	return last
}
