package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// TestChainsawsExamples runs Chainsaw's public examples, which are not part of this project: the variable
// OPERATOR_LAB_CHAINSAW_EXAMPLES names the folder testdata/e2e of a copy of its repository, or a folder below it. It
// prints a table; the reader judges failures that are expected here, for example because there are no nodes.
//
// OPERATOR_LAB_CHAINSAW_PARALLEL uses this runner's default parallelism instead of the one in their configuration;
// OPERATOR_LAB_CHAINSAW_NODE creates a Node object; OPERATOR_LAB_CHAINSAW_SET and …_SET_STRING are the values of --set
// and --set-string.
func TestChainsawsExamples(t *testing.T) {
	where := os.Getenv("OPERATOR_LAB_CHAINSAW_EXAMPLES")
	if where == "" {
		t.Skip("OPERATOR_LAB_CHAINSAW_EXAMPLES does not say where they are")
	}
	root := where
	for filepath.Base(root) != "e2e" && root != filepath.Dir(root) {
		root = filepath.Dir(root)
	}
	configuration, err := format.LoadConfiguration(filepath.Join(root, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	configuration.Spec.Execution.FailFast = false
	if os.Getenv("OPERATOR_LAB_CHAINSAW_PARALLEL") != "" {
		configuration.Spec.Execution.Parallel = nil
	}
	values, err := format.LoadValues([]string{filepath.Join(root, "values.yaml")}, strings.Fields(os.Getenv("OPERATOR_LAB_CHAINSAW_SET")), strings.Fields(os.Getenv("OPERATOR_LAB_CHAINSAW_SET_STRING")))
	if err != nil {
		t.Fatal(err)
	}
	tests, err := format.Discover(format.Discovery{Paths: []string{where}, FullName: true, Remarshal: true})
	if err != nil {
		t.Fatal(err)
	}
	l := lab(t)
	if os.Getenv("OPERATOR_LAB_CHAINSAW_NODE") != "" {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "only-by-name"}}
		if _, err := clientset(t).CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := runner.Run(t.Context(), runner.Options{
		Configuration: configuration, Tests: tests, Config: l.Config(), Kubeconfig: l.Kubeconfig(), Kubectl: shared.kubectl, Values: values,
	})
	if err != nil {
		t.Fatal(err)
	}
	passed, failed, skipped := 0, 0, 0
	for _, test := range r.Tests {
		result := "passed"
		switch {
		case test.Skipped:
			result = "skipped"
			skipped++
		case test.Failed():
			result = "FAILED"
			failed++
		default:
			passed++
		}
		t.Logf("%-70s %-7s %6.2fs", strings.TrimPrefix(test.Folder, root)+"/"+test.Name[strings.LastIndex(test.Name, "[")+1:], result, test.Ended.Sub(test.Started).Seconds())
		if test.Failed() {
			t.Log(told(test))
		}
	}
	t.Logf("%d passed, %d failed, %d skipped in %s", passed, failed, skipped, r.Ended.Sub(r.Started))
}
