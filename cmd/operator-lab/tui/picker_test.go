package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// demoPick is a course of some lessons in three modules.
func demoPick(l trace.Language) PickOptions {
	th := theme{lang: l}
	o := PickOptions{
		Language: l, Suggested: "watches", Getenv: utf8Env,
		Tracks: []PickTrack{{"ten", th.t("ten minutes", "10 分")}, {"author", th.t("author's hour", "作者の 1 時間")}, {"sre", th.t("SRE hour", "SRE の 1 時間")}},
	}
	about := th.t("P1: Basic Install  H2: It defines resources of its own", "P1: Basic Install  H2: 自分のカスタムリソースを定義する")
	add := func(module, id, name string, done, total int, tags string, tracks ...string) {
		o.Items = append(o.Items, PickItem{
			ID: id, Number: len(o.Items) + 1, Title: name, Module: module, Done: done, Total: total, Tags: strings.Fields(tags), About: about, Tracks: tracks,
			Note: th.t("What a watch tells, and how the owner of an object is found from it.", "watch で何がわかり、そこから所有者をどう見つけるか。"),
		})
	}
	a, b := th.t("A  Resources", "A  リソース"), th.t("B  The loop", "B  reconcile ループ")
	add(a, "stateless", th.t("Stateless and stateful", "ステートレスとステートフル"), 3, 3, "P0")
	add(a, "crd", th.t("A CRD adds an endpoint", "CRD でエンドポイントが増える"), 2, 2, "P0", "ten", "author")
	add(b, "zundoko", th.t("Run zundoko", "zundoko を動かす"), 1, 3, "P1 H2", "ten", "author", "sre")
	add(b, "watches", th.t("Watches and owners", "監視と所有"), 0, 3, "P1 H1 H2", "ten", "author")
	for i := range 30 {
		add(th.t("C  More", "C  その他"), "more-"+itoa(i), th.t("More of the same", "さらに続く"), 0, 2, "P3", "sre")
	}
	return o
}

func TestGoldenPicker(t *testing.T) {
	var out strings.Builder
	for _, test := range []struct {
		name  string
		w, h  int
		l     trace.Language
		ascii bool
		keys  string
	}{
		{"small", 80, 24, trace.English, false, ""},
		{"in ASCII", 80, 24, trace.English, true, ""},
		{"in Japanese", 80, 24, trace.Japanese, false, ""},
		{"larger, in Japanese", 120, 40, trace.Japanese, false, ""},
		{"largest", 200, 50, trace.English, false, ""},
		{"a filter", 80, 24, trace.English, false, "tab / r u n"},
	} {
		o := demoPick(test.l)
		o.ASCII = test.ascii
		p := newPicker(o)
		p.w, p.h = test.w, test.h
		pick(p, test.keys)
		out.WriteString("=== " + test.name + "\n" + p.frame() + "\n")
	}
	golden(t, "picker", strings.TrimSuffix(out.String(), "\n"))
}

// pick presses keys and reports whether the picker is left.
func pick(p *picker, keys string) (left bool) {
	for k := range strings.FieldsSeq(keys) {
		if cmd := p.press(k); cmd != nil {
			_, left = cmd().(tea.QuitMsg)
		}
	}
	return left
}

func TestPick(t *testing.T) {
	for keys, want := range map[string]string{
		"enter":                          "watches", // what is suggested
		"q":                              "",
		"esc":                            "",
		"ctrl+c":                         "",
		"home enter":                     "stateless",
		"up k enter":                     "crd",
		"end enter":                      "more-29",
		"down down enter":                "more-1",
		"tab home enter":                 "crd", // ten minutes
		"tab tab tab home enter":         "zundoko",
		"tab tab tab tab home enter":     "stateless",
		"shift+tab enter":                "zundoko", // what is suggested is not of that track
		"/ c r d enter enter":            "crd",
		"/ q x x enter enter q":          "", // nothing matches, nothing can be opened
		"/ z u n esc enter":              "zundoko",
		"/ z u n enter esc home enter":   "stateless",
		"/ o r e down enter enter":       "more-1",
		"/ b a c k ctrl+u h 2 enter end": "",
	} {
		p := newPicker(demoPick(trace.English))
		p.w, p.h = 80, 24
		if left := pick(p, keys); p.picked != want || left != (want != "" || keys[len(keys)-1] != 'd') {
			t.Errorf("%s picks %q, want %q; left: %v", keys, p.picked, want, left)
		}
	}
}

