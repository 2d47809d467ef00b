package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// failure returns the first failure of a test.
func failure(t *testing.T, r *report.Test) *report.Failure {
	t.Helper()
	for _, s := range r.Steps {
		for _, o := range s.Operations {
			if o.Failure != nil {
				return o.Failure
			}
		}
	}
	t.Fatalf("nothing failed:\n%s", told(r))
	return nil
}

// ended waits until the process whose pid is in a file has ended.
func ended(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, "the end of what was left behind", func(context.Context) error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && strings.Contains(string(stat), ") Z ") {
			return nil // a zombie: its parent has not waited for it yet
		}
		if syscall.Kill(pid, 0) == nil {
			return fmt.Errorf("%d is alive", pid)
		}
		return nil
	})
}

func TestAScriptThatDoesNotEndIsKilledWithAllItStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := offline(t, quick(), "chainsaw-test.yaml", test("endless", `
steps:
- try:
  - script:
      timeout: 5s
      content: |
        echo said
        sleep 600 & echo $! > `+dir+`/pid
        trap '' TERM INT
        while :; do sleep 1; done
`)).Tests[0]
	f := failure(t, r)
	if !strings.Contains(f.Message, "not over after 5s") || f.Hint == "" {
		t.Errorf("the failure is %+v", f)
	}
	if out := r.Steps[1].Operations[0].Output; out != "said" {
		t.Errorf("the output is %q", out)
	}
	ended(t, filepath.Join(dir, "pid"))
}

func TestWhatAScriptLeavesRunningEndsWithTheTest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := offline(t, quick(), "chainsaw-test.yaml", test("left", `
steps:
- try: [{script: {content: "sleep 600 >/dev/null 2>&1 & echo $! > `+dir+`/pid"}}]
- try: [{script: {content: "kill -0 $(cat `+dir+`/pid)"}}]
`)).Tests[0]
	if r.Failed() {
		t.Error(told(r))
	}
	ended(t, filepath.Join(dir, "pid"))
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	r := offline(t, quick(), "chainsaw-test.yaml", test("much", `
steps: [{try: [{script: {content: "echo first; head -c 5000000 /dev/zero | tr '\\0' 'x'; echo; echo last"}}]}]
`)).Tests[0]
	out := r.Steps[1].Operations[0].Output
	if r.Failed() || len(out) > 1<<20+100 || !strings.HasPrefix(out, "first\n") || !strings.HasSuffix(out, "x\nlast") || !strings.Contains(out, "bytes are left out here]") {
		t.Errorf("of %d bytes: %.20q, failed %v", len(out), out, r.Failed())
	}
}

func TestAFailedAssertShowsTheClosestObject(t *testing.T) {
	t.Parallel()
	r := one(t, `
timeouts: {assert: 2s}
steps:
- try:
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: far, labels: {x: z}}, data: {a: "0", b: "0", c: "0"}}}
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: near, labels: {x: z}}, data: {a: "1", b: "0", c: "3", d: "4"}}}
  - assert:
      resource:
        apiVersion: v1
        kind: ConfigMap
        metadata: {labels: {x: z}}
        data: {a: "1", b: (to_string(`+"`2`"+`)), (length(c)): 1, e: "5"}
`)
	f := failure(t, r)
	if f.Object != "ConfigMap "+r.Namespace+"/near" || f.Others != 1 {
		t.Errorf("the closest is %s, and %d others", f.Object, f.Others)
	}
	got := map[string]string{}
	for _, d := range f.Differences {
		got[d.Path] = d.Message
	}
	if diff := cmp.Diff(map[string]string{"data.b": `is "0", not "2"`, "data.e": "is not there"}, got); diff != "" {
		t.Error(diff)
	}
	want := []string{
		" apiVersion: v1", " data:", "   (length(c)): 1", `   a: "1"`, `-  b: "2"`, `-  e: "5"`, `+  b: "0"`, " kind: ConfigMap", " metadata:", "   labels:", " ...",
	}
	if diff := cmp.Diff(want, f.Diff); diff != "" {
		t.Error(diff)
	}
}

