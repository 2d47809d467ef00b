package cli

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/scenarios/verify"
)

// explorePage keeps what the page of an exploration shows. The exploration writes it, the screen reads it.
type explorePage struct {
	mu    sync.Mutex
	shown tui.Exploration
	taken time.Duration // the time of the last whole report
}

// reportEvery is the time between two reports for the page: making one takes a look at all plans.
const reportEvery = 250 * time.Millisecond

// progress takes what the exploration tells.
func (p *explorePage) progress(now verify.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown.Plans, p.shown.Played, p.shown.Elapsed, p.shown.Confirming = now.Plans, now.Played, now.Elapsed, now.Confirming
	if now.Elapsed-p.taken >= reportEvery || now.Played == 0 || now.Played == now.Plans || now.Confirming {
		p.taken = now.Elapsed
		p.take(now.Report())
	}
}

// take shows a report. The caller holds the lock.
func (p *explorePage) take(r *verify.Report) {
	p.shown.Faults, p.shown.Places, p.shown.Findings = nil, nil, nil
	for _, f := range r.Faults {
		p.shown.Faults = append(p.shown.Faults, tui.ExploredFault{Name: f.Name, Says: f.Says})
	}
	for _, place := range r.Places() {
		line := tui.ExploredPlace{Name: place.Name}
		for _, cell := range place.Cells {
			line.Marks = append(line.Marks, cell.Mark)
		}
		p.shown.Places = append(p.shown.Places, line)
	}
	for _, f := range r.Findings {
		p.shown.Findings = append(p.shown.Findings, tui.ExploredFinding{
			Plan: f.Plan, Text: f.Text, Wrong: f.Wrong, Steady: f.Steady, Journal: f.Journal(),
		})
	}
}

// ended shows the last report; nil if there is none.
func (p *explorePage) ended(r *verify.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown.Done = true; r != nil {
		p.take(r)
	}
}

func (p *explorePage) now() tui.Exploration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown
}

// onPage explores while a page on the terminal shows how far it is. Leaving the page ends the exploration; when that has failed,
// the page is left.
func (v *verifying) onPage(ctx context.Context, o verify.Options) (*verify.Report, error) {
	o.Progress = v.page.progress
	exploring, stop := context.WithCancel(ctx)
	defer stop()
	showing, leave := context.WithCancel(ctx)
	defer leave()
	var found *verify.Report
	var err error
	over := make(chan struct{})
	go func() {
		defer close(over)
		if found, err = verify.Run(exploring, o); found == nil {
			leave()
		}
		v.page.ended(found)
	}()
	setup, _ := v.given.selection().Setup(v.tests[0].Test)
	shown := tui.Explore(showing, tui.ExploreOptions{
		Title: strings.TrimSuffix(v.testFlags.operators[0]+" / "+setup.Spec.Variant, " / ") + ": " + v.tests[0].Test.Name,
		Now:   v.page.now, Look: v.asked.look.options(v.io, nil),
	})
	stop()
	<-over
	if errors.Is(err, context.Canceled) && ctx.Err() == nil { // the page was left
		err = &exitError{code: exitInterrupted}
	}
	return found, errors.Join(err, shown)
}
