package metering

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/operator-lab/operator-lab/operators/kit"
	v1 "github.com/operator-lab/operator-lab/operators/metering/v1"
)

// begin is when the time of these tests begins: not at a full hour, nor at a full minute.
var begin = time.Date(2026, 3, 1, 9, 17, 23, 0, time.UTC)

// world is a cluster in memory, with an operator whose clock the test moves. It can be killed at any of its requests.
type world struct {
	t   *testing.T
	now time.Time
	dir string
	// cluster is not the operator's.
	cluster client.WithWatch

	store   *store
	sources *sources
	reports *reports
	// mortal counts down the operator's requests until it is killed; negative: never.
	mortal int
	// atStatus has it killed at the next status of a Report, the moment after a period is in the database.
	atStatus bool
	// kills counts the lives that ended so.
	kills int
}

// Now and Wait implement [Clock].
func (w *world) Now() time.Time                     { return w.now }
func (w *world) Wait(d time.Duration) time.Duration { return d }

var errKilled = errors.New("the operator was killed")

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, now: begin, dir: t.TempDir(), mortal: -1}
	w.cluster = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1.Report{}, &v1.ReportDataSource{}).Build()
	objects, err := kit.Objects(Manifests(), "builtin")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		o.SetNamespace(Namespace)
		o.SetUID(types.UID(o.GetKind() + o.GetName()))
		w.create(o)
	}
	w.live()
	t.Cleanup(func() { _ = w.store.close() })
	return w
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	if err := w.cluster.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// live begins a life of the operator.
func (w *world) live() {
	w.t.Helper()
	if w.store != nil {
		if err := w.store.close(); err != nil {
			w.t.Fatal(err)
		}
	}
	var err error
	if w.store, err = openStore(w.dir, 1); err != nil {
		w.t.Fatal(err)
	}
	c := w.mortalClient()
	o := Options{Namespace: Namespace, Interval: DefaultInterval, Retention: DefaultRetention, Clock: w, Rate: 1}
	w.sources = &sources{client: c, live: c, fetch: newFetcher(nil), store: w.store, options: o, looks: map[types.UID]look{}}
	w.reports = &reports{client: c, store: w.store, options: o, events: events.NewFakeRecorder(10_000)}
}

// mortalClient is the operator's client. When it is killed, its request is carried out or is not, and no other is.
func (w *world) mortalClient() client.Client {
	dead := false
	do := func(request func() error) error {
		switch w.mortal {
		case 0: // killed before, or after
			if !dead && w.kills%2 == 0 {
				_ = request()
			}
			dead = true
		case -1:
		default:
			w.mortal--
		}
		if dead {
			return errKilled
		}
		return request()
	}
	return interceptor.NewClient(w.cluster, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return do(func() error { return c.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return do(func() error { return c.List(ctx, list, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			if u, is := obj.(interface{ GetKind() string }); is && u.GetKind() == "Report" && w.atStatus {
				w.mortal, w.atStatus = 0, false
			}
			return do(func() error { return c.SubResource(sub).Apply(ctx, obj, opts...) })
		},
	})
}

// settle reconciles until nothing asks for another pass at once. Of a killed operator the next life goes on.
func (w *world) settle(source string, reports ...*v1.Report) {
	w.t.Helper()
	pass := func(reconcile func(context.Context, ctrl.Request) (ctrl.Result, error), key types.NamespacedName) {
		for range 1000 {
			result, err := reconcile(w.t.Context(), ctrl.Request{NamespacedName: key})
			if errors.Is(err, errKilled) {
				w.mortal = -1
				w.kills++
				w.live()
				return // its first pass is that of the next settle
			}
			if err != nil {
				w.t.Fatal(err)
			}
			if result.RequeueAfter != again.RequeueAfter {
				return
			}
		}
		w.t.Fatal("it does not come to rest")
	}
	pass(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) { return w.sources.Reconcile(ctx, r) },
		types.NamespacedName{Namespace: Namespace, Name: source})
	for _, r := range reports {
		pass(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) { return w.reports.Reconcile(ctx, r) }, client.ObjectKeyFromObject(r))
	}
}

// pod creates a pod on a node.
func (w *world) pod(namespace, name, cpu string) {
	w.t.Helper()
	w.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	})
}

