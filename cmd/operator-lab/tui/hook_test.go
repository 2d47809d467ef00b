package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// hookAsked is the journal of a reconcile in which a hook was asked, with an answer or an error.
func hookAsked(wrong string) *trace.Journal {
	j := trace.New(trace.Options{})
	thing := trace.Ref{APIVersion: "v1", Kind: "Thing", Namespace: "default", Name: "one", UID: "u"}
	hook := trace.Event{
		Kind: trace.KindHook, Verb: "sync", Object: thing, Status: 200, Duration: 12 * time.Millisecond, Error: wrong,
		Values: trace.HookPayload{URL: "http://things/sync", Request: `{"finalizing":false}`, Response: "<html>"}.Values(),
	}
	if wrong == "" {
		hook.Before = []byte(`{"children":{"Pod a":{"spec":{"size":1}}}}`)
		hook.After = []byte(`{"children":{"Pod a":{"spec":{"size":2}}}}`)
	}
	for i, e := range []trace.Event{
		{Kind: trace.KindDequeue}, {Kind: trace.KindStart}, hook, {Kind: trace.KindEnd, Outcome: trace.OutcomeDone},
	} {
		e.At, e.Operator, e.Actor, e.Controller = time.Duration(i+1)*time.Second, "meta", "meta", "things"
		e.Key, e.Reconcile = thing.Key(), 1
		j.Append(e)
	}
	return j
}

// TestHook shows a hook among the steps of its reconcile, what it wants to be different, and both bodies.
func TestHook(t *testing.T) {
	for _, c := range []struct{ wrong, row, diff string }{
		{"", "hook   sync      1 observed, 1 desired  ~ Pod a", "-       size: 1|+       size: 2"},
		{"no answer in 10s", "hook   sync      no answer in 10s", "no answer in 10s"},
	} {
		m := modelOf(t, Options{Journal: hookAsked(c.wrong), Replay: true}, 120, 40)
		reconcile := m.index.timeline.Tip().Reconcile(1)
		e := reconcile.Steps[0]
		r := m.loop().stepRow(e, 1, stepColumns(reconcile), 100)
		if got := r.plain(); !strings.Contains(got, c.row) || !strings.Contains(got, "12ms") {
			t.Errorf("its row is %q, want %q", got, c.row)
		}
		pane := detailPane{&m.state}
		plain := func(rows []row) string {
			var text []string
			for _, r := range rows {
				text = append(text, strings.TrimSpace(r.plain()))
			}
			return strings.Join(text, "|")
		}
		sub := subject{reconcile: reconcile, event: e}
		if got := plain(pane.diffRows(sub, Rect{W: 100, H: 20})); !strings.Contains(got, c.diff) {
			t.Errorf("the difference is %q, want %q", got, c.diff)
		}
		if got := plain(pane.yamlRows(sub)); !strings.Contains(got, "answer of http://things/sync|<html>|request|finalizing: false") {
			t.Errorf("the bodies are %q", got)
		}
	}
}
