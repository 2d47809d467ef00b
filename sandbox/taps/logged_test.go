package taps_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// says gives the taps a line as controller-runtime logs it with --zap-log-level=5 --zap-encoder=json, about a ConfigMap.
func (b *behind) says(id, name, level, message string) {
	b.taps.LogLine(`{"level":"` + level + `","ts":"2026-11-24T02:00:00Z","msg":"` + message + `","controller":"configmap","controllerGroup":"",` +
		`"controllerKind":"ConfigMap","ConfigMap":{"name":"` + name + `","namespace":"default"},"namespace":"default","name":"` + name + `","reconcileID":"` + id + `"}`)
}

const five = "Level(-5)"

func (b *behind) begins(id, name string) { b.says(id, name, five, "Reconciling") }
func (b *behind) ends(id, name string)   { b.says(id, name, five, "Reconcile successful") }

// reconciles returns what the journal says of reconciles, one line each.
func (b *behind) reconciles() string {
	timeline := trace.NewTimeline(b.journal)
	timeline.Update()
	state := timeline.Tip()
	var out strings.Builder
	for _, r := range state.Reconciles() {
		fmt.Fprintf(&out, "#%d %s %s: %s, %s", r.ID, r.Controller, r.Key, state.WokenText(r, trace.English), trace.ResultText(r, trace.English))
		for _, e := range r.Calls() {
			fmt.Fprintf(&out, ", %s %s", e.Verb, e.Object.Name)
			if e.Probably {
				out.WriteString("?")
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

func (b *behind) wantReconciles(want ...string) {
	b.Helper()
	if got := b.reconciles(); got != strings.Join(want, "\n")+"\n" {
		b.Errorf("the reconciles are\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// owned is the copy of a ConfigMap.
func owned(name, by, rv string) string {
	return `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"` + name + `","namespace":"default","uid":"` + name + `","resourceVersion":"` + rv +
		`","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"` + by + `","uid":"x","controller":true}]}}`
}

// TestLoggedCalls checks to which reconcile a call belongs: to the only one that is open for sure, else probably to the one
// that fits, or to none.
func TestLoggedCalls(t *testing.T) {
	b := newBehind(t)
	b.answers["GET "+maps+"/a"] = answer{body: strings.ReplaceAll(m("1", "x"), `"m"`, `"a"`)}
	b.must("GET", maps+"/a", "") // teaches the kind; nothing is open
	b.begins("1", "a")
	b.must("PUT", maps+"/a", strings.ReplaceAll(m("1", "x"), `"m"`, `"a"`))
	b.must("GET", maps+"/a", "")                                   // such a request is made outside, too
	b.must("GET", maps+"?limit=500&resourceVersion=0", "")         // an informer's
	b.must("POST", "/api/v1/namespaces/default/events", `{"a":1}`) // in the background
	b.ends("1", "a")
	b.begins("2", "a")
	b.begins("3", "b")
	b.must("POST", maps, owned("b-copy", "b", ""))
	b.must("PUT", maps+"/a", strings.ReplaceAll(m("1", "x"), `"m"`, `"a"`))
	b.must("POST", "/api/v1/namespaces/default/secrets", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"default"}}`)
	b.ends("2", "a")
	b.must("POST", "/api/v1/namespaces/default/secrets", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"default"}}`)
	b.ends("3", "b")
	b.wantReconciles(
		"#1 configmap default/a: cause not known, done, update a, get a?",
		"#2 configmap default/a: cause not known, done, update a?",
		"#3 configmap default/b: cause not known, done, create b-copy?, create s")
}

// TestLoggedEnds checks how reconciles end, with the lines of controller-runtime 0.16 to 0.24, and that an operator's own
// lines begin and end none.
func TestLoggedEnds(t *testing.T) {
	b := newBehind(t)
	b.says("0", "a", "info", "Reconciling") // the operator's own
	for i, end := range []struct{ level, message, more string }{
		{five, "Reconcile done, requeueing after 1m0s", ""},
		{five, "Reconcile done, requeueing", ""},
		{"error", "Reconciler error", `,"error":"no luck","stacktrace":"main.go"`},
		{"error", "Reconciler error", `,"error":"panic: no luck [recovered]"`},
	} {
		id := fmt.Sprint("r", i)
		b.begins(id, "a")
		b.says(id, "a", "info", "Reconcile successful") // the operator's own
		b.says(id, "a", "debug", "a detail")
		b.taps.LogLine(`{"level":"` + end.level + `","msg":"` + end.message + `","reconcileID":"` + id + `"` + end.more + `}`)
	}
	b.begins("r9", "b")
	b.begins("r10", "b") // the end of the one before was not logged
	b.wantReconciles(
		"#1 configmap default/a: cause not known, again in 1m",
		"#2 configmap default/a: cause not known, requeued",
		"#3 configmap default/a: probably requeued by #2, error",
		"#4 configmap default/a: probably retry of #3, PANIC",
		"#5 configmap default/b: cause not known, aborted",
		"#6 configmap default/b: cause not known, running")
	logged := 0
	for _, e := range b.journal.Since(0) {
		if e.Kind == trace.KindLog {
			logged++
		}
		if e.Kind == trace.KindEnd && e.Outcome == trace.OutcomeError && e.Error != "no luck" || e.Stack != "" {
			t.Errorf("%+v", e)
		}
	}
	if logged != 5 {
		t.Errorf("%d lines are in the journal, want 5: details are left out", logged)
	}
}

// TestLoggedCauses checks what is said to have woken a reconcile.
func TestLoggedCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBehind(t)
		told := func(objects ...string) {
			frames := ""
			for _, o := range objects {
				frames += frame("MODIFIED", o)
			}
			b.answers["GET "+maps] = answer{body: frames}
			b.must("GET", maps+"?watch=true&resourceVersion=1", "")
		}
		b.begins("1", "m")
		b.ends("1", "m")
		told(m("5", "x"), owned("other", "x", "6"), owned("m-copy", "m", "7"))
		b.begins("2", "m")
		told(m("8", "x"))
		b.says("2", "m", five, "Reconcile done, requeueing after 5s")
		// The event before was dropped: it would have been answered at once.
		time.Sleep(5 * time.Second) //nolint:forbidigo // in a bubble
		b.begins("3", "m")
		b.ends("3", "m")
		told(owned("m-copy", "m", "9"))
		b.begins("4", "m")
		b.wantReconciles(
			"#1 configmap default/m: cause not known, done",
			"#2 configmap default/m: probably woken by ConfigMap m MODIFIED, again in 5s",
			"#3 configmap default/m: probably timer 5s, done",
			"#4 configmap default/m: probably woken by ConfigMap m-copy MODIFIED, running")
	})
}

// FuzzLogLine checks that no line breaks the parser, and that only lines with their marks begin or end a reconcile.
func FuzzLogLine(f *testing.F) {
	for _, line := range []string{
		"", "{}", "{", "null", `{"msg":1}`, `{"msg":"Reconciling","level":"Level(-5)","controller":"c","name":"n","reconcileID":"1"}`,
		`{"msg":"Reconciler error","level":"error","error":"x"}`, `{"msg":"Reconcile done, requeueing after -1s","v":5}`,
		`{"msg":"Reconcile successful","level":"Level(-999999999999999999999)"}`, `{"msg":{},"v":[],"level":{},"name":null}`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		parsed, begins, ends := taps.EndsReconcile(line)
		if begins && !strings.Contains(line, "Reconcil") && !strings.Contains(line, `\`) || (begins || ends) && !parsed {
			t.Errorf("%q begins %v, ends %v", line, begins, ends)
		}
		newBehind(t).taps.LogLine(line)
	})
}
