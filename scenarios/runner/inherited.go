package runner

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/scenarios/expression"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

// timeouts has the timeouts by kind of operation.
type timeouts struct {
	apply, assert, cleanup, delete, error, exec time.Duration
	scale                                       float64 // see [Options]; not 0
}

// set replaces those that f has, by their scaled values.
func (t *timeouts) set(f format.Timeouts) {
	for _, each := range []struct {
		to   *time.Duration
		from *metav1.Duration
	}{
		{&t.apply, f.Apply},
		{&t.assert, f.Assert},
		{&t.cleanup, f.Cleanup},
		{&t.delete, f.Delete},
		{&t.error, f.Error},
		{&t.exec, f.Exec},
	} {
		if each.from != nil {
			*each.to = time.Duration(float64(each.from.Duration) * t.scale)
		}
	}
}

func (t *timeouts) values() map[string]any {
	return map[string]any{
		"apply": t.apply, "assert": t.assert, "cleanup": t.cleanup, "delete": t.delete, "error": t.error, "exec": t.exec,
	}
}

// inherited holds what the configuration hands down to a test, the test to its steps and a step to its operations. It is
// passed by value, so that a change affects only what is nested inside.
type inherited struct {
	scope       expression.Scope
	folder      string
	clusters    map[string]*cluster
	cluster     *cluster // nil if there is none
	clusterName string
	allows      func(apiVersion, kind string) error // for clusters that are registered
	namespace   string
	catch       []format.CatchFinally
	timeouts    timeouts
	delay       time.Duration
	grace       time.Duration
	propagation metav1.DeletionPropagation
	dryRun      bool
	skipDelete  bool
	templating  bool
}

// settings are the changes that a test, a step or an operation makes to what it inherits. Nil fields are inherited.
type settings struct {
	catch       []format.CatchFinally
	cluster     *string
	clusters    format.Clusters
	delay       *metav1.Duration
	dryRun      *bool
	grace       *metav1.Duration
	propagation *metav1.DeletionPropagation
	skipDelete  *bool
	templating  *bool
	timeouts    *format.Timeouts
	bindings    []format.Binding
}

// with returns a copy with settings applied.
func (s inherited) with(ctx context.Context, c settings) (inherited, error) {
	s.catch = slices.Concat(s.catch, c.catch)
	set(&s.dryRun, c.dryRun)
	set(&s.skipDelete, c.skipDelete)
	set(&s.templating, c.templating)
	set(&s.propagation, c.propagation)
	if c.delay != nil {
		s.delay = c.delay.Duration
	}
	if c.grace != nil {
		s.grace = c.grace.Duration
	}
	if c.timeouts != nil {
		s.timeouts.set(*c.timeouts)
		s.scope = s.scope.With("timeouts", s.timeouts.values())
	}
	s = s.register(c.clusters)
	if c.cluster != nil {
		var err error
		if s, err = s.on(ctx, *c.cluster); err != nil {
			return s, err
		}
	}
	scope, err := s.scope.BindAll(ctx, c.bindings)
	s.scope = scope
	return s, err
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// register adds clusters by their names.
func (s inherited) register(clusters format.Clusters) inherited {
	if len(clusters) == 0 {
		return s
	}
	s.clusters = maps.Clone(s.clusters)
	for name, c := range clusters {
		path := c.Kubeconfig
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.folder, path)
		}
		s.clusters[name] = clusterFromFile(path, c.Context, s.allows)
	}
	return s
}

// on selects the cluster with a name, which may be an expression. An unknown name is an error only for operations that
// need a cluster.
func (s inherited) on(ctx context.Context, name string) (inherited, error) {
	name, err := s.scope.String(ctx, name)
	if err != nil {
		return s, fmt.Errorf("name of the cluster: %w", err)
	}
	s.cluster, s.clusterName = s.clusters[name], name
	if s.cluster == nil {
		s.scope = s.scope.With("client", nil).With("config", nil)
		return s, nil
	}
	config, err := s.cluster.rest()
	if err != nil {
		return s, err
	}
	s.scope = s.scope.With("client", s.cluster).With("config", config)
	return s, nil
}

// needCluster returns the selected cluster, or an error if there is none.
func (s inherited) needCluster() (*cluster, error) {
	switch {
	case s.cluster != nil:
		return s.cluster, nil
	case s.clusterName != "":
		known := slices.DeleteFunc(slices.Sorted(maps.Keys(s.clusters)), func(name string) bool { return name == "" })
		hint := "clusters are made known in the configuration, the test, the step or the operation, with clusters"
		if len(known) > 0 {
			hint = "known are " + strings.Join(known, ", ")
		}
		return nil, problemf(hint, "there is no cluster %q", s.clusterName)
	}
	return nil, problemf("this run has no cluster; only scripts, commands and asserts without a kind work then", "cluster client not set")
}

// operation returns a copy for an operation, with its number and that of its resource.
func (s inherited) operation(id, resource int) inherited {
	s.scope = s.scope.With("operation", map[string]any{"id": float64(id), "resourceId": float64(resource)})
	return s
}

// bind returns a copy with an operation's outputs.
func (s inherited) bind(outputs []expression.Named) inherited {
	for _, o := range outputs {
		s.scope = s.scope.With(o.Name, o.Value)
	}
	return s
}
