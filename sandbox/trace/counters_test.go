package trace

import "testing"

// TestPassed counts keys made of watch events beside those that another handler of the controller dropped, and no timer's.
func TestPassed(t *testing.T) {
	j := New(Options{})
	one := Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "one"}
	watch := j.Append(Event{Kind: KindWatch, Operator: "copier", Verb: Added, Object: one})
	for _, e := range []Event{
		{Kind: KindDrop, Cause: watch, Object: one},
		{Kind: KindDrop, Cause: watch, Object: one},
		{Kind: KindEnqueue, Cause: watch, Key: one.Key()},
		{Kind: KindEnqueue, Cause: watch, Key: one.Key(), Reason: ReasonRequeue},
		{Kind: KindEnqueue, Key: one.Key()},
	} {
		e.Operator, e.Controller = "copier", "configmap"
		j.Append(e)
	}
	timeline := NewTimeline(j)
	timeline.Update()
	if c := timeline.Tip().Total(); c.Passed != 1 || c.Dropped != 2 || c.Watched != 1 {
		t.Errorf("of %d watch events %d keys were made and %d dropped", c.Watched, c.Passed, c.Dropped)
	}
}
