package book

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// Lesson is one lesson.
type Lesson struct {
	// Number is the lesson's number, which determines its place in the order.
	Number int
	// ID is the lesson's name without the number, such as run-zundoko.
	ID string
	// Folder is its folder as it was given.
	Folder string
	// FS is the content of that folder.
	FS fs.FS
	// Module is the lesson's module, one of [Modules].
	Module string
	// Phase is the maturity phase that it is about, from 1 to 5; 0 if it is about none.
	Phase int
	// Habits are the numbers of the habits that it is about, from 1 to 7.
	Habits []int
	// Sources are the sources of the lesson: lines of articles, their steps, findings.
	Sources []string
	// Operators are the operators that run from its beginning.
	Operators []Operator
	// Needs are programs that the learner's machine must have, such as go.
	Needs []string
	// OLM says that the Operator Lifecycle Manager runs in its sandbox, with the catalog of the bundled operators.
	OLM bool
	// Nodes is the number of simulated nodes; without nodes, pods stay Pending.
	Nodes int
	// Ask is a URL that is requested continuously; empty for none.
	Ask string
	// Store is an etcd cluster that is watched, as namespace/name; empty for none.
	Store string
	// Tasks are the tasks in order.
	Tasks []*Task
	// Files are the names of the learner's files in FS: manifests, and what is to be edited.
	Files []string
	// Digest is a digest of what the learner has to do, without the texts: a lesson stays done when a word of it is
	// corrected.
	Digest string

	texts map[Language]*text
}

// Operator is an operator that runs during a lesson: a bundled one, or one that the learner writes.
type Operator struct {
	// Name is the operator's name.
	Name string `json:"name" check:"required"`
	// Variant is its variant; empty for the default.
	Variant string `json:"variant,omitempty"`
	// Parameters are its parameters, by the names of its flags without dashes.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Project says that the learner writes it: a folder of its name in their directory, which runs once it is there.
	Project bool `json:"project,omitempty"`
	// Hook is a program in the learner's directory that answers the webhooks of metacontroller; empty for other operators.
	Hook string `json:"hook,omitempty"`

	// Position is the place of its declaration.
	Position format.Position `json:"-"`
}

// Own reports whether the learner writes the operator.
func (o Operator) Own() bool { return o.Project || o.Hook != "" }

// Name returns the name of the lesson's folder: its number and its ID.
func (l *Lesson) Name() string { return fmt.Sprintf("%02d-%s", l.Number, l.ID) }

// Title returns the title, such as "Run zundoko".
func (l *Lesson) Title(in Language) string { return l.texts[in].title.text }

// Intro returns the introduction, in Markdown.
func (l *Lesson) Intro(in Language) string { return l.texts[in].intro.text }

// Finally returns the closing text, in Markdown; may be empty.
func (l *Lesson) Finally(in Language) string { return l.texts[in].finally.text }

// HasHook reports whether a file of the learner's is the hook of an operator.
func (l *Lesson) HasHook(name string) bool {
	return slices.ContainsFunc(l.Operators, func(op Operator) bool { return op.Hook == name })
}

// Task returns the task with an ID; nil if there is none.
func (l *Lesson) Task(id string) *Task {
	for _, t := range l.Tasks {
		if t.ID == id {
			return t
		}
	}
	return nil
}