func TestAnAssertOfWhatIsNotThereNamesWhatIs(t *testing.T) {
	t.Parallel()
	r := one(t, `
timeouts: {assert: 2s}
steps:
- try:
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: other}}}
  - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: wanted}}}
`)
	f := failure(t, r)
	if !strings.Contains(f.Message, "wanted was not found after 2s") || !strings.Contains(f.Hint, "other") {
		t.Errorf("the failure is %+v", f)
	}
}

func TestAnAssertOfNoObjectHasNoDiff(t *testing.T) {
	t.Parallel()
	r := offline(t, quick(), "chainsaw-test.yaml", test("count", `
timeouts: {assert: 100ms}
steps: [{try: [{assert: {resource: {(length('ab')): 3}}}]}]
`)).Tests[0]
	if f := failure(t, r); len(f.Differences) != 1 || len(f.Diff) > 0 {
		t.Errorf("the failure is %+v", f)
	}
}

func TestTimeoutsAreScaled(t *testing.T) {
	t.Parallel()
	configuration := quick()
	configuration.Spec.Timeouts.Exec.Duration = 20 * time.Millisecond
	r := run(t, runner.Options{Configuration: configuration, TimeoutScale: 2.5, Tests: discover(t, folder(t, "chainsaw-test.yaml", test("scaled", `
timeouts: {assert: 4s}
steps:
- try: [{script: {content: "echo $ASSERT", timeout: 1h, env: [{name: ASSERT, value: (to_string($timeouts.assert))}]}}]
- try: [{script: {content: sleep 1h}}]
`)))}).Tests[0]
	if f := failure(t, r); !strings.Contains(f.Message, "not over after 50ms") {
		t.Errorf("the failure is %+v", f)
	}
	if out := r.Steps[1].Operations[0].Output; out != "10000000000" {
		t.Errorf("the timeout of asserts is %q nanoseconds", out)
	}
}

func TestAnAssertWaitsForTheFieldThatItsExpressionNeeds(t *testing.T) {
	t.Parallel()
	r := one(t, `
timeouts: {assert: 30s}
steps:
- try:
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
  - script: {content: "(while [ ! -e go ]; do sleep 0.1; done; kubectl -n $NAMESPACE patch cm a --type=merge -p '{\"data\":{\"k\":\"abc\"}}') >/dev/null 2>&1 & touch go"}
  - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, (length(data.k)): 3}}
`)
	if r.Failed() {
		t.Error(told(r))
	}
}

func TestWhatIsWrongWithAnExpressionFailsAtOnce(t *testing.T) {
	t.Parallel()
	r := one(t, `
timeouts: {assert: 10m}
steps: [{try: [{assert: {resource: {($nothing): 1}}}]}]
`)
	if f := failure(t, r); !strings.Contains(f.Message, "variable not defined: $nothing") {
		t.Errorf("the failure is %+v", f)
	}
}

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.example.com}
spec:
  group: example.com
  names: {kind: %[2]s, plural: %[1]ss, singular: %[1]s}
  scope: %[3]s
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

func TestAKindCanBeUsedAsSoonAsItIsDefined(t *testing.T) {
	t.Parallel()
	// The API server delays the first object of a new kind for up to two seconds.
	r := one(t, `
timeouts: {apply: 30s}
steps:
- try:
  - error: {resource: {"(x_k8s_resource_exists($client, 'example.com/v1', 'Fresh'))": true}}
  - apply: {file: crd.yaml}
  - apply: {resource: {apiVersion: example.com/v1, kind: Fresh, metadata: {name: a}}}
  - assert: {resource: {apiVersion: example.com/v1, kind: Fresh, metadata: {name: a}}}
  - delete: {ref: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: freshs.example.com}}
  - error: {resource: {apiVersion: example.com/v1, kind: Fresh, metadata: {name: a}}}
  - apply: {file: again.yaml}
  - apply: {timeout: 30s, resource: {apiVersion: example.com/v1, kind: Fresh, metadata: {name: b, namespace: default}}}
`, "crd.yaml", fmt.Sprintf(crd, "fresh", "Fresh", "Namespaced"), "again.yaml", fmt.Sprintf(crd, "fresh", "Fresh", "Namespaced"))
	if r.Failed() {
		t.Error(told(r))
	}
}

