package taps_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// counter is a busy operator: it counts in a ConfigMap up to a goal, one write per reconcile, woken by its own writes.
type counter struct {
	client.Client
	goal  atomic.Int64
	done  chan struct{}
	total atomic.Int64
}

func (c *counter) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cm corev1.ConfigMap
	if err := c.Get(ctx, req.NamespacedName, &cm); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	n := c.total.Load()
	if n >= c.goal.Load() {
		return ctrl.Result{}, nil
	}
	cm.Data = map[string]string{"count": fmt.Sprint(n)}
	if err := c.Update(ctx, &cm); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if c.total.Add(1) == c.goal.Load() {
		c.done <- struct{}{}
	}
	return ctrl.Result{}, nil
}

// batch is the number of reconciles after which the two operators alternate: short, so that both meet the same noise of
// the machine.
const batch = 100

// BenchmarkReconciles compares a busy operator with and without the taps, alternating in one process. Each reconcile
// reads from the cache, writes to the API server, and is woken by its own write. It reports the median of both and the
// overhead of the taps:
//
//	go test ./sandbox/taps -run '^$' -bench Reconciles -benchtime 60x
func BenchmarkReconciles(b *testing.B) {
	plain, tapped := startCounter(b, false), startCounter(b, true)
	var without, with []float64
	plain(batch)
	tapped(batch)
	for i := 0; b.Loop(); i++ {
		if i%2 == 0 {
			without = append(without, plain(batch))
			with = append(with, tapped(batch))
		} else {
			with = append(with, tapped(batch))
			without = append(without, plain(batch))
		}
	}
	slices.Sort(without)
	slices.Sort(with)
	p, t := without[len(without)/2], with[len(with)/2]
	b.ReportMetric(1/p, "plain/s")
	b.ReportMetric(1/t, "tapped/s")
	b.ReportMetric((t/p-1)*100, "%added")
}

// startCounter runs a counter. The returned function lets it reconcile n times and returns the seconds that one
// reconcile took.
func startCounter(b *testing.B, tapped bool) func(n int64) float64 {
	cfg := config(b)
	direct, err := client.New(cfg, client.Options{Scheme: scheme()})
	if err != nil {
		b.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	if err := direct.Create(b.Context(), ns); err != nil {
		b.Fatal(err)
	}
	skip := true
	o := ctrl.Options{
		Scheme: scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{ns.Name: {}}},
	}
	o.Controller.SkipNameValidation = &skip
	copts := controller.Options{}
	if tapped {
		t := taps.New(trace.New(trace.Options{}), taps.Options{Operator: "counter"})
		cfg, o, copts = t.RESTConfig(cfg), t.ManagerOptions(o), t.ControllerOptions(copts)
	}
	mgr, err := ctrl.NewManager(cfg, o)
	if err != nil {
		b.Fatal(err)
	}
	c := &counter{Client: mgr.GetClient(), done: make(chan struct{}, 1)}
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).WithOptions(copts).Complete(c); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			b.Error(err)
		}
	})
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "c"}}
	if err := direct.Create(ctx, cm); err != nil {
		b.Fatal(err)
	}
	kicks := 0
	return func(n int64) float64 {
		c.goal.Store(c.total.Load() + n)
		begun := time.Now()
		// A change from outside starts it.
		kicks++
		kick := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"kick":"%d"}}}`, kicks))
		if err := direct.Patch(ctx, cm, kick); err != nil {
			b.Fatal(err)
		}
		<-c.done
		return time.Since(begun).Seconds() / float64(n)
	}
}
