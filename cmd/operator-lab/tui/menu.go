package tui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// choice is a line of a menu.
type choice struct {
	text string
	more string
	help string // shown while it is chosen: what it leads to
	do   func(*Model) tea.Cmd
}

// menu lets one of several things be chosen.
type menu struct {
	heading string
	choices []choice
	at      int
	// narrows has what is typed narrow the choices, to those that contain it.
	narrows bool
	text    typed
}

// shown are the choices that contain what was typed.
func (p *menu) shown() []choice {
	return slices.DeleteFunc(slices.Clone(p.choices), func(c choice) bool { return !strings.Contains(c.text, string(p.text)) })
}

func (p *menu) window(s *state) []string {
	choices, least := p.shown(), 40
	rows := make([]row, len(choices))
	for i, c := range choices {
		r := text(plain, "  "+c.text)
		if i == p.at {
			r = text(plain, s.at+" "+c.text)
			r.chosen = true
		}
		if c.more != "" {
			r.add(dim, "  "+c.more)
		}
		rows[i] = *r.add(plain, " ")
		least = max(least, rows[i].width()+1)
	}
	var below []row
	if p.narrows {
		below = append(below, row{}, *(&row{}).add(dim, s.t(" contains: ", " 絞り込み: ")).add(plain, string(p.text)+"_"))
	}
	if len(choices) > 0 && choices[p.at].help != "" {
		below = append(append(below, row{}), wrapped(note, " ", choices[p.at].help, min(90, s.w-8))...)
	}
	h := max(1, s.h-4-len(below)) // what is chosen leads to stays in sight below a long list
	top := window(len(rows), p.at, h)
	rows = slices.Concat(rows[top:min(len(rows), top+h)], below)
	return s.theme.window(s.screen(), p.heading, rows, least, 0)
}

func (p *menu) keys(s *state) ([]string, []string) {
	choose, do, never := s.t("choose", "選択"), s.t("do it", "実行"), s.t("never mind", "やめる")
	if p.narrows {
		return []string{s.t("type", "入力"), "tab", "up down", "enter", "esc"},
			[]string{s.t("to narrow", "で絞り込み"), s.t("complete", "補完"), choose, do, never}
	}
	return []string{"j k", "enter", "esc"}, []string{choose, do, never}
}

func (p *menu) press(m *Model, pressed string) tea.Cmd {
	n := len(p.shown())
	switch {
	case pressed == "esc":
		m.popup = nil
	case pressed == "enter" && n > 0:
		m.popup = nil
		return p.shown()[p.at].do(m)
	case p.narrows && pressed == "tab":
		p.complete()
	case p.narrows && pressed != "up" && pressed != "down":
		p.text.press(pressed, maxFilter)
		p.at = 0
	case n == 0:
	case pressed == "up", pressed == "k", pressed == "shift+tab":
		p.at = (p.at + n - 1) % n
	case pressed == "down", pressed == "j", pressed == "tab":
		p.at = (p.at + 1) % n
	case pressed == "home":
		p.at = 0
	case pressed == "end":
		p.at = n - 1
	case pressed == "q", pressed == "x":
		m.popup = nil
	}
	return nil
}

// complete types on as far as all choices that are shown agree.
func (p *menu) complete() {
	common, choices := "", p.shown()
	if len(choices) > 0 {
		common = choices[0].text
	}
	for _, c := range choices {
		for !strings.HasPrefix(c.text, common) {
			common = withoutLast(common)
		}
	}
	if strings.Contains(common, string(p.text)) {
		p.text = ""
		p.text.add(common, maxFilter)
	}
}

// drift is a change of one field, as a user might make it by hand.
type drift struct {
	path     string
	from, to string
	merge    []byte // a JSON merge patch
}

