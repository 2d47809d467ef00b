package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func htmlOf(tb testing.TB, j *Journal, o HTMLOptions) string {
	tb.Helper()
	var b bytes.Buffer
	if err := WriteHTML(&b, j, o); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

var (
	styleOf  = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	scriptOf = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	policyOf = regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`)
)

// TestHTML compares the pages without style and script, so that a change of these does not change the golden files.
func TestHTML(t *testing.T) {
	for _, l := range []Language{English, Japanese} {
		page := htmlOf(t, tour(t), HTMLOptions{Language: l})
		if page != htmlOf(t, tour(t), HTMLOptions{Language: l}) {
			t.Error("the page differs from one time to the next")
		}
		page = styleOf.ReplaceAllString(page, "<style></style>")
		page = scriptOf.ReplaceAllString(page, "<script></script>")
		page = policyOf.ReplaceAllString(page, `http-equiv="Content-Security-Policy" content=""`)
		golden(t, "tour."+string(l)+".html", page)
	}
}

func TestHTMLPolicy(t *testing.T) {
	page := htmlOf(t, tour(t), HTMLOptions{})
	styles, scripts := styleOf.FindAllStringSubmatch(page, -1), scriptOf.FindAllStringSubmatch(page, -1)
	if len(styles) != 1 || len(scripts) != 1 {
		t.Fatalf("%d styles, %d scripts", len(styles), len(scripts))
	}
	want := htmlPolicy([]byte(styles[0][1]), []byte(scripts[0][1]))
	got := strings.ReplaceAll(policyOf.FindStringSubmatch(page)[1], "&#43;", "+")
	got = strings.ReplaceAll(got, "&#39;", "'")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"http://", "https://", " src=", "@import", "url(", "style=", "<link", "<iframe", "fetch(", "XMLHttp", "innerHTML"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %s", bad)
		}
	}
}

// TestHTMLMeasures checks that the lanes' names are as tall as the lanes in the drawing beside them.
func TestHTMLMeasures(t *testing.T) {
	css, err := htmlFiles.ReadFile("html/page.css")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{
		fmt.Sprintf(".lanes { flex: none; max-width: 50%%; overflow-x: auto; margin: 0; padding: %dpx 0 0;", axisHeight),
		fmt.Sprintf(".lanes li { height: %dpx;", laneHeight),
	} {
		if !strings.Contains(string(css), rule) {
			t.Errorf("page.css has no rule %s", rule)
		}
	}
	for _, size := range []string{fmt.Sprintf(`height="%d"/>`, laneHeight), fmt.Sprintf(`height="%d" rx=`, barHeight)} {
		if !strings.Contains(htmlOf(t, tour(t), HTMLOptions{}), size) {
			t.Errorf("the drawing has nothing of %s", size)
		}
	}
}

// everywhere returns a journal with a text in every place that can hold one.
func everywhere(text string) *Journal {
	j := New(Options{Product: text, Now: func() time.Time { return time.Unix(0, 0) }})
	raw := func(n int) json.RawMessage {
		b, _ := json.Marshal(map[string]any{
			"kind": text, "metadata": map[string]any{"name": text, "annotations": map[string]string{text: text}},
			"spec": []any{n, text, map[string]any{text: fmt.Sprint(text, "\n", text, n)}},
		})
		return b
	}
	ref := Ref{APIVersion: text, Kind: text, Namespace: text, Name: text, Subresource: text, UID: text}
	base := Event{
		Actor: text, Operator: text, Controller: text, Key: Key{text, text}, Object: ref, ResourceVersion: text,
		FieldManager: text, Reason: text, Message: text, Values: []string{text, text}, Stack: text + "\n" + text,
		Source: Source(text), Via: text,
	}
	for i, e := range []Event{
		{Kind: KindOperator, Verb: text},
		{Kind: KindWatch, Verb: text, After: raw(1)},
		{Kind: KindEnqueue, Cause: 2},
		{Kind: KindDequeue, Reconcile: 1},
		{Kind: KindStart, Reconcile: 1},
		{Kind: KindCall, Verb: text, Reconcile: 1},
		{Kind: KindHold, Verb: VerbUpdate, Reconcile: 1, Before: raw(1), After: raw(2)},
		{Kind: KindCall, Verb: VerbUpdate, Reconcile: 1, Before: raw(1), After: raw(2)},
		{Kind: KindCall, Verb: VerbPatch, Reconcile: 1, Error: text},
		{Kind: KindLog, Reconcile: 1, Error: text},
		{Kind: KindEnd, Reconcile: 1, Outcome: Outcome(text), Error: text},
		{Kind: KindControl, Verb: text},
		{Kind: KindNote},
		{Kind: KindFault, Verb: text, Reconcile: 1},
		{Kind: KindCall, Verb: VerbCreate, After: []byte(text)},
		{Kind: KindDrop, Cause: 2},
		{Kind: KindLog},
		{Kind: Kind(text)},
	} {
		full := base
		full.At, full.Kind, full.Verb, full.Reconcile, full.Cause = time.Duration(i+1)*time.Millisecond, e.Kind, e.Verb, e.Reconcile, e.Cause
		full.Before, full.After, full.Outcome, full.Error = e.Before, e.After, e.Outcome, e.Error
		j.Append(full)
	}
	return j
}

// skeleton returns the tags of a page and the names of their attributes.
func skeleton(page string) []string {
	page = scriptOf.ReplaceAllString(styleOf.ReplaceAllString(page, ""), "")
	value := regexp.MustCompile(`="[^"]*"`)
	var out []string
	for _, tag := range regexp.MustCompile(`<[^>]*>`).FindAllString(page, -1) {
		out = append(out, value.ReplaceAllString(tag, ""))
	}
	return out
}

