package report

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// Lines tells a run to programs: one JSON object a line for everything that begins or ends, as it happens.
//
// Each has the fields event (beginRun, beginTest, beginStep, endOperation, endStep, endTest, endRun) and time. What
// belongs to a test has its id as test, what belongs to a step its name as step; the other fields are those of the
// JSON report.
type Lines struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

var _ Sink = (*Lines)(nil)

// NewLines returns a sink that writes to w.
func NewLines(w io.Writer) *Lines { return &Lines{w: w} }

// Err is the first error that the writer returned.
func (l *Lines) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// event is what all lines have.
type event struct {
	Event string    `json:"event"`
	Time  time.Time `json:"time"`
	Test  string    `json:"test,omitempty"`
	Step  string    `json:"step,omitempty"`
}

// BeginRun writes the name of the run, its seed and how many tests there are.
func (l *Lines) BeginRun(r *Run) {
	l.write(struct {
		event
		Name  string `json:"name,omitempty"`
		Seed  int64  `json:"seed"`
		Tests int    `json:"tests"`
	}{event{Event: "beginRun", Time: r.Started}, r.Name, r.Seed, len(r.Tests)})
}

// BeginTest writes which test begins.
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

// BeginStep writes which step begins.
func (l *Lines) BeginStep(t *Test, s *Step) {
	l.write(struct {
		event
		Description string `json:"description,omitempty"`
	}{event{Event: "beginStep", Time: s.Started, Test: t.ID, Step: s.Name}, s.Description})
}

// BeginOperation writes nothing: an operation that hangs is the one after the last that ended.
func (l *Lines) BeginOperation(*Test, *Step, *Operation) {}

// EndOperation writes all of the operation.
func (l *Lines) EndOperation(t *Test, s *Step, o *Operation) {
	l.write(struct {
		event
		jsonOperation
	}{event{Event: "endOperation", Time: o.Ended, Test: t.ID, Step: s.Name}, operationJSON(o)})
}

// EndStep writes how the step ended.
func (l *Lines) EndStep(t *Test, s *Step) {
	l.write(struct {
		event
		Status Status `json:"status"`
	}{event{Event: "endStep", Time: s.Ended, Test: t.ID, Step: s.Name}, s.Status()})
}

// EndTest writes how the test ended, without its steps.
func (l *Lines) EndTest(t *Test) {
	l.write(struct {
		event
		jsonTest
	}{event{Event: "endTest", Time: t.Ended, Test: t.ID}, testJSON(t)})
}

// EndRun writes how many tests there are of each status.
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
