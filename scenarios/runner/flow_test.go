package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// phases lists the operations of a test by phase and name, except for those of the namespace.
func phases(r *report.Test) []string {
	var out []string
	for _, s := range r.Steps {
		for _, o := range s.Operations {
			if strings.HasPrefix(s.Name, "@") {
				continue
			}
			text := fmt.Sprintf("%s %s %s", s.Name, o.Phase, o.Name)
			if o.Failure != nil {
				text += " failed"
			}
			out = append(out, text)
		}
	}
	return out
}

// offline runs tests without a cluster.
func offline(t *testing.T, configuration *format.Configuration, files ...string) *report.Run {
	t.Helper()
	return run(t, runner.Options{Configuration: configuration, Tests: discover(t, folder(t, files...))})
}

func TestOrderOfTheParts(t *testing.T) {
	t.Parallel()
	configuration := quick()
	configuration.Spec.Error.Catch = []format.CatchFinally{{Script: &format.Script{Content: "echo configuration"}}}
	r := offline(t, configuration, "chainsaw-test.yaml", test("order", `
catch: [{script: {content: echo test $SEEN, env: [{name: SEEN, value: ($seen)}]}}]
bindings: [{name: seen, value: before}]
steps:
- name: one
  try: [{script: {content: echo one, outputs: [{name: seen, value: (trim_space($stdout))}]}}]
  catch: [{script: {content: echo caught one}}]
  finally: [{script: {content: echo finally one}}]
  cleanup: [{script: {content: echo cleanup one}}]
- name: two
  try:
  - {continueOnError: true, script: {content: "echo goes on; false"}}
  - script: {content: "echo two; false"}
  - script: {content: echo not reached}
  catch: [{script: {content: "echo caught; false"}}, {script: {content: echo caught too}}]
  finally: [{script: {content: echo finally two}}]
  cleanup: [{script: {content: "echo cleanup two"}}]
- name: three
  try: [{script: {content: echo not reached}}]
`)).Tests[0]
	want := []string{
		"one try echo one", "one finally echo finally one", "one cleanup echo cleanup one",
		"two try echo goes on; false failed", "two try echo two; false failed",
		"two catch echo configuration", "two catch echo test $SEEN", "two catch echo caught; false failed", "two catch echo caught too",
		"two finally echo finally two", "two cleanup echo cleanup two",
	}
	if diff := cmp.Diff(want, phases(r)); diff != "" {
		t.Error(diff)
	}
	if out := r.Steps[2].Operations[3].Output; out != "test before" {
		t.Errorf("the catch of the test says %q: what a step puts out is not seen by the next", out)
	}
	one, two := r.Steps[1], r.Steps[2]
	if one.Operations[2].Started.Before(two.Operations[6].Ended) {
		t.Error("the clean-up does not begin with the last step")
	}
	if one.Operations[0].Line == 0 || !strings.HasSuffix(one.Operations[0].File, "chainsaw-test.yaml") {
		t.Errorf("an operation is at %s:%d", one.Operations[0].File, one.Operations[0].Line)
	}
}

func TestCatchAlsoRunsInAStepThatPassesAfterAFailure(t *testing.T) {
	t.Parallel()
	r := offline(t, quick(), "chainsaw-test.yaml", test("later", `
steps:
- name: one
  try: [{continueOnError: true, script: {content: "false"}}]
- name: two
  try: [{script: {content: "true"}}]
  catch: [{script: {content: echo caught}}]
`)).Tests[0]
	if diff := cmp.Diff([]string{"one try false failed", "two try true", "two catch echo caught"}, phases(r)); diff != "" {
		t.Error(diff)
	}
}

func TestTheCompilerOfAnOperationStaysForThoseAfterIt(t *testing.T) {
	t.Parallel()
	r := offline(t, quick(), "chainsaw-test.yaml", test("compiler", `
bindings: [{name: a, value: x}]
steps:
- try:
  - {compiler: cel, script: {content: echo $V, env: [{name: V, value: (bindings.resolve("a"))}]}}
  - script: {content: echo $V, env: [{name: V, value: (bindings.resolve("a"))}]}
- try:
  - script: {content: echo $V, env: [{name: V, value: ($a)}]}
`)).Tests[0]
	if r.Failed() {
		t.Error(told(r))
	}
}

