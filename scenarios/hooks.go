package scenarios

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/oracle"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
	"github.com/operator-lab/operator-lab/scenarios/settle"
)

// Selection says which operators run with scenarios, and how.
type Selection struct {
	// Operators are the operators' names. Default: those that the scenario names.
	Operators []string
	// Variant is the variant of each operator. Default: the scenario's, or else the operator's default.
	Variant string
	// Parameters override those of the scenario.
	Parameters map[string]string
}

// LabHooks implements [runner.Hooks] with a lab. Only one scenario with operators runs at a time; others with operators
// wait for it to end.
type LabHooks struct {
	// Lab runs the operators.
	Lab *lab.Lab
	// Reader reads the cluster without a cache.
	Reader client.Reader
	// Selection applies to every scenario.
	Selection Selection
	// SaveJournal saves the journal of a failed scenario under a name and returns its path. Default: no journal is
	// saved.
	SaveJournal func(name string, journal *trace.Journal) (string, error)
	// SaveAll saves the journals of scenarios that passed, too.
	SaveAll bool
	// Patience is how long an operator may take to start. [NewLabHooks] sets 30 s.
	Patience time.Duration

	turn    chan struct{} // holds one token while a scenario with operators runs
	mu      sync.Mutex
	running *runningTest
}

// runningTest is the running scenario with operators.
type runningTest struct {
	test    *format.Test
	witness *oracle.Witness
	rest    *settle.Rest
}

// Setup holds the operators and oracles of one scenario, as it and a [Selection] set them.
type Setup struct {
	// Operators are the operators' names.
	Operators []string
	// Spec is the spec of each operator.
	Spec v1alpha1.OperatorSpec
	// Off are the names of the oracles that are switched off.
	Off map[string]bool
	// Counts is the reference for [oracle.Counts]; see [oracle.Witness].
	Counts string
	// Measures reports whether the scenario measures what faults cost: it takes a turn even without operators.
	Measures bool
}

// NewLabHooks returns hooks without a running scenario.
func NewLabHooks(l *lab.Lab, reader client.Reader, selection Selection) *LabHooks {
	return &LabHooks{Lab: l, Reader: reader, Selection: selection, Patience: 30 * time.Second, turn: make(chan struct{}, 1)}
}

var _ runner.Hooks = (*LabHooks)(nil)

// Begin waits until no other scenario with operators runs, and loads the scenario's operators with a new journal. Operators in pods
// come when the scenario makes their pods: where an images file has some, every scenario is one with operators.
func (h *LabHooks) Begin(ctx context.Context, test *format.Test, r *report.Test) error {
	setup, err := h.Selection.Setup(test)
	if err != nil || len(setup.Operators) == 0 && len(h.Lab.InPods()) == 0 && !setup.Measures {
		return err
	}
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if ctx.Err() != nil { // it ended while the turn was free, too
		h.leave()
		return ctx.Err()
	}
	r.Started = time.Now() // without the wait for other scenarios
	if err := h.load(ctx, test, setup); err != nil {
		h.saveJournal(r)
		h.leave()
		return err
	}
	return nil
}

func (h *LabHooks) load(ctx context.Context, test *format.Test, setup Setup) error {
	journal := h.Lab.NewJournal()
	if err := h.Lab.Begin(ctx, journal); err != nil {
		return err
	}
	loops := map[string]oracle.Prober{}
	ctx, cancel := context.WithTimeoutCause(ctx, h.Patience, fmt.Errorf("no operator serves after %v", h.Patience))
	defer cancel()
	for _, name := range setup.Operators {
		loop, err := h.Lab.Load(ctx, name, setup.Spec)
		if err != nil {
			return err
		}
		loops[name] = loop
	}
	h.enter(&runningTest{test: test, rest: settle.NewRest(journal, h.Reader, slices.Concat(setup.Operators, h.Lab.InPods())), witness: &oracle.Witness{
		Journal: journal, Reader: h.Reader, Loops: loops, Off: setup.Off, Reference: setup.Counts,
	}})
	return nil
}

// Setup returns the operators and oracles of a scenario.
func (s Selection) Setup(test *format.Test) (Setup, error) {
	says, err := format.ReadLab(test)
	if err != nil {
		return Setup{}, err
	}
	out := Setup{
		Operators: says.Operators, Off: map[string]bool{}, Counts: says.Counts, Measures: says.Writes != "",
		Spec: v1alpha1.OperatorSpec{Variant: says.Variant, Parameters: map[string]string{}},
	}
	for _, p := range says.Parameters {
		out.Spec.Parameters[p.Name] = p.Value
	}
	for name := range says.Off {
		out.Off[name] = true
	}
	if len(s.Operators) > 0 {
		out.Operators = s.Operators
	}
	if s.Variant != "" {
		out.Spec.Variant = s.Variant
	}
	maps.Copy(out.Spec.Parameters, s.Parameters)
	return out, nil
}

func (h *LabHooks) enter(t *runningTest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = t
}

func (h *LabHooks) leave() {
	h.enter(nil)
	<-h.turn
}

