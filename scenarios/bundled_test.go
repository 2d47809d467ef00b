package scenarios_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// findings maps a finding of the classic operators to the step of its scenario that must fail.
var findings = map[string]string{
	"b-01-newest-backup":        "kept",
	"b-02-no-end":               "ended",
	"b-03-unknown-storage":      "others",
	"b-04-one-of-two-endpoints": "taken",
	"b-05-tried-again":          "taken",

	"e-01-quorum-lost":            "said",
	"e-02-all-gone":               "said",
	"e-03-power-cut":              "back",
	"e-04-second-member":          "written",
	"e-05-member-without-a-pod":   "pod",
	"e-06-upgrade-in-a-hurry":     "writes",
	"e-07-paused":                 "said",
	"e-08-available-too-soon":     "not-yet",
	"e-09-lost-status":            "said",
	"e-10-touched-all-the-time":   "grow",
	"e-11-first-member-stays":     "forgotten",
	"e-12-operator-dies-creating": "born",
	"e-13-leader-removed":         "still-leads",
	"e-14-impossible-size":        "refused",
	"e-15-status-wiped":           "kept",
	"e-16-service-deleted":        "delete",
	"e-17-invalid-then-deleted":   "another",
	"e-18-pod-policy":             "applied",
	"e-19-rights-to-definitions":  "definitions",
	"e-20-long-name":              "refused",

	"h-01-failure-not-told":           "said",
	"h-02-release-in-status":          "read",
	"h-03-written-all-the-time":       "at-rest",
	"h-04-faster-writer":              "said",
	"h-05-owner-in-another-namespace": "kept",
	"h-06-no-schema":                  "refused",
	"h-07-selector-changed":           "said",

	"m-01-service-deleted":          "delete",
	"m-01-service-turned":           "back",
	"m-02-page-not-ready":           "still-served",
	"m-03-named-as-the-application": "one-page",
	"m-04-two-of-one-application":   "left-alone",
	"m-05-application-renamed":      "nothing-left",
	"m-06-another-page":             "another-image",
	"m-07-page-has-ended":           "end",
	"m-08-scaled-to-nothing":        "back",
	"m-09-no-selector":              "published",
	"m-10-a-word-for-a-truth":       "published",
	"m-11-moved-crd":                "made",
	"m-12-a-faster-writer":          "back",
	"m-13-writes-without-a-change":  "annotate",
	"m-14-no-name":                  "refused",
	"m-15-nothing-said":             "said",
	"m-16-secrets":                  "secrets",

	"r-01-missing-backup-told":     "told",
	"r-02-missing-backup-harmless": "kept",
	"r-03-pod-of-the-name":         "left-alone",
	"r-04-success-too-soon":        "not-yet",

	"v-01-no-title":               "title",
	"v-02-one-database":           "own-database",
	"v-03-second-site":            "second",
	"v-04-image-of-nothing":       "honest",
	"v-05-another-image":          "back",
	"v-07-another-password":       "rolled-out",
	"v-08-password-in-the-source": "generated",

	"z-01-one-sleeps-all-wait":   "fast",
	"z-02-owner-by-name":         "first-word",
	"z-03-missing-word":          "back",
	"z-04-words-of-one-second":   "sung",
	"z-05-kiyoshi-not-noted":     "sing",
	"z-06-spec-is-the-users":     "spec",
	"z-07-status-subresource":    "sing",
	"z-08-kiyoshi-deleted":       "delete",
	"z-09-pattern-in-the-middle": "sung",
	"z-10-kiyoshi-ordered":       "order",
	"z-11-deleted-in-the-pause":  "delete-in-the-pause",
	"z-12-impossible-interval":   "refused",
	"z-13-log-of-the-kiyoshi":    "log",
	"z-14-second-writer":         "the-song-goes-on",
	"z-15-reads-the-namespace":   "reads",
}

// needsLab is the label of scenarios that plain Chainsaw cannot run.
const needsLab = "operator-lab.dev/needs"

