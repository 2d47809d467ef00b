// Package report holds what came of a run of scenarios, and tells it: as text with progress, as JSON lines, as JUnit
// files, as annotations on GitHub.
package report

import "time"

// Run is one run of a set of scenarios.
type Run struct {
	// Name of the report.
	Name string
	// Seed of everything random in the run; the same seed gives the same run.
	Seed int64
	// Started and Ended are when.
	Started, Ended time.Time
	// Tests in the order they were found, also those that were skipped. A test that is repeated, or has a matrix of
	// scenarios, is here once for each time it is run.
	Tests []*Test
}

// Test is one test that was run once.
type Test struct {
	// Name of the test as it is shown: its own, with the scenario's and the repetition's where there are several.
	Name string
	// ID names the test again to run just it: its folder and the rest of its name.
	ID string
	// Folder it is in, and File it was read from.
	Folder, File string
	// Line of the document in that file.
	Line int
	// Scenario of its matrix, empty without one.
	Scenario string
	// Description of what it shows.
	Description string
	// Namespace it ran in.
	Namespace string
	// Concurrent is what its spec says.
	Concurrent *bool
	// Started and Ended are when.
	Started, Ended time.Time
	// Skipped: it was not run; SkipReason says why.
	Skipped    bool
	SkipReason string
	// Unfinished: the run ended before it did, because somebody interrupted it or, if it is skipped too, because
	// another test failed. What it would have shown is not known.
	Unfinished bool
	// Steps that were begun, in order. What belongs to no step, such as creating the namespace, is a step of its own.
	Steps []*Step
	// Findings are what the oracles saw at its end, beyond what its steps assert.
	Findings []Finding
	// Notes are lines worth telling, such as that something needs the lab and was left out.
	Notes []string
	// Journal is where the journal of a failed test was saved; empty without one.
	Journal string
}

// Failed reports whether an operation failed or an oracle found something.
func (t *Test) Failed() bool {
	if len(t.Findings) > 0 {
		return true
	}
	for _, s := range t.Steps {
		if s.Failed() {
			return true
		}
	}
	return false
}

// Step is a step of a test.
type Step struct {
	// Name of it, or "step N".
	Name string
	// Description of it.
	Description string
	// Started and Ended are when.
	Started, Ended time.Time
	// Operations that were begun, in order: those of try, catch and finally, and those of cleanup at the end of the test.
	Operations []*Operation
}

// Failed reports whether one of its operations failed.
func (s *Step) Failed() bool {
	for _, o := range s.Operations {
		if o.Failure != nil {
			return true
		}
	}
	return false
}

// Phase is the part of a step that an operation is in.
type Phase string

// The phases.
const (
	Try     Phase = "try"
	Catch   Phase = "catch"
	Finally Phase = "finally"
	Cleanup Phase = "cleanup"
)

// Operation is one operation that was run.
type Operation struct {
	// Type of it: apply, assert, script…
	Type string
	// Phase it was run in.
	Phase Phase
	// Name to show: what it is about, such as "Deployment web", or the file.
	Name string
	// Description of it.
	Description string
	// File and Line where it is written.
	File string
	Line int
	// Started and Ended are when.
	Started, Ended time.Time
	// Output of a command, or what a collector found.
	Output string
	// Failure is why it failed; nil if it did not.
	Failure *Failure
	// Interrupted: the run was interrupted before it came to its end, so it neither passed nor failed.
	Interrupted bool
}

// Failure says why an operation failed.
type Failure struct {
	// Message is one line.
	Message string
	// Hint says what can be done about it; may be empty.
	Hint string
	// Differences are the fields in which the closest object differs from what is asserted.
	Differences []Difference
	// Object names that object, and Others counts the further candidates that differ more.
	Object string
	Others int
	// Diff is what was asserted and what was found, as lines of a unified diff without headers.
	Diff []string
	// Loop says what the lab knows of the loop that owns the object: its last reconcile, line by line.
	Loop []string
}

// Difference is one field that is not as asserted.
type Difference struct {
	// Path of the field.
	Path string
	// Message says what is wrong with it.
	Message string
	// Is and Want are the values of the field and of the assertion, as one line of YAML; empty where no two are compared.
	Is, Want string
}

// Finding is what an oracle saw.
type Finding struct {
	// Oracle that saw it, by the name it is switched off with.
	Oracle string
	// Message is one line.
	Message string
	// Details are further lines.
	Details []string
}

// Sink is told of a run as it goes on. The calls for one test come in order, those for several tests may come at the
// same time. What it is given may be read until it returns, and the finished run for ever.
type Sink interface {
	BeginRun(*Run)
	BeginTest(*Test)
	BeginStep(*Test, *Step)
	BeginOperation(*Test, *Step, *Operation)
	EndOperation(*Test, *Step, *Operation)
	EndStep(*Test, *Step)
	EndTest(*Test)
	EndRun(*Run)
}
