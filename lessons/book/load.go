package book

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// lessonReader reads one lesson, and collects its problems.
type lessonReader struct {
	place
	lesson *Lesson
	wrong  format.Problems
}

// readLesson reads a lesson. With problems, it returns what could be read.
func readLesson(at place) (*Lesson, format.Problems) {
	r := &lessonReader{place: at, lesson: &Lesson{Folder: at.folder, FS: at.FS, texts: map[Language]*text{}}}
	r.name()
	meta := r.metadata()
	for _, in := range Languages {
		r.text(in)
	}
	for _, t := range meta.Tasks {
		r.task(t)
	}
	r.sections()
	r.files()
	return r.lesson, r.wrong
}

func (r *lessonReader) problem(file string, line int, hint, message string, args ...any) {
	r.wrong = append(r.wrong, format.Problem{File: file, Line: line, Message: fmt.Sprintf(message, args...), Hint: hint})
}

// name reads the number and the ID from the folder's name.
func (r *lessonReader) name() {
	number, id, ok := split(r.place.name)
	if !ok {
		r.problem(r.folder, 0, "two digits and a name, such as 07-run-zundoko", "%q is no name for the folder of a lesson", r.place.name)
	}
	r.lesson.Number, r.lesson.ID = number, id
}

// read returns a file of the folder. If it cannot be read, it reports a problem and returns false.
func (r *lessonReader) read(name, hint string) ([]byte, bool) {
	f, err := r.Open(name)
	if err != nil {
		r.problem(r.file(name), 0, hint, "%s", plain(err))
		return nil, false
	}
	defer f.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(f, format.MaxFileSize+1))
	if err != nil {
		r.problem(r.file(name), 0, "", "%s", plain(err))
		return nil, false
	}
	return data, true
}

// metadata reads the lesson.yaml.
func (r *lessonReader) metadata() *metadata {
	data, ok := r.read(metadataFile, newLessonHint)
	if !ok {
		return &metadata{}
	}
	m, wrong := readMetadata(r.file(metadataFile), data)
	r.wrong = append(r.wrong, wrong...)
	l := r.lesson
	l.Module, l.Habits, l.Sources, l.Operators, l.Needs = m.Module, m.Habits, m.Sources, m.Operators, m.Needs
	l.OLM, l.Nodes, l.Ask, l.Store = m.OLM, m.Nodes, m.Ask, m.Store
	if m.Phase != nil {
		l.Phase = *m.Phase
	}
	return m
}

// text reads the text of a language.
func (r *lessonReader) text(in Language) {
	name := string(in) + ".md"
	r.lesson.texts[in] = &text{file: r.file(name)}
	data, ok := r.read(name, "a lesson is written in "+allLanguages())
	if !ok {
		return
	}
	t, wrong := readText(r.file(name), data, in)
	r.lesson.texts[in] = t
	r.wrong = append(r.wrong, wrong...)
}

func allLanguages() string {
	var names []string
	for _, in := range Languages {
		names = append(names, string(in)+".md")
	}
	return strings.Join(names, " and ")
}

// task reads a task and its file.
func (r *lessonReader) task(m taskMetadata) {
	t := &Task{ID: m.ID, Answer: m.Answer, Removes: m.Removes, at: m.Position, texts: map[Language]*taskText{}}
	r.lesson.Tasks = append(r.lesson.Tasks, t)
	for _, in := range Languages {
		// An empty text instead of nil, so that callers need no check.
		if t.texts[in] = r.lesson.texts[in].task(m.ID); t.texts[in] == nil {
			t.texts[in] = &taskText{id: m.ID}
		}
	}
	t.Test = &format.Loaded{Test: &format.Test{}}
	if !taskID.MatchString(m.ID) {
		return
	}
	file := r.file(m.ID + ".yaml")
	loaded, err := format.Discover(format.Discovery{FS: r.base, Paths: []string{file}})
	if err != nil {
		r.problem(m.Position.File, m.Position.Line, "its steps are in a file of its name", "the task %q has no file %s", m.ID, file)
		return
	}
	for i, l := range loaded {
		if found, ok := l.Err.(format.Problems); ok { //nolint:errorlint // it is what a Loaded has
			r.wrong = append(r.wrong, found...)
			continue
		}
		if i == 0 {
			r.test(t, l)
		} else {
			r.wrongTurn(t, l)
		}
	}
}

// test takes the first document of a task's file.
func (r *lessonReader) test(t *Task, l *format.Loaded) {
	t.Test = l
	if l.Test.Name != t.ID {
		r.problem(l.File, l.Line, "", "the first test of the task is %q, not %q", l.Test.Name, t.ID)
	}
	r.steps(l, true, setupStep, solutionStep, checkStep)
	r.plays(l)
	says, _ := l.Lab() // the linter reports its problems
	t.japanese = says.Japanese
}

const wrongPrefix = "wrong-"

// wrongTurn takes a further document of a task's file.
func (r *lessonReader) wrongTurn(t *Task, l *format.Loaded) {
	id, ok := strings.CutPrefix(l.Test.Name, wrongPrefix)
	switch {
	case !ok || id == "":
		r.problem(l.File, l.Line, "a task has one test, and wrong turns with names such as wrong-deleted-it", "%q is no name for a wrong turn", l.Test.Name)
		return
	case slices.ContainsFunc(t.Wrong, func(w *Wrong) bool { return w.ID == id }):
		r.problem(l.File, l.Line, "", "the wrong turn %q is there twice", id)
	}
	t.Wrong = append(t.Wrong, &Wrong{ID: id, Test: l})
	r.steps(l, false, doStep, seeStep)
	r.plays(l)
}

