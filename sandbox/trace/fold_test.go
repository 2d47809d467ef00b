package trace

import (
	"slices"
	"strings"
	"testing"
)

func TestFold(t *testing.T) {
	for _, test := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 10, []string{""}},
		{"short", 10, []string{"short"}},
		{"one two three", 8, []string{"one two", "three"}},
		{"exactly ten", 11, []string{"exactly ten"}},
		{"nobreakinthislongword here", 8, []string{"nobreaki", "nthislon", "gword", "here"}},
		{"日本語の文", 4, []string{"日本", "語の", "文"}},
		{"a 日本語", 4, []string{"a 日", "本語"}},
		{"か\u3099か\u3099か\u3099", 4, []string{"か\u3099か\u3099", "か\u3099"}},
	} {
		if got := fold(test.text, test.width); !slices.Equal(got, test.want) {
			t.Errorf("fold(%q, %d) = %q, want %q", test.text, test.width, got, test.want)
		}
	}
}

func FuzzFoldText(f *testing.F) {
	f.Add("one two three", 8)
	f.Add("日本語の文 and more", 5)
	f.Fuzz(func(t *testing.T, text string, width int) {
		text, width = oneLine(text), 2+(width&63)
		lines := fold(text, width)
		for _, line := range lines {
			if TextWidth(line) > width {
				t.Errorf("%q is wider than %d", line, width)
			}
		}
		squeeze := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		if squeeze(strings.Join(lines, "")) != squeeze(text) {
			t.Errorf("%q became %q", text, lines)
		}
	})
}
