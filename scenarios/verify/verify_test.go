package verify_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
	"github.com/operator-lab/operator-lab/scenarios/verify"
	"github.com/operator-lab/operator-lab/scenarios/zoo"
)

// box is the sandbox of all tests of the package.
var box = sandboxtest.ShareSandbox(func() (sandbox.Options, error) {
	return sandbox.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{signedCRD()}}, nil
})

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(sandboxtest.Main(m, box))
}

// keep is the scenario of the zoo.
const keep = `apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
metadata:
  name: keep
  annotations: {operator-lab.dev/operator: keeper}
spec:
  steps:
  - try:
    - apply:
        resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {keep: "yes"}}}
    - assert:
        resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {ready: "true"}}
`

// sign is a scenario in which an object gets a status.
const sign = `apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
metadata:
  name: sign
  annotations: {operator-lab.dev/operator: keeper}
spec:
  steps:
  - try:
    - apply:
        resource: {apiVersion: example.com/v1, kind: Letter, metadata: {name: x}, spec: {text: hello}}
    - assert:
        resource: {apiVersion: example.com/v1, kind: Letter, metadata: {name: x}, status: {signed: "yes"}}
`

// changes is a scenario in which what is asked for changes, ends one in which the object is deleted, again one in which it is deleted
// after what belongs to it, and made once more, and onAndOff one in which something is no longer asked for, and then once more. In
// again a finalizer keeps the object until the operator has deleted the Secret: with a foreground deletion the garbage collector
// deletes it, too, and its speed decides whether the operator's next write after the object's end is that deletion.
var (
	changes = strings.Replace(strings.Replace(keep, "name: keep", "name: changes", 1), `keep: "yes"`, `keep: "one"`, 1) + `    - apply:
        resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {keep: "two"}}}
`
	ends = strings.Replace(keep, "name: keep", "name: ends", 1) + `    - delete:
        ref: {apiVersion: v1, kind: ConfigMap, name: x}
`
	again = strings.Replace(strings.Replace(keep, "name: keep", "name: again", 1), "name: x,", "name: x, finalizers: [example.com/held],", 1) + `    - script:
        content: kubectl delete configmap x --namespace "$NAMESPACE" --wait=false
    - error:
        resource: {apiVersion: v1, kind: Secret, metadata: {name: x-s}}
    - patch:
        resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: x, finalizers: null}}
` + keep[strings.Index(keep, "    - apply"):]
	onAndOff = strings.Replace(keep, "name: keep", "name: on-and-off", 1) + `    - apply:
        resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {keep: "off"}}}
    - error:
        resource: {apiVersion: v1, kind: Secret, metadata: {name: x-s}}
    - apply:
        resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {keep: "yes"}}}
    - assert:
        resource: {apiVersion: v1, kind: Secret, metadata: {name: x-s}}
`
)

// load reads a scenario from a file.
func load(tb testing.TB, file string) *format.Loaded {
	tb.Helper()
	all, err := format.Discover(format.Discovery{Paths: []string{filepath.Dir(file)}})
	if err != nil || len(all) != 1 || all[0].Err != nil {
		tb.Fatalf("%d tests, %v", len(all), err)
	}
	return all[0]
}

