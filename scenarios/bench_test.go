package scenarios_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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
