package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func saved(tb testing.TB, j *Journal) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := j.Save(&b); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func TestSaveAndLoad(t *testing.T) {
	j := tour(t)
	raw := saved(t, j)
	again, report, err := Load(bytes.NewReader(raw), Options{})
	if err != nil || !report.Complete() {
		t.Fatalf("%v %+v", err, report)
	}
	if diff := cmp.Diff(j.Since(0), again.Since(0)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(string(raw), string(saved(t, again))); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(string(raw), `"beforeSeq"`) {
		t.Error("what objects were before is not shared")
	}
}

func TestWriterGrowsWithTheJournal(t *testing.T) {
	j := New(Options{})
	var b bytes.Buffer
	w, err := NewWriter(&b, j)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		j.Append(Event{Kind: KindNote, Message: fmt.Sprint(i)})
		if err := w.Update(); err != nil {
			t.Fatal(err)
		}
		_, report, err := Load(bytes.NewReader(b.Bytes()), Options{})
		if err != nil || !report.Open || report.Text(English) != "the end is missing" {
			t.Errorf("while it is written: %v %+v", err, report)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(saved(t, j)), b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestDamagedFiles(t *testing.T) {
	good := string(saved(t, tour(t)))
	lines := strings.SplitAfter(good, "\n")
	n := len(lines) - 3 // without the header, the last line and the empty end
	for _, tt := range []struct {
		name, file string
		want       Report
		events     int
		text       string
	}{
		{"whole", good, Report{}, n, ""},
		{"cut in a line", good[:len(good)/2], Report{Open: true}, -1, "the end is missing"},
		{"no last line", strings.Join(lines[:len(lines)-2], ""), Report{Open: true}, n, "the end is missing"},
		{"a line of garbage", lines[0] + "garbage\n" + strings.Join(lines[1:], ""), Report{Damaged: 1, FirstDamaged: 2}, n, "1 lines are damaged"},
		{"a line lost", lines[0] + lines[1] + strings.Join(lines[3:], ""), Report{Missing: 1}, n - 1, "1 events are missing"},
		{"a line twice", lines[0] + lines[1] + strings.Join(lines[1:], ""), Report{Damaged: 1, FirstDamaged: 3}, n, "1 lines are damaged"},
		{"a huge line", lines[0] + strings.Repeat("x", MaxLine+1) + "\n" + strings.Join(lines[1:], ""), Report{Damaged: 1, FirstDamaged: 2}, n, "1 lines are damaged"},
		{"header only", lines[0], Report{Open: true}, 0, "the end is missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j, got, err := Load(strings.NewReader(tt.file), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if events := j.Stats().Events; tt.events >= 0 && events != tt.events {
				t.Errorf("%d events, want %d", events, tt.events)
			}
			if text := got.Text(English); text != tt.text {
				t.Errorf("%q, want %q", text, tt.text)
			}
		})
	}
}

func TestHugeFile(t *testing.T) {
	j := New(Options{})
	for range 5000 {
		j.Append(Event{Kind: KindNote})
	}
	small, report, err := Load(bytes.NewReader(saved(t, j)), Options{MaxEvents: 1000})
	if err != nil || report.Dropped == 0 || report.Dropped != small.Stats().Forgotten {
		t.Errorf("%v %+v %+v", err, report, small.Stats())
	}
	again, report, err := Load(bytes.NewReader(saved(t, small)), Options{})
	if err != nil || report.Forgotten != small.Stats().Forgotten || again.Stats().Events != small.Stats().Events {
		t.Errorf("%v %+v", err, report)
	}
}

func TestNoJournal(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		want       error
	}{
		{"empty", "", ErrNotJournal},
		{"text", "hello\nworld\n", ErrNotJournal},
		{"other JSON", "{}\n", ErrNotJournal},
		{"endless line", strings.Repeat("x", MaxLine+10), ErrNotJournal},
		{"newer", `{"format":"operator-lab-journal","version":2,"product":"v9"}` + "\n", ErrVersion},
		{"version nought", `{"format":"operator-lab-journal"}` + "\n", ErrVersion},
	} {
		if _, _, err := Load(strings.NewReader(tt.file), Options{}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	broken := errors.New("the disk is on fire")
	good := saved(t, tour(t))
	r := io.MultiReader(bytes.NewReader(good[:len(good)/2]), iotest.ErrReader(broken))
	if _, _, err := Load(r, Options{}); !errors.Is(err, broken) {
		t.Errorf("a broken disk: %v", err)
	}
}

// everything calls all methods of a timeline, to find panics.
func everything(j *Journal) {
	tl := NewTimeline(j)
	tl.Update()
	for _, n := range []int64{0, tl.Tip().Seq() / 2, tl.Tip().Seq()} {
		s := tl.At(n)
		digest(s)
		for _, l := range []Language{English, Japanese} {
			for _, e := range j.Since(0) {
				s.Why(e, l)
			}
			for _, o := range s.Objects() {
				s.WhyObject(o, l)
			}
			for _, reconcile := range s.Reconciles() {
				s.WhyReconcile(reconcile, l)
				s.Dirty(reconcile)
			}
		}
	}
	p := NewPrinter(io.Discard, j, PrintOptions{Logs: true})
	_ = p.Update()  // io.Discard does not fail
	_ = p.Summary() // nor here
}

func FuzzLoad(f *testing.F) {
	good := saved(f, tour(f))
	f.Add(good)
	f.Add(good[:len(good)/3])
	f.Add([]byte(`{"format":"operator-lab-journal","version":1}` + "\n" + `{"seq":1,"kind":"dequeue","cause":1,"reconcile":-1}` + "\n" + `{"seq":9,"kind":"end","reconcile":-1}`))
	f.Add([]byte(`{"format":"operator-lab-journal","version":1}` + "\n" + `{"seq":1,"kind":"start","reconcile":1}` + "\n" +
		`{"seq":2,"kind":"end","reconcile":1,"outcome":"requeueAfter","delay":-9223372036854775808}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		j, _, err := Load(bytes.NewReader(raw), Options{MaxEvents: 2000})
		if err != nil {
			return
		}
		everything(j)
		if _, report, err := Load(bytes.NewReader(saved(t, j)), Options{}); err != nil || report.Damaged > 0 || report.Open {
			t.Errorf("what was loaded does not save: %v %+v", err, report)
		}
	})
}

// FuzzFold folds the recorded events in any order, and checks that rewinding agrees with folding.
func FuzzFold(f *testing.F) {
	events := tour(f).Since(0)
	straight := make([]byte, len(events))
	for i := range straight {
		straight[i] = byte(i)
	}
	f.Add(straight, 5)
	f.Add(bytes.Repeat([]byte{3, 200, 17, 99, 4}, 50), 100)
	f.Fuzz(func(t *testing.T, order []byte, cut int) {
		if len(order) > 3000 {
			return
		}
		j := New(Options{})
		for i, n := range order {
			e := *events[int(n)%len(events)]
			e.Cause = int64(order[len(order)-1-i]) - 3
			j.Append(e)
		}
		everything(j)
		tl := NewTimeline(j)
		tl.Update()
		n := int64(cut)
		if n < 0 || n > int64(len(order)) {
			n = int64(len(order)) / 2
		}
		s := tl.At(n).clone()
		for _, e := range j.Since(n) {
			s.apply(e)
		}
		if diff := cmp.Diff(digest(tl.Tip()), digest(s)); diff != "" {
			t.Errorf("from %d on: %s", n, diff)
		}
	})
}

// TestLoadNewest reads a file of which only the newest events fit, as one that can be read twice and as a pipe.
func TestLoadNewest(t *testing.T) {
	const all = 20_000
	text := saved(t, busy(t, all))
	lines := bytes.SplitAfter(text, []byte("\n"))
	const damaged = all - 100
	lines[damaged-1] = []byte("{\n")
	text = bytes.Join(lines, nil)
	options := Options{MaxEvents: 2000}
	for name, file := range map[string]io.Reader{"file": bytes.NewReader(text), "pipe": io.MultiReader(bytes.NewReader(text))} {
		j, report, err := Load(file, options)
		if err != nil {
			t.Fatal(name, err)
		}
		stats := j.Stats()
		if stats.Last != all || int64(stats.Events)+report.Dropped+1 != all || stats.Events < 1000 || stats.Events > 2512 {
			t.Errorf("%s: %+v, %+v", name, stats, report)
		}
		if report.Damaged != 1 || report.FirstDamaged != damaged || report.Missing != 1 || report.Open {
			t.Errorf("%s: %+v", name, report)
		}
		// What was read is forgotten by whole chunks, so that what is left begins with one.
		if skipped := name == "file"; skipped != (stats.First%chunkSize != 1) {
			t.Errorf("%s: the first event that is kept is %d", name, stats.First)
		}
	}
}
