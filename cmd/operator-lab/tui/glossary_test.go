package tui

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// screens are the frames of many states in a language.
func screens(t *testing.T, l trace.Language) string {
	t.Helper()
	var out strings.Builder
	for _, j := range []*trace.Journal{recorded(t), story().journal, duet().journal, merging().journal, gated(), waiting(), logged(), kept(4), asked(answer{2, "ok", ""})} {
		for _, size := range goldenSizes[:2] {
			for _, replay := range []bool{false, true} {
				m := modelOf(t, Options{Journal: j, Replay: replay, Controls: idle, Language: l}, size[0], size[1])
				for _, keys := range []string{"", "1", "2", "[ [", "6"} {
					press(m, keys)
					out.WriteString(ansi.Strip(m.frame()) + "\n")
				}
			}
		}
	}
	return out.String()
}

// TestGlossaryIsKept keeps the list of all words with help, in both languages.
func TestGlossaryIsKept(t *testing.T) {
	var out strings.Builder
	for _, g := range glossary {
		out.WriteString(g.english + "\n    " + g.help + "\n" + g.japanese + "\n    " + g.jhelp + "\n\n")
	}
	golden(t, "glossary", out.String())
}

// TestWordsAreListed checks that the window of words has every term whole in both languages, those on the screen first.
func TestWordsAreListed(t *testing.T) {
	for _, l := range []trace.Language{trace.English, trace.Japanese} {
		m := modelOf(t, Options{Journal: story().journal, Replay: true, Language: l}, 80, 24)
		screen := ansi.Strip(m.frame())
		press(m, "w")
		var listed strings.Builder
		for _, r := range m.popup.(*wordsPopup).rows(&m.state) {
			listed.WriteString(r.plain())
		}
		squeeze := func(text string) string { return strings.Join(strings.Fields(text), "") }
		on, other, _ := strings.Cut(squeeze(listed.String()), squeeze(l.Choose("Words that are not on the screen now", "今の画面にはない用語")))
		for i := range glossary {
			g, where := &glossary[i], other
			if g.in(screen, l) {
				where = on
			}
			if want := squeeze(g.names(l)[0] + l.Choose(g.help, g.jhelp)); !strings.Contains(where, want) {
				t.Errorf("%s is not listed where it belongs:\n%s", want, listed.String())
			}
		}
	}
}

// TestGlossary checks that each word of the screens is a plain one (testdata/plain.txt), one of the journal's own, or a
// term with help in both languages, and that each term that is shown has its Japanese word on the Japanese screen.
func TestGlossary(t *testing.T) {
	plainWords := map[string]bool{}
	text, err := os.ReadFile(filepath.Join("testdata", "plain.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for word := range strings.FieldsSeq(string(text)) {
		plainWords[word] = true
	}
	terms := map[string]bool{}
	for _, g := range glossary {
		if g.help == "" || g.jhelp == "" || g.english == "" || g.japanese == "" {
			t.Errorf("%q lacks a word or its help", g.english)
		}
		for _, w := range []string{g.help, g.jhelp} {
			if width(w) > 110 {
				t.Errorf("the help of %q is no line: %d cells", g.english, width(w))
			}
		}
		for name := range strings.SplitSeq(g.english, "|") {
			for word := range strings.FieldsSeq(name) {
				terms[strings.Trim(word, ":(),.")] = true
			}
		}
	}
	word := regexp.MustCompile(`[A-Za-z][A-Za-z']+`)
	cutName := regexp.MustCompile(`\S*…\S*`)
	unknown := map[string]int{}
	english, japanese := screens(t, trace.English), screens(t, trace.Japanese)
	for _, w := range word.FindAllString(cutName.ReplaceAllString(english, ""), -1) {
		if !terms[w] && !plainWords[w] {
			unknown[w]++
		}
	}
	for k := range glossary {
		if g := &glossary[k]; g.in(english, trace.English) && !g.in(japanese, trace.Japanese) {
			t.Errorf("%q stands on an English screen, and none of %q on any Japanese one", g.english, g.japanese)
		}
	}
	if len(unknown) > 0 {
		t.Errorf("words that are neither plain (testdata/plain.txt) nor in the glossary: %s", strings.Join(slices.Sorted(maps.Keys(unknown)), " "))
	}
}
