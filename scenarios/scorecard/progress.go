package scorecard

import (
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// Progress writes a line when a scenario begins and one when it ends. Failures are described by the card.
type Progress struct {
	report.Nothing

	mu sync.Mutex
	w  io.Writer
	// begun counts the tests that have begun; the number of each is kept until it has ended, as several run at a time.
	begun  int
	number map[*report.Test]int
	all    int
}

var _ report.Sink = (*Progress)(nil)

// NewProgress returns a sink that writes to w about all these tests, in any number of runs.
func NewProgress(w io.Writer, tests []*format.Loaded) *Progress {
	p := &Progress{w: w, number: map[*report.Test]int{}}
	for _, loaded := range tests {
		p.all += max(1, len(loaded.Test.Spec.Scenarios))
	}
	return p
}

// BeginTest writes that the test runs.
func (p *Progress) BeginTest(t *report.Test) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun++
	p.number[t] = p.begun
	if t.Skipped || t.Unfinished {
		return
	}
	fmt.Fprintf(p.w, "%s  run     %s\n", p.position(p.begun), t.Name)
}

// position returns the place of a test among all.
func (p *Progress) position(n int) string {
	return fmt.Sprintf("%*d/%d", len(strconv.Itoa(p.all)), n, p.all)
}

// EndTest writes the result of the test.
func (p *Progress) EndTest(t *report.Test) {
	p.mu.Lock()
	defer p.mu.Unlock()
	number := p.number[t]
	delete(p.number, t)
	if t.Status() == report.Skipped {
		return
	}
	took := t.Ended.Sub(t.Started).Seconds()
	fmt.Fprintf(p.w, "%s  %-7s %s  %.1fs\n", p.position(number), t.Status(), t.Name, took)
}