// TestHTMLEscapes checks that texts of a journal never add tags or attributes to the page.
func TestHTMLEscapes(t *testing.T) {
	for _, l := range []Language{English, Japanese} {
		want := skeleton(htmlOf(t, everywhere("harmless"), HTMLOptions{Language: l, Title: "harmless"}))
		for _, text := range []string{
			"</script><script>alert(1)</script>", "</style></title></pre></svg><img src=x onerror=alert(1)>",
			`" onmouseover="alert(1)" x="`, `' onfocus='alert(1)`, "javascript:alert(1)", "<!--", "]]>", "{{.}}", "&lt;b&gt;",
			"\x00\x1b[31m\u202e\xff", "`${alert(1)}`",
		} {
			page := htmlOf(t, everywhere(text), HTMLOptions{Language: l, Title: text})
			if diff := cmp.Diff(want, skeleton(page)); diff != "" {
				t.Errorf("%q changes the page: %s", text, diff)
			}
			for _, c := range []string{"\x00", "\x1b", "\xff"} {
				if strings.Contains(page, c) {
					t.Errorf("%q: %q is on the page", text, c)
				}
			}
			if strings.Contains(page, `href="javascript`) {
				t.Errorf("%q became a link", text)
			}
		}
	}
}

func TestHTMLOfLongJournals(t *testing.T) {
	page := htmlOf(t, busy(t, 20_000), HTMLOptions{})
	if n := strings.Count(page, `<li class="row rec`); n < 1900 || strings.Contains(page, "left out of this page") {
		t.Errorf("of 20,000 events %d reconciles are shown", n)
	}
	if n := len(page); n > 9<<20 {
		t.Errorf("the page of 20,000 events has %d bytes", n)
	}
	long := busy(t, 27_000)
	page = htmlOf(t, long, HTMLOptions{Report: Report{Damaged: 3, Open: true}})
	if n := strings.Count(page, `<li class="row rec`); n != htmlReconciles {
		t.Errorf("%d reconciles are shown", n)
	}
	for _, want := range []string{"reconciles are left out of this page", "belong to no reconcile are left out", "3 lines are damaged; the end is missing"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say: %s", want)
		}
	}
}

func TestHTMLOfForgottenAndEmpty(t *testing.T) {
	if page := htmlOf(t, New(Options{}), HTMLOptions{}); !strings.Contains(page, "Nothing was recorded.") {
		t.Error("an empty journal is not said to be empty")
	}
	j := New(Options{MaxEvents: 600})
	for range 2000 {
		j.Append(Event{Kind: KindNote, Message: "x"})
	}
	if page := htmlOf(t, j, HTMLOptions{}); !strings.Contains(page, fmt.Sprintf("The oldest %d events are forgotten", j.Stats().Forgotten)) {
		t.Error("what is forgotten is not told")
	}
}

