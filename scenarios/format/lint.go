package format

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Lint finds all problems of tests, in the order of the files: those that keep them from being loaded, and those that
// are certain to fail at run time. A path of a file may also be a step template or a configuration. Include, Exclude,
// Selectors and the shard are ignored. Nothing is downloaded.
func Lint(d Discovery) []Problem {
	var (
		out   Problems
		paths []string
	)
	l := newLoader(d)
	for _, p := range d.Paths {
		found, other := l.lintOther(p)
		if out = append(out, found...); !other {
			paths = append(paths, p)
		}
	}
	if len(paths) == 0 && len(d.Paths) > 0 {
		return out.sorted()
	}
	d.Paths = paths
	tests, err := l.discover(d)
	if err != nil {
		return append(out, err.(Problems)...).sorted() //nolint:errorlint // it is what discover returns
	}
	for _, t := range tests {
		if t.Err != nil {
			out = append(out, t.Err.(Problems)...) //nolint:errorlint // it is what a Loaded has
		}
		out = append(out, l.lint(t)...)
	}
	return append(out, sameNames(tests)...).sorted()
}

// lintOther checks a file that is named explicitly and is not a file of tests. It reports false for a file of tests or
// a folder.
func (l *loader) lintOther(file string) (Problems, bool) {
	data, kind := l.kindOf(file)
	switch kind {
	case "StepTemplate":
		_, wrong := l.loadTemplate(file, scope{})
		return wrong, true
	case "Configuration":
		_, wrong := readConfiguration(file, data)
		return wrong, true
	}
	return nil, false
}

// kindOf returns the kind of the first document of a file; empty for a folder and for a file that cannot be read.
func (l *loader) kindOf(file string) ([]byte, string) {
	info, err := l.stat(file)
	if err != nil || info.IsDir() {
		return nil, ""
	}
	data, err := l.read(file)
	docs, _ := parse(file, data)
	if err != nil || len(docs) == 0 || docs[0].root == nil {
		return nil, ""
	}
	kind := lookup(docs[0].root, "kind")
	if kind == nil {
		return nil, ""
	}
	return data, target(kind).Value
}

// lint checks one test, as far as it could be read.
func (l *loader) lint(t *Loaded) Problems {
	var out Problems
	if _, err := readLab(t); err != nil {
		out = append(out, err.(Problems)...) //nolint:errorlint // it is what readLab returns
	}
	out = append(out, sameSteps(t)...)
	c := &testLint{loader: l, Loaded: t, names: newNames(t.Test)}
	for i := range t.Test.Spec.Steps {
		c.step(&t.Test.Spec.Steps[i])
	}
	for i := range t.Test.Spec.Catch {
		c.operation(t.Test.Spec.Catch[i].Operation(), nil)
	}
	return append(out, c.wrong...)
}

// sameNames warns of tests with the same name in one folder: reports cannot tell them apart.
func sameNames(tests []*Loaded) Problems {
	var out Problems
	first := map[string]*Loaded{}
	for _, t := range tests {
		key := t.Folder + "\x00" + t.Test.Name
		if t.Test.Name == "" {
			continue
		}
		if f := first[key]; f != nil {
			out = append(out, Problem{
				File: t.File, Line: t.Line, Warning: true,
				Message: fmt.Sprintf("a second test %q in this folder", t.Test.Name),
				Hint:    fmt.Sprintf("the first is in line %d of %s; reports cannot tell them apart", f.Line, f.File),
			})
			continue
		}
		first[key] = t
	}
	return out
}

// sameSteps warns of steps with the same name.
func sameSteps(t *Loaded) Problems {
	var out Problems
	first := map[string]Position{}
	for i := range t.Test.Spec.Steps {
		s := &t.Test.Spec.Steps[i]
		if s.Name == "" {
			continue
		}
		if at, twice := first[s.Name]; twice {
			out = append(out, s.Position.warning(fmt.Sprintf("a second step %q", s.Name), fmt.Sprintf("the first is in line %d", at.Line)))
			continue
		}
		first[s.Name] = s.Position
	}
	return out
}

// problem returns a problem at the position.
func (p Position) problem(message, hint string) Problem {
	return Problem{File: p.File, Line: p.Line, Column: p.Column, Message: message, Hint: hint}
}

func (p Position) warning(message, hint string) Problem {
	out := p.problem(message, hint)
	out.Warning = true
	return out
}

// testLint checks what the operations of a test do.
type testLint struct {
	*loader
	*Loaded
	names *names
	// scripts are the scripts and commands so far: they may create the files that they mention.
	scripts []string
	wrong   Problems
}

func (c *testLint) add(p Problem) { c.wrong = append(c.wrong, p) }

// step checks the operations of a step.
func (c *testLint) step(s *TestStep) {
	c.wrong = append(c.wrong, c.names.enter(s)...)
	for i := range s.Try {
		c.operation(&s.Try[i], s)
	}
	for _, list := range [][]CatchFinally{s.Catch, s.Finally, s.Cleanup} {
		for i := range list {
			c.operation(list[i].Operation(), s)
		}
	}
}

