package report

import (
	"encoding/json"
	"io"
	"time"
)

// jsonRun and the following types are the JSON of a report. Fields that Chainsaw has too have the same names.
type jsonRun struct {
	Name      string     `json:"name,omitempty"`
	StartTime time.Time  `json:"startTime"`
	EndTime   time.Time  `json:"endTime"`
	Seed      int64      `json:"seed"`
	Shard     Shard      `json:"shard,omitzero"`
	Counts    Counts     `json:"counts"`
	Tests     []jsonTest `json:"tests,omitempty"`
}

type jsonTest struct {
	BasePath    string        `json:"basePath,omitempty"`
	Name        string        `json:"name,omitempty"`
	ID          string        `json:"id,omitempty"`
	File        string        `json:"file,omitempty"`
	Line        int           `json:"line,omitempty"`
	Scenario    string        `json:"scenario,omitempty"`
	Description string        `json:"description,omitempty"`
	Concurrent  *bool         `json:"concurrent,omitempty"`
	Status      Status        `json:"status"`
	SkipReason  string        `json:"skipReason,omitempty"`
	StartTime   time.Time     `json:"startTime"`
	EndTime     time.Time     `json:"endTime"`
	Namespace   string        `json:"namespace,omitempty"`
	Steps       []jsonStep    `json:"steps,omitempty"`
	Findings    []jsonFinding `json:"findings,omitempty"`
	Notes       []string      `json:"notes,omitempty"`
	Journal     string        `json:"journal,omitempty"`
}

type jsonStep struct {
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Status      Status          `json:"status"`
	StartTime   time.Time       `json:"startTime"`
	EndTime     time.Time       `json:"endTime"`
	Operations  []jsonOperation `json:"operations,omitempty"`
	Toil        *Toil           `json:"toil,omitempty"`
}

type jsonOperation struct {
	Name        string       `json:"name,omitempty"`
	Type        string       `json:"type,omitempty"`
	Phase       Phase        `json:"phase,omitempty"`
	Description string       `json:"description,omitempty"`
	File        string       `json:"file,omitempty"`
	Line        int          `json:"line,omitempty"`
	Status      Status       `json:"status"`
	StartTime   time.Time    `json:"startTime"`
	EndTime     time.Time    `json:"endTime"`
	Output      string       `json:"output,omitempty"`
	Failure     *jsonFailure `json:"failure,omitempty"`
}

type jsonFailure struct {
	Error       string           `json:"error,omitempty"`
	Hint        string           `json:"hint,omitempty"`
	Object      string           `json:"object,omitempty"`
	Others      int              `json:"others,omitempty"`
	Differences []jsonDifference `json:"differences,omitempty"`
	Diff        []string         `json:"diff,omitempty"`
	Loop        []string         `json:"loop,omitempty"`
}

type jsonDifference struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

type jsonFinding struct {
	Oracle  string   `json:"oracle"`
	Message string   `json:"message"`
	Details []string `json:"details,omitempty"`
}

func runJSON(r *Run) jsonRun {
	j := jsonRun{Name: r.Name, StartTime: r.Started, EndTime: r.Ended, Seed: r.Seed, Shard: r.Shard, Counts: r.Counts()}
	for _, t := range r.Tests {
		test := testJSON(t)
		for _, s := range t.Steps {
			step := stepJSON(s)
			for _, o := range s.Operations {
				step.Operations = append(step.Operations, operationJSON(o))
			}
			test.Steps = append(test.Steps, step)
		}
		j.Tests = append(j.Tests, test)
	}
	return j
}

// testJSON returns a test without its steps.
func testJSON(t *Test) jsonTest {
	j := jsonTest{
		BasePath: t.Folder, Name: t.Name, ID: t.ID, File: t.File, Line: t.Line, Scenario: t.Scenario,
		Description: t.Description, Concurrent: t.Concurrent, Status: t.Status(), SkipReason: t.SkipReason,
		StartTime: t.Started, EndTime: t.Ended, Namespace: t.Namespace, Notes: t.Notes, Journal: t.Journal,
	}
	for _, f := range t.Findings {
		j.Findings = append(j.Findings, jsonFinding(f))
	}
	return j
}

// stepJSON returns a step without its operations.
func stepJSON(s *Step) jsonStep {
	return jsonStep{Name: s.Name, Description: s.Description, Status: s.Status(), StartTime: s.Started, EndTime: s.Ended, Toil: s.Toil}
}

func operationJSON(o *Operation) jsonOperation {
	j := jsonOperation{
		Name: o.Name, Type: o.Type, Phase: o.Phase, Description: o.Description, File: o.File, Line: o.Line,
		Status: o.Status(), StartTime: o.Started, EndTime: o.Ended, Output: o.Output,
	}
	if f := o.Failure; f != nil {
		j.Failure = &jsonFailure{Error: f.Message, Hint: f.Hint, Object: f.Object, Others: f.Others, Diff: f.Diff, Loop: f.Loop}
		for _, d := range f.Differences {
			j.Failure.Differences = append(j.Failure.Differences, jsonDifference{Path: d.Path, Message: d.Message})
		}
	}
	return j
}

// writeJSON writes the report as JSON that is compatible with Chainsaw's.
func writeJSON(w io.Writer, r *Run) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(runJSON(r))
}

// ReadJSON reads a report that was written as JSON. Of failed assertions it has no values of single fields, only their messages.
func ReadJSON(text []byte) (*Run, error) {
	var j jsonRun
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, err
	}
	r := &Run{Name: j.Name, Started: j.StartTime, Ended: j.EndTime, Seed: j.Seed, Shard: j.Shard}
	for i := range j.Tests {
		r.Tests = append(r.Tests, j.Tests[i].test())
	}
	return r, nil
}

func (j *jsonTest) test() *Test {
	t := &Test{
		Folder: j.BasePath, Name: j.Name, ID: j.ID, File: j.File, Line: j.Line, Scenario: j.Scenario, Description: j.Description,
		Concurrent: j.Concurrent, Skipped: j.Status == Skipped, SkipReason: j.SkipReason, Unfinished: j.Status == NotRun,
		Started: j.StartTime, Ended: j.EndTime, Namespace: j.Namespace, Notes: j.Notes, Journal: j.Journal,
	}
	for _, f := range j.Findings {
		t.Findings = append(t.Findings, Finding(f))
	}
	for _, s := range j.Steps {
		step := &Step{Name: s.Name, Description: s.Description, Started: s.StartTime, Ended: s.EndTime, Toil: s.Toil}
		for i := range s.Operations {
			step.Operations = append(step.Operations, s.Operations[i].operation())
		}
		t.Steps = append(t.Steps, step)
	}
	return t
}

func (j *jsonOperation) operation() *Operation {
	o := &Operation{
		Name: j.Name, Type: j.Type, Phase: j.Phase, Description: j.Description, File: j.File, Line: j.Line,
		Interrupted: j.Status == NotRun, Started: j.StartTime, Ended: j.EndTime, Output: j.Output,
	}
	if f := j.Failure; f != nil {
		o.Failure = &Failure{Message: f.Error, Hint: f.Hint, Object: f.Object, Others: f.Others, Diff: f.Diff, Loop: f.Loop}
		for _, d := range f.Differences {
			o.Failure.Differences = append(o.Failure.Differences, Difference{Path: d.Path, Message: d.Message})
		}
	}
	return o
}
