// Package helm makes operators of Helm charts. For each object of a kind it keeps one release of a chart: the object's spec
// are the release's values, its name is the release's name.
//
// The reconciler is upstream's, that of helm-operator-plugins. Its run command is internal there, so the wiring is here:
// [Load] reads the file watches.yaml with upstream's loader, and [SetupWithManager] adds a controller for each of its
// entries. It is ordinary controller-runtime code that runs in any manager. [Files] writes an operator's project for a
// chart.
package helm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/operator-framework/helm-operator-plugins/pkg/annotation"
	helmclient "github.com/operator-framework/helm-operator-plugins/pkg/client"
	"github.com/operator-framework/helm-operator-plugins/pkg/reconciler"
	"github.com/operator-framework/helm-operator-plugins/pkg/watches"
	"github.com/spf13/pflag"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Module is the import path of upstream's module.
const Module = "github.com/operator-framework/helm-operator-plugins"

// WatchesFile is the name of the file that says which chart is for which kind.
const WatchesFile = "watches.yaml"

// Options are for all controllers of an operator. The zero value has upstream's defaults, but for the workers.
type Options struct {
	// ReconcilePeriod is the time after which an object is reconciled again without a cause; an entry of watches.yaml may
	// have its own. Default: a minute.
	ReconcilePeriod time.Duration
	// MaxConcurrentReconciles is how many objects of a kind are reconciled at once; an entry may have its own. Default: 1
	// (upstream's command: the number of processors).
	MaxConcurrentReconciles int
	// ResumePending goes on with a release that was left pending because the operator died in the middle of an installation or an
	// upgrade. Only one operator may run at a time. Default: it is taken for the work of somebody else, as by upstream, and
	// the object cannot be reconciled any more.
	ResumePending bool
}

// Bind binds the options to flags, by the names of upstream's command.
func (o *Options) Bind(flags *pflag.FlagSet) {
	flags.DurationVar(&o.ReconcilePeriod, "reconcile-period", time.Minute, "reconcile each object again after this long without a cause")
	flags.IntVar(&o.MaxConcurrentReconciles, "max-concurrent-reconciles", 1, "objects of a kind that are reconciled at once")
}

// FromArguments returns the options in the arguments of upstream's command. Others than those of [Options.Bind] have no
// meaning here and are passed over.
func FromArguments(args []string) (Options, error) {
	var o Options
	flags := pflag.NewFlagSet("helm-operator", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	o.Bind(flags)
	return o, flags.Parse(args)
}

// Load reads a file watches.yaml with upstream's loader, and the charts that it names. Their paths are relative to the
// file, whose directory is the working directory of upstream's command in its image. Variables in overrideValues are those
// of env, NAME=value, or else of this process.
func Load(file string, env []string) ([]watches.Watch, error) {
	entries, err := readEntries(file)
	if err != nil {
		return nil, err
	}
	of := func(name string) string {
		for _, e := range env {
			if value, is := strings.CutPrefix(e, name+"="); is {
				return value
			}
		}
		return os.Getenv(name)
	}
	for i, e := range entries {
		chart, _ := e["chart"].(string)
		if chart == "" {
			return nil, fmt.Errorf("%s: entry %d names no chart", filepath.Base(file), i+1)
		}
		if !filepath.IsAbs(chart) {
			e["chart"] = filepath.Join(filepath.Dir(file), chart)
		}
		overrides, _ := e["overrideValues"].(map[string]any)
		for name, value := range overrides {
			if text, is := value.(string); is {
				overrides[name] = os.Expand(text, of)
			}
		}
	}
	raw, err := yaml.Marshal(entries)
	if err != nil {
		return nil, err
	}
	all, err := watches.LoadReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return all, nil
}

// IsFile reports whether a file is a watches.yaml with charts, and not one of an Ansible operator. A file that cannot be
// parsed counts as one if it mentions charts, so that Load says what is wrong with it.
func IsFile(file string) bool {
	entries, err := readEntries(file)
	if err != nil {
		raw, _ := os.ReadFile(file)
		return bytes.Contains(raw, []byte("chart:"))
	}
	for _, e := range entries {
		if _, is := e["chart"]; is {
			return true
		}
	}
	return false
}

func readEntries(file string) (entries []map[string]any, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(raw, &entries); err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("%s is no list of kinds with charts: %s", filepath.Base(file), text)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%s has no entry", filepath.Base(file))
	}
	return entries, nil
}

// SetupWithManager adds a controller for each entry of watches.yaml. The kinds need not be in the manager's scheme.
func SetupWithManager(mgr ctrl.Manager, all []watches.Watch, o Options) error {
	if len(all) == 0 {
		return errors.New("there is no chart to watch for")
	}
	for _, w := range all {
		if err := setup(mgr, w, o); err != nil {
			return fmt.Errorf("set up the controller of %s: %w", w.Kind, err)
		}
	}
	return nil
}