func bundled(t *testing.T) []*format.Loaded {
	t.Helper()
	all, err := format.Discover(format.Discovery{Paths: folders(t), TestFile: "chainsaw-test"})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// folders returns the folders of the operators.
func folders(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, op := range operators.All() {
		names = append(names, op.Name)
	}
	return names
}

func TestBundledScenariosAreInOrder(t *testing.T) {
	for _, problem := range format.Lint(format.Discovery{Paths: folders(t), TestFile: "chainsaw-test"}) {
		t.Error(problem)
	}
	found := map[string]bool{}
	for _, loaded := range bundled(t) {
		if loaded.Err != nil {
			t.Errorf("%s: %v", loaded.File, loaded.Err)
			continue
		}
		test := loaded.Test
		name := filepath.Base(loaded.Folder)
		if test.Name != name {
			t.Errorf("%s: it is named %s", loaded.File, test.Name)
		}
		if test.Spec.Description == "" {
			t.Errorf("%s: it has no description", loaded.File)
		}
		if got, want := test.Annotations["operator-lab.dev/finding"], findingOf(name); got != want {
			t.Errorf("%s: its finding is %q, want %q", loaded.File, got, want)
		}
		found[name] = true
		text, err := os.ReadFile(loaded.File)
		if err != nil {
			t.Fatal(err)
		}
		needs := test.Labels[needsLab] == "lab"
		if uses := usesLab(t, loaded.Folder, text); uses != needs {
			t.Errorf("%s: it uses objects of the lab: %v, and its label %s says: %v", loaded.File, uses, needsLab, needs)
		}
		embedded, err := fs.ReadFile(scenarios.Bundled(), filepath.ToSlash(strings.TrimPrefix(loaded.File, here(t)+"/")))
		if err != nil || !bytes.Equal(text, embedded) {
			t.Errorf("%s: it is not what comes with the lab: %v", loaded.File, err)
		}
	}
	for name := range findings {
		if !found[name] {
			t.Errorf("there is no scenario %s", name)
		}
	}
}

// template matches the reference of a step that is shared by scenarios.
var template = regexp.MustCompile(`(?m)^ +template: (\S+)$`)

// usesLab reports whether a scenario, or a shared step of it, uses objects of the lab.
func usesLab(t *testing.T, folder string, text []byte) bool {
	t.Helper()
	texts := [][]byte{text}
	for _, found := range template.FindAllSubmatch(text, -1) {
		step, err := os.ReadFile(filepath.Join(folder, string(found[1])))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, step)
	}
	return slices.ContainsFunc(texts, func(text []byte) bool { return bytes.Contains(text, []byte("operator-lab.dev/v1alpha1")) })
}

// findingNumber matches the beginning of the name of a scenario for a finding.
var findingNumber = regexp.MustCompile(`^[behmrvz]-[0-9]{2}\b`)

// findingOf returns the finding in a scenario's name, such as Z-01; empty if none.
func findingOf(name string) string {
	return strings.ToUpper(findingNumber.FindString(name))
}

