package runner

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// asking builds the arguments of kubectl. It remembers its first error.
type asking struct {
	*doing
	ctx  context.Context // of one call
	in   inherited
	err  error
	args []string
}

func (a *asking) add(args ...string) { a.args = append(a.args, args...) }

func (a *asking) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// text evaluates a text.
func (a *asking) text(e format.Expression) string {
	text, err := a.in.scope.String(a.ctx, string(e))
	if err != nil {
		a.fail(err)
	}
	return text
}

// optional evaluates a text that may be missing.
func (a *asking) optional(e *format.Expression) (string, bool) {
	if e == nil {
		return "", false
	}
	return a.text(*e), true
}

// kubectlActions returns the actions of an operation that runs kubectl.
func kubectlActions(op *format.Operation) ([]action, error) {
	one := func(c format.ActionClusters, t format.ActionTimeout, o format.ActionOutputs, build func(*asking)) ([]action, error) {
		return []action{{do: func(ctx context.Context, in inherited, d *doing) error {
			return d.kubectl(ctx, in, execution{ActionClusters: c, ActionTimeout: t, ActionOutputs: o}, build)
		}}}, nil
	}
	none := format.ActionOutputs{}
	switch {
	case op.Get != nil:
		g := op.Get
		return one(g.ActionClusters, g.ActionTimeout, none, func(a *asking) { a.get(g.ActionObject, g.Format) })
	case op.Events != nil:
		e := op.Events
		object := format.ActionObject{
			ObjectType: format.ObjectType{APIVersion: "v1", Kind: "Event"}, ActionObjectSelector: e.ActionObjectSelector,
		}
		return one(e.ActionClusters, e.ActionTimeout, none, func(a *asking) { a.get(object, e.Format) })
	case op.Describe != nil:
		d := op.Describe
		return one(d.ActionClusters, d.ActionTimeout, none, func(a *asking) { a.describe(d) })
	case op.PodLogs != nil:
		l := op.PodLogs
		return one(l.ActionClusters, l.ActionTimeout, none, func(a *asking) { a.logs(l) })
	case op.Proxy != nil:
		p := op.Proxy
		return one(p.ActionClusters, p.ActionTimeout, p.ActionOutputs, func(a *asking) { a.proxy(p) })
	case op.Wait != nil:
		w := op.Wait
		return one(w.ActionClusters, w.ActionTimeout, none, func(a *asking) { a.wait(w) })
	}
	return nil, errors.New("no operation found")
}

// waitGrace is added to kubectl wait's own timeout.
const waitGrace = 30 * time.Second

func (d *doing) kubectl(ctx context.Context, in inherited, e execution, build func(*asking)) error {
	in, err := in.with(ctx, settings{cluster: e.Cluster, clusters: e.Clusters, timeouts: &format.Timeouts{Exec: e.Timeout}})
	if err != nil {
		return err
	}
	if _, err := in.needCluster(); err != nil {
		return err
	}
	a := &asking{doing: d, ctx: ctx, in: in}
	build(a)
	if a.err != nil {
		return a.err
	}
	if a.args[0] == "wait" {
		e.grace = waitGrace
	}
	d.report.Name = "kubectl " + strings.Join(expand(map[string]string{"NAMESPACE": in.namespace}, a.args), " ")
	e.arguments, e.expand = append([]string{d.Kubectl}, a.args...), true
	return d.execute(ctx, in, e)
}

var (
	errBoth   = errors.New("name cannot be provided when a selector is specified")
	errNobody = errors.New("a name or selector must be specified")
)

// selects adds the selection of objects; without a name or selector it adds all.
func (a *asking) selects(s format.ActionObjectSelector, all string) {
	name, selector := a.text(s.Name), a.text(s.Selector)
	switch {
	case name != "" && selector != "":
		a.fail(errBoth)
	case name != "":
		a.add(name)
	case selector != "":
		a.add("-l", selector)
	case all != "":
		a.add(all)
	}
}

// within adds the namespace: * means all namespaces, and empty the test's.
func (a *asking) within(namespace format.Expression, clusterWide bool) {
	ns := a.text(namespace)
	switch {
	case clusterWide:
	case ns == "*":
		a.add("--all-namespaces")
	case ns == "":
		a.add("-n", "$NAMESPACE")
	default:
		a.add("-n", ns)
	}
}

