package cli

import (
	"bufio"
	"context"
	"fmt"
	"sync"

	"github.com/operator-lab/operator-lab/scenarios/report"
)

// pause stops before the clean-up of a failed test, so that a person can look at what there is.
type pause struct {
	io     streams
	target *target

	once sync.Once
	// lines has an item for each line that was typed, and is closed at the end of standard input.
	lines chan struct{}
}

func newPause(io streams, c *target) *pause {
	return &pause{io: io, target: c, lines: make(chan struct{})}
}

// wait returns when ENTER was pressed, or nobody can press it, or the run is interrupted.
func (p *pause) wait(ctx context.Context, t *report.Test) {
	p.once.Do(func() { go p.read() })
	fmt.Fprintf(p.io.err, "\npaused: %s failed, and nothing is cleared away yet\n", t.Name)
	if p.target.kubeconfig != "" {
		fmt.Fprintf(p.io.err, "look at it  export KUBECONFIG=%s\n            kubectl%s get all\n", shellQuote(p.target.kubeconfig), inNamespace(t.Namespace))
	}
	if p.target.name != "" {
		fmt.Fprintf(p.io.err, "or with     operator-lab kubectl --name %s%s get all\n", p.target.name, inNamespace(t.Namespace))
	}
	fmt.Fprintln(p.io.err, "press ENTER to go on, or Ctrl-C to end the run")
	select {
	case _, typed := <-p.lines:
		if !typed {
			fmt.Fprintln(p.io.err, "standard input is closed: nobody can press ENTER, going on")
		}
	case <-ctx.Done():
	}
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

// read reads lines for as long as the process lives: a read of a terminal cannot be called off.
func (p *pause) read() {
	defer close(p.lines)
	if p.io.in == nil {
		return
	}
	for lines := bufio.NewScanner(p.io.in); lines.Scan(); {
		p.lines <- struct{}{}
	}
}
