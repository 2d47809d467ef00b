package node

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// maxLine is the maximum length in bytes of a line in a log, as in containerd. Longer lines are split into parts.
const maxLine = 16 << 10

// logFile is a container's log in the format of the CRI, which the kubelet reads, rotates and deletes:
//
//	2016-10-06T00:17:09.669794202Z stdout F The content of the log entry 1
//
// What is written beyond the limit, between one rotation and the next, is left out, so that a container that floods its
// log fills neither the disk nor the memory, and is not held up. The log says so.
type logFile struct {
	path  string
	limit int64

	mu   sync.Mutex
	file *os.File // nil when closed
	// written since the file was opened.
	written int64
	// lost are the lines that were left out since the log was full.
	lost int
}

func openLog(path string, limit int64) (*logFile, error) {
	l := &logFile{path: path, limit: limit}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return l, l.open()
}

func (l *logFile) open() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file, l.written = file, 0
	return nil
}

// reopen continues in a new file, after the kubelet has renamed the old one.
func (l *logFile) reopen() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return os.ErrClosed
	}
	if err := l.open(); err != nil {
		return err
	}
	if l.lost > 0 {
		l.note(fmt.Sprintf("%d lines were left out here: more than %d bytes since the log was last rotated",
			l.lost, l.limit))
		l.lost = 0
	}
	return nil
}

// say writes a line from the runtime itself.
func (l *logFile) say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(text)
}

func (l *logFile) note(text string) { l.write("stderr", "F", []byte(Name+": "+text)) }

// entry writes a line, or a part of one.
func (l *logFile) entry(stream, tag string, line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.written < l.limit:
		l.write(stream, tag, line)
		if l.written >= l.limit {
			l.note(fmt.Sprintf("the log is full (%d bytes): what follows is left out until the kubelet rotates it", l.limit))
		}
	case tag == "F":
		l.lost++
	}
}

func (l *logFile) write(stream, tag string, line []byte) {
	if l.file == nil {
		return
	}
	entry := make([]byte, 0, len(line)+len(stream)+len(time.RFC3339Nano)+8)
	entry = time.Now().UTC().AppendFormat(entry, time.RFC3339Nano)
	entry = append(append(append(entry, ' '), stream...), ' ')
	entry = append(append(append(entry, tag...), ' '), line...)
	entry = append(entry, '\n')
	n, _ := l.file.Write(entry) // on a full disk there is nothing else to do
	l.written += int64(n)
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}

// lines splits the output of one stream of a container into entries of its log, and passes it on unchanged to attached
// clients. It never waits for them, and fails only after the container has ended: problems with its output do not stop
// a program.
type lines struct {
	log      *logFile
	stream   string
	attached *attachedClients

	mu     sync.Mutex
	part   []byte // of a line that has not ended
	closed bool
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, io.ErrClosedPipe
	}
	l.attached.tell(l.stream, p)
	for rest := p; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			l.add(rest)
			break
		}
		l.add(rest[:end])
		l.log.entry(l.stream, "F", l.part)
		l.part = l.part[:0]
		rest = rest[end+1:]
	}
	return len(p), nil
}

// add appends to the line that has not ended. A line longer than maxLine is written in parts.
func (l *lines) add(text []byte) {
	for len(l.part)+len(text) > maxLine {
		n := maxLine - len(l.part)
		l.part = append(l.part, text[:n]...)
		l.log.entry(l.stream, "P", l.part)
		l.part, text = l.part[:0], text[n:]
	}
	l.part = append(l.part, text...)
}

// end writes a last line without a line break.
func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && len(l.part) > 0 {
		l.log.entry(l.stream, "F", l.part)
	}
	l.closed, l.part = true, nil
}

// attachedClients holds the attached clients of a container.
type attachedClients struct {
	mu      sync.Mutex
	clients map[*client]bool
	closed  bool
}

func (a *attachedClients) tell(stream string, p []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for s := range a.clients {
		s.hear(stream, p)
	}
}

// join returns a client that receives the output from now on, until it leaves or the container ends.
func (a *attachedClients) join() *client {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &client{ready: make(chan struct{}, 1), closed: a.closed}
	if !a.closed {
		if a.clients == nil {
			a.clients = map[*client]bool{}
		}
		a.clients[s] = true
	}
	return s
}

func (a *attachedClients) leave(s *client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.clients, s)
}

func (a *attachedClients) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for s := range a.clients {
		s.end()
	}
	a.clients = nil
}

// patience is the number of bytes kept for a slow client.
const patience = 1 << 20

// client keeps the output that one client has not read yet.
type client struct {
	ready chan struct{} // has something when there is something

	mu     sync.Mutex
	pieces []piece
	size   int
	lost   int
	closed bool
}

type piece struct {
	stream string
	text   []byte
}

func (s *client) hear(stream string, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size+len(p) > patience {
		s.lost += len(p)
	} else {
		s.pieces = append(s.pieces, piece{stream, bytes.Clone(p)})
		s.size += len(p)
	}
	s.wake()
}

func (s *client) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.wake()
}

func (s *client) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// take returns and removes the output that is kept. end reports whether the container has ended.
func (s *client) take() (pieces []piece, end bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pieces = s.pieces
	if s.lost > 0 {
		pieces = append(pieces, piece{"stderr", fmt.Appendf(nil,
			"\n%s: %d bytes were left out here: they came faster than they were read\n", Name, s.lost)})
	}
	s.pieces, s.size, s.lost = nil, 0, 0
	return pieces, s.closed
}
