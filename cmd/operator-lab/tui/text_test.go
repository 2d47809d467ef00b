package tui

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func TestDrifts(t *testing.T) {
	raw := []byte(`{"spec":{"replicas":3,"paused":false,"template":{"containers":[{"image":"a","name":"c"},{"image":"b"}]},"none":null},"data":{"k":"7"}}`)
	var got []string
	for _, d := range drifts(raw) {
		got = append(got, d.path+" "+d.from+" "+d.to+" "+string(d.merge))
	}
	want := []string{
		`spec.paused false true {"spec":{"paused":true}}`,
		`spec.replicas 3 4 {"spec":{"replicas":4}}`,
		`spec.template.containers[0].name c c-drift {"spec":{"template":{"containers":[{"image":"a","name":"c-drift"},{"image":"b"}]}}}`,
		`spec.template.containers[0].image a a-drift {"spec":{"template":{"containers":[{"image":"a-drift","name":"c"},{"image":"b"}]}}}`,
		`spec.template.containers[1].image b b-drift {"spec":{"template":{"containers":[{"image":"a","name":"c"},{"image":"b-drift"}]}}}`,
		`data.k "7" "8" {"data":{"k":"8"}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("drifts:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if d := drifts([]byte(`{"metadata":{"labels":{"app":"x"}}}`)); len(d) != 1 || string(d[0].merge) != `{"metadata":{"labels":{"app":"x-drift"}}}` {
		t.Errorf("of labels: %+v", d)
	}
}

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text string
		w    int
		want string
	}{
		{"one two three", 8, "one two|three"},
		{"one", 3, "one"},
		{"onetwothree four", 4, "onet|woth|ree|four"},
		{"ズンズンドコ。キヨシ", 6, "ズン|ズン|ドコ。|キヨシ"},
		{"名前がキューに入り、ループが始まる", 24, "名前がキューに入り、|ループが始まる"},
		{"a\n\nb", 5, "a||b"},
		{"長", 1, ""},
		{"", 5, ""},
	} {
		if got := strings.Join(wrap(test.text, test.w), "|"); got != test.want {
			t.Errorf("wrap(%q, %d) = %q, want %q", test.text, test.w, got, test.want)
		}
	}
}

// TestFolded checks that nothing of a row is lost when it goes on below, and that each part has its style.
func TestFolded(t *testing.T) {
	r := text(taken, " - ")
	r.add(field, "message").add(taken, ": Deployment httpd is not rolled out, クラスターは準備中")
	rows := folded([]row{text(plain, "short"), r}, 30)
	var got []string
	for i := range rows {
		got = append(got, rows[i].plain())
	}
	want := []string{"short", " - message: Deployment", "       httpd is not rolled", "       out, クラスターは準備中"}
	if !slices.Equal(got, want) {
		t.Errorf("it is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if last := rows[len(rows)-1].segs; last[len(last)-1].st != taken || rows[1].segs[1].st != field {
		t.Errorf("the styles are %v and %v", rows[1].segs, last)
	}
}

func TestTypedText(t *testing.T) {
	for _, test := range []struct{ name, text, pressed, want string }{
		{"a letter", "ab", "c", "abc"},
		{"a blank", "ab", "space", "ab "},
		{"too much", "abcdef", "g", "abcdef"},
		{"the name of a key", "ab", "pgup", "ab"},
		{"all of it goes", "abc", "ctrl+u", ""},
		{"the last letter goes", "ab", "backspace", "a"},
		{"nothing is left to go", "", "backspace", ""},
		{"a letter goes with its marks", "うか\u3099", "backspace", "う"},
	} {
		got := typed(test.text)
		if got.press(test.pressed, max(6, len(test.text))); string(got) != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestYAML(t *testing.T) {
	raw := []byte(`{"kind":"K","apiVersion":"v1","status":{},"metadata":{"name":"x","managedFields":[1],"labels":{"yes":"no","n":"12"}},"spec":{"big":12345678901234567,"list":[{"b":1,"a":[]},"two: three",null],"text":"a\nb"}}`)
	want := `apiVersion: v1
kind: K
metadata:
  name: x
  labels:
    "n": "12"
    "yes": "no"
spec:
  big: 12345678901234567
  list:
  - a: []
    b: 1
  - "two: three"
  - null
  text: |-
    a
    b
status: {}`
	if got := strings.Join(yamlLines(raw), "\n"); got != want {
		t.Errorf("YAML is\n%s\nwant\n%s", got, want)
	}
}

func TestEnvironment(t *testing.T) {
	for _, test := range []struct {
		env            map[string]string
		ascii, noColor bool
	}{
		{map[string]string{"LANG": "en_US.UTF-8"}, false, false},
		{map[string]string{"LANG": "ja_JP.utf8", "NO_COLOR": "anything"}, false, true},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_ALL": "C"}, true, false},
		{map[string]string{}, true, false},
		{map[string]string{"LANG": "C.UTF-8", "TERM": "dumb"}, true, true},
	} {
		o := Options{Getenv: func(k string) string { return test.env[k] }}.withDefaults()
		if o.ASCII != test.ascii || o.NoColor != test.noColor {
			t.Errorf("%v: ASCII %v, NoColor %v", test.env, o.ASCII, o.NoColor)
		}
	}
}

func TestNoColorSendsNoColor(t *testing.T) {
	m := modelOf(t, Options{Journal: story().journal, NoColor: true}, 120, 40)
	for _, code := range []string{"[3", ";3", "[4", ";4"} {
		if strings.Contains(strings.ReplaceAll(m.frame(), "\x1b[4m", ""), "\x1b"+code) {
			t.Errorf("a colour code %q is sent", code)
		}
	}
	m = modelOf(t, Options{Journal: story().journal, ASCII: true}, 120, 40)
	m.title = ""
	for _, r := range strings.ReplaceAll(m.frame(), "\x1b", "") {
		if r > 0x7e && !strings.ContainsRune("ズンドコ歌っています", r) {
			t.Fatalf("%q is sent although only ASCII is wanted", r)
		}
	}
}

func TestImports(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, banned := range []string{`"k8s.` + `io/`, `"sigs.` + `k8s.io/`, `"go.` + `etcd.io/`} {
			if strings.Contains(string(text), banned) {
				t.Errorf("%s imports %s", name, banned)
			}
		}
		if n := strings.Count(string(text), "\n"); n >= 450 {
			t.Errorf("%s has %d lines", name, n)
		}
	}
}

// TestCausesInLittleRoom cuts neither the number of a timer nor what happened to an object.
func TestCausesInLittleRoom(t *testing.T) {
	word := trace.Ref{Kind: "Zundoko", Name: "demo-zundoko-005"}
	for want, w := range map[string]trace.Wake{
		"backoff 160ms":       {Event: &trace.Event{}, Requeue: &trace.Event{Reason: trace.ReasonBackoff, Delay: 160 * time.Millisecond, Try: 7}},
		"Zund…ko-005 DELETED": {Event: &trace.Event{}, Watch: &trace.Event{Verb: trace.Deleted, Object: word}},
		"found: Zund…oko-005": {Event: &trace.Event{}, Watch: &trace.Event{Verb: trace.Added, Initial: true, Object: word}},
	} {
		th, r := theme{glyphs: unicodeGlyphs}, row{}
		if th.addCause(&r, w, 19); !strings.HasPrefix(r.plain(), want) {
			t.Errorf("it says %q, want %q", r.plain(), want)
		}
	}
}
