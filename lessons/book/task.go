package book

import (
	"maps"
	"strings"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// Task is something to do in a lesson.
type Task struct {
	// ID of it, which is also the name of its file and its test.
	ID string
	// Answer to its question; empty if there is no question.
	Answer string
	// Removes are objects, as kind and name, that the learner is to delete. They are of [Pillars].
	Removes []string
	// Test is all that is done and looked at: its setup, its solution and its checks.
	Test *format.Loaded
	// Wrong turns that are known.
	Wrong []*Wrong

	// at is where lesson.yaml names it.
	at    format.Position
	texts map[Language]*taskText
	// japanese are the descriptions of the steps in Japanese, by their names.
	japanese map[string]string
}

// Pillars are the kinds without whose objects nothing goes on. A learner is told when one of those is gone, unless the
// task is to remove it.
var Pillars = []string{"Namespace", "CustomResourceDefinition", "Operator"}

// Wrong is a wrong turn: something that a learner may do, and does not lead to the end of the task.
type Wrong struct {
	// ID of it.
	ID string
	// Test does it and sees it.
	Test *format.Loaded
}

// Check is one goal of a task.
type Check struct {
	// Name of its step.
	Name string
	// Description is the goal in words.
	Description map[Language]string
	// Test has that one step.
	Test *format.Loaded
}

// What the names of steps begin with.
const (
	setupStep    = "setup"
	solutionStep = "solution"
	checkStep    = "check"
	doStep       = "do"
	seeStep      = "see"
)

// Title in a language.
func (t *Task) Title(in Language) string { return t.texts[in].title.text }

// Text says what to do, in Markdown.
func (t *Task) Text(in Language) string { return t.texts[in].body.text }

// Question is what is to be predicted, in Markdown; empty if there is none.
func (t *Task) Question(in Language) string { return t.texts[in].question.text }

// Hints in rising strength, in Markdown.
func (t *Task) Hints(in Language) []string {
	var out []string
	for _, h := range t.texts[in].hints {
		out = append(out, h.text)
	}
	return out
}

// Message is what the learner is told at a wrong turn, in Markdown.
func (t *Task) Message(wrong string, in Language) string {
	for _, w := range t.texts[in].wrong {
		if w.id == wrong {
			return w.text
		}
	}
	return ""
}

// Solution says what the solution does and why, in Markdown.
func (t *Task) Solution(in Language) string { return t.texts[in].solution.text }

// Done says what just happened and why, in Markdown.
func (t *Task) Done(in Language) string { return t.texts[in].done.text }

// Description is what a step is about: of a check, its goal.
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

// Setup prepares the start of the task. It may have no steps.
func (t *Task) Setup() *format.Loaded { return part(t.Test, setupStep) }

// Solve does what the learner is to do.
func (t *Task) Solve() *format.Loaded { return part(t.Test, solutionStep) }

// Checks are the goals, in order.
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

// Do takes the wrong turn.
func (w *Wrong) Do() *format.Loaded { return part(w.Test, doStep) }

// See tells whether the learner has taken it.
func (w *Wrong) See() *format.Loaded { return part(w.Test, seeStep) }

// part is a test of those steps whose names begin with a prefix.
func part(of *format.Loaded, prefix string) *format.Loaded {
	return with(of, func(s *format.TestStep) bool { return strings.HasPrefix(s.Name, prefix) })
}

// with is a test of some of the steps. Everything else is that of the whole test, so that it runs as that would.
func with(of *format.Loaded, keep func(*format.TestStep) bool) *format.Loaded {
	test := *of.Test
	test.Spec.Steps = nil
	for i := range of.Test.Spec.Steps {
		if s := &of.Test.Spec.Steps[i]; keep(s) {
			test.Spec.Steps = append(test.Spec.Steps, *s)
		}
	}
	test.Annotations = maps.Clone(test.Annotations)
	// An annotation of a step that is left out would be a mistake.
	maps.DeleteFunc(test.Annotations, func(key, _ string) bool { return !about(&test, key) })
	out := *of
	out.Test = &test
	return &out
}

// about says whether an annotation is about a test: about all of it, or about one of its steps.
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
