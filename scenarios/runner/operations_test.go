package runner_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

const cm = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}"

// TestOperations checks each operation passing and failing. The wanted texts are parts of the test's description, in
// order; the test must pass unless one of them contains FAILED.
func TestOperations(t *testing.T) {
	lab(t)
	for _, c := range []struct {
		name, spec string
		files      []string
		wanted     []string
	}{
		{name: "apply makes and changes", spec: `
steps:
- try:
  - apply: {resource: ` + cm + `}
  - apply: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: w, l: "(join('-', ['x', $namespace]))"}}}
  - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: w, l: "(join('-', ['x', $namespace]))"}}}
`, wanted: []string{"try apply ConfigMap", "try assert", "cleanup delete ConfigMap", "@cleanup cleanup delete Namespace"}},
		{name: "apply refuses unknown fields", spec: `
timeouts: {apply: 2s}
steps:
- try:
  - apply: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, nonsense: 1}}
`, wanted: []string{`FAILED`, `unknown field "nonsense"`}},
		{name: "apply expects an error", spec: `
steps:
- try:
  - apply:
      resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, nonsense: 1}
      expect:
      - match: {kind: Secret}
        check: {($error): null}
      - match: {kind: ConfigMap}
        check: {"(contains($error, 'nonsense'))": true}
`, wanted: []string{"try apply ConfigMap"}},
		{name: "apply expects an error that does not come", spec: `
timeouts: {apply: 2s}
steps:
- try:
  - apply:
      resource: ` + cm + `
      expect: [{check: {($error != null): true}}]
`, wanted: []string{"FAILED what came of it is not as expected", "[($error != null) is false, not true]", "cleanup delete ConfigMap"}},
		{name: "apply of a kind that is not there", spec: `
steps:
- try:
  - apply: {resource: {apiVersion: none.example.com/v1, kind: Nothing, metadata: {name: a}}}
`, wanted: []string{"FAILED the API server knows no kind Nothing in none.example.com/v1", "HINT see 'kubectl api-resources'"}},
		{name: "create makes, with outputs", spec: `
steps:
- try:
  - create:
      resource: ` + cm + `
      outputs: [{name: uid, value: (metadata.uid)}]
  - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: ($uid)}}}
`, wanted: []string{"try create ConfigMap"}},
		{name: "create does not overwrite", spec: `
steps:
- try:
  - create: {resource: ` + cm + `}
  - create: {resource: ` + cm + `}
`, wanted: []string{"FAILED the resource already exists in the cluster"}},
		{name: "update replaces", spec: `
steps:
- try:
  - create: {resource: ` + cm + `}
  - update: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {other: v}}}
  - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {(k): null, other: v}}}
`, wanted: []string{"try update ConfigMap"}},
		{name: "update needs something to replace", spec: `
steps:
- try:
  - update: {resource: ` + cm + `}
`, wanted: []string{"FAILED the resource does not exist in the cluster"}},
		{name: "patch changes, also a subresource", spec: `
steps:
- try:
  - create: {resource: {apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}}
  - patch: {resource: {apiVersion: v1, kind: Service, metadata: {name: a, labels: {x: z}}}}
  - patch:
      subresource: status
      resource: {apiVersion: v1, kind: Service, metadata: {name: a}, status: {conditions: [{type: A, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}
  - assert: {resource: {apiVersion: v1, kind: Service, metadata: {name: a, labels: {x: z}}, status: {'(conditions[0].reason)': R}}}
`, wanted: []string{"try patch Service", "try patch Service", "try assert Service"}},
		{name: "patch needs something to change", spec: `
steps:
- try:
  - patch: {resource: ` + cm + `}
`, wanted: []string{"try patch ConfigMap", `FAILED configmaps "a" not found`}},
		{name: "delete by reference, labels and file, and of nothing", files: []string{"b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n"}, spec: `
steps:
- try:
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {x: "1"}}}}
  - create: {file: b.yaml}
  - delete: {ref: {apiVersion: v1, kind: ConfigMap, labels: {x: "1"}}}
  - delete: {file: b.yaml}
  - delete: {ref: {apiVersion: v1, kind: ConfigMap, name: "(join('', ['c']))"}}
  - error: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
  - error: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}
`, wanted: []string{"try delete ConfigMap", "try delete ConfigMap", "try error ConfigMap"}},
		{name: "delete waits, and says what is in its way", spec: `
steps:
- try:
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.com/stay]}}}
  - delete: {timeout: 2s, ref: {apiVersion: v1, kind: ConfigMap, name: a}}
  finally:
  - script: {content: 'kubectl -n $NAMESPACE patch cm a --type=merge -p "{\"metadata\":{\"finalizers\":null}}"'}
`, wanted: []string{"try delete ConfigMap", "FAILED", "is still there 2s after its deletion: it has the finalizers example.com/stay", "finally script"}},
		{name: "assert by name, by labels, of several, of none", spec: `
steps:
- try:
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {x: "1"}}, data: {n: "1"}}}
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {x: "1"}}, data: {n: "2"}}}
  - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {labels: {x: "1"}}, data: {n: "2"}}}
  - assert: {resource: {(length('abc')): 3}}
`, wanted: []string{"try assert ConfigMap", "try assert (length('abc'))"}},
		{name: "error of what must not be", spec: `
timeouts: {error: 2s}
steps:
- try:
  - create: {resource: ` + cm + `}
  - error: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: w}}}
  - error: {resource: {(length('abc')): 4}}
  - error: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}}
`, wanted: []string{"try error (length('abc'))", "try error ConfigMap", "FAILED ConfigMap", "is after 2s as it must not be"}},
		{name: "sleep", spec: `
steps:
- try: [{sleep: {duration: 10ms}}]
`, wanted: []string{"try sleep 10ms"}},
		{name: "script and command", spec: `
bindings: [{name: who, value: Doko}]
steps:
- try:
  - script:
      env: [{name: WHO, value: ($who)}]
      content: |
        # who it is
        echo "$WHO in $NAMESPACE"
        until kubectl get cm -n $NAMESPACE -o name | grep kube-root-ca.crt; do sleep 0.1; done
      check: {($error): null, "(contains($stdout, 'kube-root-ca.crt'))": true, "(contains($stdout, join(' in ', [$who, $namespace])))": true}
      outputs: [{name: text, value: (trim_space($stdout))}]
  - command:
      entrypoint: echo
      args: [$WHO, "${NAMESPACE}", "$$NAMESPACE", $UNKNOWN_TO_ALL]
      env: [{name: WHO, value: ($who)}]
      check: {(trim_space($stdout)): "(join(' ', [$who, $namespace, '$NAMESPACE', '$UNKNOWN_TO_ALL']))", (length($text) > ` + "`1`" + `): true}
`, wanted: []string{`try script echo "$WHO in $NAMESPACE"`, "try command echo $WHO"}},
		{name: "script fails", spec: `
steps:
- try: [{script: {content: "echo out; echo first >&2; echo last >&2; exit 3"}}]
`, wanted: []string{"try script", "FAILED exit status 3: last"}},
		{name: "command that is not there, and one that is checked", spec: `
steps:
- try:
  - continueOnError: true
    command: {entrypoint: no-such-program}
  - command: {entrypoint: "false", check: {($error): exit status 1}}
  - command: {entrypoint: "true", check: {($error): exit status 1}}
`, wanted: []string{`FAILED exec: "no-such-program": executable file not found`, "try command false\n", `FAILED what came of it is not as expected [($error) is null, not "exit status 1"]`}},
		{name: "collectors", spec: `
steps:
- try:
  - create: {resource: ` + cm + `}
  - get: {apiVersion: v1, kind: ConfigMap, name: a, format: yaml}
  - describe: {apiVersion: v1, kind: ConfigMap, name: a, showEvents: false}
  - events: {}
  - podLogs: {selector: a=b, tail: 3}
  - wait: {apiVersion: v1, kind: ConfigMap, name: a, for: {jsonPath: {path: '{.data.k}', value: v}}}
  - wait: {apiVersion: v1, kind: Namespace, name: ($namespace), for: {jsonPath: {path: '{.status.phase}', value: Active}}}
`, wanted: []string{"kubectl get configmaps a", "kubectl describe configmaps a", "kubectl get events", "kubectl logs --prefix -l a=b", "kubectl wait configmaps", "kubectl wait namespaces"}},
		{name: "collectors that fail", spec: `
steps:
- try:
  - {continueOnError: true, get: {apiVersion: v1, kind: ConfigMap, name: none}}
  - {continueOnError: true, get: {apiVersion: v1, kind: ConfigMap, name: (none(@))}}
  - {continueOnError: true, describe: {apiVersion: v1, kind: ConfigMap, name: none}}
  - {continueOnError: true, events: {format: (to_lower('WRONG'))}}
  - {continueOnError: true, podLogs: {}}
  - {continueOnError: true, proxy: {apiVersion: v1, kind: Service, name: none, port: "80"}}
  - {continueOnError: true, wait: {apiVersion: v1, kind: ConfigMap, name: none, timeout: 2s, for: {deletion: {}}}}
  - {continueOnError: true, wait: {apiVersion: v1, kind: Namespace, name: ($namespace), timeout: 2s, for: {condition: {name: Ready}}}}
`, wanted: []string{`FAILED exit status 1: Error from server (NotFound)`, "FAILED", "FAILED", "FAILED", "FAILED a name or selector", "FAILED", "FAILED exit status 1: error: timed out"}},
		{name: "templating can be off", spec: `
template: false
steps:
- try:
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: (to_upper('a'))}}}
  - assert: {template: true, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: \(to_upper('a'))\}}}
  - apply: {template: true, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: (to_upper('a'))}}}
  - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: A}}}
`, wanted: []string{"try create ConfigMap", "try assert", "try apply", "try assert"}},
		{name: "dry run stores nothing", spec: `
steps:
- try:
  - create: {dryRun: true, resource: ` + cm + `}
  - error: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
  - create: {resource: ` + cm + `}
  - apply: {dryRun: true, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: w}}}
  - assert: {resource: ` + cm + `}
`, wanted: []string{"try create", "try error", "try create", "try apply", "try assert"}},
		{name: "bindings that are wrong", spec: `
bindings: [{name: a, value: ($nothing)}]
steps: [{try: [{sleep: {duration: 1ms}}]}]
`, wanted: []string{"@setup try bindings  FAILED binding a: ($nothing): variable not defined: $nothing", "@cleanup"}},
		{name: "files that are not there", spec: `
steps: [{try: [{apply: {file: "no*.yaml"}}]}]
`, wanted: []string{"try apply  FAILED", "no*.yaml"}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			r := one(t, c.spec, c.files...)
			text := told(r)
			rest, ok := text, true
			for _, w := range c.wanted {
				_, after, found := strings.Cut(rest, w)
				ok = ok && found
				rest = after
			}
			if !ok {
				t.Errorf("want, in this order, %q in\n%s", c.wanted, text)
			}
			if want := strings.Contains(strings.Join(c.wanted, ""), "FAILED"); r.Failed() != want {
				t.Errorf("failed: %v, want %v\n%s", r.Failed(), want, text)
			}
		})
	}
}