func setup(mgr ctrl.Manager, w watches.Watch, o Options) error {
	actions, err := NewActions(mgr)
	if err != nil {
		return err
	}
	if o.ResumePending {
		actions = resuming{actions}
	}
	period, workers := cmp.Or(o.ReconcilePeriod, time.Minute), cmp.Or(o.MaxConcurrentReconciles, 1)
	if w.ReconcilePeriod != nil {
		period = w.ReconcilePeriod.Duration
	}
	if w.MaxConcurrentReconciles != nil {
		workers = *w.MaxConcurrentReconciles
	}
	options := []reconciler.Option{
		reconciler.WithChart(*w.Chart),
		reconciler.WithGroupVersionKind(w.GroupVersionKind),
		reconciler.WithOverrideValues(w.OverrideValues),
		reconciler.SkipDependentWatches(skipsDependents(w)),
		reconciler.WithMaxConcurrentReconciles(workers),
		reconciler.WithReconcilePeriod(period),
		reconciler.WithInstallAnnotations(annotation.DefaultInstallAnnotations...),
		reconciler.WithUpgradeAnnotations(annotation.DefaultUpgradeAnnotations...),
		reconciler.WithUninstallAnnotations(annotation.DefaultUninstallAnnotations...),
		reconciler.WithActionClientGetter(actions),
		reconciler.WithLog(mgr.GetLogger().WithName("helm")),
	}
	if w.Selector != nil {
		options = append(options, reconciler.WithSelector(*w.Selector))
	}
	r, err := reconciler.New(options...)
	if err != nil {
		return err
	}
	return r.SetupWithManager(mgr)
}

// NewActions returns what installs, upgrades and uninstalls releases with a manager's permissions. The requests carry the
// values of the reconcile's context. Options come after those for that.
func NewActions(mgr ctrl.Manager, options ...helmclient.ActionConfigGetterOption) (helmclient.ActionClientGetter, error) {
	config, err := helmclient.NewActionConfigGetter(mgr.GetConfig(), mgr.GetRESTMapper(), append([]helmclient.ActionConfigGetterOption{
		helmclient.ClientRestConfigMapper(withContext), helmclient.StorageRestConfigMapper(withContext),
	}, options...)...)
	if err != nil {
		return nil, err
	}
	return helmclient.NewActionClientGetter(config)
}

// resuming has its clients take a release that is pending for one that has failed: nobody works on it, because an object is not
// reconciled twice at once. The reconciler then upgrades it, which makes what is missing.
type resuming struct{ helmclient.ActionClientGetter }

// ActionClientFor returns such a client.
func (r resuming) ActionClientFor(ctx context.Context, object client.Object) (helmclient.ActionInterface, error) {
	actions, err := r.ActionClientGetter.ActionClientFor(ctx, object)
	return resumed{actions}, err
}

type resumed struct{ helmclient.ActionInterface }

// Get returns the newest revision of a release, which is not pending.
func (r resumed) Get(name string, options ...helmclient.GetOption) (*release.Release, error) {
	found, err := r.ActionInterface.Get(name, options...)
	if err != nil || !found.Info.Status.IsPending() {
		return found, err
	}
	found.SetStatus(release.StatusFailed, "the operator died in the middle of it")
	return found, r.Config().Releases.Update(found)
}

// skipsDependents reports whether changes of a release's objects are not to wake the controller. Upstream's run command
// gives the option the value of watchDependentResources as it is, which turns it around: there the default, true, skips
// them.
func skipsDependents(w watches.Watch) bool {
	return w.WatchDependentResources != nil && !*w.WatchDependentResources
}

// withContext returns a config whose requests carry the values of a reconcile's context. Helm takes no context, so that
// otherwise nobody could tell of its requests which reconcile they are part of.
func withContext(ctx context.Context, _ client.Object, config *rest.Config) (*rest.Config, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return carrier{ctx, next} })
	return config, nil
}

// carrier is a transport that adds the values of a context to requests.
type carrier struct {
	values context.Context
	next   http.RoundTripper
}

// RoundTrip is part of http.RoundTripper.
func (c carrier) RoundTrip(req *http.Request) (*http.Response, error) {
	return c.next.RoundTrip(req.WithContext(carried{req.Context(), c.values}))
}

// carried is a request's context with the values of another one, too.
type carried struct {
	context.Context

	values context.Context
}

// Value is part of context.Context.
func (c carried) Value(key any) any {
	if value := c.Context.Value(key); value != nil {
		return value
	}
	return c.values.Value(key)
}
