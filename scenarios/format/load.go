package format

import (
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The API versions of Chainsaw's kinds.
const (
	V1alpha1 = "chainsaw.kyverno.io/v1alpha1"
	V1alpha2 = "chainsaw.kyverno.io/v1alpha2"
)

// Loaded is one document of a file of tests, or a folder of numbered manifests, which is a test too.
type Loaded struct {
	// Test is never nil. If Err is set, Test holds the part that could be read, often its name.
	Test *Test
	// File is the file of the document; empty for a folder of numbered manifests.
	File string
	// Folder is the folder of the test. Files that it names are relative to it.
	Folder string
	// FS is the file system of File and Folder; nil: the operating system's.
	FS fs.FS
	// Line is the line at which the document begins.
	Line int
	// Err says why the test cannot be run; it is [Problems]. Other documents of the file are not affected.
	Err error

	// annotations holds the positions of the annotations' keys.
	annotations map[string]Position
}

// loader loads tests and the step templates that they use.
type loader struct {
	source
	remarshal bool
	scope     scope
	// templates that were loaded, by file and the compiler of the step that uses them.
	templates map[templateKey]*loadedTemplate
}

type templateKey struct {
	file  string
	scope scope
}

type loadedTemplate struct {
	template *StepTemplate
	err      Problems
}

// newLoader returns a loader. The Discovery holds the settings that it takes from the configuration.
func newLoader(d Discovery) *loader {
	compiler := d.Compiler
	if compiler == "" {
		compiler = CompilerJP
	}
	return &loader{
		source: source{d.FS}, remarshal: d.Remarshal,
		scope:     scope{compiler: compiler, plain: d.NoTemplating},
		templates: map[templateKey]*loadedTemplate{},
	}
}

// tests loads a file of tests.
func (l *loader) tests(file, folder string) []*Loaded {
	bad := func(line int, err error) *Loaded {
		return &Loaded{Test: &Test{}, File: file, Folder: folder, FS: l.FS, Line: line, Err: err}
	}
	data, err := l.read(file)
	if err != nil {
		return []*Loaded{bad(0, problems(file, err))}
	}
	docs, wrong := parse(file, data)
	var out []*Loaded
	for _, doc := range docs {
		if doc.root == nil {
			// Its problem is the next of those that the parser found, which are in order.
			out = append(out, bad(doc.line, wrong[:1:1]))
			wrong = wrong[1:]
			continue
		}
		out = append(out, l.test(file, folder, doc))
	}
	if len(wrong) > 0 {
		out = append(out, bad(0, wrong))
	}
	if len(out) == 0 {
		p := Problem{File: file, Message: "there is no test in it", Hint: "operator-lab new scenario writes one to begin with"}
		out = append(out, bad(0, Problems{p}))
	}
	return out
}

// problems makes Problems of the error of reading a file.
func problems(file string, err error) Problems {
	if p, ok := err.(Problem); ok { //nolint:errorlint // it is just made by the reading functions
		return Problems{p}
	}
	return Problems{{File: file, Message: err.Error()}}
}

// test loads one document.
func (l *loader) test(file, folder string, doc document) *Loaded {
	out := &Loaded{Test: &Test{}, File: file, Folder: folder, FS: l.FS, Line: doc.line}
	d := newDecoder(file, doc, l.remarshal)
	if d.kind(doc.root, "Test", V1alpha1) {
		d.value(doc.root, reflect.ValueOf(out.Test).Elem(), nil, l.scope, nil)
		out.annotations = d.meta(doc.root, &out.Test.ObjectMeta)
	}
	found := d.problems
	for i := range out.Test.Spec.Steps {
		found = append(found, l.use(&out.Test.Spec.Steps[i], &out.Test.Spec, folder)...)
	}
	out.Err = found.sorted().asError()
	return out
}

// kind checks the kind of a document before its other fields, which would be reported as unknown if it had another
// kind.
func (d *decoder) kind(root *yaml.Node, kind string, versions ...string) bool {
	if root.Kind != yaml.MappingNode {
		d.wrong(root, nil, "an object")
		return false
	}
	known := fmt.Sprintf("apiVersion: %s and kind: %s are wanted", versions[len(versions)-1], kind)
	for _, want := range []struct {
		name   string
		values []string
	}{{"apiVersion", versions}, {"kind", []string{kind}}} {
		name, n := want.name, lookup(root, want.name)
		switch {
		case n == nil:
			d.problem(root, known, "%s is missing", name)
		case !slices.Contains(want.values, target(n).Value):
			d.problem(n, known, "%s cannot be %q", name, shorten(target(n).Value))
		default:
			continue
		}
		return false
	}
	return true
}

// lookup returns the value of a key as it is written, without merged keys.
func lookup(n *yaml.Node, path ...string) *yaml.Node {
	for _, name := range path {
		if n == nil || target(n).Kind != yaml.MappingNode {
			return nil
		}
		n = lookupOne(target(n), name)
	}
	return n
}

func lookupOne(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if target(n.Content[i]).Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// meta checks names, labels and annotations as an API server does, and returns where the annotations are.
func (d *decoder) meta(root *yaml.Node, meta *metav1.ObjectMeta) map[string]Position {
	if d.stopped {
		return nil
	}
	top := field.NewPath("metadata")
	at := lookup(root, "metadata")
	if at == nil {
		at = root
	}
	switch name := lookup(root, "metadata", "name"); {
	case meta.Name == "" && meta.GenerateName == "":
		d.problem(at, "", "metadata.name is missing")
	case meta.Name != "" && name != nil:
		for _, wrong := range validation.NameIsDNSSubdomain(meta.Name, false) {
			d.problem(name, lowerCase(wrong), "metadata.name cannot be %q", shorten(meta.Name))
		}
	}
	out := map[string]Position{}
	for i, n := range []*yaml.Node{lookup(root, "metadata", "labels"), lookup(root, "metadata", "annotations")} {
		if n == nil || target(n).Kind != yaml.MappingNode {
			continue
		}
		n = target(n)
		for j := 0; j+1 < len(n.Content); j += 2 {
			key, value := n.Content[j], target(n.Content[j+1]).Value
			if i == 1 {
				out[target(key).Value] = d.position(key)
				d.list1(key, validation.ValidateAnnotations(map[string]string{target(key).Value: value}, top.Child("annotations")))
				continue
			}
			d.list1(key, metav1validation.ValidateLabels(map[string]string{target(key).Value: value}, top.Child("labels")))
		}
	}
	return out
}

// list1 records the first of the errors about one key.
func (d *decoder) list1(n *yaml.Node, errs field.ErrorList) {
	if len(errs) > 0 {
		d.problem(n, lowerCase(errs[0].Detail), "%s: %v is not possible", errs[0].Field, errs[0].BadValue)
	}
}

// lowerCase lowers the first letter of a message of the API's validation that begins with an article, for use in a
// hint.
func lowerCase(s string) string {
	short, _, _ := strings.Cut(s, " (e.g.")
	if strings.HasPrefix(short, "a ") || strings.HasPrefix(short, "A ") {
		return "a" + short[1:]
	}
	return short
}

// use puts the step template that a step uses in its place.
func (l *loader) use(step *TestStep, spec *TestSpec, folder string) Problems {
	if step.Use == nil || step.Use.Template == "" {
		return nil
	}
	in := l.scope
	for _, c := range []*Compiler{spec.Compiler, step.Compiler} {
		if c != nil {
			in.compiler = *c
		}
	}
	for _, t := range []*bool{spec.Template, step.Template} {
		if t != nil {
			in.plain = !*t
		}
	}
	file := l.join(folder, step.Use.Template)
	t := l.template(file, in)
	if t.template == nil {
		if t.err[0].Line > 0 {
			return t.err
		}
		return Problems{step.Use.Position.problem(
			fmt.Sprintf("the step template %s cannot be used: %s", step.Use.Template, t.err[0].Message), t.err[0].Hint)}
	}
	s := &t.template.Spec
	step.Bindings = slices.Concat(step.Bindings, s.Bindings, step.Use.With.Bindings)
	step.Try = append(step.Try, s.Try...)
	step.Catch = append(step.Catch, s.Catch...)
	step.Finally = append(step.Finally, s.Finally...)
	step.Cleanup = append(step.Cleanup, s.Cleanup...)
	step.Use, step.TemplateFile = nil, file
	return t.err
}

// template loads a step template once.
func (l *loader) template(file string, in scope) *loadedTemplate {
	key := templateKey{file: file, scope: in}
	if t := l.templates[key]; t != nil {
		return t
	}
	t := &loadedTemplate{}
	l.templates[key] = t
	t.template, t.err = l.loadTemplate(file, in)
	return t
}

// loadTemplate loads a file with one step template. It returns the part that could be read together with the problems.
func (l *loader) loadTemplate(file string, in scope) (*StepTemplate, Problems) {
	data, err := l.read(file)
	if err != nil {
		return nil, problems(file, err)
	}
	docs, wrong := parse(file, data)
	if len(wrong) > 0 {
		return nil, wrong
	}
	if len(docs) != 1 {
		return nil, Problems{{File: file, Message: fmt.Sprintf("has %d documents, one step template is wanted", len(docs))}}
	}
	out := &StepTemplate{}
	d := newDecoder(file, docs[0], l.remarshal)
	if !d.kind(docs[0].root, "StepTemplate", V1alpha1) {
		return nil, d.problems
	}
	d.value(docs[0].root, reflect.ValueOf(out).Elem(), nil, in, nil)
	d.meta(docs[0].root, &out.ObjectMeta)
	return out, d.problems
}
