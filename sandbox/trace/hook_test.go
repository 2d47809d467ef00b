package trace

import (
	"strings"
	"testing"
	"time"
)

// hookEvent is a hook that was asked in reconcile 1, with what is there and what should be.
func hookEvent(before, after string) Event {
	return Event{
		Kind: KindHook, Verb: "sync", Operator: "op", Controller: "things", Key: Key{Name: "one"}, Reconcile: 1,
		Object: Ref{Kind: "Thing", Name: "one"}, Before: []byte(before), After: []byte(after), Duration: 12 * time.Millisecond, Status: 200,
		Values: HookPayload{URL: "http://things/sync", Request: `{"parent":{}}`, Response: `{"children":[]}`}.Values(),
	}
}

func TestHookText(t *testing.T) {
	t.Parallel()
	e := hookEvent(`{"children":{"Pod a":{"n":1},"Pod b":{"n":1},"Pod x":{}},"status":{"n":3}}`,
		`{"children":{"Pod a":{"n":1},"Pod b":{"n":2},"Pod c":{},"Pod d":{},"Pod e":{},"Pod f":{}},"status":{"n":6}}`)
	if got, want := HookText(&e, English), "3 observed, 6 desired  + Pod c  + Pod d  + Pod e  + 1 more  ~ Pod b  - Pod x  ~ status"; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
	if got := HookText(&e, Japanese); !strings.HasPrefix(got, "観測 3、希望 6") {
		t.Errorf("the Japanese text is %q", got)
	}
	same := hookEvent(`{"children":{},"status":{"n":1}}`, `{"children":{},"status":{"n":1}}`)
	if got := HookText(&same, English); got != "0 observed, 0 desired" {
		t.Errorf("of nothing to do the text is %q", got)
	}
	failed := hookEvent("", "")
	failed.Error = "no answer\nin 10s"
	if got := HookText(&failed, English); strings.Contains(got, "\n") || !strings.HasPrefix(got, "no answer") {
		t.Errorf("of an error the text is %q", got)
	}
	customize := hookEvent("", "")
	if _, known := customize.HookChange(); known || HookText(&customize, English) != "it answered" {
		t.Errorf("of an answer without children the text is %q", HookText(&customize, English))
	}
}

// TestHookIsAStep has a hook among the steps of its reconcile, and its payload as it was written.
func TestHookIsAStep(t *testing.T) {
	t.Parallel()
	j := New(Options{})
	key := Key{Name: "one"}
	j.Append(Event{Kind: KindDequeue, Operator: "op", Controller: "things", Key: key, Reconcile: 1})
	j.Append(hookEvent(`{"children":{}}`, `{"children":{"Pod a":{}}}`))
	j.Append(Event{Kind: KindEnd, Operator: "op", Controller: "things", Key: key, Reconcile: 1, Outcome: OutcomeDone})
	timeline := NewTimeline(j)
	timeline.Update()
	r := timeline.Tip().Reconcile(1)
	if r == nil || len(r.Steps) != 1 || len(r.Calls()) != 0 || r.Tally.Writes != 0 {
		t.Fatalf("the reconcile is %+v", r)
	}
	hook := r.Steps[0]
	if p := hook.Hook(); p.URL != "http://things/sync" || p.Request != `{"parent":{}}` || p.Response != `{"children":[]}` {
		t.Errorf("the payload is %+v", p)
	}
	for language, want := range map[Language]string{
		English: "asked the hook sync about Thing one: 0 observed, 1 desired  + Pod a.", Japanese: "Thing one についてフック sync に尋ねた: 観測 0、希望 1  + Pod a。",
	} {
		if got := timeline.Tip().Why(hook, language); !strings.Contains(got, want) {
			t.Errorf("it is explained as %q, want %q", got, want)
		}
	}
}