// operation checks one operation. The step is nil for operations of the test's own catch.
func (c *testLint) operation(o *Operation, s *TestStep) {
	file, template, kind := reference(o)
	literal := kind == toWrite && c.within(o, s, template).plain
	if s != nil {
		if wrong := c.names.operation(o); !literal {
			c.wrong = append(c.wrong, wrong...)
		}
	}
	switch {
	case o.Script != nil:
		c.script(o)
	case o.Command != nil:
		c.command(o)
	case o.Wait != nil:
		c.wait(o)
	}
	if file != "" {
		c.reference(o, s, file, template, kind)
	}
}

// script checks a script.
func (c *testLint) script(o *Operation) {
	c.scripts = append(c.scripts, o.Script.Content)
	if shell := o.Script.Shell; shell != nil && strings.Contains(strings.TrimSpace(*shell), " ") && !strings.Contains(*shell, "/") {
		c.add(o.Position.problem(fmt.Sprintf("there is no shell %q", *shell), "its arguments belong in shellArgs"))
	}
}

// command checks a command.
func (c *testLint) command(o *Operation) {
	entry := o.Command.Entrypoint
	c.scripts = append(c.scripts, entry+" "+strings.Join(o.Command.Args, " "))
	if strings.Contains(strings.TrimSpace(entry), " ") && !strings.Contains(entry, "/") {
		c.add(o.Position.problem(fmt.Sprintf("there is no program %q", entry), "its arguments belong in args"))
	}
}

// wait warns of a wait for several things.
func (c *testLint) wait(o *Operation) {
	w := o.Wait.WaitFor
	// In the order in which Chainsaw prefers them.
	var found []string
	for _, f := range []struct {
		name  string
		there bool
	}{{"deletion", w.Deletion != nil}, {"creation", w.Creation != nil}, {"condition", w.Condition != nil}, {"jsonPath", w.JsonPath != nil}} {
		if f.there {
			found = append(found, f.name)
		}
	}
	if len(found) > 1 {
		c.add(o.Position.warning("waits only for the "+found[0], "make a wait of its own of "+strings.Join(found[1:], " and ")))
	}
}

// What a file is read for.
const (
	nothing = iota
	toWrite
	toAssert
)

// reference returns the file that an operation reads; empty if there is none.
func reference(o *Operation) (file Expression, template *bool, kind int) {
	switch {
	case o.Apply != nil:
		return o.Apply.File, o.Apply.Template, toWrite
	case o.Create != nil:
		return o.Create.File, o.Create.Template, toWrite
	case o.Patch != nil:
		return o.Patch.File, o.Patch.Template, toWrite
	case o.Update != nil:
		return o.Update.File, o.Update.Template, toWrite
	case o.Delete != nil:
		return o.Delete.File, o.Delete.Template, toWrite
	case o.Assert != nil:
		return o.Assert.File, nil, toAssert
	case o.Error != nil:
		return o.Error.File, nil, toAssert
	}
	return "", nil, nothing
}

// reference checks a file that an operation reads.
func (c *testLint) reference(o *Operation, s *TestStep, ref Expression, template *bool, kind int) {
	file, ok := ref.literal()
	if !ok || remote(file) != nil || c.made(file) {
		return
	}
	in := c.within(o, s, template)
	r := &resourceReader{
		ResourceFiles: ResourceFiles{FS: c.Loaded.FS, Folder: c.Folder, File: file, Manifest: kind == toWrite},
		source:        c.source,
		strict:        true,
	}
	switch {
	case kind == toAssert:
		r.check = func(r *reader) func(*yaml.Node, string, bool) { return r.tree(in) }
	case !in.plain:
		r.check = func(r *reader) func(*yaml.Node, string, bool) { return r.template(in) }
	}
	resources, wrong := r.load()
	c.addReference(o, file, wrong)
	if s == nil || in.plain && kind == toWrite {
		return
	}
	for _, resource := range resources {
		c.wrong = append(c.wrong, c.names.resource(o, resource, kind == toAssert)...)
	}
}

// addReference adds the problems of a file. A missing file is a problem of the operation that names it. A key that is
// written twice is only a warning, because Chainsaw accepts it.
func (c *testLint) addReference(o *Operation, file string, wrong Problems) {
	for _, p := range wrong {
		if p.Line == 0 {
			p = o.Position.problem(fmt.Sprintf("%s: %s", file, p.Message), p.Hint)
		}
		p.Warning = p.RepeatedKey
		c.add(p)
	}
}

// made reports whether an earlier script mentions the file, and so may create it.
func (c *testLint) made(file string) bool {
	name := c.base(file)
	return slices.ContainsFunc(c.scripts, func(s string) bool { return strings.Contains(s, name) })
}

// within returns the scope of the files of an operation.
func (c *testLint) within(o *Operation, s *TestStep, template *bool) scope {
	in := c.loader.scope
	compilers, templates := []*Compiler{c.Test.Spec.Compiler}, []*bool{c.Test.Spec.Template}
	if s != nil {
		compilers, templates = append(compilers, s.Compiler), append(templates, s.Template)
		if slices.ContainsFunc(s.Try, func(o Operation) bool { return o.Compiler != nil }) {
			in.compiler = ""
			compilers = nil
		}
	}
	for _, compiler := range append(compilers, o.Compiler) {
		if compiler != nil {
			in.compiler = *compiler
		}
	}
	for _, t := range append(templates, template) {
		if t != nil {
			in.plain = !*t
		}
	}
	return in
}
