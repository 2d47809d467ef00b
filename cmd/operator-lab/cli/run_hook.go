package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/metacontroller"
	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/hook"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/sandbox/trace"
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

// hooked is the subject of a run of controllers that are written as webhooks.
type hooked struct {
	flags *ownFlags
	// program answers the webhooks; nil: they are asked where they are.
	program *hook.Program
	// controllers are the files of --composite and --decorator, and before are the objects to apply before they are: those
	// of --manifests, and the definitions in those files.
	controllers []project.Sample
	before      []*unstructured.Unstructured

	// watcher tells of changes of the files, and watching is the goroutine that follows it.
	watcher  *fsnotify.Watcher
	watching sync.WaitGroup
}

// runHooked runs controllers that are written as webhooks.
func runHooked(cmd *cobra.Command, streams streams, f *ownFlags, args []string) error {
	if len(args) > 0 {
		return usageError("the program of --hook is no argument of run", "--hook, --composite and --decorator are not for %s", args[0])
	}
	for _, name := range notWithHooks {
		if cmd.Flags().Changed(name) {
			return usageError("leave it out", "--%s is not for a run with --hook, --composite or --decorator", name)
		}
	}
	if err := f.check(true); err != nil {
		return err
	}
	h := &hooked{flags: f}
	if err := h.read(); err != nil {
		return err
	}
	defer h.close()
	if f.dryRun {
		h.describe(streams.out)
		return nil
	}
	title := "metacontroller"
	if f.hooks.hook != "" {
		title += " / " + filepath.Base(f.hooks.hook)
	}
	p := &liveRun{
		io: streams, name: "metacontroller", title: title, flags: f.runFlags, subject: h, step: noStep,
		journal: trace.New(trace.Options{Product: version(), Title: title}),
	}
	return p.run(cmd.Context())
}

// read reads the files that the flags name.
func (h *hooked) read() error {
	f := h.flags
	for _, of := range []struct {
		kind, flag string
		files      []string
	}{
		{v1alpha1.CompositeControllerKind, "--composite", f.hooks.composite}, {v1alpha1.DecoratorControllerKind, "--decorator", f.hooks.decorator},
	} {
		for _, file := range of.files {
			if err := h.readController(file, of.kind, of.flag); err != nil {
				return err
			}
		}
	}
	if len(h.controllers) == 0 {
		return usageError("name its file with --composite or --decorator", "--hook needs a controller whose webhooks it answers")
	}
	before, err := project.ReadManifests(f.manifests)
	if err != nil {
		return usageOf(err)
	}
	h.before = append(h.before, before...)
	if slices.Contains(f.apply, allSamples) {
		return usageError("name it with --apply=FILE", "there is no project whose samples --apply could apply")
	}
	if f.hooks.hook == "" {
		return nil
	}
	h.program, err = hook.New(hook.Options{
		File: f.hooks.hook, Env: f.env, Name: func(req *http.Request) string { return metacontroller.HookOf(req.Context()) },
	})
	return usageOrNil(err)
}

// usageOrNil is usageOf of an error that may be none.
func usageOrNil(err error) error {
	if err == nil {
		return nil
	}
	return usageOf(err)
}

// readController reads a file with a controller of a kind. What it defines is applied first.
func (h *hooked) readController(file, kind, flag string) error {
	samples, err := project.ReadSamples(file)
	if err != nil {
		return usageOf(err)
	}
	found := false
	for _, s := range samples {
		s.Objects = slices.DeleteFunc(s.Objects, func(u *unstructured.Unstructured) bool {
			defines := u.GetKind() == "CustomResourceDefinition"
			if defines {
				h.before = append(h.before, u)
			}
			found = found || u.GetKind() == kind && u.GroupVersionKind().Group == v1alpha1.Group
			return defines
		})
		h.controllers = append(h.controllers, s)
	}
	if !found {
		return usageError("its apiVersion is "+v1alpha1.GroupVersion.String(), "%s %s has no %s", flag, file, kind)
	}
	return nil
}

// describe prints what was found, for --dry-run.
func (h *hooked) describe(w io.Writer) {
	line := func(name, text string) { fmt.Fprintf(w, "%-12s %s\n", name, text) }
	line("operator", "metacontroller")
	answers := "webhooks, where their URLs say"
	if h.program != nil {
		answers = h.flags.hooks.hook
	}
	line("hooks", answers)
	line("seen", "all of its loop, and what each hook was sent and answered")
	for _, u := range h.before {
		line("applies", u.GetKind()+" "+filepath.Join(u.GetNamespace(), u.GetName()))
	}
	for _, s := range h.controllers {
		for _, u := range s.Objects {
			line("applies", u.GetKind()+" "+filepath.Join(u.GetNamespace(), u.GetName()))
		}
	}
	for _, name := range h.flags.apply {
		line("sample", name)
	}
}

