package format

import "testing"

func TestUsesValue(t *testing.T) {
	for _, c := range []struct {
		check any
		want  bool
	}{
		{map[string]any{"(size - `1`)": "($values.answer)"}, true},
		{map[string]any{"($values.answer > `1`)": true}, true},
		{map[string]any{"(length(not_null($values.answer.parts, `[]`)))": 1}, true},
		{map[string]any{"size": "($values.start.answer)"}, false},
		{map[string]any{"size": "($values.answers)"}, false},
		{map[string]any{"note": "$values.answer"}, false},
	} {
		step := TestStep{TestStepSpec: TestStepSpec{Try: []Operation{{Assert: &Assert{ActionCheckRef: ActionCheckRef{Check: c.check}}}}}}
		if got := step.UsesValue("answer"); got != c.want {
			t.Errorf("%v: %v", c.check, got)
		}
	}
}
