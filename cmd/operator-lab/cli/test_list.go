package cli

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/scenarios"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// planned is a test as it would be run.
type planned struct {
	Name        string            `json:"name"`
	ID          string            `json:"id,omitempty"`
	File        string            `json:"file"`
	Line        int               `json:"line"`
	Scenario    string            `json:"scenario,omitempty"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Operators   []string          `json:"operators,omitempty"`
	Variant     string            `json:"variant,omitempty"`
	Selected    bool              `json:"selected"`
	Skip        string            `json:"skip,omitempty"`
	Steps       []plannedStep     `json:"steps,omitempty"`
}

type plannedStep struct {
	Name        string             `json:"name"`
	Description string             `json:"description,omitempty"`
	Template    string             `json:"template,omitempty"`
	Operations  []plannedOperation `json:"operations"`
}

type plannedOperation struct {
	Phase       report.Phase `json:"phase"`
	Type        string       `json:"type"`
	Name        string       `json:"name,omitempty"`
	Description string       `json:"description,omitempty"`
	File        string       `json:"file"`
	Line        int          `json:"line"`
}

// plan is every test, once for each scenario of its matrix.
func (t *suite) plan(steps bool) ([]planned, error) {
	all := []planned{} // not null in JSON
	for _, loaded := range t.tests {
		one, err := t.planOf(loaded)
		if err != nil {
			return nil, err
		}
		if steps {
			one.Steps = stepsOf(loaded.Test)
		}
		if len(loaded.Test.Spec.Scenarios) == 0 {
			all = append(all, t.chosen(one))
		}
		for i, s := range loaded.Test.Spec.Scenarios {
			row := one
			row.Scenario = cmp.Or(s.Name, fmt.Sprintf("scenario #%d", i+1))
			row.Name += "/" + row.Scenario
			row.ID += "/" + row.Scenario
			all = append(all, t.chosen(row))
		}
	}
	return all, nil
}

func (t *suite) planOf(loaded *format.Loaded) (planned, error) {
	test := loaded.Test
	lab, err := loaded.Lab()
	if err != nil {
		return planned{}, err
	}
	p := planned{
		Name: loaded.Name(t.configuration.Spec.Discovery.FullName), ID: loaded.Folder + "[" + test.Name + "]",
		File: shortPath(cmp.Or(loaded.File, loaded.Folder)), Line: loaded.Line, Description: test.Spec.Description,
		Labels: test.Labels, Operators: lab.Operators, Variant: cmp.Or(t.variant, lab.Variant), Selected: true,
	}
	if len(t.operators) > 0 {
		p.Operators = t.operators
	}
	if test.Spec.Skip != nil && *test.Spec.Skip {
		p.Skip, p.Selected = "its file says so", false
	}
	return p, nil
}

// chosen marks a test that --failed leaves out.
func (t *suite) chosen(p planned) planned {
	if t.last != nil {
		p.Selected = t.last.has(p.ID) && p.Selected
	}
	return p
}

func stepsOf(test *format.Test) []plannedStep {
	var steps []plannedStep
	for i, s := range test.Spec.Steps {
		step := plannedStep{
			Name: cmp.Or(s.Name, fmt.Sprintf("step #%d", i+1)), Description: s.Description, Template: shortPath(s.TemplateFile),
		}
		for _, o := range s.Try {
			step.Operations = append(step.Operations, plannedOf(report.Try, &o))
		}
		for _, part := range []struct {
			phase      report.Phase
			operations []format.CatchFinally
		}{{report.Catch, append(s.Catch, test.Spec.Catch...)}, {report.Finally, s.Finally}, {report.Cleanup, s.Cleanup}} {
			for _, o := range part.operations {
				step.Operations = append(step.Operations, plannedOf(part.phase, o.Operation()))
			}
		}
		steps = append(steps, step)
	}
	return steps
}

func plannedOf(phase report.Phase, o *format.Operation) plannedOperation {
	return plannedOperation{
		Phase: phase, Type: o.Type(), Name: subject(o), Description: o.Description,
		File: shortPath(o.Position.File), Line: o.Position.Line,
	}
}

// subject returns the object, file or program of an operation, for a person.
func subject(o *format.Operation) string {
	switch {
	case o.Apply != nil:
		return subjectOf(o.Apply.File, o.Apply.Resource)
	case o.Create != nil:
		return subjectOf(o.Create.File, o.Create.Resource)
	case o.Update != nil:
		return subjectOf(o.Update.File, o.Update.Resource)
	case o.Patch != nil:
		return subjectOf(o.Patch.File, o.Patch.Resource)
	case o.Assert != nil:
		return subjectOf(o.Assert.File, o.Assert.Check)
	case o.Error != nil:
		return subjectOf(o.Error.File, o.Error.Check)
	case o.Delete != nil:
		if o.Delete.Ref == nil {
			return string(o.Delete.File)
		}
		return words(o.Delete.Ref.Kind, o.Delete.Ref.Name)
	case o.Script != nil:
		first, _, more := strings.Cut(strings.TrimSpace(o.Script.Content), "\n")
		if more {
			first += " …"
		}
		return first
	case o.Command != nil:
		return strings.Join(append([]string{o.Command.Entrypoint}, o.Command.Args...), " ")
	case o.Sleep != nil:
		return o.Sleep.Duration.Duration.String()
	}
	return collected(o)
}

// collected returns the object of an operation that collects something.
func collected(o *format.Operation) string {
	switch {
	case o.Describe != nil:
		return words(o.Describe.Kind, o.Describe.Name, o.Describe.Selector)
	case o.Get != nil:
		return words(o.Get.Kind, o.Get.Name, o.Get.Selector)
	case o.Wait != nil:
		return words(o.Wait.Kind, o.Wait.Name, o.Wait.Selector)
	case o.Proxy != nil:
		return words(o.Proxy.Kind, o.Proxy.Name)
	case o.Events != nil:
		return words(o.Events.Name, o.Events.Selector)
	case o.PodLogs != nil:
		return words(o.PodLogs.Name, o.PodLogs.Selector)
	}
	return ""
}

func words(all ...format.Expression) string {
	var list []string
	for _, word := range all {
		if word != "" {
			list = append(list, string(word))
		}
	}
	return strings.Join(list, " ")
}

func subjectOf[T any](file format.Expression, resource T) string {
	if file != "" {
		return string(file)
	}
	object, _ := any(resource).(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	kind, _ := object["kind"].(string)
	name, _ := metadata["name"].(string)
	return strings.TrimSpace(kind + " " + name)
}

// printTests lists the tests; in a folder without any, when none is named, the bundled ones.
func (t *suite) printTests() error {
	all, err := t.plan(false)
	if err == nil && len(all) == 0 && len(t.paths) == 0 && t.last == nil {
		all, err = t.planBundled()
	}
	if err != nil {
		return badFiles(t.io.err, err)
	}
	if t.output == "json" {
		return printJSON(t.io.out, all)
	}
	if len(all) == 0 {
		fmt.Fprintln(t.io.err, "no test is selected")
		return nil
	}
	w := tabwriter.NewWriter(t.io.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tRUN\tOPERATOR\tWHERE\tDESCRIPTION")
	for _, p := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", p.Name, p.whether(), cmp.Or(p.operators(), "-"), p.place(), cmp.Or(oneLine(p.Description), "-"))
	}
	return w.Flush()
}

// planBundled is every bundled test, by the name that it is run by.
func (t *suite) planBundled() ([]planned, error) {
	bundled, err := unpackBundled(scenarios.Bundled())
	if err != nil {
		return nil, fmt.Errorf("unpack the bundled scenarios: %w", err)
	}
	t.where.Paths = nil
	for _, name := range operators.Names() {
		t.where.Paths = append(t.where.Paths, filepath.Join(bundled, name))
	}
	if t.tests, err = format.Discover(t.where); err != nil || len(t.tests) == 0 {
		return nil, err
	}
	t.sayf("there is no test below this folder; these are the bundled ones, which are run by their names")
	var all []planned
	for _, loaded := range t.tests {
		p, err := t.planOf(loaded)
		if err != nil {
			return nil, err
		}
		p.Name = path.Dir(filepath.ToSlash(p.File))
		all = append(all, p)
	}
	return all, nil
}

// place returns the file and line of the test; one that is made of numbered manifests has a folder only.
func (p planned) place() string { return format.Position{File: p.File, Line: p.Line}.String() }

func (p planned) whether() string {
	switch {
	case p.Skip != "":
		return "skip"
	case !p.Selected:
		return "no"
	}
	return "yes"
}

// operators says which operators run, and in which variant.
func (p planned) operators() string {
	names := strings.Join(p.Operators, ",")
	if names != "" && p.Variant != "" {
		names += "/" + p.Variant
	}
	return names
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// printPlan prints what each test would do. It looks for what a run would only find out on its way.
func (t *suite) printPlan() error {
	if wrong := t.foundOnTheWay(); len(wrong) > 0 {
		return badFiles(t.io.err, wrong)
	}
	all, err := t.plan(true)
	if err != nil {
		return badFiles(t.io.err, err)
	}
	if t.output == "json" {
		return printJSON(t.io.out, all)
	}
	n := 0
	for _, p := range all {
		p.print(t.io.out)
		if p.Selected {
			n++
		}
	}
	fmt.Fprintf(t.io.err, "%d of %s would run\n", n, count(len(all), "test"))
	return nil
}

// foundOnTheWay returns what is wrong in files that a run of these tests would only read later, such as one that is missing.
func (t *suite) foundOnTheWay() format.Problems {
	ours := map[string]bool{} // folders of tests, and step templates
	for _, loaded := range t.tests {
		ours[loaded.Folder] = true
		for _, s := range loaded.Test.Spec.Steps {
			ours[s.TemplateFile] = true
		}
	}
	return slices.DeleteFunc(format.Lint(t.where), func(p format.Problem) bool {
		return p.Warning || !ours[p.File] && !ours[filepath.Dir(p.File)]
	})
}

func (p planned) print(w io.Writer) {
	fmt.Fprintf(w, "%s  %s\n", p.Name, p.place())
	if p.Description != "" {
		fmt.Fprintf(w, "  %s\n", oneLine(p.Description))
	}
	if names := p.operators(); names != "" {
		fmt.Fprintf(w, "  operator %s\n", names)
	}
	switch {
	case p.Skip != "":
		fmt.Fprintf(w, "  skipped: %s\n\n", p.Skip)
		return
	case !p.Selected:
		fmt.Fprint(w, "  left out: it did not fail\n\n")
		return
	}
	for _, s := range p.Steps {
		title := s.Name
		if s.Description != "" {
			title += ": " + oneLine(s.Description)
		}
		if s.Template != "" {
			title += "  (" + s.Template + ")"
		}
		fmt.Fprintf(w, "  %s\n", title)
		for _, o := range s.Operations {
			what := o.Type
			if o.Phase != report.Try {
				what = string(o.Phase) + " " + what
			}
			fmt.Fprintf(w, "    %4d  %-14s %s\n", o.Line, what, oneLine(o.Name))
		}
	}
	fmt.Fprintln(w)
}
