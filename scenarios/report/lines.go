package report

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// Lines reports a run to programs: one JSON object per line for each event, as it happens.
//
// Each has the fields event (beginRun, beginTest, beginStep, endOperation, endStep, endTest, endRun) and time. Events
// of a test have its ID as test, events of a step its name as step; the other fields are those of the JSON report.
type Lines struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

var _ Sink = (*Lines)(nil)

// NewLines returns a sink that writes to w.
func NewLines(w io.Writer) *Lines { return &Lines{w: w} }

// Err returns the first error of the writer.
func (l *Lines) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// event has the fields that all lines have.
type event struct {
	Event string    `json:"event"`
	Time  time.Time `json:"time"`
	Test  string    `json:"test,omitempty"`
	Step  string    `json:"step,omitempty"`
}

// BeginRun writes the name of the run, its seed and the number of tests.
func (l *Lines) BeginRun(r *Run) {
	l.write(struct {
		event
		Name  string `json:"name,omitempty"`
		Seed  int64  `json:"seed"`
		Tests int    `json:"tests"`
	}{event{Event: "beginRun", Time: r.Started}, r.Name, r.Seed, len(r.Tests)})
}

// BeginTest writes the test that begins.
func (l *Lines) BeginTest(t *Test) {
	l.write(struct {
		event
		Name        string `json:"name"`
		File        string `json:"file,omitempty"`
		Line        int    `json:"line,omitempty"`
		Scenario    string `json:"scenario,omitempty"`
		Description string `json:"description,omitempty"`
	}{event{Event: "beginTest", Time: t.Started, Test: t.ID}, t.Name, t.File, t.Line, t.Scenario, t.Description})
}

// BeginStep writes the step that begins.
func (l *Lines) BeginStep(t *Test, s *Step) {
	l.write(struct {
		event
		Description string `json:"description,omitempty"`
	}{event{Event: "beginStep", Time: s.Started, Test: t.ID, Step: s.Name}, s.Description})
}

// BeginOperation writes nothing: an operation that hangs is the one after the last that ended.
func (l *Lines) BeginOperation(*Test, *Step, *Operation) {}

// EndOperation writes the complete operation.
func (l *Lines) EndOperation(t *Test, s *Step, o *Operation) {
	l.write(struct {
		event
		jsonOperation
	}{event{Event: "endOperation", Time: o.Ended, Test: t.ID, Step: s.Name}, operationJSON(o)})
}

// EndStep writes the result of the step, and what it has measured of a fault.
func (l *Lines) EndStep(t *Test, s *Step) {
	l.write(struct {
		event
		Status Status `json:"status"`
		Toil   *Toil  `json:"toil,omitempty"`
	}{event{Event: "endStep", Time: s.Ended, Test: t.ID, Step: s.Name}, s.Status(), s.Toil})
}

// EndTest writes the result of the test, without its steps.
func (l *Lines) EndTest(t *Test) {
	l.write(struct {
		event
		jsonTest
	}{event{Event: "endTest", Time: t.Ended, Test: t.ID}, testJSON(t)})
}

// EndRun writes the number of tests of each status.
func (l *Lines) EndRun(r *Run) {
	l.write(struct {
		event
		Seed int64 `json:"seed"`
		Counts
	}{event{Event: "endRun", Time: r.Ended}, r.Seed, r.Counts()})
}

func (l *Lines) write(line any) {
	text, err := json.Marshal(line)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	if err == nil {
		_, err = l.w.Write(append(text, '\n'))
	}
	l.err = err
}