func TestHTMLDiff(t *testing.T) {
	for _, tt := range []struct{ name, before, after, want string }{
		{"nothing", `{"a":1}`, `{"a":1}`, ""},
		{"only noise", `{"metadata":{"resourceVersion":"1","uid":"x"}}`, `{"metadata":{"resourceVersion":"2","uid":"y"}}`, ""},
		{"created", "", `{"kind":"A","spec":{"m":3,"s":"yes"}}`, "+kind: A|+spec:|+  m: 3|+  s: \"yes\""},
		{"deleted", `{"kind":"A"}`, "", "-kind: A"},
		{
			"the way to a change", `{"a":{"b":{"c":1,"d":1,"e":1,"f":1,"g":1}},"z":1}`, `{"a":{"b":{"c":1,"d":1,"e":1,"f":1,"g":2}},"z":1}`,
			" a:|   b:|…|     e: 1|     f: 1|-    g: 1|+    g: 2| z: 1",
		},
		{"lists", `{"l":[{"m":"a"},{"m":"b"}]}`, `{"l":[{"m":"a"},{"m":"b","x":[]}]}`, " l:|   - m: a|   - m: b|+    x: []"},
		{"several lines", `{"t":"a\nb\n"}`, `{"t":"a\nc\n"}`, " t: ||   a|-  b|+  c"},
		{"blanks count", `{"t":"a  b"}`, `{"t":"a b"}`, "-t: \"a  b\"|+t: a b"},
		{"no JSON", `x`, `y`, "-x|+y"},
	} {
		var got []string
		for _, l := range htmlDiff(json.RawMessage(tt.before), json.RawMessage(tt.after)) {
			got = append(got, l.Op+l.Text)
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, "|")); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	deep := strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000)
	if n := len(htmlDiff(nil, json.RawMessage(deep))); n == 0 || n > 100 {
		t.Errorf("a deep object has %d lines", n)
	}
}

// TestHTMLAxis checks that the axis is monotonic and keeps its points apart.
func TestHTMLAxis(t *testing.T) {
	at := []time.Duration{0, 1, 2, 1e6, 5e6, 5e6, 1e9, 3600e9, math.MaxInt64 - 1, math.MaxInt64}
	var points []axisPoint
	for _, d := range at {
		points = append(points, axisPoint{d, leastBar})
	}
	a := newAxis(points)
	var xs []int
	for _, d := range append(at, 77, 6e6, 1e12) {
		xs = append(xs, a.x(d))
	}
	for i := 1; i < len(at); i++ {
		if at[i] > at[i-1] && xs[i]-xs[i-1] < leastBar-1 {
			t.Errorf("between %v and %v there are %d pixels", at[i-1], at[i], xs[i]-xs[i-1])
		}
	}
	if slices.Max(xs) > 20_000 || slices.Min(xs) < 0 {
		t.Errorf("the axis goes from %d to %d", slices.Min(xs), slices.Max(xs))
	}
}

func FuzzHTML(f *testing.F) {
	good := saved(f, tour(f))
	f.Add(good)
	f.Add(good[:len(good)/3])
	f.Add(saved(f, everywhere("1"))) // a text that is JSON too
	head := `{"format":"operator-lab-journal","version":1}` + "\n"
	f.Add([]byte(head + `{"seq":1,"kind":"dequeue","at":9223372036854775807,"reconcile":-1}` + "\n" + `{"seq":2,"at":0,"kind":"end","reconcile":-1,"duration":-9}`))
	f.Add([]byte(head + `{"seq":5,"at":1,"kind":"call","verb":"create","reconcile":0,"duration":9223372036854775807,"after":[[[]]]}` + "\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		j, report, err := Load(bytes.NewReader(raw), Options{MaxEvents: 2000})
		if err != nil {
			return
		}
		for _, l := range []Language{English, Japanese} {
			htmlOf(t, j, HTMLOptions{Language: l, Report: report})
		}
	})
}

// FuzzHTMLFold makes pages of the recorded events in any order.
func FuzzHTMLFold(f *testing.F) {
	events := tour(f).Since(0)
	f.Add(bytes.Repeat([]byte{3, 200, 17, 99, 4}, 50))
	f.Fuzz(func(t *testing.T, order []byte) {
		if len(order) > 1000 {
			return
		}
		j := New(Options{})
		for i, n := range order {
			e := *events[int(n)%len(events)]
			e.Cause = int64(order[len(order)-1-i]) - 3
			j.Append(e)
		}
		htmlOf(t, j, HTMLOptions{})
	})
}

func BenchmarkHTML(b *testing.B) {
	j := busy(b, 20_000)
	for b.Loop() {
		b.ReportMetric(float64(len(htmlOf(b, j, HTMLOptions{})))/(1<<20), "MiB")
	}
}