// steps checks that the names of the steps begin with the prefixes, in their order, and that each prefix occurs; the
// first need not if optional is true.
func (r *lessonReader) steps(l *format.Loaded, optional bool, prefixes ...string) {
	at, last := map[string]bool{}, 0
	for i := range l.Test.Spec.Steps {
		s := &l.Test.Spec.Steps[i]
		n := slices.IndexFunc(prefixes, func(p string) bool { return strings.HasPrefix(s.Name, p) })
		switch {
		case n < 0:
			r.problem(s.Position.File, s.Position.Line, "here names of steps begin with "+strings.Join(prefixes, ", "),
				"%q is no name for a step", s.Name)
			continue
		case n < last:
			r.problem(s.Position.File, s.Position.Line, "the order is "+strings.Join(prefixes, ", "),
				"the step %q comes after a %s", s.Name, prefixes[last])
		}
		at[prefixes[n]], last = true, max(last, n)
	}
	for i, p := range prefixes {
		if !at[p] && (i > 0 || !optional) {
			r.problem(l.File, l.Line, "", "the test %q has no step that begins with %s", l.Test.Name, p)
		}
	}
}

// plays checks that a test runs exactly once and completely.
func (r *lessonReader) plays(l *format.Loaded) {
	if l.Test.Spec.Skip != nil && *l.Test.Spec.Skip {
		r.problem(l.File, l.Line, "", "the test %q is skipped", l.Test.Name)
	}
	if len(l.Test.Spec.Scenarios) > 0 {
		r.problem(l.File, l.Line, "write a task for each", "the test %q has a matrix of scenarios, which a lesson cannot have", l.Test.Name)
	}
}

// sections checks that the texts have the tasks of lesson.yaml in the same order.
func (r *lessonReader) sections() {
	var want []string
	for _, t := range r.lesson.Tasks {
		want = append(want, t.ID)
	}
	for _, in := range Languages {
		t := r.lesson.texts[in]
		if t.document == nil || len(want) == 0 {
			continue // a text could not be read
		}
		var have []string
		for _, task := range t.tasks {
			if have = append(have, task.id); !slices.Contains(want, task.id) {
				r.problem(t.file, task.title.line, format.Suggest(task.id, want), "%s has no task %q", metadataFile, task.id)
			}
		}
		for _, id := range want {
			if !slices.Contains(have, id) {
				r.problem(t.file, 0, fmt.Sprintf("write a section \"## %s: <title>\"", id), "the task %q is missing", id)
			}
		}
		if len(have) == len(want) && !slices.Equal(have, want) && slices.Equal(slices.Sorted(slices.Values(have)), slices.Sorted(slices.Values(want))) {
			r.problem(t.file, t.tasks[0].title.line, "the order is "+strings.Join(want, ", "), "the tasks are not in the order of %s", metadataFile)
		}
	}
}

// files finds the learner's files, and computes the digest of the lesson.
func (r *lessonReader) files() {
	entries, err := fs.ReadDir(r.FS, ".")
	if err != nil {
		r.problem(r.folder, 0, "", "%s", plain(err))
		return
	}
	sum := sha256.New()
	for _, e := range entries { // sorted by name
		if e.IsDir() || path.Ext(e.Name()) == ".md" {
			continue
		}
		data, ok := r.read(e.Name(), "")
		if !ok {
			continue
		}
		_, _ = fmt.Fprintf(sum, "%s %d\n", e.Name(), len(data))
		_, _ = sum.Write(data)
		if e.Name() == metadataFile || r.lesson.Task(strings.TrimSuffix(e.Name(), ".yaml")) != nil {
			continue
		}
		r.manifest(e.Name(), data)
	}
	for _, op := range r.lesson.Operators {
		if op.Hook != "" && !slices.Contains(r.lesson.Files, op.Hook) {
			r.problem(op.Position.File, op.Position.Line, "the hook is a file of the lesson", "there is no file %s", op.Hook)
		}
	}
	r.lesson.Digest = hex.EncodeToString(sum.Sum(nil)[:8])
}

// manifest adds a file for the learner, unless it contains scenarios.
func (r *lessonReader) manifest(name string, data []byte) {
	switch {
	case !bytes.Contains(data, []byte("chainsaw.kyverno.io/")):
		r.lesson.Files = append(r.lesson.Files, name)
	case path.Ext(name) == ".yaml" && bytes.Contains(data, []byte("\nkind: Test\n")) && len(r.lesson.Tasks) > 0:
		r.problem(r.file(name), 0, "add the task to its tasks, or remove the file", "%s has no task %q", metadataFile, strings.TrimSuffix(name, ".yaml"))
	}
}

// sameNames finds lessons that share a number or an ID.
func sameNames(places []place) format.Problems {
	var out format.Problems
	byNumber, byID := map[int]place{}, map[string]place{}
	for _, at := range places {
		number, id, ok := split(at.name)
		if !ok {
			continue
		}
		if other, twice := byNumber[number]; twice && other.folder != at.folder {
			out = append(out, format.Problem{File: at.folder, Message: fmt.Sprintf("number %d is also that of %s", number, other.folder), Hint: "give one of them another number"})
		}
		if other, twice := byID[id]; twice && other.folder != at.folder {
			out = append(out, format.Problem{File: at.folder, Message: fmt.Sprintf("the id %q is also that of %s", id, other.folder), Hint: "give one of them another name"})
		}
		byNumber[number], byID[id] = at, at
	}
	return out
}
