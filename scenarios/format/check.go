package format

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	bindingName  = regexp.MustCompile(`^(?:\w+|\(.+\))$`)
	outputFormat = regexp.MustCompile(`^(?:json|yaml|\(.+\))$`)
)

// checkText checks a text by its type and its tags.
func (d *decoder) checkText(n *yaml.Node, s string, t reflect.Type, f *member, path *at) {
	switch t {
	case reflect.TypeFor[Expression]():
		d.expression(n, s)
	case reflect.TypeFor[Compiler]():
		d.enum(n, s, []string{string(CompilerJP), string(CompilerCEL)}, path)
	}
	if f == nil {
		return
	}
	if f.has("enum") {
		d.enum(n, s, strings.Split(f.option("enum"), "|"), path)
	}
	if f.has("name") && !bindingName.MatchString(s) {
		d.problem(n, "a name is letters, digits and _, or an expression in parentheses", "%q is not a name of a binding", shorten(s))
	}
	if f.has("format") && !outputFormat.MatchString(s) {
		d.problem(n, "json or yaml, or an expression in parentheses", "%q is not a format", shorten(s))
	}
}

// enum checks that a string is one of the known ones.
func (d *decoder) enum(n *yaml.Node, s string, known []string, path *at) {
	if !slices.Contains(known, s) {
		d.problem(n, suggest(s, known), "%s cannot be %q", path, shorten(s))
	}
}

// checkObject checks what belongs together in an object.
func (d *decoder) checkObject(v reflect.Value, s *structure, o *object) {
	if d.stopped {
		return
	}
	switch to := v.Addr().Interface().(type) {
	case *Operation, *CatchFinally, *WaitFor:
		d.checkAction(to, s, o)
	case *TestStep:
		d.checkStep(o)
	case *Apply, *Create, *Patch, *Update, *Assert, *Error:
		d.oneOf(o, "file", "resource")
	case *Delete:
		d.oneOf(o, "file", "ref")
	case *Describe, *Events, *Get, *PodLogs, *Wait:
		if o.has["name"] != nil && o.has["selector"] != nil {
			d.problem(o.has["selector"], "leave one of them out", "name and selector exclude each other%s", o.path.in())
		}
	}
}

// checkAction checks that exactly one action is set. It accepts a wait for several things, which waits for one of them
// only; [Lint] reports it.
func (d *decoder) checkAction(to any, s *structure, o *object) {
	var all, found []string
	for _, name := range s.names {
		if !s.fields[name].has("action") {
			continue
		}
		all = append(all, name)
		if o.has[name] != nil {
			found = append(found, name)
		}
	}
	_, wait := to.(*WaitFor)
	switch {
	case len(found) == 0 && !o.unknown:
		d.problem(o.node, "one of "+strings.Join(all, ", "), "nothing to do%s", o.path.in())
	case len(found) > 1 && !wait:
		d.problem(o.node, "make each an item of the list", "%s are in one operation%s", strings.Join(found, " and "), o.path.in())
	}
}

// checkStep checks that a step that uses a template has no operations of its own.
func (d *decoder) checkStep(o *object) {
	if o.has["use"] == nil {
		return
	}
	for _, name := range []string{"try", "catch", "finally", "cleanup"} {
		if o.has[name] != nil {
			d.problem(o.node, "make it a step of its own", "use and %s exclude each other%s", name, o.path.in())
		}
	}
}

// oneOf checks that exactly one of two fields is set.
func (d *decoder) oneOf(o *object, a, b string) {
	switch {
	case o.has[a] != nil && o.has[b] != nil:
		d.problem(o.has[b], "leave one of them out", "%s and %s exclude each other%s", a, b, o.path.in())
	case o.has[a] == nil && o.has[b] == nil && !o.unknown:
		d.problem(o.node, "", "%s or %s is missing%s", a, b, o.path.in())
	case o.has[a] != nil && target(o.has[a]).Value == "" && target(o.has[a]).Kind == yaml.ScalarNode:
		d.problem(o.has[a], "", "%s is empty%s", a, o.path.in())
	}
}
