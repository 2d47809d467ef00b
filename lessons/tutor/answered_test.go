package tutor

import (
	"testing"

	"github.com/operator-lab/operator-lab/scenarios/report"
)

// TestAnswered checks that the input of a Japanese keyboard counts as a number.
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

// TestCounted checks that only a wrong prediction reveals what was counted, and no other difference.
func TestCounted(t *testing.T) {
	for _, c := range []struct{ is, wanted, answer, want string }{
		{"3", "2", "2", "3"},
		{`"3"`, `"2"`, "2", "3"},
		{`"Doko"`, `"Zun"`, "Zun", "Doko"},
		{"false", "true", "2", ""}, // the loop is not quiet yet
		{"0", "1", "01", "0"},
		{"3", "12", "2", ""},
		{"", "", "2", ""}, // it is missing
	} {
		if got := counted(report.Difference{Is: c.is, Want: c.wanted}, c.answer); got != c.want {
			t.Errorf("%q instead of %q with the answer %q says %q, not %q", c.is, c.wanted, c.answer, got, c.want)
		}
	}
}
