package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/process"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// prepareTestLab sets the options of a sandbox that is booted for tests: its operators, their CRDs, and what it reports.
func prepareTestLab(t *suite, o *sandbox.Options) {
	t.listener.Listen(o)
	installed, crds := t.firstVariants()
	for name := range installed {
		o.Operators = append(o.Operators, name)
	}
	slices.Sort(o.Operators)
	o.CRDs, t.installed = crds, installed
	for _, own := range t.given.own {
		own.startBuild()
		o.Operators = append(o.Operators, own.project.Name)
	}
}

// firstVariants returns the first variant that the tests use of each operator, and its CRDs. Installing them with the
// sandbox saves time later.
func (t *suite) firstVariants() (map[string]string, []*apiextensionsv1.CustomResourceDefinition) {
	installed := map[string]string{}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for op, spec := range t.given.ofTests(t.tests) {
		if _, has := installed[op.Name]; has {
			continue
		}
		if instance, err := lab.InstanceOf(op, spec); err == nil {
			if more, err := instance.CRDs(); err == nil {
				installed[op.Name] = instance.Variant()
				crds = append(crds, more...)
			}
		}
	}
	return installed, crds
}

// storeNodes is the number of nodes where a store is written to: one for each of three members, so that one node can be lost.
const storeNodes = 3

// moreNodes sets the number of nodes to the most that a demo of the operators, or a store of the tests, needs, unless --nodes is set.
func (t *suite) moreNodes() {
	if t.flags.Changed("nodes") {
		return
	}
	for op := range t.given.ofTests(t.tests) {
		if demo, has := op.New().Demo().(operators.Nodes); has {
			t.nodes.nodes = max(t.nodes.nodes, demo.Nodes())
		}
	}
	for _, loaded := range t.tests {
		if says, err := loaded.Lab(); err == nil && says.Writes != "" {
			t.nodes.nodes = max(t.nodes.nodes, storeNodes)
		}
	}
}

// openTestLab opens the lab in a sandbox and returns hooks that run operators, check oracles and save journals; for another
// cluster, or without one, the hooks do nothing of that. closeLab leaves the sandbox running.
func openTestLab(ctx context.Context, t *suite, target *target) (hooks runner.Hooks, closeLab func(context.Context) error, err error) {
	if target.Cluster == nil {
		return scenarios.Foreign{None: t.noCluster}, func(context.Context) error { return nil }, nil
	}
	options := lab.Options{
		Cluster: target.Cluster, Kill: target.kill, Machines: target.machines, Installed: t.installed, Seed: t.seed, Version: version(),
		InPods: t.nodes.operators(), Dir: target.files(),
	}
	for _, own := range t.given.own {
		if err := own.lab(ctx, target, &options); err != nil {
			return nil, nil, err
		}
	}
	l, err := lab.Open(ctx, options)
	if err != nil {
		return nil, nil, sandboxError(err)
	}
	pods, err := process.OpenPods(l, target.dir)
	if err != nil {
		return nil, nil, sandboxError(errors.Join(err, l.Close(ctx)))
	}
	closeLab = func(ctx context.Context) error { return errors.Join(l.Close(ctx), pods.Close()) }
	t.listener.Set(l)
	reader, err := client.New(rest.AddUserAgent(target.Config(), "oracle"), client.Options{})
	if err != nil {
		return nil, nil, err
	}
	inLab := scenarios.NewLabHooks(l, reader, t.given.selection())
	inLab.SaveJournal, inLab.SaveAll = t.saveJournal, t.keepAll
	return inLab, closeLab, nil
}

// saveJournal keeps the journal of a test.
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
