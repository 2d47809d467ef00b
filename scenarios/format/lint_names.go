package format

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/jmespath-community/go-jmespath/pkg/parsing"
	"github.com/kyverno/kyverno-json/pkg/core/expression"

	"github.com/operator-lab/operator-lab/sandbox/nearest"
)

// names holds the bindings that are visible at a place of a test. Where a binding's name is only known at run time,
// unknown variables are no longer reported.
type names struct {
	// test holds the bindings of the test and its scenarios; known also holds those of the step and the outputs so far.
	test, known map[string]bool
	// testOpen and open are set if there are bindings with names that are not known.
	testOpen, open bool
}

// given are the built-in bindings. Some exist only in some places.
var given = []string{
	"namespace", "client", "config", "values", "test", "step", "operation", "stdout", "stderr", "error", "timeouts",
}

// newNames returns what every step of a test knows.
func newNames(t *Test) *names {
	n := &names{known: map[string]bool{}}
	for _, name := range given {
		n.known[name] = true
	}
	for _, s := range t.Spec.Scenarios {
		n.define(s.Bindings)
	}
	n.define(t.Spec.Bindings)
	n.test, n.testOpen = n.known, n.open
	return n
}

// define adds bindings.
func (n *names) define(bindings []Binding) {
	for _, b := range bindings {
		name, ok := b.Name.literal()
		if !ok {
			n.open = true
			continue
		}
		n.known[name] = true
	}
}

// enter begins a step, with its bindings, each of which knows those before.
func (n *names) enter(s *TestStep) Problems {
	n.known, n.open = maps.Clone(n.test), n.testOpen
	var out Problems
	for _, b := range s.Bindings {
		if b.Compiler == nil && s.Compiler == nil {
			out = append(out, n.undefined(b.Position, nil, used(reflect.ValueOf(b.Value), "", nil))...)
		}
		n.define([]Binding{b})
	}
	return out
}

// operation checks what an operation uses, and adds its outputs.
func (n *names) operation(o *Operation) Problems {
	var outputs []Binding
	for _, out := range o.Outputs() {
		outputs = append(outputs, out.Binding)
	}
	// What is evaluated in which order within an operation is left out: it knows all of its own.
	inside := &names{known: maps.Clone(n.known), open: n.open}
	inside.define(o.Bindings())
	inside.define(outputs)
	out := inside.undefined(o.Position, o.Compiler, used(reflect.ValueOf(*o), "", nil))
	n.define(outputs)
	return out
}

// resource checks what an object of a file uses.
func (n *names) resource(o *Operation, r Resource, tree bool) Problems {
	inside := &names{known: maps.Clone(n.known), open: n.open}
	inside.define(o.Bindings())
	for _, out := range o.Outputs() {
		inside.define([]Binding{out.Binding})
	}
	tag := ""
	if tree {
		tag = "tree"
	}
	return inside.undefined(r.Position, o.Compiler, used(reflect.ValueOf(r.Object), tag, nil))
}

// undefined reports variables that nothing defines.
func (n *names) undefined(at Position, c *Compiler, uses []use) Problems {
	if n.open || c != nil && *c == CompilerCEL {
		return nil
	}
	local := map[string]bool{}
	for _, u := range uses {
		local[u.defines] = true
	}
	var out Problems
	said := map[string]bool{}
	for _, u := range uses {
		if u.integer != "" {
			out = append(out, at.warning(fmt.Sprintf("a field that is compared with `%s` by == or != is never equal to it", u.integer),
				"Chainsaw tells whole numbers of objects from those of expressions; write the number as the value of the field, or use <= and >="))
		}
		name := u.variable
		if name == "" || n.known[name] || local[name] || said[name] {
			continue
		}
		said[name] = true
		out = append(out, at.problem(fmt.Sprintf("$%s is not defined here", name), n.hint(name)))
	}
	return out
}

// hint suggests the nearest name.
func (n *names) hint(name string) string {
	if near := nearest.Name(name, slices.Sorted(maps.Keys(n.known))); near != "" {
		return fmt.Sprintf("did you mean $%s?", near)
	}
	return "bindings of a test and a step are seen in all of it, outputs only later in the same step"
}

// use is a variable that an expression uses, with the field that it reads from it, if any, or one that it defines for
// itself; or a whole number that it compares with a field.
type use struct{ variable, field, defines, integer string }

// UsesValue reports whether an expression of the step reads a field of $values, such as answer in $values.answer.
func (s *TestStep) UsesValue(field string) bool {
	return slices.ContainsFunc(used(reflect.ValueOf(*s), "", nil), func(u use) bool { return u.variable == "values" && u.field == field })
}

