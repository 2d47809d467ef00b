package project

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/operator-lab/operator-lab/operators/helm"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// chartsHint is for everything that is wrong with watches.yaml and its charts.
const chartsHint = "watches.yaml is a list of group, version, kind and chart; 'helm lint' looks at a chart"

// watchesFile returns the file watches.yaml of a directory with an operator of Helm charts; empty if it is none. One with a
// go.mod beside it is a program that reads that file itself.
func watchesFile(dir string) string {
	file := filepath.Join(dir, helm.WatchesFile)
	if !fileExists(file) || fileExists(filepath.Join(dir, "go.mod")) || !helm.IsFile(file) {
		return ""
	}
	return file
}

// findCharts finds what a file watches.yaml names.
func findCharts(o Options, file string) (*Project, error) {
	p := &Project{Root: o.Dir, Name: label(filepath.Base(o.Dir)), Watches: file, Linked: true}
	if err := p.readConfig(&o); err != nil {
		return nil, err
	}
	p.options = o
	all, err := helm.Load(file, nil)
	if err != nil {
		return nil, &sandbox.Problem{Err: err, Hint: chartsHint}
	}
	dirs := map[string]bool{o.Dir: true}
	for _, w := range all {
		at := w.ChartPath
		p.Charts = append(p.Charts, Chart{Kind: w.Kind, APIVersion: w.GroupVersion().String(), Dir: at})
		_ = filepath.WalkDir(at, func(name string, d fs.DirEntry, err error) error { // it was just read
			if err == nil && d.IsDir() {
				dirs[name] = true
			}
			return nil
		})
		dirs[filepath.Dir(at)] = true
	}
	p.SourceDirs = slices.Sorted(maps.Keys(dirs))
	return p, nil
}

// Chart is a Helm chart whose releases are the objects of a kind.
type Chart struct {
	// APIVersion and Kind are those of the objects.
	APIVersion, Kind string
	// Dir is the chart's directory, or its archive.
	Dir string
}

// runCharts begins a run of an operator of Helm charts, in this process. The charts are read anew.
func (o *Operator) runCharts(ctx context.Context, options lab.RunOptions) (lab.Run, error) {
	plan := o.plan()
	if err := o.apply(ctx, options.Cluster); err != nil {
		return nil, err
	}
	all, err := helm.Load(o.options.Project.Watches, slices.Concat(plan.Env, o.options.Env))
	if err != nil {
		return nil, &sandbox.Problem{Err: err, Hint: chartsHint}
	}
	with, err := helm.FromArguments(slices.Concat(plan.Args, o.options.Args))
	if err != nil {
		return nil, &sandbox.Problem{Err: fmt.Errorf("the arguments of the operator: %w", err), Hint: "--reconcile-period and --max-concurrent-reconciles count here"}
	}
	config := options.Cluster.Config()
	if plan.ServiceAccount != "" {
		if config, err = operatorhost.Account(options.Cluster, plan.Namespace, plan.ServiceAccount); err != nil {
			return nil, err
		}
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	host, err := operatorhost.Serve(ctx, config, operatorhost.Controllers{
		Name: o.Name(), Scheme: scheme,
		Setup: func(_ context.Context, mgr ctrl.Manager, _ controller.Options) error {
			return helm.SetupWithManager(mgr, all, with)
		},
	}, operatorhost.Options{Taps: options.Taps.(*taps.Taps), Transport: options.Injector.Wrap})
	if err != nil {
		return nil, err // not a nil *Host in an interface
	}
	return host, nil
}

// Taps returns the taps of the operator's runs in a journal.
func (o *Operator) Taps(journal *trace.Journal) lab.Taps {
	if !o.options.Project.InProcess() {
		return o.Operator.Taps(journal)
	}
	return taps.New(journal, taps.Options{Operator: o.Name()})
}

// Start begins a run.
func (o *Operator) Start(ctx context.Context, options lab.RunOptions) (lab.Run, error) {
	switch {
	case o.options.Project.Watches != "":
		return o.runCharts(ctx, options)
	case o.options.Project.Hooked:
		return o.runHook(ctx, options)
	}
	return o.Operator.Start(ctx, options)
}
