package trace_test

import (
	"encoding/json"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestChangeOfApply checks that a held apply is not told as if it deleted what it does not send.
func TestChangeOfApply(t *testing.T) {
	e := trace.Event{
		Kind: trace.KindHold, Verb: trace.VerbApply, Object: trace.Ref{Kind: "Hikawa", Name: "a", Subresource: "status"},
		Before: json.RawMessage(`{"kind":"Hikawa","metadata":{"generation":3,"name":"a"},"spec":{"x":1},"status":{"n":1,"conditions":[{"type":"A","status":"True"},{"type":"B","status":"True","reason":"R"}]}}`),
		After:  json.RawMessage(`{"kind":"Hikawa","metadata":{"name":"a"},"status":{"n":2,"conditions":[{"type":"B","status":"False","reason":"R"}]}}`),
	}
	want := `{"kind":"Hikawa","metadata":{"name":"a"},"status":{"conditions":[{"reason":"R","status":"True","type":"B"}],"n":1}}`
	if before, _ := e.Change(); string(before) != want {
		t.Errorf("before a held apply:\n%s\nwant\n%s", before, want)
	}
	e.Kind, e.Error = trace.KindCall, "Conflict"
	if before, _ := e.Change(); string(before) != want {
		t.Errorf("before a refused apply:\n%s", before)
	}
	e.Error = ""
	if before, _ := e.Change(); string(before) != string(e.Before) {
		t.Errorf("an apply that succeeded has the whole object: %s", before)
	}
}
