package sandbox

import (
	"bufio"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// tailLines is the number of lines of a program's log that are kept to show why it died.
const tailLines = 12

// beforeCrash is the number of lines before a crash that are kept: the program may have said why.
const beforeCrash = 3

// output takes the lines that one run of a program prints. They go to its log file, without the lines that the program
// writes for its parent ([guard.WatchParent], [guard.Ready]). When it ends, the program is dead, which envtest does not
// report.
type output struct {
	w     *os.File // the program's standard error, and output unless audit is set
	audit *os.File // the API server's standard output, when somebody listens to its audit log
	log   *os.File
	ready chan struct{} // closed when the program says it is ready
	ended chan struct{} // closed when the program is dead
	pid   atomic.Int64

	mu      sync.Mutex
	tail    []string
	crashed bool // the tail begins with what a Go program died of
	doomed  bool // to be killed as soon as its pid is known
}

func openOutput(logFile string) (*output, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	o := &output{w: w, log: log, ready: make(chan struct{}), ended: make(chan struct{})}
	go o.read(r)
	return o, nil
}

// started closes this process's copies of the writing ends; from then on only the program keeps its output open.
func (o *output) started() {
	_ = o.w.Close()
	if o.audit != nil {
		_ = o.audit.Close()
	}
}

func (o *output) read(r *os.File) {
	defer close(o.ended)
	defer func() { _ = errors.Join(r.Close(), o.log.Close()) }()
	lines := bufio.NewReaderSize(r, 64<<10)
	ready := false
	for {
		line, err := lines.ReadString('\n')
		switch text := strings.TrimSuffix(line, "\n"); {
		case text == guard.ReadyLine:
			if !ready {
				ready = true
				close(o.ready)
			}
		case strings.HasPrefix(text, guard.PIDPrefix):
			pid, _ := strconv.ParseInt(strings.TrimPrefix(text, guard.PIDPrefix), 10, 64)
			o.born(int(pid))
		case line != "":
			o.keep(text)
			_, _ = io.WriteString(o.log, line) // a full disk must not block the program
		}
		if err != nil {
			return
		}
	}
}

// crashes are the beginnings of the message with which a Go program crashes. Pages of goroutines follow.
var crashes = []string{"panic: ", "fatal error: ", "unexpected fault address ", "runtime: "}

func (o *output) keep(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.crashed && slices.ContainsFunc(crashes, func(c string) bool { return strings.HasPrefix(line, c) }) {
		o.crashed = true
		o.tail = o.tail[max(0, len(o.tail)-beforeCrash):]
	}
	if len(o.tail) < tailLines {
		o.tail = append(o.tail, line)
	} else if !o.crashed {
		o.tail = append(o.tail[:0], append(o.tail[1:], line)...)
	}
}

// end returns the last lines printed, or the beginning of a crash.
func (o *output) end() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.tail, "\n")
}

// born records the program's pid, and kills it if that was asked for before.
func (o *output) born(pid int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pid.Store(int64(pid))
	if o.doomed {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// kill ends the program with SIGKILL, also one that is only about to start. As long as its output is open no other
// process can have its pid.
func (o *output) kill() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.doomed = true
	select {
	case <-o.ended:
	default:
		if pid := int(o.pid.Load()); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