// witness returns the witness of the test if it is the running one; else nil.
func (h *LabHooks) witness(test *format.Test) *oracle.Witness {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == nil || h.running.test != test {
		return nil
	}
	return h.running.witness
}

// Object accepts every object.
func (h *LabHooks) Object(string, string) error { return nil }

// Settled releases the faults of a scenario and checks the oracles.
func (h *LabHooks) Settled(ctx context.Context, test *format.Test, _ *report.Test, ok bool) []report.Finding {
	witness := h.witness(test)
	if witness == nil {
		return nil
	}
	for _, name := range h.Lab.InPods() {
		if loop := h.Lab.Taps(name); loop != nil { // its pod has come
			witness.Loops[name] = loop
		}
	}
	h.Lab.Faults().ReleaseAll()
	found := witness.Settled(ctx, ok)
	return append(found, h.failures(witness)...)
}

// failures reports operators that failed.
func (h *LabHooks) failures(witness *oracle.Witness) []report.Finding {
	var found []report.Finding
	for name := range witness.Loops {
		if err := h.Lab.Err(name); err != nil {
			found = append(found, report.Finding{Oracle: "running", Message: err.Error()})
		}
	}
	return found
}

// Cleaned checks for leaks, saves the journal if it is to be kept, and lets the next one begin.
func (h *LabHooks) Cleaned(ctx context.Context, test *format.Test, r *report.Test, ok bool) []report.Finding {
	witness := h.witness(test)
	if witness == nil {
		return nil
	}
	defer h.leave()
	var found []report.Finding
	if ok && !skipsDelete(test) {
		found = witness.Cleaned(ctx)
	}
	if h.SaveAll || !ok || len(found) > 0 || r.Failed() {
		h.saveJournal(r)
	}
	return found
}

func skipsDelete(test *format.Test) bool { return test.Spec.SkipDelete != nil && *test.Spec.SkipDelete }

func (h *LabHooks) saveJournal(r *report.Test) {
	if h.SaveJournal == nil {
		return
	}
	path, err := h.SaveJournal(fileName(r.Name), h.Lab.Journal())
	if err != nil {
		r.Notes = append(r.Notes, "the journal could not be saved: "+err.Error())
		return
	}
	r.Journal = path
}

// fileName converts a test's name to a safe file name.
func fileName(name string) string {
	safe := strings.Map(func(r rune) rune {
		if r == filepath.Separator || r == '/' || r == ' ' || r == '#' || r == '[' || r == ']' {
			return '-'
		}
		return r
	}, name)
	return strings.Trim(safe, "-")
}

// AtRest reports whether nothing can change within a time; of a test without operators that is not known.
func (h *LabHooks) AtRest(ctx context.Context, test *format.Test, within time.Duration) bool {
	h.mu.Lock()
	running := h.running
	h.mu.Unlock()
	return running != nil && running.test == test && running.rest.Until(ctx, within)
}

// Explain describes the loop that concerns an object.
func (h *LabHooks) Explain(_ context.Context, object *unstructured.Unstructured) []string {
	return h.Lab.Explain(trace.Ref{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
	})
}

// Foreign implements [runner.Hooks] for a cluster that is not a lab's, or for none: nothing of the lab can be used in
// it.
type Foreign struct {
	// None reports that there is no cluster at all.
	None bool
}

var _ runner.Hooks = Foreign{}

// Begin adds a note about the operators that the user must run.
func (f Foreign) Begin(_ context.Context, test *format.Test, r *report.Test) error {
	if f.None {
		return nil
	}
	says, err := format.ReadLab(test)
	if err != nil {
		return err
	}
	for _, name := range says.Operators {
		command := []string{"operator-lab operator", name}
		for _, p := range says.Parameters {
			command = append(command, "--"+p.Name+"="+p.Value)
		}
		r.Notes = append(r.Notes, fmt.Sprintf("operator %s is expected to run in that cluster ('%s')", name, strings.Join(command, " ")))
	}
	return nil
}

// needsLab is the error of using an object of a kind that exists only in a lab.
type needsLab string

// Error returns the error's text.
func (kind needsLab) Error() string {
	return fmt.Sprintf("%s needs the lab: this cluster is not one", string(kind))
}

// Hint says what the user can do.
func (needsLab) Hint() string {
	return "leave --kubeconfig out to run in a sandbox, or this test with --exclude-test-regex or --selector"
}

// Object refuses the lab's own kinds.
func (Foreign) Object(apiVersion, kind string) error {
	group, _, _ := strings.Cut(apiVersion, "/")
	if group != v1alpha1.GroupVersion.Group {
		return nil
	}
	return needsLab(kind)
}

// Settled reports no findings.
func (Foreign) Settled(context.Context, *format.Test, *report.Test, bool) []report.Finding {
	return nil
}

// Cleaned reports no findings.
func (Foreign) Cleaned(context.Context, *format.Test, *report.Test, bool) []report.Finding {
	return nil
}

// AtRest does not know.
func (Foreign) AtRest(context.Context, *format.Test, time.Duration) bool { return false }

// Explain returns nothing.
func (Foreign) Explain(context.Context, *unstructured.Unstructured) []string { return nil }