// kind returns kubectl's name of a kind, and whether it is cluster-scoped.
func (a *asking) kind(t format.ObjectType) (string, bool) {
	apiVersion, kind := a.text(t.APIVersion), a.text(t.Kind)
	if a.err != nil {
		return "", false
	}
	if apiVersion == "" || kind == "" {
		a.fail(errors.New("apiVersion and kind must be specified"))
		return "", false
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		a.fail(err)
		return "", false
	}
	if err := a.Hooks.Object(apiVersion, kind); err != nil {
		a.fail(err)
		return "", false
	}
	m, err := a.in.cluster.mapping(a.ctx, gv.WithKind(kind))
	if err != nil {
		a.fail(err)
		return "", false
	}
	name := m.Resource.Resource
	if m.Resource.Group != "" {
		name += "." + m.Resource.Version + "." + m.Resource.Group
	}
	return name, m.Scope.Name() == meta.RESTScopeNameRoot
}

func (a *asking) format(f format.Expression) {
	if text := a.text(f); text != "" {
		a.add("-o", text)
	}
}

func (a *asking) get(o format.ActionObject, f format.Expression) {
	kind, clusterWide := a.kind(o.ObjectType)
	a.add("get", kind)
	a.selects(o.ActionObjectSelector, "")
	a.within(o.Namespace, clusterWide)
	a.format(f)
}

func (a *asking) describe(d *format.Describe) {
	kind, clusterWide := a.kind(d.ObjectType)
	a.add("describe", kind)
	a.selects(d.ActionObjectSelector, "")
	a.within(d.Namespace, clusterWide)
	if d.ShowEvents != nil {
		a.add(fmt.Sprintf("--show-events=%t", *d.ShowEvents))
	}
}

func (a *asking) logs(l *format.PodLogs) {
	a.add("logs", "--prefix")
	before := len(a.args)
	a.selects(l.ActionObjectSelector, "")
	if len(a.args) == before {
		a.fail(errNobody)
	}
	a.within(l.Namespace, false)
	if container := a.text(l.Container); container != "" {
		a.add("-c", container)
	} else {
		a.add("--all-containers")
	}
	if l.Tail != nil {
		a.add("--tail", fmt.Sprint(*l.Tail))
	}
}

func (a *asking) proxy(p *format.Proxy) {
	kind, _ := a.kind(p.ObjectType)
	target := a.text(p.Name) + ":" + a.text(p.TargetPort)
	namespace := a.text(p.Namespace)
	if namespace == "" {
		namespace = a.in.namespace
	}
	a.add("get", "--raw", path.Join("/api", "v1", "namespaces", namespace, kind, target, "proxy", a.text(p.TargetPath)))
}

func (a *asking) wait(w *format.Wait) {
	kind, clusterWide := a.kind(w.ObjectType)
	a.add("wait", kind, a.condition(w.WaitFor))
	a.selects(w.ActionObjectSelector, "--all")
	a.within(w.Namespace, clusterWide)
	a.format(w.Format)
	a.add("--timeout", metav1.Duration{Duration: a.in.timeouts.exec}.Duration.String())
}

// condition returns the value of kubectl wait's --for.
func (a *asking) condition(f format.WaitFor) string {
	switch {
	case f.Deletion != nil:
		return "--for=delete"
	case f.Creation != nil:
		return "--for=create"
	case f.Condition != nil:
		name := a.text(f.Condition.Name)
		if name == "" {
			a.fail(errors.New("a condition name must be specified for condition wait type"))
		}
		if value, ok := a.optional(f.Condition.Value); ok {
			return "--for=condition=" + name + "=" + value
		}
		return "--for=condition=" + name
	case f.JsonPath != nil:
		jsonPath := a.text(f.JsonPath.Path)
		if jsonPath == "" {
			a.fail(errors.New("a path must be specified for jsonpath wait type"))
		}
		value, ok := a.optional(f.JsonPath.Value)
		if ok && value == "" {
			a.fail(errors.New("a value must be specified for jsonpath wait type"))
		}
		if ok {
			return "--for=jsonpath=" + jsonPath + "=" + value
		}
		return "--for=jsonpath=" + jsonPath
	}
	a.fail(errors.New("either a deletion or a condition must be specified"))
	return ""
}