// report creates a Report.
func (w *world) report(name string, spec v1.ReportSpec) *v1.Report {
	w.t.Helper()
	r := &v1.Report{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), Generation: 1}, Spec: spec}
	w.create(r)
	return r
}

// said reads the condition of a Report.
func (w *world) said(r *v1.Report) metav1.Condition {
	w.t.Helper()
	if err := w.cluster.Get(w.t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
		w.t.Fatal(err)
	}
	c := meta.FindStatusCondition(r.Status.Conditions, v1.ConditionRunning)
	if c == nil {
		return metav1.Condition{}
	}
	return *c
}

// totals adds up the core-seconds of all rows of a Report by namespace.
func (w *world) totals(r *v1.Report) map[string]float64 {
	w.t.Helper()
	columns, rows, _, err := w.store.rows(w.t.Context(), string(r.UID))
	if err != nil {
		w.t.Fatal(err)
	}
	namespace := slices.IndexFunc(columns, func(c v1.ReportQueryColumn) bool { return c.Name == "namespace" })
	amount := slices.IndexFunc(columns, func(c v1.ReportQueryColumn) bool { return c.Name == "pod_request_cpu_core_seconds" })
	all := map[string]float64{}
	for _, row := range rows {
		all[row[namespace].(string)] += row[amount].(float64)
	}
	return all
}

// integral adds up the samples of a time, apart from any ReportQuery.
func (w *world) integral(since, until time.Time) map[string]float64 {
	w.t.Helper()
	found, err := w.store.db.QueryContext(w.t.Context(), "SELECT timestamp, timeprecision, labels, amount FROM samples")
	if err != nil {
		w.t.Fatal(err)
	}
	defer found.Close() //nolint:errcheck // Err says what went wrong
	all := map[string]float64{}
	for found.Next() {
		var at, seconds int64
		var text string
		var amount float64
		if err := found.Scan(&at, &seconds, &text, &amount); err != nil {
			w.t.Fatal(err)
		}
		var labels struct{ Namespace string }
		if err := json.Unmarshal([]byte(text), &labels); err != nil {
			w.t.Fatal(err)
		}
		if at >= since.Unix() && at < until.Unix() {
			all[labels.Namespace] += amount * float64(seconds)
		}
	}
	if err := found.Err(); err != nil {
		w.t.Fatal(err)
	}
	return all
}

// same tells whether totals are the same but for the order in which they were added up.
func same(a, b map[string]float64) bool {
	for _, pair := range [][2]map[string]float64{{a, b}, {b, a}} {
		for key, value := range pair[0] {
			if other, has := pair[1][key]; !has || math.Abs(value-other) > 1e-9*math.Abs(value) {
				return false
			}
		}
	}
	return true
}

