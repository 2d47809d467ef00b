package project

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/metacontroller"
	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/hook"
	"github.com/operator-lab/operator-lab/sandbox/lab"
)

// findHook finds controllers that are written as webhooks: the lab.yaml of their directory names the program that answers
// them, and manifests with the controllers. It returns nil if that file names none.
func findHook(o Options) (*Project, error) {
	p := &Project{Root: o.Dir, Name: label(filepath.Base(o.Dir)), Linked: true}
	if o.Main != "" || !fileExists(filepath.Join(o.Dir, ConfigName)) {
		return nil, nil
	}
	if err := p.readConfig(&o); err != nil || p.config.Hook == "" {
		return nil, err
	}
	p.options, p.Hook = o, p.config.Hook
	if !filepath.IsAbs(p.Hook) {
		p.Hook = filepath.Join(o.Dir, p.Hook)
	}
	p.SourceDirs = []string{filepath.Dir(p.Hook)}
	if err := p.checkHook(); err != nil {
		return nil, err
	}
	all, err := p.readManifests(o.Manifests)
	if err != nil {
		return nil, err
	}
	for _, u := range all {
		if u.GroupVersionKind().Group == v1alpha1.Group {
			return p, nil
		}
	}
	return nil, problem("name its file under manifests, with the definition of its parents", "%s has a hook, and its manifests have no controller of %s", p.Config, v1alpha1.GroupVersion)
}

// checkHook reports whether the hook can be run.
func (p *Project) checkHook() error {
	program, err := hook.New(hook.Options{File: p.Hook})
	if err == nil {
		program.Close()
	}
	return err
}

// runHook begins a run of metacontroller in this process, whose webhooks the hook answers.
func (o *Operator) runHook(ctx context.Context, options lab.RunOptions) (lab.Run, error) {
	crds, err := metacontroller.CRDs()
	if err != nil {
		return nil, err
	}
	if err := sandbox.InstallCRDs(ctx, options.Cluster.Config(), crds...); err != nil {
		return nil, err
	}
	if err := o.apply(ctx, options.Cluster); err != nil {
		return nil, err
	}
	program, err := hook.New(hook.Options{
		File: o.options.Project.Hook, Env: slices.Concat(o.options.Plan.Env, o.options.Env),
		Name: func(r *http.Request) string { return metacontroller.HookOf(r.Context()) },
	})
	if err != nil {
		return nil, err
	}
	op := operators.Metacontroller(program)
	op.Name = o.Name()
	run, err := lab.Bundled(op).Start(ctx, options)
	if err != nil {
		program.Close()
		return nil, err
	}
	go func() {
		<-run.Done()
		program.Close()
	}()
	return run, nil
}
