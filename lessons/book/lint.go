package book

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// Rules hold what the linter needs besides the lessons.
type Rules struct {
	// Operator returns an error for an operator that a lesson cannot run. Default: all operators are accepted.
	Operator func(Operator) error
	// Lessons are the names of further lessons that texts may mention.
	Lessons []string
}

// Reserved are arguments of 'operator-lab lesson' that are not names of lessons.
var Reserved = []string{"answer", "check", "help", "hint", "list", "next", "reset", "shell", "solution", "undo", "verify"}

// Lint returns all problems of the lessons at the top of a file system, in the order of the files. It does not follow
// links that lead out of them.
func Lint(fsys fs.FS, r Rules) []format.Problem {
	places, wrong := foldersIn(fsys)
	return lint(places, wrong, r)
}

// LintFolders does the same for folders of the operating system, each of one lesson or of several. Texts may mention
// lessons in the same parent folder, which must have other numbers.
func LintFolders(paths []string, r Rules) []format.Problem {
	places, wrong := foldersAt(paths)
	return lint(places, wrong, r)
}

func lint(places []place, wrong format.Problems, r Rules) []format.Problem {
	around := neighbours(places)
	known := slices.Clone(r.Lessons)
	for _, at := range around {
		if number, id, ok := split(at.name); ok {
			known = append(known, id, at.name, fmt.Sprint(number), at.name[:2])
		}
	}
	for _, at := range places {
		l, found := readLesson(at)
		c := &linter{place: at, rules: r, lesson: l, known: known, wrong: found}
		c.all()
		wrong = append(wrong, c.wrong...)
	}
	for _, p := range sameNames(around) {
		// Problems of the neighbours themselves are not reported.
		if slices.ContainsFunc(places, func(at place) bool { return at.folder == p.File }) {
			wrong = append(wrong, p)
		}
	}
	return wrong.Sorted()
}

// neighbours returns the lessons, preceded by the other lessons in the same parent folders.
func neighbours(places []place) []place {
	var out []place
	seen := map[string]bool{}
	for _, at := range places {
		parent := filepath.Join(at.folder, "..")
		if at.base != nil || seen[parent] {
			continue
		}
		seen[parent] = true
		entries, err := os.ReadDir(parent)
		if err != nil {
			continue // an unreadable neighbour is ignored
		}
		for _, e := range entries {
			other, err := placeAt(filepath.Join(parent, e.Name()))
			if err == nil && e.IsDir() && isLesson(other, other.name) && !slices.ContainsFunc(places, other.is) {
				out = append(out, other)
			}
		}
	}
	return append(out, places...)
}

// is reports whether two places are the same folder of the operating system, even if they were given by different
// names.
func (p place) is(other place) bool {
	a, err := filepath.Abs(p.folder)
	b, err2 := filepath.Abs(other.folder)
	return err == nil && err2 == nil && a == b
}

// linter checks one lesson, as far as it could be read.
type linter struct {
	place
	rules  Rules
	lesson *Lesson
	// known are names of lessons.
	known []string
	wrong format.Problems
}

func (c *linter) all() {
	c.names()
	for _, t := range c.lesson.Tasks {
		c.task(t)
	}
	for _, in := range Languages {
		c.text(in)
	}
	c.inStep()
}

func (c *linter) problem(file string, line int, hint, message string, args ...any) {
	c.wrong = append(c.wrong, format.Problem{File: file, Line: line, Message: fmt.Sprintf(message, args...), Hint: hint})
}

func (c *linter) warning(file string, line int, hint, message string, args ...any) {
	c.problem(file, line, hint, message, args...)
	c.wrong[len(c.wrong)-1].Warning = true
}

// names checks the names that have a meaning elsewhere.
func (c *linter) names() {
	if slices.Contains(Reserved, c.lesson.ID) {
		c.problem(c.folder, 0, "choose another name", "'operator-lab lesson %s' is no lesson", c.lesson.ID)
	}
	straight := func(t *Task) bool { return t.Test.File != "" && len(t.Wrong) == 0 }
	if n := len(c.lesson.Tasks); n > 0 && len(slices.DeleteFunc(slices.Clone(c.lesson.Tasks), straight)) == 0 {
		c.warning(c.file(metadataFile), 0, "think of what learners will do, and write a test wrong-<id> for it", "no wrong turn is known")
	}
	for _, o := range c.lesson.Operators {
		if c.rules.Operator == nil || o.Name == "" {
			continue
		}
		if err := c.rules.Operator(o); err != nil {
			c.problem(o.Position.File, o.Position.Line, "", "operator %q: %v", o.Name, err)
		}
	}
}