// TestDeleteOfWhatIsMadeAgain deletes an object that is back, with another UID, before anybody can see that it is gone.
func TestDeleteOfWhatIsMadeAgain(t *testing.T) {
	dir := folder(t, "chainsaw-test.yaml", test("a", `
steps:
- try:
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: again, finalizers: [example.com/stay]}}}
  - delete: {timeout: 5s, ref: {apiVersion: v1, kind: ConfigMap, name: again}}
  - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: again}}}
`))
	o := onLab(t, dir)
	var maker sync.WaitGroup
	maker.Go(func() {
		sandboxtest.Eventually(t, "a ConfigMap that is being deleted", func(ctx context.Context) error {
			all, err := clientset(t).CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=again"})
			if err != nil {
				return err
			}
			if len(all.Items) == 0 || all.Items[0].DeletionTimestamp == nil {
				return errors.New("there is none")
			}
			old := &all.Items[0]
			old.Finalizers = nil
			maps := clientset(t).CoreV1().ConfigMaps(old.Namespace)
			if _, err := maps.Update(ctx, old, metav1.UpdateOptions{}); err != nil {
				return err
			}
			_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: old.Name}}, metav1.CreateOptions{})
			return err
		})
	})
	r := run(t, o).Tests[0]
	maker.Wait()
	if r.Failed() {
		t.Error(told(r))
	}
}
