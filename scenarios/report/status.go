package report

import (
	"slices"
	"time"
)

// Status of a test in one word.
type Status string

// The statuses.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
	// NotRun: the run ended before the test or the operation did.
	NotRun Status = "not run"
)

// Status of the test as far as it went.
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

// Status of the step.
func (s *Step) Status() Status {
	if !s.Failed() && slices.ContainsFunc(s.Operations, func(o *Operation) bool { return o.Interrupted }) {
		return NotRun
	}
	return statusOf(!s.Failed())
}

// Status of the operation.
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

// Counts says how many tests there are of each status.
type Counts struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	NotRun  int `json:"notRun,omitempty"`
}

// Counts counts the tests of the run.
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

// took is the time between two moments, 0 when one of them is not known.
func took(started, ended time.Time) time.Duration {
	if started.IsZero() || ended.IsZero() {
		return 0
	}
	return ended.Sub(started)
}