// used collects the variables in all expressions of a value: in strings of type Expression, and in values of any type,
// which are assertion trees if the tag says so.
func used(v reflect.Value, tag string, out []use) []use {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return used(v.Elem(), tag, out)
		}
	case reflect.Interface:
		if !v.IsNil() {
			return used(v.Elem(), tag, out)
		}
	case reflect.Struct:
		return usedStruct(v, out)
	case reflect.Slice:
		for i := range v.Len() {
			out = used(v.Index(i), tag, out)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if strings.Contains(tag, "tree") && key.Kind() == reflect.String {
				out = usedTree(key.String(), out)
			}
			out = used(v.MapIndex(key), tag, out)
		}
	case reflect.String:
		return usedText(v.String(), tag, out)
	}
	return out
}

// usedStruct collects the variables in the fields that may contain expressions.
func usedStruct(v reflect.Value, out []use) []use {
	if isPlain(v) {
		return out
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch f.Type.Kind() {
		case reflect.String:
			if f.Type != reflect.TypeFor[Expression]() {
				continue
			}
		case reflect.Bool, reflect.Int, reflect.Int64:
			continue
		case reflect.Slice:
			// Arguments of programs are no expressions.
			if f.Type.Elem().Kind() == reflect.String {
				continue
			}
		}
		if f.Type == reflect.TypeFor[Position]() || !f.IsExported() {
			continue
		}
		out = used(v.Field(i), f.Tag.Get("check"), out)
	}
	return out
}

// isPlain reports whether a struct uses CEL, or holds an object that is not a template.
func isPlain(v reflect.Value) bool {
	if c := v.FieldByName("Compiler"); c.IsValid() && !c.IsNil() && c.Elem().String() == string(CompilerCEL) {
		return true
	}
	t := v.FieldByName("Template")
	return t.IsValid() && t.Kind() == reflect.Pointer && !t.IsNil() && !t.Elem().Bool()
}

func usedText(s, tag string, out []use) []use {
	if strings.Contains(tag, "tree") {
		return usedTree(s, out)
	}
	if c, statement, ok := Expression(s).Parse(); ok && c != CompilerCEL {
		return usedStatement(statement, out)
	}
	return out
}

func usedTree(s string, out []use) []use {
	e := expression.Parse(s)
	out = append(out, use{defines: e.ForeachName}, use{defines: e.Binding})
	if e.Compiler != "default" && e.Compiler != string(CompilerJP) {
		return out
	}
	return usedStatement(e.Statement, out)
}

func usedStatement(statement string, out []use) []use {
	if len(statement) > maxExpression || !strings.ContainsAny(statement, "$`") {
		return out
	}
	node, err := parsing.NewParser().Parse(statement)
	if err != nil {
		return out
	}
	return usedNode(node, out)
}

// usedNode looks for variables in a syntax tree.
func usedNode(node parsing.ASTNode, out []use) []use {
	name, _ := node.Value.(string)
	switch node.NodeType {
	case parsing.ASTVariable:
		out = append(out, use{variable: strings.TrimPrefix(name, "$")})
	case parsing.ASTSubexpression:
		if of, field := node.Children[0], node.Children[1]; of.NodeType == parsing.ASTVariable && field.NodeType == parsing.ASTField {
			variable, _ := of.Value.(string)
			name, _ := field.Value.(string)
			return append(out, use{variable: strings.TrimPrefix(variable, "$"), field: name})
		}
	case parsing.ASTBinding:
		out = append(out, defined(node)...)
	case parsing.ASTComparator:
		out = append(out, compared(node)...)
	}
	for _, c := range node.Children {
		out = usedNode(c, out)
	}
	return out
}

// compared returns the whole number that an expression compares for equality with a field of the object that it is about.
// There whole numbers are int64, and those of expressions float64, which are never equal. Numbers that functions return and
// those in variables may be float64.
func compared(node parsing.ASTNode) []use {
	if node.Value != parsing.TOKEQ && node.Value != parsing.TOKNE {
		return nil
	}
	for i, c := range node.Children {
		number, is := c.Value.(float64)
		if c.NodeType == parsing.ASTLiteral && is && number == math.Trunc(number) && isField(node.Children[1-i]) {
			return []use{{integer: strconv.FormatFloat(number, 'f', -1, 64)}}
		}
	}
	return nil
}

// isField reports whether a syntax tree is a field, or one of a field, and so on.
func isField(node parsing.ASTNode) bool {
	switch node.NodeType {
	case parsing.ASTField:
		return true
	case parsing.ASTSubexpression:
		return isField(node.Children[0]) && isField(node.Children[1])
	}
	return false
}

// defined returns the variable that "let $name = …" defines: the name is the first child.
func defined(node parsing.ASTNode) []use {
	if len(node.Children) == 0 {
		return nil
	}
	name, _ := node.Children[0].Value.(string)
	return []use{{defines: strings.TrimPrefix(name, "$")}}
}
