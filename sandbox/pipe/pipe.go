// Package pipe reads what a program prints, and knows when all is read that the program had printed at a moment.
package pipe

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// Pipe is a pipe that a program prints to. All methods may be called from any goroutine.
type Pipe struct {
	// Into is the program's end.
	Into *os.File
	take func([]byte)
	from *os.File

	mu  sync.Mutex
	buf []byte
}

// bufferSize is the most bytes that are taken at once, and mostInPipe is more than a pipe holds.
const (
	bufferSize = 64 << 10
	mostInPipe = 1 << 20
)

// New returns a pipe. take is called with what comes, one call after the other; it must not keep it.
func New(take func([]byte)) (*Pipe, error) {
	from, into, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &Pipe{Into: into, take: take, from: from, buf: make([]byte, bufferSize)}, nil
}

// Follow takes what comes, until there is nothing more or the pipe is closed.
func (p *Pipe) Follow() {
	pipe, err := p.from.SyscallConn()
	if err != nil {
		return // it is closed
	}
	for ended := false; err == nil && !ended; {
		err = pipe.Read(func(fd uintptr) bool {
			some := false
			some, ended = p.read(int(fd))
			return some || ended
		})
	}
}

// Drain returns when all is taken that the program had printed when it was called.
func (p *Pipe) Drain() {
	if pipe, err := p.from.SyscallConn(); err == nil {
		_ = pipe.Control(func(fd uintptr) { p.read(int(fd)) }) // closed: the program has ended
	}
}

// read takes what is in the pipe; ended says that nothing more will come. It does not wait.
func (p *Pipe) read(fd int) (some, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for taken := 0; taken < mostInPipe; {
		n, err := syscall.Read(fd, p.buf)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return some, false
		case n <= 0:
			return some, true
		default:
			p.take(p.buf[:n])
			some, taken = true, taken+n
		}
	}
	return some, false
}

// Stop ends Follow, although there may be writers.
func (p *Pipe) Stop() { _ = p.from.SetReadDeadline(time.Now()) }

// Close closes both ends; what was not taken is lost.
func (p *Pipe) Close() {
	_ = p.Into.Close() // it may be closed, because the program has its own
	_ = p.from.Close()
}
