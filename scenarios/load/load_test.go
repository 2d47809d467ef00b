package load_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/scenarios/load"
)

// box is the sandbox of all tests of the package.
var box = sandboxtest.ShareSandbox(func() (sandbox.Options, error) { return sandbox.Options{}, nil })

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(sandboxtest.Main(m, box))
}

// measure measures an operator of the zoo.
func measure(t *testing.T, how string) *load.Report {
	t.Helper()
	cluster := box.Get(t)
	c, err := client.New(cluster.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := load.Run(t.Context(), load.Options{
		Lab:      lab.Options{Cluster: cluster, Programs: []lab.Program{lab.Bundled(zoo(how))}},
		Operator: "crowd", Client: c, Sizes: []int{1, 4, 16, 64}, Changes: 16, Every: time.Millisecond, Patience: 2 * time.Minute,
		Sample: load.Sample{Manifest: fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: one, labels: {%s: %s}}}", label, labelOf(how))},
	})
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, "the objects are gone", func(ctx context.Context) error {
		var left corev1.NamespaceList
		if err := c.List(ctx, &left); err != nil {
			return err
		}
		for _, n := range left.Items {
			if strings.HasPrefix(n.Name, "load-") {
				return fmt.Errorf("namespace %s is still there", n.Name)
			}
		}
		return nil
	})
	return r
}

// TestPlanted measures operators with something that does not scale. It is found with its cause, and nothing else is said.
func TestPlanted(t *testing.T) {
	for i, one := range planted {
		t.Run(one.bug, func(t *testing.T) {
			if i > 1 {
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
			r := measure(t, how)
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
