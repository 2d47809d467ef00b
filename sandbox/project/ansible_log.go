package project

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// ansibleLog makes events of the lines in which the program of an Ansible operator tells of the tasks of its runs. A run is a job,
// which belongs to the reconcile of its object that ran when the job's first event was told: the program tells of the last ones
// while the reconcile ends.
type ansibleLog struct {
	operator, home string
	journal        *trace.Journal
	// seen is the Seq of the last event of the journal that was looked at; running are the starts of the reconciles that run.
	seen    int64
	running map[ansibleLoop]*trace.Event
	jobs    map[string]*trace.Event
}

// ansibleLoop is a controller and a key.
type ansibleLoop struct {
	controller string
	key        trace.Key
}

func newAnsibleLog(operator, home string, journal *trace.Journal) *ansibleLog {
	return &ansibleLog{
		operator: operator, home: home, journal: journal,
		running: map[ansibleLoop]*trace.Event{}, jobs: map[string]*trace.Event{},
	}
}

// ansibleLine is a line about an event of a job, or about the end of a run that failed, with all that it printed.
type ansibleLine struct {
	Name, Namespace, GVK, Job string
	Level, Logger             string
	Message                   string `json:"msg"`

	Event string       `json:"event_type"`
	Data  *ansibleData `json:"EventData"`
}

// ansibleData is what ansible-runner tells of an event: of a task, or at the end how many tasks there were of each result, by host.
type ansibleData struct {
	Task, Role                           string
	Action                               string `json:"task_action"`
	Path                                 string `json:"task_path"`
	IgnoreErrors                         bool   `json:"ignore_errors"`
	Duration                             float64
	Res                                  ansibleResult
	OK, Changed, Failures, Skipped, Dark map[string]int
}

// ansibleResult is the result of a task, as far as it is shown.
type ansibleResult struct {
	Changed bool
	Message any `json:"msg"`
}

// The events of ansible-runner that end a task or a run.
const (
	ansibleOK          = "runner_on_ok"
	ansibleFailed      = "runner_on_failed"
	ansibleUnreachable = "runner_on_unreachable"
	ansibleSkipped     = "runner_on_skipped"
	ansibleStats       = "playbook_on_stats"
)

// line takes a line that the program printed.
func (a *ansibleLog) line(text string) {
	if !strings.HasPrefix(text, "{") || !strings.Contains(text, `"job"`) {
		return
	}
	var l ansibleLine
	if err := json.Unmarshal([]byte(text), &l); err != nil || l.Job == "" {
		return
	}
	if l.Data == nil {
		a.failed(l)
		return
	}
	e := trace.Event{Kind: trace.KindLog, Operator: a.operator, Actor: a.operator, Controller: l.controller(), Key: trace.Key{Namespace: l.Namespace, Name: l.Name}}
	if start := a.of(l.Job, ansibleLoop{e.Controller, e.Key}); start != nil {
		e.Reconcile, e.Cause = start.Reconcile, start.Seq
	}
	if !l.describe(&e) {
		return
	}
	if file, line, found := cutLine(l.Data.Path); found {
		if rel, err := filepath.Rel(a.home, file); err == nil && filepath.IsLocal(rel) {
			e.Line = filepath.ToSlash(rel) + ":" + line
		}
	}
	a.journal.Append(e)
	if l.Event == ansibleStats {
		delete(a.jobs, l.Job)
	}
}

// failed takes the end of a run that failed. What Ansible says before its first task, such as that it does not know a module, is in
// no event.
func (a *ansibleLog) failed(l ansibleLine) {
	if l.Level != "error" || l.Logger != "runner" {
		return
	}
	key := trace.Key{Namespace: l.Namespace, Name: l.Name}
	for line := range strings.Lines(colours.ReplaceAllString(l.Message, "")) {
		reason, is := strings.CutPrefix(strings.TrimSpace(line), "ERROR! ")
		if !is {
			continue
		}
		e := trace.Event{Kind: trace.KindLog, Operator: a.operator, Actor: a.operator, Key: key, Message: "ansible-playbook", Error: reason}
		if start := a.of(l.Job, ansibleLoop{key: key}); start != nil {
			e.Controller, e.Reconcile, e.Cause = start.Controller, start.Reconcile, start.Seq
		}
		a.journal.Append(e)
		break
	}
	delete(a.jobs, l.Job)
}

// colours are the sequences by which a terminal shows them.
var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// of returns the start of the reconcile of a job, for an object of a controller, or of any if it is not named; nil if it is not known.
func (a *ansibleLog) of(job string, loop ansibleLoop) *trace.Event {
	for _, e := range a.journal.Since(a.seen) {
		a.seen = e.Seq
		of := ansibleLoop{e.Controller, e.Key}
		switch {
		case e.Operator != a.operator:
		case e.Kind == trace.KindStart:
			a.running[of] = e
		case e.Kind == trace.KindEnd:
			delete(a.running, of)
		}
	}
	if a.jobs[job] == nil && loop.controller != "" {
		a.jobs[job] = a.running[loop]
	}
	if a.jobs[job] != nil || loop.controller != "" {
		return a.jobs[job]
	}
	var found []*trace.Event
	for of, start := range a.running {
		if of.key == loop.key {
			found = append(found, start)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// controller returns the name of the controller of the line's kind.
func (l *ansibleLine) controller() string {
	groupVersion, kind, _ := strings.Cut(l.GVK, ", Kind=") // as schema.GroupVersionKind is printed
	return ansibleController(groupVersion[strings.LastIndexByte(groupVersion, '/')+1:], kind)
}

// describe puts what happened into an event, in the words of Ansible's own output. It reports whether the line says how a task or a
// run ended.
func (l *ansibleLine) describe(e *trace.Event) bool {
	d := l.Data
	result := ""
	switch l.Event {
	case ansibleOK:
		if result = "ok"; d.Res.Changed {
			result = "changed"
		}
	case ansibleSkipped:
		result = "skipping"
	case ansibleFailed, ansibleUnreachable:
		result = "failed"
		message, is := d.Res.Message.(string)
		if !is {
			message = "no message"
		}
		if d.IgnoreErrors {
			result = "failed, ignored"
			e.Values = []string{"error", message}
		} else {
			e.Error = message
		}
	case ansibleStats:
		e.Message = fmt.Sprintf("run: ok=%d changed=%d failed=%d skipped=%d", total(d.OK), total(d.Changed), total(d.Failures)+total(d.Dark), total(d.Skipped))
		return true
	default:
		return false
	}
	task := d.Task
	if d.Role != "" {
		task = d.Role + " : " + task
	}
	e.Message = result + ": " + task
	e.Values = append(e.Values, "action", d.Action)
	return true
}

func total(of map[string]int) (sum int) {
	for _, n := range of {
		sum += n
	}
	return sum
}

var lineAtEnd = regexp.MustCompile(`^(.+):(\d+)$`)

// cutLine splits a path from the number of a line behind it.
func cutLine(at string) (file, line string, found bool) {
	m := lineAtEnd.FindStringSubmatch(at)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}
