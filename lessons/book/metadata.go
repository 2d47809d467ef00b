package book

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// Modules are the modules of the curriculum.
var Modules = []string{"resources", "loop", "children", "etcd", "insights", "packaging", "own"}

// metadata is the content of a lesson.yaml.
type metadata struct {
	Module    string         `json:"module" check:"required,enum=resources|loop|children|etcd|insights|packaging|own"`
	Phase     *int           `json:"phase" check:"required,least=0"`
	Habits    []int          `json:"habits,omitempty"`
	Sources   []string       `json:"sources,omitempty"`
	Operators []Operator     `json:"operators,omitempty"`
	Needs     []string       `json:"needs,omitempty"`
	OLM       bool           `json:"olm,omitempty"`
	Nodes     int            `json:"nodes,omitempty" check:"least=0"`
	Ask       string         `json:"ask,omitempty"`
	Store     string         `json:"store,omitempty"`
	Tasks     []taskMetadata `json:"tasks" check:"required,min=1"`
}

type taskMetadata struct {
	ID      string   `json:"id" check:"required"`
	Answer  string   `json:"answer,omitempty"`
	Removes []string `json:"removes,omitempty"`

	Position format.Position `json:"-"`
}

// The largest values in a lesson.yaml.
const (
	mostPhase  = 5
	mostHabits = 7
	// mostNodes is more than any lesson needs, and less than a laptop can simulate.
	mostNodes = 9
)

// readMetadata reads a lesson.yaml.
func readMetadata(file string, data []byte) (*metadata, format.Problems) {
	m := &metadata{}
	wrong := format.Decode(file, data, m)
	c := &metadataCheck{metadata: m, file: file, lines: strings.Split(string(data), "\n"), wrong: wrong}
	c.numbers()
	c.sources()
	c.addresses()
	c.operators()
	c.tasks()
	return m, c.wrong
}

// metadataCheck checks what the types cannot express.
type metadataCheck struct {
	*metadata
	file  string
	lines []string
	wrong format.Problems
}

// problem reports a problem of a top-level key.
func (c *metadataCheck) problem(key, hint, message string, args ...any) {
	p := format.Problem{File: c.file, Message: fmt.Sprintf(message, args...), Hint: hint}
	for i, l := range c.lines {
		if strings.HasPrefix(l, key+":") {
			p.Line = i + 1
			break
		}
	}
	c.wrong = append(c.wrong, p)
}

// problemAt reports a problem at a position.
func (c *metadataCheck) problemAt(at format.Position, hint, message string, args ...any) {
	c.wrong = append(c.wrong, format.Problem{
		File: at.File, Line: at.Line, Column: at.Column, Message: fmt.Sprintf(message, args...), Hint: hint,
	})
}

func (c *metadataCheck) numbers() {
	if c.Phase != nil && *c.Phase > mostPhase {
		c.problem("phase", fmt.Sprintf("phases are 1 to %d, and 0 for what comes before", mostPhase), "there is no phase %d", *c.Phase)
	}
	seen := map[int]bool{}
	for _, h := range c.Habits {
		if h < 1 || h > mostHabits {
			c.problem("habits", fmt.Sprintf("habits are 1 to %d", mostHabits), "there is no habit %d", h)
		} else if seen[h] {
			c.problem("habits", "", "habit %d is there twice", h)
		}
		seen[h] = true
	}
	if c.Nodes > mostNodes {
		c.problem("nodes", fmt.Sprintf("a lesson has at most %d", mostNodes), "%d nodes are too many", c.Nodes)
	}
}

// sourceForm matches a source: lines of an article, a step, a finding, or a page.
var sourceForm = regexp.MustCompile(`^(?:00[0-4]:(\d+)(?:-(\d+))?|T\d+(?:-T\d+)?|(?:AC-)?[A-Z]-?\d+|https://\S+)$`)

func (c *metadataCheck) sources() {
	for _, s := range c.Sources {
		m := sourceForm.FindStringSubmatch(s)
		if s == "" {
			continue // not a string, which is reported already
		}
		if m == nil {
			c.problem("sources", `write lines of an article as "002:424-437", a step as "T12", a finding as "Z-08", or a https address`,
				"%q is no source", s)
			continue
		}
		first, _ := strconv.Atoi(m[1])
		if last, err := strconv.Atoi(m[2]); err == nil && last < first {
			c.problem("sources", "the first line comes first", "%q ends before it begins", s)
		}
	}
}

// storeForm matches a namespace and a name.
var storeForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`)

func (c *metadataCheck) addresses() {
	if u, err := url.Parse(c.Ask); c.Ask != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		c.problem("ask", "such as http://app.default.svc/", "%q is no address that can be asked", c.Ask)
	}
	if c.Store != "" && !storeForm.MatchString(c.Store) {
		c.problem("store", "such as default/kv", "%q is no namespace and name", c.Store)
	}
}

func (c *metadataCheck) operators() {
	seen := map[string]bool{}
	for _, o := range c.Operators {
		if seen[o.Name] {
			c.problemAt(o.Position, "", "operator %q is there twice", o.Name)
		}
		seen[o.Name] = true
		switch {
		case o.Project && o.Hook != "":
			c.problemAt(o.Position, "leave one of them out", "operator %q cannot be a project and have a hook", o.Name)
		case o.Own() && (o.Variant != "" || len(o.Parameters) > 0):
			c.problemAt(o.Position, "they are for bundled operators", "operator %q is the learner's, and has no variant or parameters", o.Name)
		case o.Hook != "" && o.Name != hookOperator:
			c.problemAt(o.Position, "name: "+hookOperator, "operator %q asks no webhooks", o.Name)
		}
	}
}

// hookOperator is the name of the operator that asks webhooks.
const hookOperator = "metacontroller"

// taskID matches the ID of a task, which is also the name of a file and of a test.
var taskID = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

func (c *metadataCheck) tasks() {
	seen := map[string]bool{}
	for _, t := range c.Tasks {
		switch {
		case t.ID == "":
		case !taskID.MatchString(t.ID):
			c.problemAt(t.Position, "use up to 40 lower-case letters, digits and dashes", "%q is no id of a task", t.ID)
		case t.ID == "lesson":
			c.problemAt(t.Position, "choose another id", "the file of a task cannot be %s", metadataFile)
		case seen[t.ID]:
			c.problemAt(t.Position, "", "task %q is there twice", t.ID)
		}
		seen[t.ID] = true
		c.removes(t)
	}
}

func (c *metadataCheck) removes(t taskMetadata) {
	for _, object := range t.Removes {
		kind, name, _ := strings.Cut(object, "/")
		if object != "" && (name == "" || !slices.Contains(RequiredKinds, kind)) {
			c.problemAt(t.Position, "write "+strings.Join(RequiredKinds, "/…, ")+"/…: of other kinds nobody is told that they are gone",
				"task %q cannot have %q in 'removes'", t.ID, object)
		}
	}
}
