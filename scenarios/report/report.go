// Package report holds the result of a run of scenarios and formats it: as text with progress, as JSON lines, as JUnit
// files, as annotations on GitHub.
package report

import (
	"iter"
	"time"
)

// Run is one run of a set of scenarios.
type Run struct {
	// Name is the name of the report.
	Name string
	// Seed is the seed of everything random in the run; the same seed gives the same run.
	Seed int64
	// Shard is which part of the suite it is.
	Shard Shard
	// Started and Ended are the times of its begin and end.
	Started, Ended time.Time
	// Tests are the tests in the order they were found, including skipped ones. A test that is repeated, or has a
	// matrix of scenarios, is listed once for each time it is run.
	Tests []*Test
}

// Test is one run of a test.
type Test struct {
	// Name is the displayed name: its own, with the scenario's and the repetition's if there are several.
	Name string
	// ID selects this test to run it alone: its folder and the rest of its name.
	ID string
	// Folder is the test's folder, and File the file it was read from.
	Folder, File string
	// Line is the line of its document in that file.
	Line int
	// Scenario is the scenario of its matrix; empty without one.
	Scenario string
	// Description says what it shows.
	Description string
	// Namespace is the namespace it ran in.
	Namespace string
	// Concurrent is the field of that name in its spec.
	Concurrent *bool
	// Started and Ended are the times of its begin and end.
	Started, Ended time.Time
	// Skipped reports that it was not run.
	Skipped bool
	// SkipReason is the reason if it was skipped.
	SkipReason string
	// Unfinished reports that the run ended before the test did, because of an interrupt or, if the test is skipped
	// too, because another test failed. Its result is not known.
	Unfinished bool
	// Steps are the steps that were begun, in order. Work outside of steps, such as creating the namespace, has a step
	// of its own.
	Steps []*Step
	// Findings are the problems that the oracles found at the end, beyond the assertions of the steps.
	Findings []Finding
	// Notes are lines for the reader, such as that something was left out because it needs the lab.
	Notes []string
	// Journal is the path of the saved journal of a failed test; empty without one.
	Journal string
}

// FailedOperations returns the failed operations in order, each with its step.
func (t *Test) FailedOperations() iter.Seq2[*Step, *Operation] {
	return func(yield func(*Step, *Operation) bool) {
		for _, s := range t.Steps {
			for _, o := range s.Operations {
				if o.Failure != nil && !yield(s, o) {
					return
				}
			}
		}
	}
}

// Failed reports whether an operation failed or an oracle found something.
func (t *Test) Failed() bool {
	for range t.FailedOperations() {
		return true
	}
	return len(t.Findings) > 0
}

// Step is a step of a test.
type Step struct {
	// Name is the name of the step, or "step N".
	Name string
	// Description is the description of the step.
	Description string
	// Started and Ended are the times of its begin and end.
	Started, Ended time.Time
	// Operations are the operations that were begun, in order: of try, catch and finally, and of cleanup at the end of
	// the test.
	Operations []*Operation
	// Toil is what a fault has cost that is over with this step; nil if the step measures nothing.
	Toil *Toil
}

// Toil is what a fault has cost until a store was whole again.
type Toil struct {
	// Fault is the name of the fault, such as kill-member.
	Fault string `json:"fault"`
	// Actions is the number of commands that a person had to give.
	Actions int `json:"actions"`
	// Decisions is the number of commands by which a person decided something. They are not among the actions.
	Decisions int `json:"decisions"`
	// Outage is the longest time in seconds from one acknowledged write to the next.
	Outage float64 `json:"secondsWithoutWrite"`
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

// Phase is the part of a step that an operation belongs to.
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
	// Type is the type of the operation: apply, assert, script…
	Type string
	// Phase is the phase it was run in.
	Phase Phase
	// Name is the displayed name: what it concerns, such as "Deployment web", or the file.
	Name string
	// Description is the description of the operation.
	Description string
	// File is the file it is written in.
	File string
	// Line is its line in the file.
	Line int
	// Started and Ended are the times of its begin and end.
	Started, Ended time.Time
	// Output is the output of a command or a collector.
	Output string
	// Failure is the failure; nil if there was none.
	Failure *Failure
	// Interrupted reports that an interrupt ended the operation, so that it neither passed nor failed.
	Interrupted bool
}

// Failure says why an operation failed.
type Failure struct {
	// Message is one line.
	Message string
	// Hint says what can be done about it; may be empty.
	Hint string
	// Differences are the fields in which the closest object differs from the assertion.
	Differences []Difference
	// Object names the closest object.
	Object string
	// Others is the number of further candidates, which differ more.
	Others int
	// Diff has the asserted and the found fields as lines of a unified diff without headers.
	Diff []string
	// Loop describes the last reconcile of the loop that owns the object, line by line.
	Loop []string
}

// Difference is one field that differs from the assertion.
type Difference struct {
	// Path is the path of the field.
	Path string
	// Message says what is wrong with it.
	Message string
	// Is and Want are the values of the field and of the assertion, as one line of YAML; empty where no two are compared.
	Is, Want string
}

// Finding is a problem that an oracle found.
type Finding struct {
	// Oracle is the name of the oracle, by which it can be switched off.
	Oracle string
	// Message is one line.
	Message string
	// Details are further lines.
	Details []string
}

// Sink receives the progress of a run. The calls for one test come in order; those for different tests may be
// concurrent. The arguments may be read until the call returns, and the finished run at any time.
type Sink interface {
	// BeginRun is called once, before the first test.
	BeginRun(*Run)
	// BeginTest is called before a test.
	BeginTest(*Test)
	// BeginStep is called before a step.
	BeginStep(*Test, *Step)
	// BeginOperation is called before an operation.
	BeginOperation(*Test, *Step, *Operation)
	// EndOperation is called after an operation.
	EndOperation(*Test, *Step, *Operation)
	// EndStep is called after a step.
	EndStep(*Test, *Step)
	// EndTest is called after a test.
	EndTest(*Test)
	// EndRun is called once, after the last test.
	EndRun(*Run)
}
