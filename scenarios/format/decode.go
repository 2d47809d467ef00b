package format

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/sandbox/nearest"
)

// decoder fills Go values from nodes and checks them strictly: unknown fields, wrong types, missing fields, and the
// rules in the check tags of the types. It continues after a problem, so that all are found at once.
//
// The tags are: required; action (exactly one of the fields with this tag must be set); enum=a|b; min=n (length of a
// list); least=n (of a number); name (of a binding); format (of output); tree (an assertion tree), object (which is an
// object).
type decoder struct {
	*reader
	structs map[reflect.Type]*structure
}

func newDecoder(file string, doc document, remarshal bool) *decoder {
	r := newReader(file, doc)
	r.remarshal = remarshal
	return &decoder{reader: r, structs: map[reflect.Type]*structure{}}
}

// value fills v from a node.
func (d *decoder) value(node *yaml.Node, v reflect.Value, f *member, in scope, path *at) {
	n, ok := d.enter(node)
	if !ok {
		return
	}
	defer d.leave(node)
	if d.special(node, v, f, in, path) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), f, in, path)
	case reflect.Struct:
		d.structValue(n, v, in, path)
	case reflect.Slice:
		d.list(n, v, f, in, path)
	case reflect.Map:
		d.mapping(n, v, in, path)
	case reflect.String:
		if s, ok := d.text(n, path); ok {
			v.SetString(s)
			d.checkText(n, s, v.Type(), f, path)
		}
	case reflect.Bool:
		d.bool(n, v, path)
	case reflect.Int, reflect.Int64:
		d.int(n, v, f, path)
	default:
		d.problem(n, "", "%s cannot be read: it is a %s", path, v.Type())
	}
}

// special fills values of types that are read in their own way.
func (d *decoder) special(node *yaml.Node, v reflect.Value, f *member, in scope, path *at) bool {
	switch to := v.Addr().Interface().(type) {
	case *metav1.Duration:
		d.duration(target(node), to, path)
	case *any:
		d.anything(node, to, f, in, path)
	case *map[string]any:
		d.object(node, to, in, path)
	case json.Unmarshaler:
		d.json(node, to, path)
	default:
		return false
	}
	return true
}

// anything fills a value of any type: an assertion tree, or a template.
func (d *decoder) anything(node *yaml.Node, to *any, f *member, in scope, path *at) {
	n := target(node)
	if f.has("object") && n.Kind != yaml.MappingNode {
		d.wrong(n, path, "an object")
		return
	}
	// The alias is open already, so what it stands for is read.
	if f.has("tree") {
		*to = d.any(n, d.tree(in))
		return
	}
	*to = floats(d.any(n, d.template(in)))
}

// object fills a resource.
func (d *decoder) object(node *yaml.Node, to *map[string]any, in scope, path *at) {
	n := target(node)
	if n.Kind != yaml.MappingNode {
		d.wrong(n, path, "an object")
		return
	}
	see := d.template(in)
	if in.plain {
		see = nil
	}
	*to, _ = d.any(n, see).(map[string]any)
	if kind, _ := (*to)["kind"].(string); kind == "" && !d.stopped {
		d.problem(n, "it needs apiVersion, kind and metadata.name", "%s has no kind", path)
	}
}

// json fills what can read JSON.
func (d *decoder) json(node *yaml.Node, to json.Unmarshaler, path *at) {
	data, err := json.Marshal(d.any(target(node), nil))
	if err == nil {
		err = to.UnmarshalJSON(data)
	}
	if err != nil && !d.stopped {
		d.problem(node, "", "%s cannot be read: %v", path, err)
	}
}

