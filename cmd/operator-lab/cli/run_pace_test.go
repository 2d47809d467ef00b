package cli

import (
	"context"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

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
