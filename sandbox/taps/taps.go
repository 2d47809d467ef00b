//go:build go1.23

package taps

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Options are the options of [New]. The zero value works.
type Options struct {
	// Operator is the operator's name in its events. Operators that share a journal need different names. Default:
	// "operator".
	Operator string
	// Actor is the actor of its events. Default: the operator's name.
	Actor string
	// Logger also gets the operator's log lines. Default: the logger in the manager's options, or else none besides the
	// journal.
	Logger logr.Logger
	// LogLevel is the highest recorded verbosity of log lines. Default: 0.
	LogLevel int
	// Skip says which calls and watch events are not recorded. Default: all are.
	Skip func(*trace.Event) bool
	// Began is called when one of the first reconciles of a run is in the journal, before the operator's code works on it: that
	// may end the process. Default: nothing is called.
	Began func()
}

// Taps observes one operator: one manager at a time, which may be stopped and started again. All methods may be called
// from any goroutine.
type Taps struct {
	*Control

	controllers
	known
	brackets

	journal *trace.Journal
	opts    Options
	logged  atomic.Pointer[logged]      // what its log tells in its current run
	cache   atomic.Pointer[tappedCache] // of its current run
}

// New returns taps that append to a journal.
func New(j *trace.Journal, opts Options) *Taps {
	if opts.Operator == "" {
		opts.Operator = "operator"
	}
	if opts.Actor == "" {
		opts.Actor = opts.Operator
	}
	t := &Taps{
		journal: j, opts: opts,
		controllers: controllers{
			running: map[types.UID]*runningReconcile{}, queues: map[*queue]struct{}{}, changed: make(chan struct{}),
		},
		known: known{objects: map[feedKey]map[types.NamespacedName]version{}},
	}
	t.Control = &Control{taps: t}
	t.logged.Store(newLogged(t))
	return t
}

// Journal returns the journal that the taps append to.
func (t *Taps) Journal() *trace.Journal { return t.journal }

// Delivering reports whether a watch event is in the journal which not all controllers of the kind have had: several handlers get
// each, and the journal has it when the first does.
func (t *Taps) Delivering() bool {
	c := t.cache.Load()
	return c != nil && c.due.Load() > 0
}

// append adds an event of this operator to the journal and returns its Seq; 0 if it is to be skipped.
func (t *Taps) append(e trace.Event) int64 {
	e.Operator = t.opts.Operator
	if e.Actor == "" {
		e.Actor = t.opts.Actor
	}
	if t.opts.Skip != nil && (e.Kind == trace.KindCall || e.Kind == trace.KindWatch) && t.opts.Skip(&e) {
		return 0
	}
	return t.journal.Append(e)
}

// RESTConfig returns a copy of cfg whose requests are observed where they leave the process.
func (t *Taps) RESTConfig(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &wire{taps: t, next: rt} })
	return cfg
}

// ManagerOptions returns o with the taps set into it: cache, client, logger, and permission to reuse a controller name
// in this process. Settings of o for cache, client and logger are wrapped, not replaced.
func (t *Taps) ManagerOptions(o ctrl.Options) ctrl.Options {
	o.NewCache = t.newCache(o.NewCache, false)
	o.NewClient = t.newClient(o.NewClient)
	skip := true
	o.Controller.SkipNameValidation = &skip
	base := t.opts.Logger
	if base.GetSink() == nil {
		base = o.Logger
	}
	o.Logger = logr.New(&sink{taps: t, next: base.GetSink()})
	t.tapControllerLogger(&o)
	return o
}

// ClusterOptions sets the taps into the options of a cluster, which has a cache and a client but no controllers.
func (t *Taps) ClusterOptions(o *cluster.Options) {
	o.NewCache, o.NewClient = t.newCache(o.NewCache, true), t.newClient(o.NewClient)
}

// ControllerOptions returns o with the taps' work queue. The rate limiter and the log constructor of o are kept. A
// queue of the operator's own is replaced, and a note in the journal says so.
func (t *Taps) ControllerOptions(o controller.Options) controller.Options {
	if o.NewQueue != nil {
		t.append(trace.Event{Kind: trace.KindNote, Message: "the operator's own work queue is replaced by the lab's"})
	}
	skip := true
	o.SkipNameValidation = &skip
	o.NewQueue = t.newQueueFunc
	if o.LogConstructor != nil {
		o.LogConstructor = t.logConstructor("", o.LogConstructor)
	}
	return o
}

// newQueueFunc is the NewQueue option of a controller.
func (t *Taps) newQueueFunc(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return newQueue(t, name, limiter)
}

// newCache returns a constructor of observed caches: of managers, or of clusters beside them.
func (t *Taps) newCache(inner cache.NewCacheFunc, beside bool) cache.NewCacheFunc {
	if inner == nil {
		inner = cache.New
	}
	return func(cfg *rest.Config, o cache.Options) (cache.Cache, error) {
		c, err := inner(cfg, o)
		if err != nil {
			return nil, err
		}
		tapped := &tappedCache{Cache: c, taps: t, scheme: o.Scheme, beside: beside, feeds: map[feedKey]*feed{}}
		if !beside {
			t.cache.Store(tapped)
		}
		return tapped, nil
	}
}

// newClient returns a constructor of observed clients.
func (t *Taps) newClient(inner client.NewClientFunc) client.NewClientFunc {
	return func(cfg *rest.Config, o client.Options) (client.Client, error) {
		if inner == nil {
			c, err := client.NewWithWatch(cfg, o)
			if err != nil {
				return nil, err
			}
			return interceptor.NewClient(c, tappedClient{t}.funcs()), nil
		}
		c, err := inner(cfg, o)
		if err != nil {
			return nil, err
		}
		return t.Client(c), nil
	}
}

// Client returns c with its calls observed and its writes held on request, for clients that a program makes without a
// manager.
func (t *Taps) Client(c client.Client) client.Client {
	w, ok := c.(client.WithWatch)
	if !ok {
		w = noWatch{c}
	}
	return interceptor.NewClient(w, tappedClient{t}.funcs())
}

// elapsedSince returns the time since a time of the journal.
func (t *Taps) elapsedSince(begun time.Duration) time.Duration { return t.journal.Elapsed() - begun }
