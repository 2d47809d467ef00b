package tui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Field is a field of the spec of a kind, as its schema has it.
type Field struct {
	// Path is where it is below the spec, such as "pod.labels".
	Path string
	// Type is string, integer, number, boolean, array or object; empty if the schema does not say.
	Type string
	// Required says that no object is accepted without it.
	Required bool
	// Options are the values that are accepted. Default: all of the type.
	Options []string
	// Default is what the API server puts in its place, as JSON. Default: nothing.
	Default string
	// About describes it. Default: empty.
	About string
}

// formField is a line of a form.
type formField struct {
	label   string
	path    []string // in the object
	text    typed    // its value; empty: it is left out
	kind    string   // the type of a [Field]
	options []string
	about   []string // sentences
}

// longestValue bounds what is typed into a field.
const longestValue = 200

// form asks for the values of an object that is to be created: of its name, of the fields that a ClusterServiceVersion names to
// people, of those that its example has, and of those that it must have.
type form struct {
	heading string
	example map[string]any
	fields  []formField
	at      int
	wrong   string // why it was not created when that was tried last
}

// newForm makes a form of an example of a kind, with the fields of the kind's schema.
func newForm(s *state, k *ownedKind, example map[string]any, schema []Field) *form {
	f := &form{heading: s.t("Create ", "作成: ") + k.name(), example: example}
	f.fields = []formField{
		{label: s.t("Name", "名前"), path: []string{"metadata", "name"}, kind: "string"},
		{label: s.t("Namespace", "namespace"), path: []string{"metadata", "namespace"}, kind: "string"},
	}
	for _, d := range k.SpecDescriptors {
		if !d.has("hidden") {
			f.add(formField{label: cmp.Or(d.DisplayName, d.Path), path: specPath(d.Path), kind: d.kind(), options: d.options(), about: []string{d.Description}})
		}
	}
	spec, _ := example["spec"].(map[string]any)
	for _, path := range leaves(spec, nil) {
		f.add(formField{label: strings.Join(path, "."), path: append([]string{"spec"}, path...)})
	}
	for _, field := range schema {
		if field.Required && field.Type != "object" {
			f.add(formField{label: field.Path, path: specPath(field.Path)})
		}
	}
	all := f.fields
	f.fields = nil
	for _, field := range all {
		if field.take(example) {
			field.complete(s, schema)
			f.fields = append(f.fields, field)
		}
	}
	return f
}

func specPath(path string) []string { return append([]string{"spec"}, strings.Split(path, ".")...) }

// add adds a field that is not there yet.
func (f *form) add(field formField) {
	if !slices.ContainsFunc(f.fields, func(each formField) bool { return slices.Equal(each.path, field.path) }) {
		f.fields = append(f.fields, field)
	}
}

// leaves returns the paths of the values below a map that are no maps themselves.
func leaves(m map[string]any, above []string) (all [][]string) {
	for _, key := range sortedKeys(m) {
		path := append(slices.Clone(above), key)
		if below, is := m[key].(map[string]any); is && len(below) > 0 {
			all = append(all, leaves(below, path)...)
		} else {
			all = append(all, path)
		}
	}
	return all
}

// take takes the value that the example has. It reports false for one that the form would not give back as it is: a long one, one of
// several lines, one in a list. Those stay as the example has them.
func (f *formField) take(example map[string]any) bool {
	value, whole := valueAt(example, f.path)
	if value == nil {
		return whole
	}
	text, is := value.(string)
	if is {
		f.kind = cmp.Or(f.kind, "string")
	} else {
		text = scalar(value)
	}
	if _, is := value.(bool); is {
		f.kind = cmp.Or(f.kind, "boolean")
	}
	f.text.add(text, longestValue)
	return string(f.text) == text
}

// complete fills in what the schema says.
func (f *formField) complete(s *state, schema []Field) {
	i := slices.IndexFunc(schema, func(each Field) bool { return slices.Equal(specPath(each.Path), f.path) })
	if i < 0 {
		return
	}
	has := schema[i]
	f.kind = cmp.Or(has.Type, f.kind)
	if has.Options != nil {
		f.options = has.Options
	}
	if f.about == nil || f.about[0] == "" {
		f.about = []string{has.About}
	}
	facts := []string{has.Type}
	if has.Required {
		facts = append(facts, s.t("required", "必須"))
	}
	if has.Default != "" {
		facts = append(facts, s.t("default ", "省略時 ")+has.Default)
	}
	f.about = append(f.about, strings.Join(slices.DeleteFunc(facts, func(fact string) bool { return fact == "" }), ", "))
}

// value returns what was typed, as the type of the field if it can be read so: whether it is accepted the API server says.
func (f *formField) value() any {
	text := string(f.text)
	if f.kind == "string" {
		return text
	}
	var v any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if dec.Decode(&v) != nil || dec.More() {
		return text
	}
	return v
}