// task checks the tests of a task.
func (c *linter) task(t *Task) {
	if t.Test.File == "" {
		return // it could not be read
	}
	c.wrong = append(c.wrong, format.Lint(format.Discovery{FS: c.base, Paths: []string{t.Test.File}})...)
	c.settled(t)
	for _, check := range t.Checks() {
		step := &check.Test.Test.Spec.Steps[0]
		c.looks(step)
		c.described(t, step, check)
	}
	for _, w := range t.Wrong {
		see := w.See().Test.Spec.Steps
		for i := range see {
			c.looks(&see[i])
		}
	}
	c.answered(t)
}

// settled reports a setup that does not wait for the effect of its writes.
func (c *linter) settled(t *Task) {
	steps := t.Setup().Test.Spec.Steps
	if len(steps) == 0 {
		return
	}
	last := steps[len(steps)-1]
	if n := len(last.Try); n > 0 && writes(&last.Try[n-1]) {
		c.warning(last.Position.File, last.Position.Line, "end it with an assert: the task begins when all has come true",
			"the setup does not wait until it is done")
	}
}

// writes reports whether an operation only writes. A program may wait by itself.
func writes(o *format.Operation) bool {
	return o.Apply != nil || o.Create != nil || o.Patch != nil || o.Update != nil
}

func isAssert(o *format.Operation) bool { return o.Assert != nil || o.Error != nil }

// looks checks that a step only reads, because it is repeated.
func (c *linter) looks(s *format.TestStep) {
	asserts := false
	for i := range s.Try {
		o := &s.Try[i]
		switch asserts = asserts || isAssert(o); {
		case isAssert(o):
		case o.Script != nil || o.Command != nil:
			asserts = true
			c.warning(o.Position.File, o.Position.Line, "use an assert or an error if they can tell it",
				"the step %q starts a program each time the cluster changes", s.Name)
		default:
			c.problem(o.Position.File, o.Position.Line, "use assert and error: it is looked at again and again", "%s in the step %q", o.Type(), s.Name)
		}
	}
	if !asserts {
		c.problem(s.Position.File, s.Position.Line, "", "the step %q asserts nothing", s.Name)
	}
}

// mostGoal is the maximum width of a goal, so that it fits on the smallest screen.
const mostGoal = 76

// described checks that the goal of a check is described in both languages.
func (c *linter) described(t *Task, s *format.TestStep, check Check) {
	at := s.Position
	if strings.TrimSpace(s.Description) == "" {
		c.problem(at.File, at.Line, "write the goal as its description", "the step %q has no description", s.Name)
	}
	if t.japanese[s.Name] == "" {
		c.problem(at.File, at.Line, "write the annotation operator-lab.dev/ja."+format.StepKey(s.Name), "the step %q has no description in Japanese", s.Name)
	}
	for _, in := range Languages {
		if n := displaywidth.String(check.Description[in]); n > mostGoal {
			c.warning(at.File, at.Line, fmt.Sprintf("up to %d columns are seen whole", mostGoal), "the description of %q (%s) is %d columns wide", s.Name, in, n)
		}
	}
}

// answered checks that there is an answer if there is a question, and that the checks verify it.
func (c *linter) answered(t *Task) {
	asked := false
	for _, in := range Languages {
		if c.lesson.texts[in].document == nil {
			return // a text that could not be read may have a question
		}
		asked = asked || t.Question(in) != ""
	}
	uses := slices.ContainsFunc(t.Checks(), Check.JudgesAnswer)
	switch {
	case asked && t.Answer == "":
		c.problem(t.at.File, t.at.Line, "write answer: \"…\" beside its id, for those who verify the lesson", "the task %q has a question and no answer", t.ID)
	case !asked && t.Answer != "":
		c.problem(t.at.File, t.at.Line, "", "the task %q has an answer and no question", t.ID)
	}
	switch {
	case asked && !uses:
		c.problem(t.Test.File, t.Test.Line, "compare it with what is in the cluster, as ($values.answer)", "no check of %q looks at the answer", t.ID)
	case !asked && uses:
		c.problem(t.Test.File, t.Test.Line, "", "a check of %q looks at an answer, and there is no question", t.ID)
	}
}