func at(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

func cronOf(expression string) *v1.ReportSchedule {
	return &v1.ReportSchedule{Period: v1.Cron, Cron: &v1.ScheduleCron{Expression: expression}}
}

const requestSource = "pod-request-cpu-cores"

// TestTotals is the property of metering: however time is split into periods, and whenever the operator is killed, the totals of a
// report are the integral of the samples, and each of its periods begins where the one before it ended.
func TestTotals(t *testing.T) {
	t.Parallel()
	const worlds = 4
	kills, periods, reports, amounts := 0, 0, 0, 0.0
	for seed := range uint64(worlds) {
		random := rand.New(rand.NewPCG(seed, 22)) //nolint:gosec // it is to be repeatable
		w := newWorld(t)
		end := begin.Add(5*time.Hour + time.Duration(random.IntN(3600))*time.Second)
		query := func(s *v1.ReportSchedule, since, until time.Time) v1.ReportSpec {
			return v1.ReportSpec{Query: "namespace-cpu-request", Schedule: s, ReportingStart: at(since), ReportingEnd: at(until)}
		}
		cut := begin.Add(time.Duration(random.Int64N(int64(5 * time.Hour)))).Truncate(time.Second)
		all := []*v1.Report{
			w.report("once", query(nil, begin, end)),
			w.report("before-the-cut", query(nil, begin, cut)),
			w.report("after-the-cut", query(nil, cut, end)),
			w.report("hourly", query(&v1.ReportSchedule{Period: v1.Hourly, Hourly: &v1.ScheduleMoment{Minute: random.IntN(60), Second: random.IntN(60)}}, begin, end)),
			w.report("cron", query(cronOf(fmt.Sprintf("*/%d * * * *", 1+random.IntN(25))), begin, end)),
			w.report("daily", query(&v1.ReportSchedule{Period: v1.Daily, Daily: &v1.ScheduleMoment{Hour: 11, Second: 1}}, begin, end)),
		}
		next := 0
		var there []string
		for w.now.Before(end.Add(3 * time.Minute)) {
			switch random.IntN(8) {
			case 0:
				name := fmt.Sprintf("p%d", next)
				next++
				namespace := fmt.Sprintf("ns%d", random.IntN(3))
				w.pod(namespace, name, fmt.Sprintf("%dm", 1+random.IntN(2000)))
				there = append(there, namespace+"/"+name)
			case 1:
				if i := len(there) - 1; i >= 0 {
					var p corev1.Pod
					if _, err := fmt.Sscanf(there[i], "ns%d", new(int)); err != nil {
						t.Fatal(err)
					}
					p.Namespace, p.Name = there[i][:3], there[i][4:]
					if err := w.cluster.Delete(t.Context(), &p); err != nil {
						t.Fatal(err)
					}
					there = there[:i]
				}
			case 2:
				w.mortal, w.atStatus = random.IntN(40), random.IntN(2) == 0
			case 3: // it is away
				if random.IntN(4) == 0 {
					w.now = w.now.Add(time.Duration(random.IntN(90)) * time.Minute)
					w.live()
				}
			}
			w.settle(requestSource, all...)
			w.now = w.now.Add(time.Duration(1+random.IntN(170)) * time.Second)
		}
		w.mortal, w.atStatus = -1, false
		w.settle(requestSource, all...)
		w.now = w.now.Add(2 * time.Minute)
		w.settle(requestSource, all...) // the first look of a life only begins to observe
		w.settle(requestSource, all...)
		kills += w.kills
		for _, r := range all {
			reports++
			if c := w.said(r); c.Reason != v1.ReasonFinished || c.Status != metav1.ConditionFalse || !r.Status.LastReportTime.Time.Equal(r.Spec.ReportingEnd.Time) {
				t.Errorf("seed %d: %s is %s until %v: %s", seed, r.Name, c.Reason, r.Status.LastReportTime, c.Message)
			}
			if got, want := w.totals(r), w.integral(r.Spec.ReportingStart.Time, r.Spec.ReportingEnd.Time); !same(got, want) {
				t.Errorf("seed %d: the totals of %s are %v, the integral is %v", seed, r.Name, got, want)
			}
			periods += w.wantPeriods(r)
			for _, value := range w.totals(r) {
				amounts += value
			}
		}
		parts := w.totals(all[1])
		for key, value := range w.totals(all[2]) {
			parts[key] += value
		}
		if whole := w.totals(all[0]); !same(parts, whole) {
			t.Errorf("seed %d: before and after the cut there is %v, in all %v", seed, parts, whole)
		}
	}
	t.Logf("%d worlds, %d reports, %d periods, %.0f core-seconds, killed %d times", worlds, reports, periods, amounts, kills)
	if kills < worlds || periods < 10*worlds || amounts < 1000 {
		t.Errorf("killed %d times, %d periods, %f core-seconds: too few to show anything", kills, periods, amounts)
	}
}

// wantPeriods checks that the periods of a report follow one another, and returns how many there are.
func (w *world) wantPeriods(r *v1.Report) (n int) {
	w.t.Helper()
	found, err := w.store.db.QueryContext(w.t.Context(), "SELECT since, until FROM periods WHERE owner = ? ORDER BY since", string(r.UID))
	if err != nil {
		w.t.Fatal(err)
	}
	defer found.Close() //nolint:errcheck // Err says what went wrong
	last := r.Spec.ReportingStart.Unix()
	for ; found.Next(); n++ {
		var since, until int64
		if err := found.Scan(&since, &until); err != nil {
			w.t.Fatal(err)
		}
		if since != last {
			w.t.Errorf("a period of %s begins at %d, and the one before it ended at %d", r.Name, since, last)
		}
		last = until
	}
	if last != r.Spec.ReportingEnd.Unix() || found.Err() != nil {
		w.t.Errorf("the last period of %s ends at %d (error: %v), want %d", r.Name, last, found.Err(), r.Spec.ReportingEnd.Unix())
	}
	return n
}