// structValue fills a struct.
func (d *decoder) structValue(n *yaml.Node, v reflect.Value, in scope, path *at) {
	if n.Kind != yaml.MappingNode {
		d.wrong(n, path, "an object")
		return
	}
	s := d.structure(v.Type())
	if s.position != nil {
		v.FieldByIndex(s.position).Set(reflect.ValueOf(d.position(n)))
	}
	o := &object{node: n, entries: d.entries(n), path: path, has: map[string]*yaml.Node{}}
	around := in
	in = inner(o.entries, in)
	for _, e := range o.entries {
		f := s.fields[e.name]
		if f == nil {
			o.unknown = true
			o.meant = append(o.meant, nearest.Name(e.name, s.names))
			d.unknown(e, s, o)
			continue
		}
		if isNull(e.value) {
			continue
		}
		o.has[e.name] = e.value
		d.value(e.value, v.FieldByIndex(f.index), f, scopeOf(v.Type(), e, o, in, around), path.field(e.name))
	}
	for _, name := range s.names {
		if s.fields[name].has("required") && o.has[name] == nil && !slices.Contains(o.meant, name) {
			d.problem(n, "", "%s is missing%s", name, path.in())
		}
	}
	d.checkObject(v, s, o)
}

// object is an object in a file that is being read.
type object struct {
	node    *yaml.Node
	entries []entry
	path    *at
	// has holds the values of the known keys that are not null.
	has map[string]*yaml.Node
	// unknown is set if there are unknown keys: a field that seems to be missing may just be misspelt.
	unknown bool
	// meant are the known names that are close to the unknown keys.
	meant []string
}

// inner returns the scope inside an object, which may set a compiler and turn templates on or off.
func inner(entries []entry, in scope) scope {
	for _, e := range entries {
		n := target(e.value)
		switch {
		case n.Kind == yaml.ScalarNode && e.name == "compiler":
			in.compiler = Compiler(n.Value)
		case n.Kind == yaml.ScalarNode && e.name == "template":
			in.plain = n.Value == "false"
		}
	}
	for _, e := range entries {
		if chosen(e) {
			in.compiler = ""
		}
	}
	return in
}

// chosen reports whether an operation of a step names a compiler. In Chainsaw that compiler also applies to the
// operations after it, so the compiler of those is not known here.
func chosen(e entry) bool {
	n := target(e.value)
	if !slices.Contains([]string{"try", "catch", "finally", "cleanup"}, e.name) || n.Kind != yaml.SequenceNode {
		return false
	}
	return slices.ContainsFunc(n.Content, func(o *yaml.Node) bool { return lookup(o, "compiler") != nil })
}

// scopeOf returns the scope of a field. The compiler of a binding applies only to its value, and a test sets the
// compiler of its namespace's template in a separate field.
func scopeOf(t reflect.Type, e entry, o *object, in, around scope) scope {
	switch t {
	case reflect.TypeFor[Binding](), reflect.TypeFor[Output]():
		if e.name != "value" {
			return around
		}
	case reflect.TypeFor[TestSpec]():
		if e.name != "namespaceTemplate" {
			break
		}
		for _, other := range o.entries {
			if other.name == "namespaceTemplateCompiler" {
				in.compiler = Compiler(target(other.value).Value)
			}
		}
	}
	return in
}

// unknown reports a key that the type does not have.
func (d *decoder) unknown(e entry, s *structure, o *object) {
	hint := suggest(e.name, s.names)
	if e.name != target(e.key).Value {
		hint = fmt.Sprintf("unquoted, YAML reads %s as %s: put it in quotes", target(e.key).Value, e.name)
	}
	switch action := d.actionWith(e.name, s, o); {
	case e.name == "use":
		hint = "a step template cannot use another"
	case s.fields["try"] != nil && d.structure(reflect.TypeFor[Operation]()).fields[e.name].has("action"):
		hint = "operations are items of try"
	case action != "":
		hint = "it belongs in " + action + ": indent it more"
	}
	d.problem(e.key, hint, "unknown field %q%s", e.name, o.path.in())
}

// actionWith returns the operation's action that has the given field, which is written beside the action; empty if
// there is none.
func (d *decoder) actionWith(name string, s *structure, o *object) string {
	for _, e := range o.entries {
		if f := s.fields[e.name]; f.has("action") && d.structure(f.of).fields[name] != nil {
			return e.name
		}
	}
	return ""
}

