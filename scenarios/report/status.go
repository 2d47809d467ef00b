package report

import (
	"slices"
	"time"
)

// Status is the status of a test, a step or an operation.
type Status string

// The statuses.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
	// NotRun means that the run ended before the test or the operation did.
	NotRun Status = "not run"
)

// Status returns the status of the test so far.
func (t *Test) Status() Status {
	switch {
	case t.Skipped:
		return Skipped
	case t.Failed():
		return Failed
	case t.Unfinished || t.Started.IsZero() || t.Ended.IsZero():
		return NotRun
	}
	return Passed
}

// Status returns the status of the step.
func (s *Step) Status() Status {
	if !s.Failed() && slices.ContainsFunc(s.Operations, func(o *Operation) bool { return o.Interrupted }) {
		return NotRun
	}
	return statusOf(!s.Failed())
}

// Status returns the status of the operation.
func (o *Operation) Status() Status {
	if o.Interrupted {
		return NotRun
	}
	return statusOf(o.Failure == nil)
}

func statusOf(passed bool) Status {
	if passed {
		return Passed
	}
	return Failed
}

// Counts are the numbers of tests by status.
type Counts struct {
	// Passed is the number of tests that passed.
	Passed int `json:"passed"`
	// Failed is the number of tests that failed.
	Failed int `json:"failed"`
	// Skipped is the number of tests that were skipped.
	Skipped int `json:"skipped"`
	// NotRun is the number of tests that the run did not finish.
	NotRun int `json:"notRun,omitempty"`
}

// Counts counts the tests of the run by status.
func (r *Run) Counts() Counts {
	var c Counts
	for _, t := range r.Tests {
		switch t.Status() {
		case Passed:
			c.Passed++
		case Failed:
			c.Failed++
		case Skipped:
			c.Skipped++
		case NotRun:
			c.NotRun++
		}
	}
	return c
}

// took returns the time between two times, 0 if one of them is not set.
func took(started, ended time.Time) time.Duration {
	if started.IsZero() || ended.IsZero() {
		return 0
	}
	return ended.Sub(started)
}