// turn chooses the next or the previous of the values that there are.
func (f *formField) turn(n int) {
	options := f.options
	if f.kind == "boolean" {
		options = []string{"false", "true"}
	}
	if len(options) > 0 {
		i := slices.Index(options, string(f.text))
		if i < 0 && n < 0 { // before the first one is the last one, also if none is chosen
			i = 0
		}
		f.text = typed(options[(i+n+len(options))%len(options)])
	} else if number, err := strconv.Atoi(string(f.text)); err == nil && f.kind != "string" {
		f.text = typed(strconv.Itoa(number + n))
	}
}

// object returns the object as it is filled in, and what it is called.
func (f *form) object() (trace.Ref, []byte) {
	raw, err := json.Marshal(f.example)
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var o map[string]any
	if err != nil || dec.Decode(&o) != nil {
		return trace.Ref{}, nil
	}
	for i := range f.fields {
		setField(o, f.fields[i].path, f.fields[i].value(), f.fields[i].text == "")
	}
	if raw, err = json.Marshal(o); err != nil {
		return trace.Ref{}, nil
	}
	of := func(path ...string) string {
		value, _ := valueAt(o, path)
		text, _ := value.(string)
		return text
	}
	return trace.Ref{APIVersion: of("apiVersion"), Kind: of("kind"), Namespace: of("metadata", "namespace"), Name: of("metadata", "name")},
		[]byte(strings.Join(yamlLines(raw), "\n") + "\n")
}

// valueAt returns the value at a path; nil if there is none. It reports false if something on the way is neither missing nor a map.
func valueAt(m map[string]any, path []string) (value any, whole bool) {
	value = m
	for _, step := range path {
		below, is := value.(map[string]any)
		if value != nil && !is {
			return nil, false
		}
		value = below[step]
	}
	return value, true
}

// setField sets or removes the value at a path, making the maps on the way.
func setField(m map[string]any, path []string, to any, remove bool) {
	for ; len(path) > 1; path = path[1:] {
		below, is := m[path[0]].(map[string]any)
		switch {
		case !is && remove:
			return
		case !is:
			below = map[string]any{}
			m[path[0]] = below
		}
		m = below
	}
	if remove {
		delete(m, path[0])
		return
	}
	m[path[0]] = to
}

func (f *form) window(s *state) []string {
	w, labels := min(96, s.w-8), 0
	for _, field := range f.fields {
		labels = max(labels, min(width(field.label), 28))
	}
	rows := make([]row, len(f.fields))
	for i, field := range f.fields {
		r, st, value := text(plain, "  "), plain, string(field.text)
		if i == f.at {
			r, st, value = text(tool, s.at+" "), bold, value+"_"
			for width(value) > w-labels-4 { // its end is in sight, where it is typed
				value = withoutFirst(value)
			}
		}
		rows[i] = *r.cell(&s.theme, plain, field.label, labels).add(plain, "  ").add(st, value)
	}
	var below []row
	at := f.fields[f.at]
	for _, sentence := range append(slices.Clone(at.about), strings.Join(at.options, " | ")) {
		if sentence != "" {
			below = append(below, wrapped(note, " ", sentence, w)...)
		}
	}
	below = append(below, text(dim, " "+strings.Join(at.path, ".")))
	if f.wrong != "" {
		below = append(below, append([]row{{}}, wrapped(bad, " ", f.wrong, w)...)...)
	}
	h := max(1, s.h-5-len(below))
	top := window(len(rows), f.at, h)
	rows = slices.Concat(rows[top:min(len(rows), top+h)], []row{{}}, below)
	return s.theme.window(s.screen(), f.heading, rows, 60, 0)
}

func (f *form) keys(s *state) ([]string, []string) {
	return []string{"up down", "left right", "enter", "ctrl+e", "esc"},
		[]string{s.t("choose", "選択"), s.t("next value", "次の値"), s.t("create it", "作成"), "$EDITOR", s.t("never mind", "やめる")}
}

func (f *form) press(m *Model, pressed string) tea.Cmd {
	n, field := len(f.fields), &f.fields[f.at]
	switch pressed {
	case "esc":
		m.popup = nil
	case "enter":
		m.popup = nil
		return m.createOf(f)
	case "ctrl+e":
		m.popup = nil
		return m.create(f.object())
	case "up", "shift+tab":
		f.at = (f.at + n - 1) % n
	case "down", "tab":
		f.at = (f.at + 1) % n
	case "left":
		field.turn(-1)
	case "right":
		field.turn(1)
	default:
		field.text.press(pressed, longestValue)
	}
	return nil
}

// schemaMsg brings what is needed to make a form.
type schemaMsg struct {
	of     offer
	schema []Field
}

// refusedMsg brings back a form whose object was not created.
type refusedMsg struct {
	form *form
	err  error
}

// createOf creates the object of a form, and brings the form back if that is refused.
func (m *Model) createOf(f *form) tea.Cmd {
	ref, text := f.object()
	c := m.controls.Cluster
	create := m.act(m.t("create ", "作成: ")+ref.String(), func(ctx context.Context) error { return c.Create(ctx, text) })
	return func() tea.Msg {
		msg, _ := create().(doneMsg)
		if msg.err != nil {
			return refusedMsg{f, msg.err}
		}
		return msg
	}
}

func (m *Model) refused(msg refusedMsg) {
	m.flash, m.popup = "", msg.form
	msg.form.wrong = msg.err.Error()
}