func TestStaysTrue(t *testing.T) {
	t.Parallel()
	lab(t)
	spec := func(annotation, steps string) string {
		text := test("stays", steps)
		return strings.Replace(text, "metadata:\n", "metadata:\n  annotations: {operator-lab.dev/stays."+annotation+"}\n", 1)
	}
	run1 := func(t *testing.T, text string) *report.Test {
		t.Helper()
		return run(t, onLab(t, folder(t, "chainsaw-test.yaml", text))).Tests[0]
	}
	t.Run("it does", func(t *testing.T) {
		t.Parallel()
		r := run1(t, spec("as-made: 300ms", `
steps:
- name: As made
  try:
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
  - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
  - error: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}
  - script: {content: "true"}
- name: other
  try: [{assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}]
`))
		text := told(r)
		if r.Failed() || strings.Count(text, " stays ") != 1 || !strings.Contains(text, "As made try error ConfigMap "+r.Namespace+"/b\nAs made try stays 2 asserts for 300ms\nAs made try script") {
			t.Error(text)
		}
	})
	t.Run("it does not", func(t *testing.T) {
		t.Parallel()
		r := run1(t, spec("step-1: 1m", `
steps:
- try:
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}}
  - script: {content: "(while [ ! -e go ]; do sleep 0.1; done; kubectl -n $NAMESPACE patch cm a --type=merge -p '{\"data\":{\"k\":\"w\"}}') >/dev/null 2>&1 & (sleep 3; touch go) >/dev/null 2>&1 &"}
  - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}}
  - script: {content: echo not reached}
`))
		f := failure(t, r)
		if !strings.HasPrefix(f.Message, "stopped being true ") || len(f.Differences) != 1 || len(f.Diff) == 0 || strings.Contains(told(r), "not reached") {
			t.Errorf("the failure is %+v\n%s", f, told(r))
		}
	})
	t.Run("no duration", func(t *testing.T) {
		t.Parallel()
		r := offline(t, quick(), "chainsaw-test.yaml", spec("step-1: long", "steps: [{try: [{sleep: {duration: 1ms}}]}]")).Tests[0]
		if !r.Failed() {
			t.Error(told(r))
		}
	})
}

// hooks records its calls, and returns the errors that a test sets.
type hooks struct {
	recorder
	begin   error
	finding string
	atRest  bool
}

func (h *hooks) AtRest(_ context.Context, t *format.Test, within time.Duration) bool {
	if h.atRest {
		h.note("at rest %s %v", t.Name, within > time.Minute && within <= 10*time.Minute)
	}
	return h.atRest
}

func (h *hooks) Begin(_ context.Context, t *format.Test, r *report.Test) error {
	h.note("begin %s %q", t.Name, r.Namespace)
	return h.begin
}

type noLab struct{}

func (noLab) Error() string { return "this needs the lab" }
func (noLab) Hint() string  { return "leave out --kubeconfig" }

func (h *hooks) Object(apiVersion, _ string) error {
	if strings.HasPrefix(apiVersion, "operator-lab.dev/") {
		return fmt.Errorf("asked for %s: %w", apiVersion, noLab{})
	}
	return nil
}

func (h *hooks) Settled(ctx context.Context, _ *format.Test, r *report.Test, ok bool) []report.Finding {
	h.note("settled %v %v", ok, ctx.Err())
	if h.finding == "" {
		return nil
	}
	return []report.Finding{{Oracle: "hot-loop", Message: h.finding}}
}

func (h *hooks) Cleaned(_ context.Context, _ *format.Test, r *report.Test, ok bool) []report.Finding {
	h.note("cleaned %v", ok)
	return nil
}