// drifts returns changes that can be made to an object: of its spec and data,
// and if it has neither of its labels.
func drifts(raw json.RawMessage) []drift {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var o map[string]any
	if len(raw) == 0 || dec.Decode(&o) != nil {
		return nil
	}
	var out []drift
	for _, top := range []string{"spec", "data"} {
		out = append(out, driftsIn(o, top)...)
	}
	if meta, is := o["metadata"].(map[string]any); is && len(out) == 0 {
		for _, d := range driftsIn(meta, "labels") {
			d.path = "metadata." + d.path
			d.merge = append(append([]byte(`{"metadata":`), d.merge...), '}')
			out = append(out, d)
		}
	}
	return out
}

// driftsIn returns a change for each scalar below a field.
func driftsIn(o map[string]any, top string) []drift {
	var out []drift
	var walk func(path []any, v any)
	walk = func(path []any, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range sortedKeys(v) {
				walk(append(slices.Clone(path), k), v[k])
			}
		case []any:
			for i := range v {
				walk(append(slices.Clone(path), i), v[i])
			}
		default:
			if to, can := drifted(v); can {
				merge, err := json.Marshal(mergeOf(o, path, to))
				if err == nil {
					out = append(out, drift{pathText(path), scalar(v), scalar(to), merge})
				}
			}
		}
	}
	walk([]any{top}, o[top])
	return out
}

// drifted returns another value of the same kind.
func drifted(v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		return !v, true
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return json.Number(strconv.FormatInt(n+1, 10)), true
		}
	case string:
		if n, err := strconv.Atoi(v); err == nil {
			return strconv.Itoa(n + 1), true
		}
		return v + "-drift", v != ""
	}
	return nil, false
}

// mergeOf returns a merge patch that sets one value. A list is replaced as a
// whole: that is how merge patches treat lists.
func mergeOf(v any, path []any, to any) any {
	if len(path) == 0 {
		return to
	}
	switch step := path[0].(type) {
	case string:
		below, _ := v.(map[string]any)
		return map[string]any{step: mergeOf(below[step], path[1:], to)}
	case int:
		list := slices.Clone(v.([]any))
		list[step] = replaced(list[step], path[1:], to)
		return list
	}
	return nil
}

// replaced returns a value with one value below it set, all else kept.
func replaced(v any, path []any, to any) any {
	if len(path) == 0 {
		return to
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k := range v {
			out[k] = v[k]
		}
		k, _ := path[0].(string)
		out[k] = replaced(v[k], path[1:], to)
		return out
	case []any:
		i, _ := path[0].(int)
		out := slices.Clone(v)
		out[i] = replaced(v[i], path[1:], to)
		return out
	}
	return v
}

func pathText(path []any) string {
	var b strings.Builder
	for i, step := range path {
		switch step := step.(type) {
		case string:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		case int:
			b.WriteString("[" + itoa(step) + "]")
		}
	}
	return b.String()
}

// operatorMenu chooses whose loop is shown.
func operatorMenu(s *state) popup {
	p := &menu{heading: s.t("Show the loop of", "表示するループ")}
	set := func(name string) func(*Model) tea.Cmd {
		return just(func(m *Model) {
			m.operator = name
			if m.live && m.follow {
				m.nav().selectNewest()
			}
		})
	}
	p.choices = append(p.choices, choice{text: s.t("all operators", "全オペレーター"), do: set("")})
	for i, name := range s.index.operators {
		p.choices = append(p.choices, choice{text: name, do: set(name)})
		if name == s.operator {
			p.at = i + 1
		}
	}
	return p
}

// sampleMenu offers what the selected ClusterServiceVersion or InstallPlan does, and the samples of the project.
func sampleMenu(s *state) popup {
	p := &menu{heading: s.t("Apply which sample?", "どのサンプルを適用する?")}
	p.addVersion(s, s.subject().object)
	p.addPlan(s, s.subject().object)
	for _, sample := range s.controls.Samples {
		p.choices = append(p.choices, choice{text: sample.Text, do: func(m *Model) tea.Cmd {
			return m.act(m.t("apply ", "適用 ")+sample.Text, sample.Apply)
		}})
	}
	return p
}

