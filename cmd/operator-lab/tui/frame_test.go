package tui

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// modelOf returns a model over a journal, without a program.
func modelOf(tb testing.TB, o Options, w, h int) *Model {
	tb.Helper()
	if o.Getenv == nil {
		o.Getenv = utf8Env
	}
	m := newModel(tb.Context(), o)
	m.w, m.h = w, h
	return m
}

// checkSize fails the test if a frame is not exactly h lines of w cells.
func checkSize(tb testing.TB, m *Model) {
	tb.Helper()
	out := m.frame()
	if m.w <= 0 || m.h <= 0 {
		if out != "" {
			tb.Fatalf("%dx%d: a frame without cells is %q", m.w, m.h, out)
		}
		return
	}
	lines := strings.Split(out, "\n")
	if len(lines) != m.h {
		tb.Fatalf("%dx%d: the frame has %d lines", m.w, m.h, len(lines))
	}
	for i, line := range lines {
		if got := ansi.StringWidth(line); got != m.w {
			tb.Fatalf("%dx%d, focus %d, zoom %d: line %d is %d cells wide: %q", m.w, m.h, m.focus, m.zoom, i, got, ansi.Strip(line))
		}
	}
}

// hostile is a journal with texts that try to break the screen.
func hostile() *clockwork {
	c := story()
	for _, text := range []string{
		"\x1b[2J\x1b[31mred\x07", "ズンズンズンドコ キヨシ!!", "a\u0301\u0301 e\u0301", "\u0301\u0301", "👨‍👩‍👧‍👦 family", "🇯🇵🇯🇵", "tab\tnew\nline",
		"\xff\xfe", "\u202eright to left\u202c", "zero\u200bwidth\ufeff", strings.Repeat("長い", 200), "",
	} {
		c.journal.Append(trace.Event{
			Kind: trace.KindCall, Actor: "you", Operator: "you", Verb: trace.VerbCreate, ResourceVersion: "9" + itoa(len(text)),
			Object: trace.Ref{APIVersion: "v1", Kind: "Kind" + text, Name: "name-" + text, UID: text + "uid"},
			After:  []byte(`{"metadata":{"name":"x"},"status":{"conditions":[{"type":"Ready","status":"False","message":"` + strings.ToValidUTF8(strings.ReplaceAll(strings.ReplaceAll(text, "\x1b", ""), "\n", ""), "") + `"}]}}`),
		})
		c.journal.Append(trace.Event{
			Kind: trace.KindEnqueue, Operator: text, Controller: text, Key: trace.Key{Namespace: text, Name: text},
		})
		id := c.journal.NewReconcile()
		base := trace.Event{Operator: text, Controller: text, Key: trace.Key{Namespace: text, Name: text}, Reconcile: id}
		for _, kind := range []trace.Kind{trace.KindDequeue, trace.KindStart, trace.KindLog, trace.KindHold} {
			e := base
			e.Kind, e.Message, e.Values, e.Verb = kind, text, []string{text, text}, trace.VerbCreate
			if kind == trace.KindLog {
				e.Verb, e.Stack = "", text+"\n"+text
			}
			e.Object = trace.Ref{Kind: text, Name: text}
			c.journal.Append(e)
		}
	}
	return c
}

func TestEveryFrameIsExact(t *testing.T) {
	c := hostile()
	for _, o := range []Options{
		{Journal: c.journal, ASCII: true, Title: "ズンドコ"},
		{Journal: c.journal, Language: trace.Japanese, Guide: lessonOf(halfTicked(trace.Japanese)), Title: "ズンドコ"},
	} {
		m := modelOf(t, o, 0, 0)
		step := 3 // FuzzFrame tries the others
		if testing.Short() {
			step = 11
		}
		for w := 0; w <= 250; w += step {
			for _, h := range []int{0, 1, 2, 5, 15, 16, 19, 20, 24, 29, 30, 40, 45, 50, 100} {
				m.w, m.h = w, h
				checkSize(t, m)
			}
		}
		for h := 0; h <= 120; h += step {
			for _, w := range []int{1, 59, 60, 61, 80, 99, 100, 159, 160, 200, 250} {
				m.w, m.h = w, h
				checkSize(t, m)
			}
		}
	}
}

// TestEveryScreenIsExact goes through panes, zooms, tabs, popups and times.
func TestEveryScreenIsExact(t *testing.T) {
	c := hostile()
	keys := []string{
		"1", "down", "down", "z", "z", "z", "2", "down", "3", "up", "up", "enter", "4", "d", "y", "c", "l", "pgdown", "6", "5",
		"w", "w", "down", "esc", "?", "down", "pgdown", "esc", "[", "[", "{", "}", "x", "o", "/", "ズ", "enter", "esc", "home", "]", "L", "f", "tab", "shift+tab",
		"5", "h", "pgdown", "a", "1", "enter", "u", "esc", "v", "y", "t", "n", "z", "z", "z", "tab",
	}
	for _, size := range [][2]int{{60, 16}, {80, 24}, {90, 50}, {120, 40}, {200, 50}, {250, 100}} {
		for _, ascii := range []bool{true, false} {
			m := modelOf(t, Options{Journal: c.journal, ASCII: ascii, Guide: lessonOf(halfTicked(trace.Japanese)), Controls: Controls{Loop: nil, Cluster: &demoCluster{}}}, size[0], size[1])
			for _, k := range keys {
				if cmd := m.press(k); m.busy != nil {
					settle(m, cmd)
				}
				checkSize(t, m)
			}
		}
	}
}

// FuzzFrame: whatever is in the journal, whatever the size and the keys, a frame is exact.
func FuzzFrame(f *testing.F) {
	for _, size := range []uint8{0, 1, 59, 60, 80, 100, 120, 160, 200, 250} {
		f.Add(size, size/2, "123[]w?", "ズン\u0301ドコ🇯🇵", true)
		f.Add(size, size, "x/a\x00z4yz", "\x1b[31m\u200d👨‍👩‍👧", false)
		f.Add(size, size/2, "5jhva1\nuynzz\t", "**b** `c` 深い\n\n- [x](y)", true)
	}
	base := story().journal.Since(0)
	f.Fuzz(func(t *testing.T, w, h uint8, keys, text string, flag bool) {
		c := newClockwork()
		for i, e := range base {
			next := *e
			if i%7 == 3 {
				next.Object.Name, next.Message, next.Error = text, text, text
			}
			if i%11 == 5 {
				next.Key.Name, next.Operator, next.After = text, text, []byte(text)
			}
			c.journal.Append(next)
		}
		o := Options{Journal: c.journal, ASCII: flag, Title: text, Controls: Controls{Facts: text, Cluster: &demoCluster{}}}
		if flag {
			o.Language, o.Guide = trace.Japanese, lessonOf(hostilePage(text, len(keys)))
		}
		m := modelOf(t, o, int(w), int(h))
		checkSize(t, m)
		for i, k := range keys {
			if i > 12 {
				break
			}
			name := string(k)
			switch k {
			case ' ':
				name = "down"
			case '\n':
				name = "enter"
			case '\t':
				name = "tab"
			}
			if cmd := m.press(name); m.busy != nil {
				checkSize(t, m)
				settle(m, cmd)
			}
			checkSize(t, m)
		}
	})
}
