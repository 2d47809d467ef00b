package cli

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// pausedLoop is a loop that notes who goes on.
type pausedLoop struct {
	journal *trace.Journal
	mu      sync.Mutex
	calls   []string
	pause   bool
}

func (l *pausedLoop) note(call string, pause bool) {
	l.mu.Lock()
	l.calls, l.pause = append(l.calls, call), pause
	l.mu.Unlock()
	l.journal.Append(trace.Event{Kind: trace.KindControl})
}

func (l *pausedLoop) StepBy(actor string) { l.note("step by "+actor, true) }
func (l *pausedLoop) Resume()             { l.note("resume", false) }

func (l *pausedLoop) Paused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pause
}

// TestOpening plays a demo's first deed: it is not asked for, and the loop is paused after one reconcile, until the person asks
// the demo to go on (g), resumes the loop (space) or quits. Without a person nothing is paused.
func TestOpening(t *testing.T) {
	for key, want := range map[string][]string{
		"g": {"step by the demo", "resume"}, "space": {"step by the demo", "resume"}, "q": {"step by the demo"}, "none": nil,
	} {
		ctx, quit := context.WithCancel(t.Context())
		journal := trace.New(trace.Options{})
		p, loop := &pace{unasked: key == "none"}, &pausedLoop{journal: journal}
		steps := &stepRecorder{
			journal: journal, deeds: map[string]bool{"apply": true, "patch": true}, first: "apply",
			await: func(deed string) { p.await(ctx, deed) }, open: func() { p.open(ctx, journal, loop, "go on") },
		}
		steps.BeginStep(nil, &report.Step{Name: "apply"})
		over := make(chan struct{})
		go func() {
			defer close(over)
			steps.BeginStep(nil, &report.Step{Name: "patch"})
		}()
		if key != "none" {
			sandboxtest.Eventually(t, "it waits", func() bool { return p.Waiting() == "go on" })
		}
		switch key {
		case "g":
			p.Next()
		case "space":
			loop.Resume()
		case "q":
			quit()
		}
		if key == "g" || key == "space" {
			sandboxtest.Eventually(t, "the next deed waits", func() bool { return p.Waiting() == "patch" })
			p.Next()
		}
		<-over
		if !slices.Equal(loop.calls, want) || p.Waiting() != "" {
			t.Errorf("%s: the loop was told %q, and %q waits", key, loop.calls, p.Waiting())
		}
		quit()
	}
}

// TestPace plays the steps of a demo as a person at the screen lets it go on.
func TestPace(t *testing.T) {
	ctx, quit := context.WithCancel(t.Context())
	p := &pace{}
	journal := trace.New(trace.Options{})
	steps := &stepRecorder{
		journal: journal, deeds: map[string]bool{"apply": true, "patch": true, "delete": true, "last": true},
		await: func(deed string) { p.await(ctx, deed) },
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for _, name := range []string{"apply", "assert", "patch", "delete"} {
			steps.BeginStep(nil, &report.Step{Name: name, Description: "text of " + name})
		}
	}()
	waits := func(deed string, told int64) {
		t.Helper()
		sandboxtest.Eventually(t, deed+" waits", func() bool { return p.Waiting() == deed })
		if n := journal.Stats().Last; n != told {
			t.Errorf("%d steps are told before %q, want %d", n, deed, told)
		}
	}
	waits("text of apply", 0)
	p.Next()
	waits("text of patch", 2)
	p.PlayOn()
	<-over
	if n := journal.Stats().Last; n != 4 || p.Waiting() != "" {
		t.Errorf("%d steps were played, and %q waits", n, p.Waiting())
	}
	again := make(chan bool)
	go func() { again <- p.again(ctx, "once more") }() // it waits, although the rest was played on
	sandboxtest.Eventually(t, "it waits at the end", func() bool { return p.Waiting() == "once more" })
	p.Next()
	if !<-again {
		t.Error("it does not begin again")
	}
	if (&pace{unasked: true}).again(ctx, "once more") {
		t.Error("without a person it begins again")
	}
	p = &pace{}
	go quit()
	steps.BeginStep(nil, &report.Step{Name: "last"}) // returns when the person quits
	if p.again(ctx, "once more") {
		t.Error("it begins again although the person has quit")
	}
}