// breakMenu offers faults of the selected object, or else which object to break.
func breakMenu(m *Model) {
	if o := m.subject().object; o != nil && !o.Deleted {
		faultMenu(m, o)
		return
	}
	victimMenu(m)
}

func victimMenu(m *Model) {
	p := &menu{heading: m.t("Break which object?", "どのオブジェクトを壊す?")}
	for _, t := range m.objects().lines() {
		if t.object == nil || t.object.Deleted || t.later {
			continue
		}
		o := t.object
		p.choices = append(p.choices, choice{
			text: t.branch + o.Ref.String(), more: m.objects().summaryOf(o),
			do: just(func(m *Model) { faultMenu(m, o) }),
		})
	}
	if len(p.choices) == 0 {
		m.say("x: " + m.t("there is no object to break yet", "壊せるオブジェクトがまだない"))
		return
	}
	m.popup = p
}

func faultMenu(m *Model, o *trace.Object) {
	cluster := m.controls.Cluster
	p := &menu{heading: m.t("Break ", "壊す: ") + o.Ref.String()}
	p.choices = append(p.choices, choice{
		text: m.t("delete it", "削除する"), more: m.t("behind the operator's back", "オペレーターに無断で"),
		help: m.t("Its watchers get an event DELETED; its owner's operator or controller makes it again, if it has one.",
			"watch している側に DELETED イベントが届く。管理しているオペレーターかコントローラーがあれば、作り直す。"),
		do: func(m *Model) tea.Cmd {
			return m.act(m.t("delete ", "削除 ")+o.Ref.String(), func(ctx context.Context) error { return cluster.Delete(ctx, o.Ref) })
		},
	})
	add := func(likely bool) {
		for _, f := range m.controls.Faults {
			if f.Likely != likely || f.Running && m.downMode() != nil {
				continue
			}
			p.choices = append(p.choices, choice{text: f.Text, help: f.More, do: func(m *Model) tea.Cmd {
				return m.act(f.Text, func(ctx context.Context) error { return f.Do(ctx, o.Ref) })
			}})
		}
	}
	add(true)
	if fields := drifts(o.Raw); len(fields) > 0 {
		p.choices = append(p.choices, choice{
			text: m.t("change a field...", "フィールドを変更..."), do: just(func(m *Model) { fieldMenu(m, o, fields) }),
			help: m.driftHelp(o),
		})
	}
	add(false)
	p.choices = append(p.choices, choice{
		text: m.t("another object...", "別のオブジェクト..."),
		do:   just(victimMenu),
	})
	m.popup = p
}

// driftHelp says what follows when a field of an object is changed by hand.
func (s *state) driftHelp(o *trace.Object) string {
	for _, owner := range o.Meta().Owners {
		if owner.Controller {
			return fmt.Sprintf(s.t("Its watchers get an event MODIFIED; the controller of %s %s sets the field back, if it is one that it manages.",
				"watch している側に MODIFIED イベントが届く。%s %s のコントローラーは、自分が管理しているフィールドなら元に戻す。"), owner.Kind, owner.Name)
		}
	}
	return s.t("Its watchers get an event MODIFIED; no controller owns this object, so the new value is taken as what you want: who reads it acts on it.",
		"watch している側に MODIFIED イベントが届く。管理しているコントローラーはないので、新しい値は要望になり、読む側がそれに従う。")
}

// fieldMenu offers a change of one of the fields of an object.
func fieldMenu(m *Model, o *trace.Object, fields []drift) {
	cluster := m.controls.Cluster
	p := &menu{heading: m.t("Change which field of ", "変更するフィールド: ") + o.Ref.String(), narrows: true}
	for _, d := range fields {
		p.choices = append(p.choices, choice{
			text: d.path, more: d.from + " " + m.theme.arrow + " " + d.to, help: m.driftHelp(o),
			do: func(m *Model) tea.Cmd {
				return m.act(o.Ref.String()+" "+d.path, func(ctx context.Context) error { return cluster.Patch(ctx, o.Ref, d.merge) })
			},
		})
	}
	m.popup = p
}
