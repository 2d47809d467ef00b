package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// demoExploration is one in which two plans went wrong.
func demoExploration() Exploration {
	e := Exploration{Plans: 40, Played: 13, Elapsed: 3 * time.Second}
	for _, name := range []string{"crash-after", "crash-before", "stale-view", "lost-reply", "beside"} {
		e.Faults = append(e.Faults, ExploredFault{name, "the operator went through " + name + " at the write"})
	}
	for i := range 12 {
		e.Places = append(e.Places, ExploredPlace{fmt.Sprintf("create ConfigMap with-a-long-name-%02d", i), []string{".", "X", "", "-", "?"}})
	}
	e.Findings = []ExploredFinding{
		{Plan: "crash-before at create ConfigMap with-a-long-name-00", Text: "keeper died right before create ConfigMap with-a-long-name-00 was sent. In the end: ConfigMap x-b is missing", Wrong: []string{"ConfigMap x-b is missing", "ConfigMap x: data.ready is not set, not \"true\", as it is without a fault in the plays before"}, Journal: trace.New(trace.Options{})},
		{Plan: "beside at ConfigMap x", Text: "keeper had settled, and somebody made another object like ConfigMap x beside it. In the end: Secret of-all: data.is is \"eC1iZXNpZGU=\", not \"eA==\"", Wrong: []string{"Secret of-all: data.is is \"eC1iZXNpZGU=\", not \"eA==\""}, Steady: true},
	}
	return e
}

func demoExplorer(l trace.Language, now Exploration) *explorer {
	return newExplorer(ExploreOptions{
		Title: "keeper: keep", Now: func() Exploration { return now }, Look: Options{Language: l, Getenv: utf8Env},
	})
}

func TestGoldenExplorer(t *testing.T) {
	var out strings.Builder
	for _, test := range []struct {
		name   string
		w, h   int
		l      trace.Language
		change func(e *Exploration)
		keys   []string
	}{
		{"before the first plan", 80, 24, trace.English, func(e *Exploration) { *e = Exploration{} }, nil},
		{"small", 80, 24, trace.English, nil, nil},
		{"scrolled, second finding", 80, 24, trace.English, nil, []string{"J", "j", "j"}},
		{"letters, in Japanese", 80, 24, trace.Japanese, nil, []string{"f"}},
		{"confirming", 80, 24, trace.English, func(e *Exploration) { e.Confirming = true }, nil},
		{"done, in Japanese", 120, 40, trace.Japanese, func(e *Exploration) { e.Done = true }, nil},
		{"hardly a screen", 30, 6, trace.English, nil, nil},
	} {
		now := demoExploration()
		if test.change != nil {
			test.change(&now)
		}
		p := demoExplorer(test.l, now)
		p.w, p.h = test.w, test.h
		for _, key := range test.keys {
			p.press(key)
		}
		lines := p.lines()
		if len(lines) != test.h {
			t.Errorf("%s: %d lines, want %d", test.name, len(lines), test.h)
		}
		out.WriteString("=== " + test.name + "\n" + strings.Join(lines, "\n") + "\n")
	}
	golden(t, "explorer", strings.TrimSuffix(out.String(), "\n"))
}

// TestExplorerOpens checks which findings can be replayed, and that the page looks again.
func TestExplorerOpens(t *testing.T) {
	now := demoExploration()
	p := newExplorer(ExploreOptions{Now: func() Exploration { return now }, Look: Options{Getenv: utf8Env}})
	p.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	for _, step := range []struct {
		keys  []string
		opens string
		quits bool
	}{
		{[]string{"enter"}, now.Findings[0].Plan, true},
		{[]string{"j", "enter"}, "", false}, // it has no journal
		{[]string{"k", "enter"}, now.Findings[0].Plan, true},
		{[]string{"q"}, "", true},
		{[]string{"ctrl+c"}, "", true},
	} {
		p.open = nil
		var cmd tea.Cmd
		for _, key := range step.keys {
			cmd = p.press(key)
		}
		opened := ""
		if p.open != nil {
			opened = p.open.Plan
		}
		if opened != step.opens || (cmd != nil) != step.quits {
			t.Errorf("%v opens %q, and quits: %v; want %q, %v", step.keys, opened, cmd != nil, step.opens, step.quits)
		}
	}
	now.Findings, now.Done = nil, true
	p.Update(lookAgain{})
	if p.press("enter"); p.open != nil || !slices.ContainsFunc(p.lines(), func(line string) bool { return strings.Contains(line, "0 findings") }) {
		t.Errorf("after the findings are gone: %v, %s", p.open, strings.Join(p.lines(), "\n"))
	}
}
