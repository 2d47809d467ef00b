package cli

import (
	"context"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/project"
)

// hookFlags are the flags of a run of controllers that are written as webhooks.
type hookFlags struct {
	hook                 string
	composite, decorator []string
}

func (f *hookFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.hook, "hook", "", "program that answers the webhooks of --composite and --decorator: it reads a request on its standard input and prints the answer")
	flags.StringArrayVar(&f.composite, "composite", nil, "file with a CompositeController of Metacontroller to run; without --hook its webhooks are asked where they are")
	flags.StringArrayVar(&f.decorator, "decorator", nil, "file with a DecoratorController of Metacontroller to run")
}

// set reports whether any of them is.
func (f *hookFlags) set() bool { return f.hook != "" || len(f.composite)+len(f.decorator) > 0 }

// notWithHooks are the flags of run that say how an operator is built or where it runs.
var notWithHooks = []string{"main", "tags", "chart", "values", "write-config", "no-taps", "no-webhooks", "kubeconfig", "context", "install", "kind", "api-version"}

// checkHooks reports what is wrong with flags and arguments beside those of hooks.
func (f *ownFlags) checkHooks(flags *pflag.FlagSet, args []string) error {
	if len(args) > 0 {
		return usageError("the program of --hook is no argument of run", "--hook, --composite and --decorator are not for %s", args[0])
	}
	for _, name := range notWithHooks {
		if flags.Changed(name) {
			return usageError("leave it out", "--%s is not for a run with --hook, --composite or --decorator", name)
		}
	}
	if slices.Contains(f.apply, allSamples) {
		return usageError("name it with --apply=FILE", "there is no project whose samples --apply could apply")
	}
	return f.check(true)
}

// controllers returns the files of --composite and --decorator, each of which has to have such a controller.
func (f *hookFlags) controllers() ([]string, error) {
	for _, of := range []struct {
		kind, flag string
		files      []string
	}{
		{v1alpha1.CompositeControllerKind, "--composite", f.composite}, {v1alpha1.DecoratorControllerKind, "--decorator", f.decorator},
	} {
		for _, file := range of.files {
			objects, err := project.ReadManifests([]string{file})
			if err != nil {
				return nil, usageOf(err)
			}
			if !slices.ContainsFunc(objects, func(u *unstructured.Unstructured) bool {
				return u.GetKind() == of.kind && u.GroupVersionKind().Group == v1alpha1.Group
			}) {
				return nil, usageError("its apiVersion is "+v1alpha1.GroupVersion.String(), "%s %s has no %s", of.flag, file, of.kind)
			}
		}
	}
	all := slices.Concat(f.composite, f.decorator)
	if len(all) == 0 {
		return nil, usageError("name its file with --composite or --decorator", "--hook needs a controller whose webhooks it answers")
	}
	return all, nil
}

// hooks takes controllers that are written as webhooks.
func (o *ownOperator) hooks(ctx context.Context) error {
	controllers, err := o.flags.hooks.controllers()
	if err != nil {
		return err
	}
	if err := o.open(controllers[0]); err != nil {
		return err
	}
	o.project, err = project.Find(ctx, project.Options{
		WorkDir: o.work.Dir, Hook: o.flags.hooks.hook, Controllers: controllers, Manifests: o.flags.manifests,
	})
	if err != nil {
		return usageOf(err)
	}
	return o.makePlan(ctx)
}