func TestMatrixRepetitionsAndNames(t *testing.T) {
	t.Parallel()
	configuration := quick()
	configuration.Spec.Execution.RepeatCount = new(2)
	dir := folder(t, "a/chainsaw-test.yaml", test("matrix", `
scenarios:
- {name: first, bindings: [{name: v, value: "1"}]}
- bindings: [{name: v, value: "2"}]
steps: [{try: [{script: {content: echo $V $ID, env: [{name: V, value: ($v)}, {name: ID, value: (to_string($test.scenarioId))}]}}]}]
`), "b/chainsaw-test.yaml", test("left-out", `
steps: [{try: [{sleep: {duration: 1ms}}]}]
`))
	o := runner.Options{Configuration: configuration, Tests: discover(t, dir), Selected: func(t *report.Test) bool {
		return !strings.HasSuffix(t.Folder, "/b")
	}}
	r := run(t, o)
	var names, outputs, ids []string
	for _, test := range r.Tests {
		names = append(names, test.Name)
		ids = append(ids, strings.TrimPrefix(test.ID, dir))
		outputs = append(outputs, test.Steps[1].Operations[0].Output)
	}
	if diff := cmp.Diff([]string{"matrix/first (1 of 2)", "matrix/scenario #2 (1 of 2)", "matrix/first (2 of 2)", "matrix/scenario #2 (2 of 2)"}, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"1 1", "2 2", "1 1", "2 2"}, outputs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"/a[matrix]/first", "/a[matrix]/scenario #2", "/a[matrix]/first", "/a[matrix]/scenario #2"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestSkipAndFailFast(t *testing.T) {
	t.Parallel()
	configuration := quick()
	configuration.Spec.Execution.FailFast = true
	configuration.Spec.Execution.Parallel = new(1)
	r := offline(t, configuration,
		"a/chainsaw-test.yaml", test("skipped", "skip: true\nsteps: [{try: [{script: {content: 'false'}}]}]"),
		"b/chainsaw-test.yaml", test("fails", "steps: [{try: [{script: {content: 'false'}}]}]"),
		"c/chainsaw-test.yaml", test("comes-late", "steps: [{try: [{script: {content: 'true'}}]}]"),
		"d/chainsaw-test.yaml", test("alone", "concurrent: false\nsteps: [{try: [{script: {content: 'true'}}]}]"),
		"e/chainsaw-test.yaml", "kind: Nonsense",
	)
	var got []string
	for _, test := range r.Tests {
		got = append(got, fmt.Sprintf("%s %v %v", filepath.Base(test.Folder), test.Failed(), test.Skipped))
	}
	// A test that must run alone runs before the others.
	if diff := cmp.Diff([]string{"a false true", "b true false", "c false true", "d false false", "e true false"}, got); diff != "" {
		t.Error(diff)
	}
	if f := r.Tests[4].Steps[0].Operations[0]; f.Failure == nil || f.Line == 0 {
		t.Errorf("the file that cannot be loaded is reported as %+v", f)
	}
}

func TestAloneMeansThatNothingElseRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	alone := "concurrent: false\nsteps: [{try: [{script: {content: 'mkdir " + dir + "/lock && rmdir " + dir + "/lock'}}]}]"
	together := "steps: [{try: [{script: {content: 'touch " + dir + "/$ID; while [ $(ls " + dir + " | wc -l) -lt 3 ]; do sleep 0.05; done', env: [{name: ID, value: (to_string($test.id))}]}}]}]"
	var files []string
	for i := range 3 {
		files = append(files, fmt.Sprintf("a%d/chainsaw-test.yaml", i), test("alone", alone), fmt.Sprintf("t%d/chainsaw-test.yaml", i), test("together", together))
	}
	configuration := quick()
	configuration.Spec.Execution.Parallel = new(3)
	for _, test := range offline(t, configuration, files...).Tests {
		if test.Failed() {
			t.Error(told(test))
		}
	}
}

func TestWhatSleepsLongBeginsFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	waits := "steps: [{try: [{script: {content: 'while [ ! -e " + dir + "/begun ]; do sleep 0.05; done'}}]}]"
	files := []string{
		"a/chainsaw-test.yaml", test("a", waits),
		"b/chainsaw-test.yaml", test("b", waits),
		"c/chainsaw-test.yaml", test("c", "steps: [{try: [{script: {content: touch "+dir+"/begun}}, {sleep: {duration: 1ms}}]}]"),
	}
	configuration := quick()
	configuration.Spec.Execution.Parallel = new(2)
	for _, test := range offline(t, configuration, files...).Tests {
		if test.Failed() {
			t.Error(told(test))
		}
	}
}

func TestWithoutACluster(t *testing.T) {
	t.Parallel()
	r := offline(t, quick(), "chainsaw-test.yaml", test("nothing", `
steps:
- try:
  - assert: {resource: {(length('ab')): 2}}
  - script: {content: 'echo "<$NAMESPACE>"', check: {(trim_space($stdout)): <>}}
  - apply: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
`)).Tests[0]
	if text := told(r); !strings.Contains(text, "FAILED cluster client not set") || strings.Count(text, "FAILED") != 1 {
		t.Error(text)
	}
	if r.Namespace != "" {
		t.Errorf("there is a namespace %s", r.Namespace)
	}
}

func TestFilesThatAreNotOnTheDisk(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"suite/a/chainsaw-test.yaml": {Data: []byte(test("bundled", `
steps:
- try:
  - apply: {file: ../cm.yaml}
  - assert: {file: cm-*.yaml}
  - script: {content: cat text sub/text, check: {($stdout): onetwo}}
`))},
		"suite/cm.yaml":         {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n")},
		"suite/a/cm-there.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n")},
		"suite/a/text":          {Data: []byte("one")},
		"suite/a/sub/text":      {Data: []byte("two")},
	}
	all, err := format.Discover(format.Discovery{FS: files, Paths: []string{"suite"}})
	if err != nil {
		t.Fatal(err)
	}
	o := onLab(t)
	o.Tests = all
	if r := run(t, o).Tests[0]; r.Failed() {
		t.Error(told(r))
	}
}

func TestOtherClusters(t *testing.T) {
	t.Parallel()
	l := lab(t)
	kubeconfig, err := sandbox.KubeconfigOf("other", "", l.Config())
	if err != nil {
		t.Fatal(err)
	}
	r := one(t, `
clusters: {second: {kubeconfig: ./second, context: other}}
bindings: [{name: which, value: second}]
steps:
- cluster: ($which)
  try:
  - apply: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
  - script: {content: kubectl config current-context, check: {(trim_space($stdout)): test}}
- clusters: {later: {kubeconfig: later}}
  try:
  - script: {content: cp second later}
  - assert: {cluster: later, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
  - assert: {cluster: unknown, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
`, "second", string(kubeconfig))
	if text := told(r); strings.Count(text, "FAILED") != 1 || !strings.Contains(text, `FAILED there is no cluster "unknown" HINT known are later, second`) {
		t.Error(text)
	}
}

func TestOnlyWhatTheTestMadeIsRemovedTheLastFirst(t *testing.T) {
	t.Parallel()
	c := clientset(t).CoreV1().ConfigMaps("default")
	before, err := c.Create(t.Context(), newConfigMap("was-there"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), before.Name, metav1.DeleteOptions{}) })
	r := one(t, `
steps:
- name: one
  try:
  - apply: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: was-there, namespace: default}, data: {k: v}}}
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made-1, namespace: default}}}
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made-2, namespace: default}}}
- name: two
  skipDelete: true
  try:
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: default}}}
- name: three
  try:
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made-3, namespace: default}}}
`)
	if r.Failed() {
		t.Fatal(told(r))
	}
	var deletes []*report.Operation
	for _, s := range r.Steps {
		for _, o := range s.Operations {
			if o.Phase == report.Cleanup {
				deletes = append(deletes, o)
			}
		}
	}
	slices.SortFunc(deletes, func(a, b *report.Operation) int { return a.Started.Compare(b.Started) })
	var order []string
	for _, o := range deletes {
		order = append(order, o.Name)
	}
	want := []string{"ConfigMap default/made-3", "ConfigMap default/made-2", "ConfigMap default/made-1", "Namespace " + r.Namespace}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Error(diff)
	}
	after, err := c.Get(t.Context(), "was-there", metav1.GetOptions{})
	if err != nil || after.Data["k"] != "v" {
		t.Errorf("what was there before is now %v, %v", after, err)
	}
	if err := c.Delete(t.Context(), "kept", metav1.DeleteOptions{}); err != nil {
		t.Errorf("what was to be kept: %v", err)
	}
}

