// Package operatorhost runs operators in this process against a sandbox: with the credentials of their own service account, so
// that RBAC is enforced, and with taps that record what they do in a journal.
package operatorhost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/kit"
	"github.com/operator-lab/operator-lab/operators/metacontroller"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// shutdownPatience is how long running reconciles may take when the operator is stopped.
const shutdownPatience = time.Second

// FieldOwner is the field manager of objects that the lab itself applies.
const FieldOwner = "operator-lab"

// Cluster is the cluster of an operator: a sandbox of this process or of another one.
type Cluster interface {
	// Config returns the config of an administrator.
	Config() *rest.Config
	// User issues credentials for a user.
	User(name string, groups ...string) (*rest.Config, error)
	// DialContext connects to pods and Services by their names in the cluster. The network is tcp.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Through returns a cluster whose clients send their requests through a transport.
func Through(c Cluster, wrap transport.WrapperFunc) Cluster { return through{c, wrap} }

type through struct {
	Cluster
	wrap transport.WrapperFunc
}

// Config is part of [Cluster].
func (t through) Config() *rest.Config {
	config := t.Cluster.Config()
	config.Wrap(t.wrap)
	return config
}

// User is part of [Cluster].
func (t through) User(name string, groups ...string) (*rest.Config, error) {
	config, err := t.Cluster.User(name, groups...)
	if err == nil {
		config.Wrap(t.wrap)
	}
	return config, err
}

// Account issues credentials for a service account.
func Account(c Cluster, namespace, name string) (*rest.Config, error) {
	return c.User("system:serviceaccount:"+namespace+":"+name,
		"system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated")
}

// Host is one run of an operator.
type Host struct {
	// Taps observe and control the operator, in this run and the next.
	Taps *taps.Taps

	manager ctrl.Manager
	cancel  context.CancelFunc
	done    chan struct{}
	mu      sync.Mutex
	err     error
}

// Scheme returns a scheme with Kubernetes' own types and those of the operator.
func Scheme(op operators.Operator) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), op.AddToScheme(scheme))
}

// Options are the options of [Start]; only Taps is required.
type Options struct {
	// Taps record the operator.
	Taps *taps.Taps
	// Transport wraps the operator's transport to the API server, below the taps, so that they see what the operator
	// sees. Default: no wrapper.
	Transport func(http.RoundTripper) http.RoundTripper
	// Dir is a directory for the operator's files, which its next run finds as they were left. Default: there is none.
	Dir string
	// Known remembers what the next start need not find out. Default: permissions are applied at each.
	Known *Known

	mapper func(*rest.Config, *http.Client) (meta.RESTMapper, error)
}

// Start grants the operator the permissions in its manifests and runs it until [Host.Stop] or the end of ctx. The CRDs
// must be installed already.
func Start(ctx context.Context, lab Cluster, op operators.Operator, instance operators.Instance, o Options) (*Host, error) {
	known := o.Known
	if known == nil {
		known = &Known{}
	}
	o.mapper = known.mapperOf(lab)
	if err := known.grant(ctx, lab.Config(), op, instance.Variant()); err != nil {
		return nil, fmt.Errorf("grant the operator its permissions: %w", err)
	}
	config, err := Account(lab, op.Namespace, op.ServiceAccount)
	if err != nil {
		return nil, err
	}
	scheme, err := Scheme(op)
	if err != nil {
		return nil, err
	}
	hooks, asked := instance.(operators.Hooks)
	if asked {
		hooks.Called(func(ctx context.Context, c metacontroller.Call) {
			o.Taps.Hook(ctx, taps.HookCall{
				Name: c.Hook, URL: c.URL, Object: c.Object, Request: c.Request, Response: c.Response, Observed: c.Observed,
				Desired: c.Desired, DesiredStatus: c.DesiredStatus, Status: c.Status, Took: c.Took, Err: c.Err,
			})
		})
	}
	setup := func(life context.Context, mgr ctrl.Manager, options controller.Options) error {
		if r, ok := instance.(operators.Reach); ok {
			r.Reach(dialler(life, lab))
		}
		if k, ok := instance.(operators.Keeper); ok && o.Dir != "" {
			k.Keep(o.Dir)
		}
		return instance.SetupWithManager(mgr, options)
	}
	return Serve(ctx, config, Controllers{Name: op.Name, Scheme: scheme, Setup: setup, Cached: asked}, o)
}

