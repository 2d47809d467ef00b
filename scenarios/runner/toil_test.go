package runner_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// fakeMeter measures half a second in each lap, or no write at all.
type fakeMeter struct {
	mu      sync.Mutex
	silent  bool
	resets  int
	stopped bool
	of      types.NamespacedName
}

func (m *fakeMeter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resets++
}

func (m *fakeMeter) Lap(ctx context.Context) (time.Duration, error) {
	if m.silent {
		<-ctx.Done()
		return 0, errors.New("no write is acknowledged")
	}
	return 500 * time.Millisecond, nil
}

func (m *fakeMeter) Stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
}

// heals is a test in which the file "whole" says that a store is whole. The fault removes it; what BACKGROUND does, nobody types.
const heals = `apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
metadata:
  name: heals
  annotations:
    operator-lab.dev/writes: example
    operator-lab.dev/by-hand.look: 300ms
    operator-lab.dev/by-hand.approve: 10ms
    operator-lab.dev/decision.approve: it is somebody's to say
    operator-lab.dev/toil.whole: lose-quorum
spec:
  steps:
  - name: fault
    try:
    - script: {content: 'BACKGROUND'}
  - name: look
    try:
    - assert: {resource: {(length('ab')): 2}}
    - script: {content: echo looked >>DIR/typed}
    - script: {content: echo looked again >>DIR/typed}
  - name: approve
    try:
    - script: {content: 'echo approved >>DIR/typed; LAST'}
  - name: whole
    timeouts: {exec: 1s, assert: 100ms}
    try:
    - script: {content: 'until test -e DIR/whole; do sleep 0.02; done'}
`

func TestToil(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		background, last string
		silent           bool
		want             *report.Toil
		typed, failed    string
	}{
		"heals by itself":           {background: "touch DIR/whole", last: "true", want: &report.Toil{Fault: "lose-quorum", Outage: 0.5}},
		"a person does it":          {background: "true", last: "touch DIR/whole", want: &report.Toil{Fault: "lose-quorum", Actions: 2, Decisions: 1, Outage: 0.5}, typed: "looked looked again approved"},
		"a person cannot":           {background: "true", last: "true", typed: "looked looked again approved", failed: "whole"},
		"nothing can be written":    {background: "touch DIR/whole", last: "true", silent: true, failed: "whole"},
		"a command of theirs fails": {background: "true", last: "exit 3", typed: "looked looked again approved", failed: "approve"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text := strings.NewReplacer("BACKGROUND", c.background, "LAST", c.last).Replace(heals)
			meter := &fakeMeter{silent: c.silent}
			r := run(t, runner.Options{
				Configuration: quick(), Tests: discover(t, folder(t, "chainsaw-test.yaml", strings.ReplaceAll(text, "DIR", dir))),
				Meter: func(_ context.Context, of types.NamespacedName) runner.Meter { meter.of = of; return meter },
			}).Tests[0]
			var got *report.Toil
			failed := ""
			for _, step := range r.Steps {
				if step.Toil != nil {
					got = step.Toil
				}
				if step.Failed() {
					failed = step.Name
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" || failed != c.failed {
				t.Errorf("failed at %q, want %q\n%s\n%s", failed, c.failed, diff, told(r))
			}
			if typed := read(t, dir+"/typed"); typed != c.typed {
				t.Errorf("typed %q, want %q", typed, c.typed)
			}
			if meter.of.Name != "example" || meter.resets != 1 || !meter.stopped {
				t.Errorf("%+v", meter)
			}
		})
	}
}

// read returns the lines of a file in one line; nothing if there is no file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

func TestToilNeedsTheLab(t *testing.T) {
	t.Parallel()
	r := offline(t, quick(), "chainsaw-test.yaml", heals).Tests[0]
	if text := told(r); !strings.Contains(text, "the lab is to write to example") || len(r.Steps) != 2 {
		t.Error(text)
	}
}
