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

// TestCounted: a wrong prediction is told what was counted, and nothing else that is not so yet.
func TestCounted(t *testing.T) {
	for _, c := range []struct{ difference, answer, want string }{
		{"is 3, not 2", "2", "3"},
		{`is "3", not "2"`, "2", "3"},
		{`is "Doko", not "Zun"`, "Zun", "Doko"},
		{"is false, not true", "2", ""}, // the loop is not quiet yet
		{"is 0, not 1", "01", "0"},
		{"is 3, not 12", "2", ""},
		{"is missing", "2", ""},
	} {
		if got := counted(c.difference, c.answer); got != c.want {
			t.Errorf("%q with the answer %q says %q, not %q", c.difference, c.answer, got, c.want)
		}
	}
}
