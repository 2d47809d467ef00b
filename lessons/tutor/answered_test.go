package tutor

import "testing"

// TestAnswered: what a Japanese keyboard gives counts as a number.
func TestAnswered(t *testing.T) {
	for _, c := range []struct {
		text   string
		number bool
		want   string
	}{
		{" 12 ", true, "12"},
		{"１８", true, "18"},
		{"１０ 回", true, "10"},
		{"3番", true, "3"},
		{"none", true, "none"},
		{"Doko", false, "Doko"},
		{"1回", false, "1回"},
	} {
		if got := answered(c.text, c.number); got != c.want {
			t.Errorf("%q becomes %q, not %q", c.text, got, c.want)
		}
	}
}