func (h *hooked) addToScheme(*runtime.Scheme) error { return nil }

func (h *hooked) caption(string, json.RawMessage) string { return "" }

func (h *hooked) sandbox(o *sandbox.Options) (err error) {
	o.CRDs, err = metacontroller.CRDs()
	return err
}

func (h *hooked) kept(*upFlags) {}

// lab gives the lab the operator, and applies what is to be there before the controllers.
func (h *hooked) lab(ctx context.Context, t *target, o *lab.Options) error {
	crds, err := metacontroller.CRDs()
	if err != nil {
		return err
	}
	if err := sandbox.InstallCRDs(ctx, t.Config(), crds...); err != nil { // a sandbox that is kept has none yet
		return err
	}
	if err := project.ApplyAll(ctx, t, h.before, metav1.NamespaceDefault); err != nil {
		return err
	}
	var transport http.RoundTripper
	if h.program != nil {
		transport = h.program
	}
	o.Programs = append(o.Programs, lab.Bundled(operators.Metacontroller(transport)))
	return nil
}

// begin applies the controllers, and then what --apply names.
func (h *hooked) begin(ctx context.Context, s *liveOperator) error {
	for _, c := range h.controllers {
		if err := c.Apply(ctx, s.you, lab.Person); err != nil {
			return err
		}
	}
	for _, name := range h.flags.apply {
		samples, err := project.ReadSamples(name)
		if err != nil {
			return usageOf(err)
		}
		for _, sample := range samples {
			if err := sample.Apply(ctx, s.you, lab.Person); err != nil {
				return err
			}
		}
	}
	return h.watch(s)
}

// watch follows changes of the files: a hook that is saved begins the operator's next life, so that every object is synced
// with it; a controller that is saved is applied again.
func (h *hooked) watch(s *liveOperator) (err error) {
	if h.watcher, err = fsnotify.NewWatcher(); err != nil {
		return err
	}
	var files []string
	if h.program != nil {
		files = append(files, h.flags.hooks.hook)
	}
	for _, c := range h.controllers {
		files = append(files, c.File)
	}
	for _, file := range files { // their directories: an editor may put another file in the place of one
		if err := h.watcher.Add(filepath.Dir(file)); err != nil {
			return fmt.Errorf("watch %s: %w", file, err)
		}
	}
	h.watching.Go(func() { h.follow(s) })
	return nil
}

func (h *hooked) follow(s *liveOperator) {
	saved := time.NewTimer(0)
	<-saved.C
	defer saved.Stop()
	changed := map[string]bool{}
	for {
		select {
		case e, open := <-h.watcher.Events:
			if !open {
				return
			}
			if !e.Has(fsnotify.Chmod) && !e.Has(fsnotify.Remove) {
				changed[filepath.Clean(e.Name)] = true
				saved.Reset(savePause)
			}
		case err, open := <-h.watcher.Errors:
			if !open {
				return
			}
			s.note("changes of the files may have been missed: " + err.Error())
		case <-saved.C:
			h.again(s, changed)
			clear(changed)
		}
	}
}

// again does what is due after files have changed.
func (h *hooked) again(s *liveOperator, changed map[string]bool) {
	for _, c := range h.controllers {
		if !changed[filepath.Clean(c.File)] {
			continue
		}
		samples, err := project.ReadSamples(c.File)
		for _, sample := range samples {
			err = errors.Join(err, sample.Apply(context.Background(), s.you, lab.Person))
		}
		if err != nil {
			s.note("the controller stays as it was: " + err.Error())
		}
	}
	if h.program != nil && changed[filepath.Clean(h.flags.hooks.hook)] {
		s.note(filepath.Base(h.flags.hooks.hook) + " was saved; every object is synced with it")
		s.lab.Restart(s.name)
	}
}

func (h *hooked) paced() tui.Demo { return nil }

// samples offers what --apply names, to apply it again.
func (h *hooked) samples(s *liveOperator) []tui.Sample {
	var out []tui.Sample
	for _, name := range h.flags.apply {
		out = append(out, tui.Sample{Text: name, Apply: func(ctx context.Context) error {
			samples, err := project.ReadSamples(name)
			for _, sample := range samples {
				err = errors.Join(err, sample.Apply(ctx, s.you, lab.Person))
			}
			return err
		}})
	}
	return out
}

func (h *hooked) awaitEnd(ctx context.Context, s *liveOperator) error {
	return awaitOwnEnd(ctx, s, h.flags.until)
}

func (h *hooked) summary(context.Context, *liveOperator) error { return nil }

// end stops watching the files.
func (h *hooked) end() error {
	if h.watcher == nil {
		return nil
	}
	err := h.watcher.Close()
	h.watching.Wait()
	return err
}

// close ends what runs of the hook.
func (h *hooked) close() {
	if h.program != nil {
		h.program.Close()
	}
}