func (h *hooks) Explain(_ context.Context, o *unstructured.Unstructured) []string {
	return []string{"about " + o.GetName()}
}

func TestHooks(t *testing.T) {
	t.Parallel()
	lab(t)
	passes := "steps: [{try: [{sleep: {duration: 1ms}}]}]"
	for _, c := range []struct {
		name, spec string
		hooks      *hooks
		calls      []string
		told       []string
		failed     bool
	}{
		{"passes", passes, &hooks{}, []string{`begin a ""`, "settled true <nil>", "cleaned true"}, nil, false},
		{"fails", "steps: [{try: [{script: {content: 'false'}}]}]", &hooks{}, []string{`begin a ""`, "settled false <nil>", "paused", "cleaned false"}, nil, true},
		{"finds", passes, &hooks{finding: "hot"}, []string{`begin a ""`, "settled true <nil>", "paused", "cleaned true"}, []string{"FINDING hot-loop hot"}, true},
		{"does not begin", passes, &hooks{begin: noLab{}}, []string{`begin a ""`, "paused"}, []string{"FAILED this needs the lab HINT leave out"}, true},
		{"is skipped", "skip: true\n" + passes, &hooks{}, nil, nil, false},
		{"objects of the lab", `
timeouts: {apply: 10m, assert: 10m}
steps:
- try:
  - continueOnError: true
    apply: {resource: {apiVersion: operator-lab.dev/v1alpha1, kind: Fault, metadata: {name: a}}}
  - continueOnError: true
    assert: {resource: {apiVersion: operator-lab.dev/v1alpha1, kind: Loop, metadata: {name: a}}}
  - continueOnError: true
    assert: {resource: {"(x_k8s_list($client, 'operator-lab.dev/v1alpha1', 'Loop').items[0])": {}}}
  - get: {apiVersion: operator-lab.dev/v1alpha1, kind: Loop}
`, &hooks{}, []string{`begin a ""`, "settled false <nil>", "paused", "cleaned false"}, []string{"apply", "FAILED asked for operator-lab.dev/v1alpha1: this needs the lab HINT leave out", "assert", "HINT leave out", "assert", "HINT leave out", "get", "HINT leave out"}, true},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			o := onLab(t, folder(t, "chainsaw-test.yaml", test("a", c.spec)))
			o.Hooks = c.hooks
			o.PauseOnFailure = func(context.Context, *report.Test) { c.hooks.note("paused") }
			r := run(t, o).Tests[0]
			if diff := cmp.Diff(c.calls, c.hooks.lines); diff != "" {
				t.Error(diff)
			}
			rest, text := told(r), told(r)
			for _, want := range c.told {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Errorf("want %q in\n%s", want, text)
				}
				rest = after
			}
			if r.Failed() != c.failed {
				t.Errorf("failed: %v\n%s", r.Failed(), text)
			}
		})
	}
}

// TestGiveUp checks that an assert that does not hold gives up only if nothing can change and the test, or the run, says so.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	spec := func(timeout string) string {
		return "timeouts: {assert: " + timeout + "}\nsteps: [{try: [{assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}]}]"
	}
	annotated := strings.Replace(test("a", spec("10m")), "metadata:\n", "metadata:\n  annotations: {operator-lab.dev/give-up: at-rest}\n", 1)
	for _, c := range []struct {
		name, text string
		hooks      *hooks
		giveUp     bool
		calls      []string
		told       string
	}{
		{"the test says so", annotated, &hooks{atRest: true}, false, []string{`begin a ""`, "at rest a true", "settled false <nil>", "cleaned false"}, "when nothing could change any more"},
		{"the run says so", test("a", spec("10m")), &hooks{atRest: true}, true, []string{`begin a ""`, "at rest a true", "settled false <nil>", "cleaned false"}, "when nothing could change any more"},
		{"nobody says so", test("a", spec("50ms")), &hooks{atRest: true}, false, []string{`begin a ""`, "settled false <nil>", "cleaned false"}, "was not found after 50ms"},
		{"something can change", strings.Replace(annotated, "10m", "50ms", 1), &hooks{}, false, []string{`begin a ""`, "settled false <nil>", "cleaned false"}, "was not found after 50ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := onLab(t, folder(t, "chainsaw-test.yaml", c.text))
			o.Hooks, o.GiveUp = c.hooks, c.giveUp
			r := run(t, o).Tests[0]
			if diff := cmp.Diff(c.calls, c.hooks.lines); diff != "" {
				t.Error(diff)
			}
			if text := told(r); !strings.Contains(text, c.told) {
				t.Errorf("want %q in\n%s", c.told, text)
			}
		})
	}
}

