package scenarios_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox"
)

// series collects durations; their median is reported.
type series []time.Duration

func (s series) median() time.Duration {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}

// suite collects the durations of several runs of the same tests.
type suite struct {
	wall, boot series
	tests      map[string]series // by name
	last       int
}

// run runs tests once. The boot is the time until the first test begins.
func (s *suite) run(b *testing.B, args ...string) {
	b.Helper()
	began := time.Now()
	tests, code := play(b, args...)
	s.wall = append(s.wall, time.Since(began))
	if code != 0 {
		b.Fatalf("%v: exit code %d", args, code)
	}
	first := tests[0].StartTime
	for _, test := range tests {
		if test.StartTime.Before(first) {
			first = test.StartTime
		}
		if s.tests == nil {
			s.tests = map[string]series{}
		}
		name, _, _ := strings.Cut(test.Name, "/") // the scenarios of a matrix count as one
		s.tests[name] = append(s.tests[name], test.EndTime.Sub(test.StartTime))
	}
	s.boot = append(s.boot, first.Sub(began))
	s.last = len(tests)
}

func (s *suite) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(0, "ns/op") // not meaningful here
	b.ReportMetric(milliseconds(s.wall.median()), "wall-ms")
	b.ReportMetric(milliseconds(s.boot.median()), "boot-ms")
	b.ReportMetric(100*s.boot.median().Seconds()/s.wall.median().Seconds(), "boot-percent")
	b.ReportMetric(float64(s.last), "tests")
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkBundled measures the wall time of all bundled scenarios, one after the other in one sandbox, and of each.
func BenchmarkBundled(b *testing.B) {
	needsBinary(b)
	var s suite
	play(b, "zundoko/sings") // prepares the data, once for each build of the binary
	for range b.N {
		s.run(b, "zundoko")
	}
	s.report(b)
	for name, took := range s.tests {
		b.ReportMetric(milliseconds(took.median()), name+"-ms")
	}
}

// oneStep is a scenario without operators, which can run in any cluster.
const oneStep = `apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
metadata:
  name: step-%02d
spec:
  steps:
    - try:
        - apply:
            resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {number: "%[1]d"}}
        - assert:
            resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {number: "%[1]d"}}
`

// BenchmarkParallel measures the wall time of fifty scenarios of one step, with the default parallelism and all at
// once.
func BenchmarkParallel(b *testing.B) {
	needsBinary(b)
	const tests = 50
	dir := b.TempDir()
	for i := range tests {
		folder := filepath.Join(dir, fmt.Sprintf("step-%02d", i))
		if err := os.Mkdir(folder, 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "chainsaw-test.yaml"), fmt.Appendf(nil, oneStep, i), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for _, parallel := range []string{"8", "50"} {
		b.Run(parallel, func(b *testing.B) {
			var s suite
			for range b.N {
				s.run(b, "--parallel", parallel, dir)
			}
			s.report(b)
			var all series
			for _, took := range s.tests {
				all = append(all, took...)
			}
			b.ReportMetric(milliseconds(all.median()), "test-ms")
		})
	}
}

// BenchmarkChainsaw compares, in turns, how long 'operator-lab test' and Chainsaw take for Chainsaw's own examples in one
// sandbox: in all, and for those that pass with both and have no sleep in them. "fast" is without the wait of either for
// the end of each test's namespace, which is the cluster's work. OPERATOR_LAB_CHAINSAW names Chainsaw's binary,
// OPERATOR_LAB_CHAINSAW_EXAMPLES the folder testdata/e2e of its source; neither is part of this project.
func BenchmarkChainsaw(b *testing.B) {
	binary, chainsaw, examples := needsBinary(b), os.Getenv("OPERATOR_LAB_CHAINSAW"), os.Getenv("OPERATOR_LAB_CHAINSAW_EXAMPLES")
	if chainsaw == "" || examples == "" {
		b.Skip("OPERATOR_LAB_CHAINSAW and OPERATOR_LAB_CHAINSAW_EXAMPLES do not say where they are")
	}
	box, err := sandbox.Start(b.Context(), sandbox.Options{StateDir: b.TempDir(), Binary: binary, Ephemeral: true, Nodes: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = box.Stop() }()
	programs := [2][]string{{binary, "test", "--kubeconfig", box.Kubeconfig()}, {chainsaw, "test"}}
	for what, way := range map[string]string{"": "false", "fast-": "true"} {
		var all, busy [2]series
		compared := 0
		for range b.N {
			var passed [2]map[string]time.Duration
			for i, program := range programs {
				dir := b.TempDir()
				program = append(program, "--config", filepath.Join(examples, "config.yaml"), "--values", filepath.Join(examples, "values.yaml"),
					"--fast-namespace-deletion="+way, "--fail-fast=false", "--remarshal",
					"--report-format", "JSON", "--report-path", dir, "--report-name", "all", filepath.Join(examples, "examples"))
				cmd := exec.CommandContext(b.Context(), program[0], program[1:]...)
				cmd.Env = append(os.Environ(), "KUBECONFIG="+box.Kubeconfig())
				began := time.Now()
				out, _ := cmd.CombinedOutput() // some examples need what is not there
				all[i] = append(all[i], time.Since(began))
				if passed[i], err = passedTests(filepath.Join(dir, "all.json")); err != nil {
					b.Fatalf("%s: %v\n%s", program[0], err, out)
				}
			}
			var sums [2]time.Duration
			compared = 0
			for name, took := range passed[0] {
				other, both := passed[1][name]
				if both && !sleeps(b, filepath.Join(examples, "examples", name)) {
					sums[0], sums[1] = sums[0]+took, sums[1]+other
					compared++
				}
			}
			busy[0], busy[1] = append(busy[0], sums[0]), append(busy[1], sums[1])
		}
		for of, s := range map[string][2]series{"all": all, "busy": busy} {
			lab, other := s[0].median().Seconds(), s[1].median().Seconds()
			b.ReportMetric(lab, what+of+"-s")
			b.ReportMetric(lab/other, what+of+"/chainsaw")
		}
		b.ReportMetric(float64(compared), what+"busy-tests")
	}
	b.ReportMetric(0, "ns/op") // not meaningful here
}

// passedTests returns, by its folder, how long each test took that passed, with its clean-up, of a report in JSON.
func passedTests(file string) (map[string]time.Duration, error) {
	var report struct {
		Tests []struct {
			BasePath  string
			StartTime time.Time
			Skipped   bool
			Steps     []struct {
				Operations []struct {
					EndTime time.Time
					Failure any
				}
			}
		}
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &report)
	}
	passed := map[string]time.Duration{}
	for _, test := range report.Tests {
		failed, end := test.Skipped, test.StartTime
		for _, step := range test.Steps {
			for _, operation := range step.Operations {
				failed = failed || operation.Failure != nil
				if operation.EndTime.After(end) {
					end = operation.EndTime // Chainsaw's time of a whole test is without its clean-up
				}
			}
		}
		if !failed {
			passed[filepath.Base(test.BasePath)] = end.Sub(test.StartTime)
		}
	}
	return passed, err
}

// sleeps reports whether a file of a test says sleep somewhere.
func sleeps(b *testing.B, folder string) bool {
	files, err := filepath.Glob(filepath.Join(folder, "chainsaw-test.y*ml"))
	if err != nil || len(files) == 0 {
		return true // a folder below, of which there are several with a name
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		b.Fatal(err)
	}
	return strings.Contains(string(text), "sleep")
}