// recorder checks the order in which a sink is called, and records it.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) note(format string, arguments ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, arguments...))
}

func (r *recorder) BeginRun(x *report.Run)                   { r.note("run of %d", len(x.Tests)) }
func (r *recorder) BeginTest(x *report.Test)                 { r.note("test %s", x.Name) }
func (r *recorder) BeginStep(_ *report.Test, s *report.Step) { r.note("step %s", s.Name) }
func (r *recorder) EndStep(_ *report.Test, s *report.Step)   { r.note("end step %s", s.Name) }
func (r *recorder) EndTest(x *report.Test)                   { r.note("end test %s", x.Name) }
func (r *recorder) EndRun(*report.Run)                       { r.note("end run") }
func (r *recorder) BeginOperation(_ *report.Test, _ *report.Step, o *report.Operation) {
	r.note("begin %s", o.Type)
}

func (r *recorder) EndOperation(_ *report.Test, _ *report.Step, o *report.Operation) {
	r.note("end %s %q", o.Type, o.Output)
}

func TestTheSinkIsTold(t *testing.T) {
	t.Parallel()
	sink := &recorder{}
	dir := folder(t, "chainsaw-test.yaml", test("a", "steps: [{name: s, try: [{script: {content: echo x}}], cleanup: [{sleep: {duration: 1ms}}]}]"))
	run(t, runner.Options{Configuration: quick(), Tests: discover(t, dir), Sink: sink})
	want := []string{
		"run of 1", "test a", "step @setup", "end step @setup", "step s", "begin script", `end script "x"`, "end step s",
		"begin sleep", `end sleep ""`, "end test a", "end run",
	}
	if diff := cmp.Diff(want, sink.lines); diff != "" {
		t.Error(diff)
	}
}

func TestAnInterruptEndsTheStepsAndCleansUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("Ctrl-C")
	o := onLab(t, folder(t, "a/chainsaw-test.yaml", test("a", `
timeouts: {exec: 1m}
steps:
- try:
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made-before-the-interrupt, namespace: default}}}
  - script: {content: "touch `+dir+`/begun; sleep 60"}
  - script: {content: "touch `+dir+`/gone-on"}
  catch: [{script: {content: "touch `+dir+`/caught"}}]
  finally: [{script: {content: "touch `+dir+`/finally"}}]
  cleanup: [{script: {content: "touch `+dir+`/cleanup"}}]
`), "b/chainsaw-test.yaml", test("b", "steps: [{try: [{sleep: {duration: 1ms}}]}]")))
	o.Configuration.Spec.Execution.Parallel = new(1)
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
				cancel(reason)
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	r, err := runner.Run(ctx, o)
	if !errors.Is(err, reason) {
		t.Errorf("the error is %v", err)
	}
	files, _ := filepath.Glob(dir + "/*")
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	if diff := cmp.Diff([]string{"begun", "cleanup", "finally"}, files); diff != "" {
		t.Error(diff)
	}
	// Neither has failed: their results are not known.
	if diff := cmp.Diff(report.Counts{NotRun: 2}, r.Counts()); diff != "" {
		t.Errorf("%s\n%s", diff, told(r.Tests[0]))
	}
	if _, err := clientset(t).CoreV1().ConfigMaps("default").Get(t.Context(), "made-before-the-interrupt", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what was made is left: %v", err)
	}
	if _, err := clientset(t).CoreV1().Namespaces().Get(t.Context(), r.Tests[0].Namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace is left: %v", err)
	}
}
