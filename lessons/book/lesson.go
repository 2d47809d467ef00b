package book

import (
	"fmt"
	"io/fs"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// Lesson is one lesson.
type Lesson struct {
	// Number of it, which says where it is in the order.
	Number int
	// ID is its name for people, such as run-zundoko.
	ID string
	// Folder it is in, as it was named.
	Folder string
	// FS is that folder.
	FS fs.FS
	// Module it belongs to: one of [Modules].
	Module string
	// Phase of maturity that it is about, from 1 to 5; 0: it comes before those.
	Phase int
	// Habits of good operators that it is about, from 1 to 7.
	Habits []int
	// Sources it is taken from: lines of articles, their steps, findings.
	Sources []string
	// Operators that run from its beginning.
	Operators []Operator
	// Nodes that are simulated; without any, pods stay Pending.
	Nodes int
	// Ask is a URL that is asked all the time; empty: none.
	Ask string
	// Store is a cluster of etcd that is watched, as namespace/name; empty: none.
	Store string
	// Tasks in order.
	Tasks []*Task
	// Files are the manifests for the learner, in FS.
	Files []string
	// Digest of what is to be done in it. Its texts do not count: who has done a lesson has done it, also when a word of
	// it is corrected.
	Digest string

	texts map[Language]*text
}

// Operator is one that runs during a lesson.
type Operator struct {
	// Name of it.
	Name string `json:"name" check:"required"`
	// Variant of it; empty: its default.
	Variant string `json:"variant,omitempty"`
	// Parameters of it: names are those of its flags without dashes.
	Parameters map[string]string `json:"parameters,omitempty"`

	// Position is where it is written.
	Position format.Position `json:"-"`
}

// Name of the lesson's folder: its number and its id.
func (l *Lesson) Name() string { return fmt.Sprintf("%02d-%s", l.Number, l.ID) }

// Title in a language, such as "Run zundoko".
func (l *Lesson) Title(in Language) string { return l.texts[in].title.text }

// Intro is the introduction, in Markdown.
func (l *Lesson) Intro(in Language) string { return l.texts[in].intro.text }

// Finally says where to read on, in Markdown; it may be empty.
func (l *Lesson) Finally(in Language) string { return l.texts[in].finally.text }

// Task returns the task of an id; nil if there is none.
func (l *Lesson) Task(id string) *Task {
	for _, t := range l.Tasks {
		if t.ID == id {
			return t
		}
	}
	return nil
}
