package format

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecode(t *testing.T) {
	type song struct {
		Word  string   `json:"word" check:"required,enum=Zun|Doko"`
		Times int      `json:"times,omitempty" check:"least=1"`
		After []string `json:"after,omitempty"`
	}
	for text, want := range map[string][]string{
		"word: Zun\ntimes: 4\nafter: [Doko]\n": nil,
		"word: Zum\ntmies: 4\n":                {`a.yaml:1:7: word cannot be "Zum" | did you mean "Zun"?`, `a.yaml:2:1: unknown field "tmies" | did you mean "times"?`},
		"times: 0\n":                           {"a.yaml:1:1: word is missing", "a.yaml:1:8: times must be at least 1, not 0"},
		"":                                     {"a.yaml: is empty"},
		"- a\n":                                {"a.yaml:1:1: the document must be an object, not a list"},
		"a: [\n":                               {"a.yaml:1: not YAML: did not find expected node content | check the indentation, and that quotes and brackets are closed"},
		"word: Zun\n---\nword: Doko\n":         {"a.yaml:3: a second document: one is wanted"},
	} {
		var s song
		var got []string
		for _, p := range Decode("a.yaml", []byte(text), &s) {
			line := p.Error()
			if p.Hint != "" {
				line += " | " + p.Hint
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	var s song
	if wrong := Decode("a.yaml", []byte("word: Zun\ntimes: 4\nafter: [Doko]\n"), &s); wrong != nil || !cmp.Equal(s, song{"Zun", 4, []string{"Doko"}}) {
		t.Errorf("%+v, %v", s, wrong)
	}
	if wrong := Decode("a.yaml", make([]byte, MaxFileSize+1), &s); len(wrong) != 1 {
		t.Errorf("too much is %v", wrong)
	}
}
