package trace_test

import (
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestWhyAborted checks that nothing is claimed of the writes of a reconcile that was cut off: one may have been stored.
func TestWhyAborted(t *testing.T) {
	for outcome, want := range map[trace.Outcome]string{
		trace.OutcomeAborted: "No write of it was answered.", trace.OutcomeDone: "It wrote nothing.",
	} {
		j := trace.New(trace.Options{})
		e := trace.Event{Operator: "o", Controller: "c", Key: trace.Key{Name: "k"}}
		e.Kind = trace.KindEnqueue
		e.Cause = j.Append(e)
		e.Kind, e.Reconcile = trace.KindDequeue, j.NewReconcile()
		e.Cause = j.Append(e)
		e.Kind = trace.KindStart
		j.Append(e)
		e.Kind, e.Outcome = trace.KindEnd, outcome
		j.Append(e)
		timeline := trace.NewTimeline(j)
		timeline.Update()
		tip := timeline.Tip()
		got := tip.WhyReconcile(tip.Reconcile(e.Reconcile), trace.English)
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q does not say %q", outcome, got, want)
		}
	}
}

// TestErrorsAreWhole checks that what a program said is not shortened in a sentence, in either language.
func TestErrorsAreWhole(t *testing.T) {
	long := "admission webhook denied the request: " + strings.Repeat("spec.size is out of range; ", 20) + "that was all"
	j := trace.New(trace.Options{})
	j.Append(trace.Event{Kind: trace.KindCall, Actor: "cafe", Verb: trace.VerbCreate, Object: trace.Ref{Kind: "Pod", Name: "a"}, Error: long})
	j.Append(trace.Event{Kind: trace.KindLog, Operator: "cafe", Message: long})
	timeline := trace.NewTimeline(j)
	timeline.Update()
	for _, e := range j.Since(0) {
		for _, l := range []trace.Language{trace.English, trace.Japanese} {
			if got := timeline.Tip().Why(e, l); !strings.Contains(got, long) {
				t.Errorf("the sentence is %s", got)
			}
		}
	}
}
