package maintpage_test

import (
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/operators/maintpage"
)

// logLines are what an operator logs.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

// captureLog makes an operator log to the returned lines.
func captureLog(o *maintpage.Options) *logLines {
	l := &logLines{}
	logger := funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, line)
	}, funcr.Options{})
	o.Controller.LogConstructor = func(*reconcile.Request) logr.Logger { return logger }
	return l
}

// number counts the lines with a text.
func (l *logLines) number(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// first is the first line with a text.
func (l *logLines) first(text string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}
