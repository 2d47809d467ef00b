package format

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// at is the path of a value, as a linked list from the value to the root.
type at struct {
	up    *at
	name  string
	index int
}

func (p *at) field(name string) *at { return &at{up: p, name: name} }
func (p *at) item(i int) *at        { return &at{up: p, index: i} }

// String is such as spec.steps[0].try.
func (p *at) String() string {
	var parts []string
	for ; p != nil; p = p.up {
		part := p.name
		switch {
		case part == "":
			part = "[" + strconv.Itoa(p.index) + "]"
		case p.up != nil:
			part = "." + part
		}
		parts = append(parts, part)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

// in is " in spec.steps[0]", or nothing at the top.
func (p *at) in() string {
	if p == nil {
		return ""
	}
	return " in " + p.String()
}

// structure describes a struct type.
type structure struct {
	fields map[string]*member
	// names of the fields in order.
	names []string
	// position is the index of the field that holds the position; nil if there is none.
	position []int
}

// member is one field of a struct.
type member struct {
	name string
	// of is the field's type, without a pointer.
	of    reflect.Type
	index []int
	check map[string]string
}

func (f *member) has(check string) bool {
	if f == nil {
		return false
	}
	_, ok := f.check[check]
	return ok
}

// structure returns the description of a type.
func (d *decoder) structure(t reflect.Type) *structure {
	if s, ok := d.structs[t]; ok {
		return s
	}
	s := &structure{fields: map[string]*member{}}
	s.add(t, nil)
	d.structs[t] = s
	return s
}

// add adds the fields of a struct, those of embedded ones too.
func (s *structure) add(t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		if f.Type == reflect.TypeFor[Position]() && f.Name == "Position" {
			s.position = at
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && (name == "" || strings.Contains(options, "inline")) {
			s.add(f.Type, at)
			continue
		}
		if name == "-" || !f.IsExported() {
			continue
		}
		s.fields[name] = &member{name: name, of: deref(f.Type), index: at, check: parseCheck(f.Tag.Get("check"))}
		s.names = append(s.names, name)
	}
}

// deref returns the type that a pointer points to.
func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func parseCheck(tag string) map[string]string {
	if tag == "" {
		return nil
	}
	out := map[string]string{}
	for c := range strings.SplitSeq(tag, ",") {
		name, value, _ := strings.Cut(c, "=")
		out[name] = value
	}
	return out
}
