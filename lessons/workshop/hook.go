package workshop

import (
	"context"
	"net/http"
	"path/filepath"
	"sync"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/metacontroller"
	"github.com/operator-lab/operator-lab/sandbox/hook"
	"github.com/operator-lab/operator-lab/sandbox/lab"
)

// hooked is metacontroller, whose webhooks a program in the learner's directory answers.
type hooked struct {
	lab.Program
	workshop *Workshop
	file     string

	mu      sync.Mutex
	program *hook.Program // nil: it has not been asked yet
	taken   string
}

func newHooked(w *Workshop, op book.Operator) *hooked {
	h := &hooked{workshop: w, file: op.Hook}
	h.Program = lab.Bundled(operators.Metacontroller(h))
	return h
}

func (h *hooked) path() string { return filepath.Join(h.workshop.options.Dir, h.file) }

// RoundTrip has the program answer a request. The file may have been written only now.
func (h *hooked) RoundTrip(req *http.Request) (*http.Response, error) {
	h.mu.Lock()
	if h.program == nil {
		program, err := hook.New(hook.Options{
			File: h.path(), Env: h.workshop.options.Environment(), Name: func(r *http.Request) string { return metacontroller.HookOf(r.Context()) },
		})
		if err != nil {
			h.mu.Unlock()
			return nil, err
		}
		h.program = program
	}
	program := h.program
	h.mu.Unlock()
	return program.RoundTrip(req)
}

// look begins another life of metacontroller if the program was saved, so that every object is synced with it.
func (h *hooked) look(_ context.Context, l *lab.Lab) (note string, first bool) {
	sum := digestOf(h.path())
	h.mu.Lock()
	again := h.taken != "" && sum != h.taken && sum != ""
	h.taken = sum
	h.mu.Unlock()
	if !again || l.Taps(h.Name()) == nil {
		return "", false
	}
	l.Restart(h.Name())
	return h.workshop.textf("%s was saved; every object is synced with it", "%s が保存されたので、すべてのオブジェクトを sync し直します", h.file), false
}

func (h *hooked) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken = digestOf(h.path())
}

func (h *hooked) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.program != nil {
		h.program.Close()
	}
}