// late comes to rest by making what a test waits for.
type late struct {
	hooks
	client client.Client
}

func (l *late) AtRest(ctx context.Context, _ *format.Test, _ time.Duration) bool {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "late"}}
	return client.IgnoreAlreadyExists(l.client.Create(ctx, o)) == nil
}

// TestGiveUpLooksAgain: what an assert waits for may come after it has looked and before everything is at rest.
func TestGiveUpLooksAgain(t *testing.T) {
	t.Parallel()
	o := onLab(t, folder(t, "chainsaw-test.yaml", test("a", `
timeouts: {assert: 10m}
steps: [{try: [{assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: late, namespace: default}}}}]}]
`)))
	c, err := client.New(o.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o.Hooks, o.GiveUp = &late{client: c}, true
	if r := run(t, o).Tests[0]; r.Failed() {
		t.Error(told(r))
	}
}

func TestAFailedAssertIsExplained(t *testing.T) {
	t.Parallel()
	o := onLab(t, folder(t, "chainsaw-test.yaml", test("a", `
timeouts: {assert: 2s}
steps:
- try:
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
  - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}}
`)))
	o.Hooks = &hooks{}
	if diff := cmp.Diff([]string{"about a"}, failure(t, run(t, o).Tests[0]).Loop); diff != "" {
		t.Error(diff)
	}
}

// killer kills the API server before a test begins.
type killer struct {
	hooks
	lab *sandbox.Sandbox
}

func (k *killer) Begin(context.Context, *format.Test, *report.Test) error {
	return k.lab.Kill("kube-apiserver")
}

func TestARestartOfTheAPIServerIsNoFailure(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	lab(t) // skips the test without a binary
	own, err := sandbox.Start(t.Context(), sandbox.Options{Ephemeral: true, StateDir: filepath.Join(shared.dir, "state")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	o := onLab(t, folder(t, "chainsaw-test.yaml", test("a", `
timeouts: {apply: 1m}
steps:
- try:
  - apply: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
  - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
`)))
	o.Config, o.Kubeconfig, o.Hooks = own.Config(), own.Kubeconfig(), &killer{lab: own}
	if r := run(t, o).Tests[0]; r.Failed() {
		t.Error(told(r))
	}
}

// TestManyTestsAtOnce is for the race detector: many concurrent tests share one client.
func TestManyTestsAtOnce(t *testing.T) {
	t.Parallel()
	var files []string
	for i := range 20 {
		files = append(files, fmt.Sprintf("t%d/chainsaw-test.yaml", i), test(fmt.Sprintf("many-%d", i), `
steps:
- try:
  - apply: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: ($namespace)}}}
  - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: ($namespace)}}}
`))
	}
	r := run(t, onLab(t, folder(t, files...)))
	seen := map[string]bool{}
	for _, test := range r.Tests {
		if test.Failed() || seen[test.Namespace] {
			t.Error(told(test))
		}
		seen[test.Namespace] = true
	}
}

func TestARunWithoutTestsIsOne(t *testing.T) {
	t.Parallel()
	r, err := runner.Run(t.Context(), runner.Options{})
	if err != nil || len(r.Tests) != 0 || r.Seed == 0 {
		t.Errorf("the run is %+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runner.Run(ctx, runner.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
