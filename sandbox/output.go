package sandbox

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/operator-lab/operator-lab/sandbox/lifeline"
)

// tailLines is how much of a program's log is kept to show why it died.
const tailLines = 12

// output is everything one run of a program prints. It goes to the program's log file; the lines of the lifeline
// contract are taken out; and its end is the program's death, which envtest has no other way to tell.
type output struct {
	w     *os.File // the program's standard output and error
	log   *os.File
	ready chan struct{} // closed when the program says it is ready
	ended chan struct{} // closed when the program is dead
	pid   atomic.Int64

	mu   sync.Mutex
	tail []string
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

// started gives up this process's copy of the writing end; from then on only the program keeps the output open.
func (o *output) started() { _ = o.w.Close() }

func (o *output) read(r *os.File) {
	defer close(o.ended)
	defer func() { _ = errors.Join(r.Close(), o.log.Close()) }()
	lines := bufio.NewReaderSize(r, 64<<10)
	ready := false
	for {
		line, err := lines.ReadString('\n')
		switch text := strings.TrimSuffix(line, "\n"); {
		case text == lifeline.ReadyLine:
			if !ready {
				ready = true
				close(o.ready)
			}
		case strings.HasPrefix(text, lifeline.PIDPrefix):
			pid, _ := strconv.ParseInt(strings.TrimPrefix(text, lifeline.PIDPrefix), 10, 64)
			o.pid.Store(pid)
		case line != "":
			o.keep(text)
			_, _ = io.WriteString(o.log, line) // a full disk must not block the program
		}
		if err != nil {
			return
		}
	}
}

func (o *output) keep(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.tail) == tailLines {
		o.tail = append(o.tail[:0], o.tail[1:]...)
	}
	o.tail = append(o.tail, line)
}

// end is the last lines printed, and empties nothing.
func (o *output) end() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.tail, "\n")
}
