package format

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// What a small file can make a reader do.
func TestBombs(t *testing.T) {
	var lists, merges strings.Builder
	lists.WriteString("kind: A\nx0: &x0 {a: b}\n")
	merges.WriteString("kind: A\nx0: &x0 {a: b}\n")
	for i := 1; i <= 9; i++ {
		fmt.Fprintf(&lists, "x%d: &x%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*x%d, ", i-1), 9))
	}
	for i := 1; i <= 30; i++ {
		fmt.Fprintf(&merges, "x%d: &x%d {a: {<<: *x%d}, b: {<<: *x%d}}\n", i, i, i-1, i-1)
	}
	for name, text := range map[string]string{"lists": lists.String(), "merges": merges.String()} {
		t.Run(name, func(t *testing.T) {
			indented := strings.ReplaceAll("\n"+text, "\n", "\n          ")
			got := lines(load(operation + "apply:\n        resource:" + indented + "\n"))
			if len(got) != 1 || !strings.Contains(got[0], "aliases make more than") {
				t.Errorf("%q", got)
			}
			_, wrong := (&resourceReader{}).parse("r.yaml", []byte(text))
			if len(wrong) != 1 || !strings.Contains(wrong[0].Message, "aliases make more than") {
				t.Errorf("%q", wrong)
			}
		})
	}
}

// The memory that a reader asks for grows with the file, not with its square.
func TestManySteps(t *testing.T) {
	text := func(steps int) string {
		return head + "  steps:\n" + strings.Repeat("  - name: a\n    try:\n    - script:\n        content: echo $FOO\n        check: {($error): ~}\n", steps)
	}
	spent := func(text string) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := load(text)
		runtime.ReadMemStats(&after)
		if got[0].Err != nil {
			t.Fatal(got[0].Err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := spent(text(1000)), spent(text(10_000))
	if many > 15*few {
		t.Errorf("10 times the steps take %d times the memory", many/few)
	}
}

// Large texts in the shapes that parsers are slow at. That each of them returns is what is tested; with size at
// MaxFileSize the slowest takes some 5 seconds.
func TestLarge(t *testing.T) {
	const size = MaxFileSize / 16
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, text := range map[string]string{
		"comments":              fill("# a\n"),
		"flow":                  "a: " + fill("["),
		"block":                 fill("- "),
		"keys":                  fill("a\n"),
		"quotes":                "a: \"" + fill("\\n"),
		"documents":             fill("---\na: b\n"),
		"twice":                 fill("a: b\n"),
		"anchors":               "a: [" + fill("&a b, ") + "]\n",
		"parentheses":           operation + "script: {check: {a: '" + strings.Repeat("(", size) + ")'}}\n",
		"parentheses in bounds": operation + "script: {check: {a: '" + strings.Repeat("(", maxExpression-2) + ")'}}\n",
		"unknown":               head + "  a: {" + fill("b: c, ") + "}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got := load(text); len(got) == 0 || got[0].Err == nil {
				t.Error("there is no problem")
			}
		})
	}
}
