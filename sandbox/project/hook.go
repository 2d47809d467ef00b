package project

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/metacontroller"
	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/hook"
	"github.com/operator-lab/operator-lab/sandbox/lab"
)

// findHook finds controllers that are written as webhooks: the options name their files, or the lab.yaml of their directory names
// the program that answers them, and manifests with the controllers. It returns nil if neither does.
func findHook(o Options) (*Project, error) {
	p := &Project{Root: o.Dir, Linked: true, Hooked: true}
	if len(o.Controllers) > 0 {
		p.Name, p.Hook = operators.Metacontroller(nil).Name, o.Hook
		o.Manifests = slices.Concat(o.Manifests, o.Controllers)
	} else {
		if o.Main != "" || !fileExists(filepath.Join(o.Dir, ConfigName)) {
			return nil, nil
		}
		if err := p.readConfig(&o); err != nil || p.config.Hook == "" {
			return nil, err
		}
		p.Name, p.Hook = label(filepath.Base(o.Dir)), p.config.Hook
		if !filepath.IsAbs(p.Hook) {
			p.Hook = filepath.Join(o.Dir, p.Hook)
		}
	}
	p.options = o
	if err := checkHook(p.Hook); err != nil {
		return nil, err
	}
	all, err := p.reader().read(o.Manifests)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(all, func(u *unstructured.Unstructured) bool { return u.GroupVersionKind().Group == v1alpha1.Group }) {
		return nil, problem("name its file under manifests, with the definition of its parents", "%s has a hook, and its manifests have no controller of %s", p.Config, v1alpha1.GroupVersion)
	}
	for _, file := range p.hookFiles() {
		if info, err := os.Stat(file); err != nil || !info.IsDir() {
			file = filepath.Dir(file)
		}
		p.SourceDirs = append(p.SourceDirs, file)
	}
	return p, nil
}

// hookFiles are the files, and the directories with the files, that such controllers are made of.
func (p *Project) hookFiles() []string {
	files := slices.Clone(p.options.Manifests)
	if p.Hook != "" {
		files = append(files, p.Hook)
	}
	return files
}

// checkHook reports whether the program of a hook can be run; empty: there is none.
func checkHook(file string) error {
	if file == "" {
		return nil
	}
	program, err := hook.New(hook.Options{File: file})
	if err == nil {
		program.Close()
	}
	return err
}

// runHook begins a run of metacontroller in this process, whose webhooks the hook answers, or the servers that their URLs name.
func (o *Operator) runHook(ctx context.Context, options lab.RunOptions) (lab.Run, error) {
	crds, err := metacontroller.CRDs()
	if err != nil {
		return nil, err
	}
	if err := sandbox.InstallCRDs(ctx, options.Cluster.Config(), crds...); err != nil {
		return nil, err
	}
	o.preparing.Lock()
	err = o.apply(ctx, options.Cluster)
	o.preparing.Unlock()
	if err != nil {
		return nil, err
	}
	var transport http.RoundTripper
	end := func() {}
	if file := o.options.Project.Hook; file != "" {
		program, err := hook.New(hook.Options{
			File: file, Env: slices.Concat(o.plan().Env, o.options.Env),
			Name: func(r *http.Request) string { return metacontroller.HookOf(r.Context()) },
		})
		if err != nil {
			return nil, err
		}
		transport, end = program, program.Close
	}
	op := operators.Metacontroller(transport)
	op.Name = o.Name()
	run, err := lab.Bundled(op).Start(ctx, options)
	if err != nil {
		end()
		return nil, err
	}
	go func() {
		<-run.Done()
		end()
	}()
	return run, nil
}
