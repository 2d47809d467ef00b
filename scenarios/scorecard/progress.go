package scorecard

import (
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// Progress writes one line for each finished scenario. Failures are described by the card.
type Progress struct {
	report.Nothing

	mu   sync.Mutex
	w    io.Writer
	done int
	all  int
}

var _ report.Sink = (*Progress)(nil)

// NewProgress returns a sink that writes to w about all these tests, in any number of runs.
func NewProgress(w io.Writer, tests []*format.Loaded) *Progress {
	p := &Progress{w: w}
	for _, loaded := range tests {
		p.all += max(1, len(loaded.Test.Spec.Scenarios))
	}
	return p
}

// EndTest writes the result of the test.
func (p *Progress) EndTest(t *report.Test) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if t.Status() == report.Skipped {
		return
	}
	took := t.Ended.Sub(t.Started).Seconds()
	fmt.Fprintf(p.w, "%*d/%d  %-7s %s  %.1fs\n", len(strconv.Itoa(p.all)), p.done, p.all, t.Status(), t.Name, took)
}