func here(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// played is the result of a test of a run.
type played struct {
	Name, Status, Journal string
	// StartTime and EndTime are the times of its begin and end.
	StartTime, EndTime time.Time
	// Findings are the names of the oracles that found something.
	Findings []struct{ Oracle, Message string }
	// failed describes the failed operations: step, type and reason.
	failed []string
	// caught is what its catch blocks printed.
	caught []string
	// steps are the names of the failed steps.
	steps map[string]bool
	// toil is what its faults have cost, by their names.
	toil map[string]report.Toil
}

// needsBinary returns the path of the binary that a test runs, or skips the test.
func needsBinary(tb testing.TB) string {
	tb.Helper()
	binary := os.Getenv("OPERATOR_LAB_BINARY")
	if binary == "" {
		tb.Skip("OPERATOR_LAB_BINARY is not set: it names the binary this test drives; 'make test' builds it and sets it")
	}
	return binary
}

// Other tests run on the machine at the same time, so every timeout is longer: for the hardened variants, which are to pass,
// and less so for the classic ones, where the step that is to fail uses up its own. The clean-up needs it in any case: a pod
// whose namespace is deleted just after its birth may use all of its grace of 30 seconds, as an init container that is a
// shell, waiting for the name of a Service that is gone, does not end by SIGTERM.
var (
	hardenedArgs = []string{"--timeout-scale", "6"}
	classicArgs  = []string{"--timeout-scale", "3", "--give-up", "--variant", "classic"}
)

// play runs 'operator-lab test', and returns the result of each test, and the exit code. What is told of each journal has to
// be the same everywhere.
func play(tb testing.TB, args ...string) (tests []*played, code int) {
	tb.Helper()
	if t, is := tb.(*testing.T); is {
		args = append([]string{"--all-journals", "--journal", t.TempDir()}, args...)
		defer func() {
			var journals []string
			for _, test := range tests {
				if test.Journal == "" {
					t.Errorf("%s: it has no journal to look at", test.Name)
					continue
				}
				journals = append(journals, test.Journal)
			}
			consistent(t, journals...)
		}()
	}
	binary := needsBinary(tb)
	cmd := exec.CommandContext(tb.Context(), binary, append([]string{
		"test", "--output", "jsonl", "--quiet", "--seed", "7", "--exec-timeout", "10s", "--apply-timeout", "10s",
	}, args...)...)
	cmd.Env = os.Environ()
	if os.Getenv("OPERATOR_LAB_STATE_DIR") == "" {
		cmd.Env = append(cmd.Env, "OPERATOR_LAB_STATE_DIR="+tb.TempDir())
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		tb.Fatal(err)
	}
	tests = read(tb, out)
	if code > 1 || len(tests) == 0 {
		tb.Fatalf("%v: exit code %d, %d tests\n%s", args, code, len(tests), said.Bytes())
	}
	return tests, code
}

// read parses the JSON lines of a run.
func read(tb testing.TB, out []byte) (tests []*played) {
	tb.Helper()
	open := map[string]*played{} // by ID
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line struct {
			Event, Test, Step, Type, Status, Phase, Output string
			Failure                                        *struct{ Error string }
			Toil                                           *report.Toil
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			tb.Fatalf("%v in the line %s", err, lines.Bytes())
		}
		test := open[line.Test]
		switch {
		case line.Event == "beginTest":
			test = &played{steps: map[string]bool{}, toil: map[string]report.Toil{}}
			open[line.Test], tests = test, append(tests, test)
		case line.Event == "endOperation" && line.Failure != nil:
			test.failed = append(test.failed, line.Step+": "+line.Type+": "+line.Failure.Error)
			test.steps[line.Step] = true
		case line.Event == "endOperation" && line.Phase == string(report.Catch):
			test.caught = append(test.caught, line.Output)
		case line.Event == "endStep" && line.Toil != nil:
			test.toil[line.Toil.Fault] = *line.Toil
		case line.Event == "endTest":
			if err := json.Unmarshal(lines.Bytes(), test); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	return tests
}

// Short runs use some scenarios only: the demos, and a finding of each operator of the first articles, which the hardened operator
// must pass and the classic one must fail.
const (
	shortFindings = "^(z-02|m-03|e-04)"
	shortHardened = "^(demo|sings|drift)|" + shortFindings
)

// TestHardenedPasses runs all scenarios, in several sandboxes.
func TestHardenedPasses(t *testing.T) {
	t.Parallel()
	needsBinary(t)
	if testing.Short() {
		if n := allPass(t, append([]string{"--include-test-regex", shortHardened}, folders(t)...)); n < 9 {
			t.Errorf("only %d tests were run", n)
		}
		return
	}
	var plays atomic.Int64
	t.Run("parts", func(t *testing.T) {
		for _, part := range parts(t, 17, func(name string) bool { return !measuresToil(name) }) {
			t.Run(part.name, func(t *testing.T) {
				t.Parallel()
				plays.Add(allPass(t, part.args))
			})
		}
	})
	if want := len(bundled(t)) - len(keepers); !t.Failed() && plays.Load() < int64(want) {
		t.Errorf("only %d of %d tests were run", plays.Load(), want)
	}
}

// keepers are who looks after the store in the scenarios that measure toil. [TestToil] plays these.
var keepers = []string{"by-hand", "classic", "hardened"}

func measuresToil(scenario string) bool { return strings.HasPrefix(scenario, "toil-") }

// TestToil plays the faults without an operator, with classic and with hardened, and compares what a person had to do. Timeouts are longer
// only where nobody is to be needed: elsewhere they are waited for in vain before a person begins.
func TestToil(t *testing.T) {
	t.Parallel()
	needsBinary(t)
	if testing.Short() {
		t.Skip("plays of six faults take two minutes, most of it waiting")
	}
	var mu sync.Mutex
	actions := map[string]int{}
	t.Run("plays", func(t *testing.T) {
		for _, keeper := range keepers {
			t.Run(keeper, func(t *testing.T) {
				t.Parallel()
				args := []string{"--include-test-regex", "^toil-" + keeper + "$", "etcd"}
				if keeper == "hardened" { // nobody is to be needed
					args = append(args, "--timeout-scale", "3")
				}
				tests, _ := play(t, args...)
				test := tests[0]
				if test.Status != "passed" || len(tests) > 1 {
					t.Errorf("%d tests, %s: %q %+v; its last events:\n%s", len(tests), test.Status, test.failed, test.Findings, test.lastEvents(t))
				}
				for _, fault := range format.ToilFaults {
					cost, measured := test.toil[fault]
					if is := keeper != "by-hand" || fault != "kill-operator"; measured != is {
						t.Errorf("%s is measured: %v, want %v", fault, measured, is)
					}
					mu.Lock()
					actions[keeper] += cost.Actions
					mu.Unlock()
					t.Logf("%s: %+v", fault, cost)
				}
			})
		}
	})
	if len(actions) != len(keepers) || actions["hardened"] != 0 || actions["classic"] <= 0 || actions["by-hand"] <= actions["classic"] {
		t.Errorf("commands by hand: %v", actions)
	}
}

// part is some scenarios of an operator, which are run in a sandbox of their own.
type part struct {
	name string
	args []string
}

// parts divides the scenarios of each operator that are wanted, at most that many to a part: much of their time is waiting.
func parts(t *testing.T, most int, wanted func(name string) bool) (all []part) {
	t.Helper()
	names := map[string][]string{} // by operator
	for _, loaded := range bundled(t) {
		if name := filepath.Base(loaded.Folder); wanted(name) {
			operator := filepath.Base(filepath.Dir(loaded.Folder))
			names[operator] = append(names[operator], name)
		}
	}
	for _, operator := range slices.Sorted(maps.Keys(names)) {
		n := (len(names[operator]) + most - 1) / most
		for i := range n {
			var some []string
			for j := i; j < len(names[operator]); j += n {
				some = append(some, names[operator][j])
			}
			all = append(all, part{
				name: fmt.Sprintf("%s %d of %d", operator, i+1, n),
				args: []string{"--include-test-regex", "^(" + strings.Join(some, "|") + ")$", operator},
			})
		}
	}
	return all
}

// allPass runs scenarios, and returns how many were run.
func allPass(t *testing.T, args []string) int64 {
	t.Helper()
	tests, code := play(t, slices.Concat(hardenedArgs, args)...)
	for _, test := range tests {
		if test.Status != "passed" {
			t.Errorf("%s %s: %q %+v; its last events:\n%s", test.Name, test.Status, test.failed, test.Findings, test.lastEvents(t))
		}
	}
	if code != 0 {
		t.Errorf("the exit code is %d", code)
	}
	return int64(len(tests))
}

// TestClassicFails checks that each finding makes the expected step fail, and nothing before it. It uses several
// sandboxes, because waiting for failures takes long.
func TestClassicFails(t *testing.T) {
	t.Parallel()
	needsBinary(t)
	if testing.Short() {
		tests, code := play(t, slices.Concat(classicArgs, []string{"--include-test-regex", shortFindings}, folders(t))...)
		if code != 1 || len(tests) < 3 {
			t.Errorf("the exit code is %d, %d tests were run", code, len(tests))
		}
		for _, test := range tests {
			failsAtItsStep(t, test)
		}
		return
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	t.Run("parts", func(t *testing.T) {
		for _, part := range parts(t, 9, func(name string) bool { return findings[name] != "" }) {
			t.Run(part.name, func(t *testing.T) {
				t.Parallel()
				tests, code := play(t, slices.Concat(classicArgs, part.args)...)
				if code != 1 {
					t.Errorf("the exit code is %d", code)
				}
				for _, test := range tests {
					mu.Lock()
					seen[test.Name] = true
					mu.Unlock()
					failsAtItsStep(t, test)
				}
			})
		}
	})
	if !t.Failed() && len(seen) != len(findings) {
		t.Errorf("%d of %d findings were looked at", len(seen), len(findings))
	}
}

func failsAtItsStep(t *testing.T, test *played) {
	t.Helper()
	step, known := findings[test.Name]
	switch {
	case !known:
		t.Errorf("%s is not among the findings", test.Name)
	case test.Status != "failed":
		t.Errorf("%s %s: the classic variant is to fail", test.Name, test.Status)
	case len(test.steps) != 1 || !test.steps[step]:
		t.Errorf("%s failed at %q; want its step %s; its last events:\n%s", test.Name, test.failed, step, test.lastEvents(t))
	}
}

// lastEvents returns the end of the journal as people read it, the last that the operator logged, and what catch blocks
// printed.
func (p *played) lastEvents(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.Journal)
	if err != nil {
		return err.Error()
	}
	out, err := exec.CommandContext(t.Context(), needsBinary(t), "replay", "--plain", p.Journal).CombinedOutput()
	if err != nil {
		return err.Error()
	}
	events := strings.Split(string(out), "\n")
	var logged []string
	for _, e := range journalOf(t, text).Since(0) {
		if e.Kind == trace.KindLog {
			logged = append(logged, strings.Join(append([]string{e.Message, e.Error}, e.Values...), " "))
		}
	}
	return strings.Join(slices.Concat(events[max(0, len(events)-40):], logged[max(0, len(logged)-15):], p.caught), "\n")
}

// repeatEnv is how often to repeat the scenarios with faults; without it they are not repeated.
const repeatEnv = "OPERATOR_LAB_REPEAT"

// TestFaultsAreDeterministic checks that the same seed gives the same verdict each time.
func TestFaultsAreDeterministic(t *testing.T) {
	times, _ := strconv.Atoi(os.Getenv(repeatEnv))
	if times < 2 {
		t.Skip(repeatEnv + " is not set: it says how often the scenarios with faults are repeated, twenty times takes eleven minutes")
	}
	var dirs []string
	for _, loaded := range bundled(t) {
		text, err := os.ReadFile(loaded.File)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("kind: Fault\n")) {
			dirs = append(dirs, loaded.Folder)
		}
	}
	tests, code := play(t, append([]string{"--repeat-count", strconv.Itoa(times)}, dirs...)...)
	verdicts := map[string]map[string]int{} // by name without the number of the repetition
	for _, test := range tests {
		name, _, _ := strings.Cut(test.Name, " (")
		if verdicts[name] == nil {
			verdicts[name] = map[string]int{}
		}
		verdicts[name][test.Status]++
		if test.Status != "passed" {
			t.Logf("%s %s: %q %+v", test.Name, test.Status, test.failed, test.Findings)
		}
	}
	for name, n := range verdicts {
		if n["passed"] != times {
			t.Errorf("%s: %v; want it to pass %d times", name, n, times)
		}
	}
	if code != 0 || len(verdicts) < len(dirs) {
		t.Errorf("exit code %d; %d scenarios in %s", code, len(verdicts), path.Join(dirs...))
	}
	t.Logf("%d scenarios in %d runs", len(verdicts), len(tests))
}