// Controllers are those of an operator that is not bundled.
type Controllers struct {
	// Name is the operator's name.
	Name string
	// Scheme has the types that they read.
	Scheme *runtime.Scheme
	// Setup adds them to a manager, each with the given options. The context ends with the run.
	Setup func(context.Context, ctrl.Manager, controller.Options) error
	// Cached says that objects without a Go type of their own are read from the cache, too.
	Cached bool
}

// Serve runs controllers with the given credentials, until [Host.Stop] or the end of ctx. What they need in the cluster is
// there already.
func Serve(ctx context.Context, config *rest.Config, c Controllers, o Options) (*Host, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = c.Name
	if o.Transport != nil {
		config.Wrap(o.Transport)
	}
	ctx, cancel := context.WithCancel(ctx)
	manager, err := ctrl.NewManager(o.Taps.RESTConfig(config), o.Taps.ManagerOptions(ctrl.Options{
		Scheme:         c.Scheme,
		MapperProvider: o.mapper,
		BaseContext:    taps.BaseContext(ctx),
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Client:         client.Options{Cache: &client.CacheOptions{Unstructured: c.Cached}},
		// Short, because a reconcile that sleeps does not notice the shutdown.
		GracefulShutdownTimeout: new(shutdownPatience),
	}))
	if err != nil {
		cancel()
		return nil, err
	}
	// The taps are in the manager, too, for controllers that take no options.
	if err := c.Setup(ctx, o.Taps.Manager(manager), o.Taps.ControllerOptions(controller.Options{})); err != nil {
		cancel()
		return nil, err
	}
	h := &Host{Taps: o.Taps, manager: manager, cancel: cancel, done: make(chan struct{})}
	go h.run(ctx, c.Name)
	return h, nil
}

func (h *Host) run(ctx context.Context, name string) {
	defer close(h.done)
	err := h.manager.Start(ctx)
	h.Taps.EndQueues()
	if err != nil && ctx.Err() != nil {
		// A reconcile did not end in time: worth a note, but not a failure.
		h.Taps.Journal().Append(trace.Event{Kind: trace.KindNote, Actor: name, Operator: name, Message: err.Error()})
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

// AwaitServing returns when the operator's caches are filled and its workers take keys, or with an error when it ended
// before.
func (h *Host) AwaitServing(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-h.done:
			cancel(fmt.Errorf("the operator ended before it served: %w", orStopped(h.Err())))
		case <-ctx.Done():
		}
	}()
	select {
	case <-h.manager.Elected(): // its controllers were started
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return h.Taps.AwaitServing(ctx)
}

var errStopped = errors.New("it was stopped")

func orStopped(err error) error {
	if err == nil {
		return errStopped
	}
	return err
}

// Done returns a channel that is closed when the operator has ended; [Host.Err] then returns the reason.
func (h *Host) Done() <-chan struct{} { return h.done }

// Err returns the error that ended the operator; nil while it runs and after [Host.Stop].
func (h *Host) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// endPatience limits the wait for an operator to end. It is longer than the operator's own wait for its reconciles.
const endPatience = 5 * shutdownPatience

// End ends this run of the operator and returns when it has ended; the error says that it did not within five seconds.
// What is held is abandoned; a pause stays for the next run.
func (h *Host) End() error {
	h.cancel()
	select {
	case <-h.done:
		return h.Err()
	case <-time.After(endPatience):
		return fmt.Errorf("the operator did not end in %v", endPatience)
	}
}

// Stop ends the operator for good and returns when it has ended.
func (h *Host) Stop() error {
	h.cancel()
	<-h.done
	h.Taps.Close() // not before: a paused worker would take a key
	return h.Err()
}

// Grants returns an operator's namespace, service account, roles and bindings.
func Grants(op operators.Operator, variant string) ([]*unstructured.Unstructured, error) {
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(op.Namespace)
	grants := []*unstructured.Unstructured{namespace}
	for _, dir := range []string{"rbac", path.Join("rbac", variant)} {
		more, err := kit.Objects(op.Manifests, dir)
		if err != nil {
			return nil, err
		}
		grants = append(grants, more...)
	}
	return grants, nil
}

// Apply applies an object server-side as [FieldOwner].
func Apply(ctx context.Context, c client.Client, o *unstructured.Unstructured) error {
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(FieldOwner), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}
