package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// shared is the sandbox of the tests of this package; the first test that needs it starts it.
var shared struct {
	once    sync.Once
	dir     string
	lab     *sandbox.Sandbox
	kubectl string
	err     error
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	if folder := os.Getenv(childVariable); folder != "" {
		os.Exit(child(folder))
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "runner")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	shared.dir = dir
	code := m.Run()
	if shared.lab != nil {
		if err := shared.lab.Stop(); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	return code
}

// lab returns the sandbox. Without the binary the test is skipped.
func lab(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	shared.once.Do(func() {
		binary, err := sandbox.FindBinary()
		if err != nil {
			shared.err = err
			return
		}
		shared.kubectl = filepath.Join(shared.dir, "bin", "kubectl")
		if shared.err = errors.Join(os.Mkdir(filepath.Dir(shared.kubectl), 0o700), os.Symlink(binary, shared.kubectl)); shared.err != nil {
			return
		}
		// It outlives the test that starts it.
		shared.lab, shared.err = sandbox.Start(context.WithoutCancel(t.Context()), sandbox.Options{Ephemeral: true, StateDir: filepath.Join(shared.dir, "state")})
	})
	if errors.Is(shared.err, sandbox.ErrNoBinary) {
		t.Skipf("%v; 'make build' makes it", shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.lab
}

func clientset(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(lab(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// folder writes files, given as pairs of name and content, to a new folder.
func folder(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(files[i+1]), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// test returns a test with the given lines in its spec.
func test(name, spec string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata:\n  name: %s\nspec:\n", name)
	for line := range strings.SplitSeq(strings.TrimSpace(spec), "\n") {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String()
}

// discover loads the tests of folders.
func discover(t *testing.T, folders ...string) []*format.Loaded {
	t.Helper()
	all, err := format.Discover(format.Discovery{Paths: folders})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// quick returns short timeouts, for operations that must fail.
func quick() *format.Configuration {
	c := format.DefaultConfiguration()
	c.Spec.Timeouts.Apply.Duration = 2 * time.Second
	c.Spec.Timeouts.Assert.Duration = 2 * time.Second
	c.Spec.Timeouts.Error.Duration = 2 * time.Second
	c.Spec.Timeouts.Exec.Duration = 10 * time.Second
	return c
}

// onLab returns options to run the tests of folders on the sandbox.
func onLab(t *testing.T, folders ...string) runner.Options {
	t.Helper()
	l := lab(t)
	var tests []*format.Loaded
	if len(folders) > 0 {
		tests = discover(t, folders...)
	}
	return runner.Options{
		Configuration: quick(), Tests: tests, Config: l.Config(), Kubeconfig: l.Kubeconfig(),
		Kubectl: shared.kubectl, Name: t.Name(),
	}
}

// run runs tests.
func run(t *testing.T, o runner.Options) *report.Run {
	t.Helper()
	r, err := runner.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// one runs one test and returns its report.
func one(t *testing.T, spec string, files ...string) *report.Test {
	t.Helper()
	dir := folder(t, append(files, "chainsaw-test.yaml", test("one", spec))...)
	r := run(t, onLab(t, dir))
	if len(r.Tests) != 1 {
		t.Fatalf("there are %d tests", len(r.Tests))
	}
	return r.Tests[0]
}

// told describes all operations of a test, one per line.
func told(r *report.Test) string {
	var b strings.Builder
	for _, s := range r.Steps {
		for _, o := range s.Operations {
			fmt.Fprintf(&b, "%s %s %s %s", s.Name, o.Phase, o.Type, o.Name)
			if f := o.Failure; f != nil {
				fmt.Fprintf(&b, " FAILED %s", f.Message)
				for _, d := range f.Differences {
					fmt.Fprintf(&b, " [%s %s]", d.Path, d.Message)
				}
				if f.Hint != "" {
					fmt.Fprintf(&b, " HINT %s", f.Hint)
				}
			}
			b.WriteByte('\n')
		}
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "FINDING %s %s\n", f.Oracle, f.Message)
	}
	return b.String()
}
