package book

import (
	"maps"
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// Task is one task of a lesson.
type Task struct {
	// ID is the task's ID, which is also the name of its file and its test.
	ID string
	// Answer is the right answer to its question; empty if there is no question.
	Answer string
	// Removes are objects, as kind and name, that the learner has to delete. Their kinds are in [RequiredKinds].
	Removes []string
	// Test has the setup, the solution and the checks.
	Test *format.Loaded
	// Wrong are the known wrong turns.
	Wrong []*Wrong

	// at is the position in lesson.yaml.
	at    format.Position
	texts map[Language]*taskText
	// japanese maps the name of a step to its Japanese description.
	japanese map[string]string
}

// RequiredKinds are the kinds whose objects every task needs. The learner is told when one of them is gone, unless the
// task removes it.
var RequiredKinds = []string{"Namespace", "CustomResourceDefinition", "Operator"}

// Wrong is a wrong turn: something that a learner may do and that does not solve the task.
type Wrong struct {
	// ID is the wrong turn's ID.
	ID string
	// Test has the steps that take it and detect it.
	Test *format.Loaded
}

// Check is one goal of a task.
type Check struct {
	// Name is the name of its step.
	Name string
	// Description is the goal in words.
	Description map[Language]string
	// Test is a test with only that step.
	Test *format.Loaded
}

// JudgesAnswer reports whether the check uses the learner's answer.
func (c Check) JudgesAnswer() bool {
	return slices.ContainsFunc(c.Test.Test.Spec.Steps, func(s format.TestStep) bool { return s.UsesValue("answer") })
}

// The prefixes of the names of steps.
const (
	setupStep    = "setup"
	solutionStep = "solution"
	checkStep    = "check"
	doStep       = "do"
	seeStep      = "see"
)

// Title returns the task's title.
func (t *Task) Title(in Language) string { return t.texts[in].title.text }

// Text returns what to do, in Markdown.
func (t *Task) Text(in Language) string { return t.texts[in].body.text }

// Question returns what the learner should predict, in Markdown; empty if there is none.
func (t *Task) Question(in Language) string { return t.texts[in].question.text }

// Hints returns the hints in Markdown, the weakest first.
func (t *Task) Hints(in Language) []string {
	var out []string
	for _, h := range t.texts[in].hints {
		out = append(out, h.text)
	}
	return out
}

// Message returns the message for a wrong turn, in Markdown.
func (t *Task) Message(wrong string, in Language) string {
	for _, w := range t.texts[in].wrong {
		if w.id == wrong {
			return w.text
		}
	}
	return ""
}

// Solution returns what the solution does and why, in Markdown.
func (t *Task) Solution(in Language) string { return t.texts[in].solution.text }

// Done returns what has happened and why, in Markdown.
func (t *Task) Done(in Language) string { return t.texts[in].done.text }

// Description returns the description of a step; for a check, the goal.
func (t *Task) Description(step string, in Language) string {
	if text := t.japanese[step]; in == Japanese && text != "" {
		return text
	}
	for i := range t.Test.Test.Spec.Steps {
		if s := &t.Test.Test.Spec.Steps[i]; s.Name == step {
			return strings.TrimSpace(s.Description)
		}
	}
	return ""
}

// Setup returns the test that prepares the start of the task. It may have no steps.
func (t *Task) Setup() *format.Loaded { return part(t.Test, setupStep) }

// Solve returns the test that does what the learner has to do.
func (t *Task) Solve() *format.Loaded { return part(t.Test, solutionStep) }

// Checks returns the goals in order.
func (t *Task) Checks() []Check {
	var out []Check
	for i := range t.Test.Test.Spec.Steps {
		s := &t.Test.Test.Spec.Steps[i]
		if !strings.HasPrefix(s.Name, checkStep) {
			continue
		}
		c := Check{Name: s.Name, Description: map[Language]string{}}
		for _, language := range Languages {
			c.Description[language] = t.Description(s.Name, language)
		}
		c.Test = with(t.Test, func(other *format.TestStep) bool { return other.Name == s.Name })
		out = append(out, c)
	}
	return out
}

// Do returns the test that takes the wrong turn.
func (w *Wrong) Do() *format.Loaded { return part(w.Test, doStep) }

// See returns the test that passes if the learner has taken the wrong turn.
func (w *Wrong) See() *format.Loaded { return part(w.Test, seeStep) }

// part returns a test with the steps whose names begin with a prefix.
func part(of *format.Loaded, prefix string) *format.Loaded {
	return with(of, func(s *format.TestStep) bool { return strings.HasPrefix(s.Name, prefix) })
}

// with returns a test with some of the steps. Everything else is as in the whole test, so that the steps run in the
// same way.
func with(of *format.Loaded, keep func(*format.TestStep) bool) *format.Loaded {
	test := *of.Test
	test.Spec.Steps = nil
	for i := range of.Test.Spec.Steps {
		if s := &of.Test.Spec.Steps[i]; keep(s) {
			test.Spec.Steps = append(test.Spec.Steps, *s)
		}
	}
	test.Annotations = maps.Clone(test.Annotations)
	// An annotation for a step that was removed would be an error.
	maps.DeleteFunc(test.Annotations, func(key, _ string) bool { return !about(&test, key) })
	out := *of
	out.Test = &test
	return &out
}

// about reports whether an annotation concerns the whole test or one of its steps.
func about(test *format.Test, annotation string) bool {
	for _, prefix := range []string{"operator-lab.dev/ja.", "operator-lab.dev/stays."} {
		step, ok := strings.CutPrefix(annotation, prefix)
		if !ok {
			continue
		}
		for i := range test.Spec.Steps {
			if format.StepKey(test.Spec.Steps[i].Name) == format.StepKey(step) {
				return true
			}
		}
		return false
	}
	return true
}
