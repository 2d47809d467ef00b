package load_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/load"
)

// box is the sandbox of all tests of the package.
var box = sandboxtest.ShareSandbox(func() (sandbox.Options, error) { return sandbox.Options{OnAudit: audited.note}, nil })

// audited are the writes of the operator as the API server tells of them.
var audited = &audit{writes: map[string]int{}}

// audit counts the writes in the API server's audit log, by verb and resource.
type audit struct {
	mu     sync.Mutex
	writes map[string]int
}

func (a *audit) note(line []byte) {
	var e auditv1.Event
	if json.Unmarshal(line, &e) != nil || e.Stage != auditv1.StageResponseComplete || e.ObjectRef == nil || !strings.HasPrefix(e.UserAgent, "crowd") {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writes[e.Verb+" "+e.ObjectRef.Resource]++
}

// since returns what was counted after an earlier count.
func (a *audit) since(before map[string]int) map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]int{}
	for what, n := range a.writes {
		if more := n - before[what]; more > 0 {
			out[what] = more
		}
	}
	return out
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(sandboxtest.Main(m, box))
}

// measure measures an operator of the zoo at some sizes.
func measure(t *testing.T, how string) *load.Report {
	t.Helper()
	r, err := measureWith(t.Context(), t, how, load.Options{Sizes: []int{1, 4, 16, 64}, Changes: 16})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func measureWith(ctx context.Context, t *testing.T, how string, o load.Options) (*load.Report, error) {
	t.Helper()
	cluster := box.Get(t)
	c, err := client.New(cluster.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o.Lab = lab.Options{Cluster: cluster, Programs: []lab.Program{lab.Bundled(crowdThat(how))}}
	o.Operator, o.Client, o.Every, o.Patience = "crowd", c, time.Millisecond, 2*time.Minute
	o.Sample.Manifest = fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: one, labels: {%s: %s}}}", label, labelOf(how))
	o.Clean = true // the next one is to see its own only
	r, wrong := load.Run(ctx, o)
	var left corev1.NamespaceList
	if err := c.List(t.Context(), &left); err != nil {
		t.Fatal(err)
	}
	for _, n := range left.Items {
		if strings.HasPrefix(n.Name, "load-") {
			t.Errorf("namespace %s is still there", n.Name)
		}
	}
	return r, wrong
}

// TestInterrupted ends a run at its second size: what was measured at the first one is there.
func TestInterrupted(t *testing.T) {
	sandboxtest.Long(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := measureWith(ctx, t, "mended", load.Options{Sizes: []int{1, 2}, Changes: 1, Progress: func(objects int, phase string) {
		if objects == 2 && phase == load.Change {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || len(r.Sizes) != 2 || !r.Sizes[0].Settled || r.Sizes[1].Settled || r.Sizes[1].Phases[load.Create].Reconciles == 0 {
		t.Errorf("%v\n%s", err, textOf(t, r))
	}
	if len(r.Growth) == 0 || len(r.Findings) > 0 {
		t.Errorf("%+v %+v", r.Growth, r.Findings)
	}
}

// TestPlanted measures operators with something that does not scale. It is found with its cause, and nothing else is said.
func TestPlanted(t *testing.T) {
	for i, one := range planted {
		t.Run(one.bug, func(t *testing.T) {
			if i > 0 {
				sandboxtest.Long(t)
			}
			r := measure(t, one.bug)
			if len(r.Findings) != 1 || r.Findings[0].Sort != one.sort || !strings.Contains(r.Findings[0].Text, one.says) || r.Missed > 0 {
				t.Errorf("found %+v, missed %d\n%s", r.Findings, r.Missed, textOf(t, r))
			}
		})
	}
}

// TestMended measures operators without: nothing is said of them, and each phase did what it is for.
func TestMended(t *testing.T) {
	for i, how := range mended {
		t.Run(how, func(t *testing.T) {
			if i > 0 {
				sandboxtest.Long(t)
			}
			before := audited.since(nil)
			r := measure(t, how)
			counted := map[string]int{}
			for _, size := range r.Sizes {
				for _, phase := range size.Phases {
					for _, c := range phase.Requests {
						if trace.IsWriteVerb(c.Verb) {
							counted[c.Verb+" "+c.Resource] += int(c.Requests)
						}
					}
				}
			}
			sandboxtest.Eventually(t, "the audit log tells of the same writes", func() error {
				if diff := cmp.Diff(audited.since(before), counted); diff != "" {
					return errors.New(diff)
				}
				return nil
			})
			if len(r.Findings) > 0 || r.Unsettled != "" || r.Missed > 0 {
				t.Errorf("found %+v, missed %d\n%s", r.Findings, r.Missed, textOf(t, r))
			}
			made := 0.0
			for _, size := range r.Sizes {
				for _, p := range load.Phases {
					if phase := size.Phases[p]; phase == nil || phase.Reconciles == 0 || p != load.Create && phase.Writes+phase.NoOps > 0 {
						t.Errorf("%s with %d objects: %+v", p, size.Objects, phase)
					}
				}
				made += requests(size.Phases[load.Create], "create", "secrets")
				if int(made) != size.Objects {
					t.Errorf("%.0f Secrets were made for %d objects", made, size.Objects)
				}
				if relist := size.Phases[load.Relist]; relist.Reconciles < size.Objects {
					t.Errorf("with %d objects a relist made %d reconciles", size.Objects, relist.Reconciles)
				}
			}
		})
	}
}

func requests(p *load.Phase, verb, resource string) (n float64) {
	for _, r := range p.Requests {
		if r.Verb == verb && r.Resource == resource {
			n += float64(r.Requests)
		}
	}
	return n
}

func textOf(t *testing.T, r *load.Report) string {
	t.Helper()
	var text strings.Builder
	if err := load.WriteJSON(&text, []*load.Report{r}); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