// list fills a slice.
func (d *decoder) list(n *yaml.Node, v reflect.Value, f *member, in scope, path *at) {
	if n.Kind != yaml.SequenceNode {
		d.wrong(n, path, "a list")
		return
	}
	if f.has("min") && len(n.Content) == 0 {
		d.problem(n, "", "%s is empty", path)
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, c := range n.Content {
		p := path.item(i)
		if isNull(c) {
			d.problem(c, "", "%s is null", p)
			continue
		}
		d.value(c, v.Index(i), nil, in, p)
	}
}

// mapping fills a map from texts.
func (d *decoder) mapping(n *yaml.Node, v reflect.Value, in scope, path *at) {
	if n.Kind != yaml.MappingNode {
		d.wrong(n, path, "an object")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range d.entries(n) {
		if isNull(e.value) {
			continue
		}
		to := reflect.New(v.Type().Elem()).Elem()
		d.value(e.value, to, nil, in, path.field(e.name))
		v.SetMapIndex(reflect.ValueOf(e.name), to)
	}
}

// text returns the string value of a node, and reports a problem if it is not a string.
func (d *decoder) text(n *yaml.Node, path *at) (string, bool) {
	if n.Kind == yaml.ScalarNode {
		if s, ok := d.scalar(n).(string); ok {
			return s, true
		}
	}
	d.wrong(n, path, "a text")
	return "", false
}

// bool fills a truth value.
func (d *decoder) bool(n *yaml.Node, v reflect.Value, path *at) {
	if n.Kind == yaml.ScalarNode {
		if b, ok := d.scalar(n).(bool); ok {
			v.SetBool(b)
			return
		}
	}
	d.wrong(n, path, "true or false")
}

// int fills a number.
func (d *decoder) int(n *yaml.Node, v reflect.Value, f *member, path *at) {
	if n.Kind == yaml.ScalarNode {
		if i, ok := d.scalar(n).(int64); ok {
			v.SetInt(i)
			if least, _ := strconv.ParseInt(f.option("least"), 10, 64); f.has("least") && i < least {
				d.problem(n, "", "%s must be at least %d, not %d", path, least, i)
			}
			return
		}
	}
	d.wrong(n, path, "a whole number")
}

// option returns the value of a check; empty if there is none.
func (f *member) option(check string) string {
	if f == nil {
		return ""
	}
	return f.check[check]
}

// duration fills a duration.
func (d *decoder) duration(n *yaml.Node, to *metav1.Duration, path *at) {
	const hint = "write it with its unit, such as 5s or 1m30s"
	if n.Kind != yaml.ScalarNode {
		d.wrong(n, path, "a duration")
		return
	}
	s, ok := d.scalar(n).(string)
	if !ok {
		d.problem(n, hint, "%s must be a duration, not %s", path, n.Value)
		return
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		d.problem(n, hint, "%s must be a duration, not %q", path, shorten(s))
		return
	}
	to.Duration = parsed
}

// wrong reports a value of the wrong type.
func (d *decoder) wrong(n *yaml.Node, path *at, want string) {
	hint := ""
	if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" {
		switch want {
		case "a text":
			hint = fmt.Sprintf("put it in quotes: %q", n.Value)
		case "true or false":
			hint = "write true or false without quotes"
		case "a whole number":
			hint = "write it without quotes"
		}
	}
	where := "the document"
	if path != nil {
		where = path.String()
	}
	d.problem(n, hint, "%s must be %s, not %s", where, want, d.describe(n))
}

// describe names the type of a node.
func (d *decoder) describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	switch v := d.scalar(n).(type) {
	case string:
		return fmt.Sprintf("the text %q", shorten(v))
	case bool:
		return strconv.FormatBool(v)
	case nil:
		return "null"
	default:
		return fmt.Sprintf("the number %v", v)
	}
}