// explore explores an operator.
func explore(tb testing.TB, operator operators.Operator, scenario *format.Loaded, o verify.Options) (*verify.Report, error) {
	tb.Helper()
	cluster := box.Get(tb)
	reader, err := client.New(cluster.Config(), client.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	o.Lab.Cluster, o.Lab.Programs = cluster, []lab.Program{lab.Bundled(operator)}
	o.Test, o.Client = scenario, reader
	o.Runner = runner.Options{Configuration: format.DefaultConfiguration(), Config: cluster.Config()}
	return verify.Run(tb.Context(), o)
}

func written(tb testing.TB, text string) *format.Loaded {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "chainsaw-test.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return load(tb, file)
}

// seed is that of the next test which explores what has no bug: with 'go test -count 5' each run has another one.
var seed int64

// TestMended explores the operator without each of its bugs: with each fault, plans are played, and nothing is found.
func TestMended(t *testing.T) {
	seed++
	seen := map[[2]string]bool{}
	for _, bug := range append(bugs[1:], bugs[0]) {
		if seen[[2]string{bug.mended, bug.scenario}] {
			continue
		}
		seen[[2]string{bug.mended, bug.scenario}] = true
		scenario := written(t, bug.scenario)
		t.Run(cmp.Or(bug.mended, "mended")+" "+scenario.Test.Name, func(t *testing.T) {
			o := verify.Options{Pairs: 5}
			o.Lab.Seed = seed
			if testing.Short() {
				o.Only = []string{"crash-after", "stale-restart", "stale-view"}
			}
			r, err := explore(t, keeperWith(bug.mended), scenario, o)
			if err != nil {
				t.Fatal(err)
			}
			text := textOf(t, r)
			if len(r.Steady()) > 0 || slices.ContainsFunc(r.Plans, unfinished) {
				t.Errorf("findings with seed %d:\n%s", seed, text)
			}
			t.Logf("seed %d: %d plans, %d not steady", seed, len(r.Plans), len(r.Findings))
			for _, f := range r.Faults {
				if bug.mended == mended && bug.scenario == keep && f.Played == 0 && f.Needless < f.Plans {
					t.Errorf("%s never happened:\n%s", f.Name, text)
				}
			}
		})
		if testing.Short() {
			break
		}
	}
}

// unfinished reports whether a plan was not played to its end.
func unfinished(p verify.PlanResult) bool {
	return p.Result == verify.Skipped && strings.Contains(p.Why, "to its end")
}

func textOf(t *testing.T, r *verify.Report) string {
	t.Helper()
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// evidence returns a report with the events of both plays of what was not steady.
func evidence(t *testing.T, r *verify.Report) string {
	t.Helper()
	text := textOf(t, r)
	for _, f := range r.Findings {
		wrong, then := f.Journals()
		for _, j := range []*trace.Journal{wrong, then} {
			if f.Steady || j == nil {
				continue
			}
			text += "\n" + f.Plan + "\n"
			for _, e := range j.Since(0) {
				text += fmt.Sprintf("%5d %12v %s %s %s %s %s of %d rv %s %s %s\n",
					e.Seq, e.At, e.Kind, e.Verb, e.Object.Kind, e.Object.Name, e.Key, e.Cause, e.ResourceVersion, e.Message, e.Error)
			}
		}
	}
	return text
}

// exploredTwice is how many of the bugs are explored twice: it takes long.
const exploredTwice = 10

// TestZoo explores an operator with each of its bugs. What it finds it saves as a test, which fails with the bug and
// passes without.
func TestZoo(t *testing.T) {
	all := bugs
	if testing.Short() {
		all = bugs[:1]
	}
	for i, bug := range all {
		t.Run(bug.name+" by "+bug.by, func(t *testing.T) {
			scenario := written(t, bug.scenario)
			o := verify.Options{Only: []string{bug.by}, Patience: time.Second}
			if bug.name == twiceIsFatal {
				o.Pairs = 3
			}
			r, err := explore(t, keeperWith(bug.name), scenario, o)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Steady()) == 0 || slices.ContainsFunc(r.Plans, unfinished) {
				t.Fatalf("%d findings:\n%s", len(r.Steady()), evidence(t, r))
			}
			if page := htmlOf(t, r); strings.Count(page, "<iframe") != len(r.Steady()) || !strings.Contains(page, `<td class="wrong"><code>`) && len(r.Steady()[0].Differences()) > 0 {
				t.Errorf("the page has not what was found: %.2000s", page)
			}
			if testing.Short() {
				return
			}
			if i < exploredTwice {
				again, err := explore(t, keeperWith(bug.name), scenario, o)
				if err != nil {
					t.Fatal(err)
				}
				if diff := gocmp.Diff(found(r, again), found(again, r)); diff != "" || len(found(r, again)) == 0 {
					t.Errorf("other findings the second time: %s\n%s\n%s", diff, evidence(t, r), evidence(t, again))
				}
			}
			dir := t.TempDir()
			if err := r.Save(dir, scenario); err != nil {
				t.Fatal(err)
			}
			saved := load(t, filepath.Join(dir, "finding-01", "chainsaw-test.yaml"))
			for with, fails := range map[string]bool{bug.name: true, bug.mended: false} {
				if test := playOnce(t, with, saved); test.Failed() != fails {
					t.Errorf("the saved test failed: %v, with the bug %q", test.Failed(), with)
				}
			}
		})
	}
}

// TestAnotherPlanIsSteady explores an operator which goes wrong in the same way at two writes, at the first of them by chance: that it
// is found each time at the other one makes it a finding.
func TestAnotherPlanIsSteady(t *testing.T) {
	sandboxtest.Long(t)
	var begun sync.Map
	var left atomic.Bool
	operator := zoo.Operator("keeper", func(mgr ctrl.Manager, o controller.Options) error {
		l := &leaver{keeper{Client: mgr.GetClient(), live: mgr.GetAPIReader()}, &begun, &left}
		return ctrl.NewControllerManagedBy(mgr).WithOptions(o).Named("keeper").For(&corev1.ConfigMap{}).Complete(l)
	})
	r, err := explore(t, operator, written(t, keep), verify.Options{Only: []string{"crash-after", "crash-before"}, Patience: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	steady := r.Steady()
	if len(steady) != 1 || len(r.Findings) != 1 || !strings.HasPrefix(steady[0].Plan, "crash-before at create ConfigMap x-b") ||
		!slices.Equal(steady[0].Also, []string{"crash-after at create ConfigMap x-a"}) {
		t.Errorf("%s", evidence(t, r))
	}
}

// TestSameSeed explores the same twice: with the same seed the reports are the same, whatever the scenario's look for the cause of a
// failure says.
func TestSameSeed(t *testing.T) {
	sandboxtest.Long(t)
	scenario := written(t, strings.Replace(keep, "  - try:", "  - catch: [{script: {content: 'date +%N >&2; exit 1'}}]\n    try:", 1))
	var reports [2]string
	for i := range reports {
		o := verify.Options{Pairs: 6, Patience: time.Second, Only: []string{"lost-reply", "stale-view", "change-child"}}
		o.Lab.Seed = 7
		r, err := explore(t, keeperWith(existsIsFatal), scenario, o)
		if err != nil {
			t.Fatal(err)
		}
		reports[i] = textOf(t, r)
	}
	if diff := gocmp.Diff(reports[0], reports[1]); diff != "" || !strings.Contains(reports[0], "\n1. ") {
		t.Errorf("the reports of one seed differ: %s\n%s", diff, reports[0])
	}
}

// found returns what each steady finding of a report says, by its plans, of those that another report has, too: when the cache
// of an operator lags behind what it wrote itself, it writes once more, and there are plans for that.
func found(r, other *verify.Report) map[string]string {
	said := map[string]string{}
	for _, f := range r.Steady() {
		for _, plan := range append([]string{f.Plan}, f.Also...) {
			if slices.ContainsFunc(other.Plans, func(p verify.PlanResult) bool { return p.Fault+" at "+p.At == plan }) {
				said[plan] = f.Signature
			}
		}
	}
	return said
}

// playOnce plays a test with the operator in a lab.
func playOnce(t *testing.T, bug string, test *format.Loaded) *report.Test {
	t.Helper()
	cluster := box.Get(t)
	reader, err := client.New(cluster.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Open(t.Context(), lab.Options{Cluster: cluster, Programs: []lab.Program{lab.Bundled(keeperWith(bug))}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	configuration := *format.DefaultConfiguration()
	configuration.Spec.Timeouts.Assert.Duration /= 10
	run, err := runner.Run(t.Context(), runner.Options{
		Configuration: &configuration, Tests: []*format.Loaded{test}, Config: cluster.Config(),
		Hooks: scenarios.NewLabHooks(l, reader, scenarios.Selection{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return run.Tests[0]
}

// TestCannotExplore checks scenarios that cannot be explored.
func TestCannotExplore(t *testing.T) {
	for name, test := range map[string]struct{ scenario, want, bug string }{
		"counts":          {keep, "one more reconcile wrote: update Secret x-n", counts},
		"a matrix":        {strings.Replace(keep, "spec:\n", "spec:\n  scenarios: [{name: a}]\n", 1), "has a matrix", mended},
		"a fault":         {strings.Replace(keep, "apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels", "apiVersion: operator-lab.dev/v1alpha1, kind: Fault, metadata: {name: x, labels", 1), "verify makes the faults itself", mended},
		"no namespace":    {strings.Replace(keep, "apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels", "apiVersion: v1, kind: Namespace, metadata: {name: x, labels", 1), "a Namespace, which belongs to no namespace", mended},
		"nothing":         {strings.ReplaceAll(keep[:strings.Index(keep, "    - assert")], "ConfigMap", "Secret"), "there is nothing to explore", mended},
		"no time":         {keep, "a budget of 1ms is too short", mended},
		"fails by itself": {strings.Replace(keep, "name: x, labels", "name: y, labels", 1), "without any fault", mended},
	} {
		t.Run(name, func(t *testing.T) {
			o := verify.Options{}
			if name == "no time" {
				o.Budget = time.Millisecond
			}
			scenario := written(t, test.scenario)
			if name == "fails by itself" {
				scenario = shortened(scenario)
			}
			_, err := explore(t, keeperWith(test.bug), scenario, o)
			if err == nil || !strings.Contains(err.Error(), test.want) || sandbox.HintOf(err) == "" {
				t.Errorf("%v, hint %q", err, sandbox.HintOf(err))
			}
		})
	}
}

// shortened returns a scenario whose assertions give up soon.
func shortened(l *format.Loaded) *format.Loaded {
	timeouts := format.DefaultConfiguration().Spec.Timeouts
	timeouts.Assert.Duration /= 100
	l.Test.Spec.Timeouts = &format.Timeouts{Assert: &timeouts.Assert}
	return l
}
