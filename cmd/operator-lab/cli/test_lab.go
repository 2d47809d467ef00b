package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// testLab does around tests what only the lab can do: it runs operators, injects faults, asks the oracles and keeps journals.
type testLab interface {
	runner.Hooks
	// Close ends all of it. The sandbox is still there.
	Close(ctx context.Context) error
}

// prepareTestLab sets the options of a sandbox that is booted for tests: its operators, their CRDs, and what it reports.
func prepareTestLab(t *suite, o *sandbox.Options) {
	t.listener.Listen(o)
	installed, crds := t.firstVariants()
	for name := range installed {
		o.Operators = append(o.Operators, name)
	}
	slices.Sort(o.Operators)
	o.CRDs, t.installed = crds, installed
}

// firstVariants are the variants in which the operators of the tests are met first, and their CRDs: with them in the
// sandbox from the beginning, nobody waits for them.
func (t *suite) firstVariants() (map[string]string, []*apiextensionsv1.CustomResourceDefinition) {
	installed := map[string]string{}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, loaded := range t.tests {
		role, err := t.operatorFlags().Role(loaded.Test)
		if err != nil {
			continue // it fails by itself
		}
		for _, name := range role.Operators {
			op, found := operators.Find(name)
			if _, has := installed[name]; has || !found {
				continue
			}
			if instance, err := lab.InstanceOf(op, role.Spec); err == nil {
				if more, err := instance.CRDs(); err == nil {
					installed[name] = instance.Variant()
					crds = append(crds, more...)
				}
			}
		}
	}
	return installed, crds
}

// moreNodes are as many as the demos of the operators have, unless the person has said how many.
func (t *suite) moreNodes() {
	if t.flags.Changed("nodes") {
		return
	}
	for _, loaded := range t.tests {
		role, err := t.operatorFlags().Role(loaded.Test)
		if err != nil {
			continue // it fails by itself
		}
		for _, name := range role.Operators {
			if op, found := operators.Find(name); found {
				if demo, has := op.New().Demo().(operators.Nodes); has {
					t.nodes.nodes = max(t.nodes.nodes, demo.Nodes())
				}
			}
		}
	}
}

// operatorFlags are the operators that flags ask for.
func (t *suite) operatorFlags() scenarios.Cast {
	parameters := map[string]string{}
	for _, p := range t.parameters {
		name, value, _ := strings.Cut(p, "=")
		parameters[name] = value
	}
	return scenarios.Cast{Operators: t.operators, Variant: t.variant, Parameters: parameters}
}

// openTestLab opens the lab in a sandbox, or what stands in for it in another cluster or without one.
func openTestLab(ctx context.Context, t *suite, target *target) (testLab, error) {
	if target.Cluster == nil {
		return foreignLab{scenarios.Foreign{None: t.noCluster}}, nil
	}
	l, err := lab.Open(ctx, lab.Options{
		Cluster: target.Cluster, Kill: target.kill, Machines: target.machines, Installed: t.installed, Seed: t.seed, Version: version(),
	})
	if err != nil {
		return nil, sandboxError(err)
	}
	t.listener.Set(l)
	reader, err := client.New(rest.AddUserAgent(target.Config(), "oracle"), client.Options{})
	if err != nil {
		return nil, err
	}
	hooks := scenarios.NewStage(l, reader, t.operatorFlags())
	hooks.SaveJournal = t.saveJournal
	return openedLab{hooks}, nil
}

// saveJournal keeps the journal of a test that failed.
func (t *suite) saveJournal(name string, journal *trace.Journal) (string, error) {
	dir := t.journals
	if dir == "" {
		var err error
		if dir, err = journalsDir(); err != nil {
			return "", err
		}
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name+"-"+time.Now().Format("20060102-150405.000")+".jsonl")
	return path, writeJournal(path, journal)
}

// openedLab is the lab in a sandbox.
type openedLab struct{ *scenarios.Stage }

// Close ends the operators and the lab's API.
func (o openedLab) Close(ctx context.Context) error { return o.Lab.Close(ctx) }

// foreignLab is none: a cluster that is not the lab's.
type foreignLab struct{ scenarios.Foreign }

// Close does nothing.
func (foreignLab) Close(context.Context) error { return nil }