// TestPickInTrack checks that the track in which an item is picked is known, and is shown again when the picker is opened anew.
func TestPickInTrack(t *testing.T) {
	o := demoPick(trace.English)
	for keys, want := range map[string]string{"enter": "", "tab home enter": "ten", "shift+tab enter": "sre", "tab shift+tab enter": ""} {
		p := newPicker(o)
		p.w, p.h = 80, 24
		if pick(p, keys); p.trackName() != want {
			t.Errorf("%s picks in the track %q, want %q", keys, p.trackName(), want)
		}
	}
	o.Track, o.Suggested = "ten", "more-1" // crd is done
	p := newPicker(o)
	if p.at != "zundoko" {
		t.Errorf("the cursor stands on %q", p.at)
	}
	p.w, p.h = 80, 24
	if frame := ansi.Strip(p.frame()); !strings.Contains(frame, "[ten minutes]") || strings.Contains(frame, "Stateless") {
		t.Errorf("the picker does not open with the track:\n%s", frame)
	}
}

func TestPickNothing(t *testing.T) {
	p := newPicker(PickOptions{Getenv: utf8Env})
	p.w, p.h = 80, 24
	if pick(p, "enter down tab shift+tab end"); p.picked != "" || !strings.Contains(p.frame(), "no lesson") {
		t.Error("something is picked of nothing")
	}
	if strings.Contains(p.frame(), "track") {
		t.Error("a key is offered for tracks that are not there")
	}
	p = newPicker(PickOptions{Getenv: utf8Env, All: "SRE hour"})
	p.w, p.h = 80, 24
	if !strings.Contains(p.frame(), "[SRE hour]") {
		t.Error("it is not said what the items are")
	}
	o := demoPick(trace.English)
	for range 5 { // more tracks than have room
		o.Tracks = append(o.Tracks, PickTrack{Title: "the track of somebody"})
	}
	o.Tracks = append(o.Tracks, PickTrack{Title: "the last one"})
	p = newPicker(o)
	p.w, p.h = 80, 24
	if pick(p, "shift+tab"); !strings.Contains(ansi.Strip(p.frame()), "[the last one]") {
		t.Errorf("the track that is shown is cut off:\n%s", p.frame())
	}
	if pick(p, "tab / z u n"); !strings.Contains(ansi.Strip(p.frame()), "[all]   /zun_") {
		t.Errorf("what is typed is cut off:\n%s", p.frame())
	}
	o = demoPick(trace.English)
	o.Suggested = "gone"
	if p := newPicker(o); p.at != "zundoko" { // the first that is not done
		t.Errorf("the cursor stands on %q", p.at)
	}
	for id, next := range map[string]bool{"crd": false, "watches": true} { // the first is suggested when all is done
		o.Suggested = id
		p := newPicker(o)
		p.w, p.h = 80, 24
		if strings.Contains(p.frame(), "  next") != next {
			t.Errorf("that %s comes next: %v, want %v", id, !next, next)
		}
	}
}

func TestEveryPickerIsExact(t *testing.T) {
	o := demoPick(trace.Japanese)
	o.Items[3].Title, o.Items[3].Note, o.Items[3].Module = "a\x1b[31m長い\n"+strings.Repeat("題", 60), strings.Repeat("長い", 300), "\u202e👨‍👩‍👧"
	for _, ascii := range []bool{true, false} {
		o.ASCII = ascii
		p := newPicker(o)
		for w := 0; w < 220; w += 7 {
			for _, h := range []int{0, 1, 2, 6, 7, 8, 9, 24, 60} {
				p.w, p.h = w, h
				out := p.frame()
				if w == 0 || h == 0 {
					if out != "" {
						t.Fatalf("%dx%d: %q", w, h, out)
					}
					continue
				}
				lines := strings.Split(out, "\n")
				if len(lines) != h {
					t.Fatalf("%dx%d: %d lines", w, h, len(lines))
				}
				for i, line := range lines {
					if ansi.StringWidth(line) != w {
						t.Fatalf("%dx%d: line %d is %d cells wide", w, h, i, ansi.StringWidth(line))
					}
				}
			}
		}
	}
}
