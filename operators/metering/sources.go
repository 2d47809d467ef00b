package metering

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/kit"
	v1 "github.com/operator-lab/operator-lab/operators/metering/v1"
)

// sources takes the samples of ReportDataSources: one look in each reconcile, and the next reconcile one interval later.
type sources struct {
	client  client.Client
	live    client.Reader // past the cache, for what cannot be watched
	fetch   fetcher
	store   *store
	options Options
	written kit.LastWritten[*v1.ReportDataSource]

	mu    sync.Mutex
	looks map[types.UID]look
}

// look is the last look of this life: what it counted, and where its step began.
type look struct {
	generation int64
	at         time.Time          // on the grid of the interval
	counters   map[string]float64 // by labels
}

func setupSources(mgr ctrl.Manager, s *store, o Options) error {
	r := &sources{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), fetch: newFetcher(o.Dial), store: s, options: o, looks: map[types.UID]look{},
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(DataSourceController).
		For(&v1.ReportDataSource{}, builder.WithPredicates(kit.SpecChanged())).
		WithOptions(o.Controller).
		Complete(r)
}

func ownerOfSource(s *v1.ReportDataSource) owner {
	return owner{string(s.UID), kindDataSource, s.Namespace, s.Name}
}

// Reconcile takes a look if one is due, and says what came of it.
func (r *sources) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	source := &v1.ReportDataSource{}
	if err := r.client.Get(ctx, req.NamespacedName, source); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.written.Forget(req.NamespacedName)
			return ctrl.Result{}, r.store.forget(ctx, owner{kind: kindDataSource, namespace: req.Namespace, name: req.Name})
		}
		return ctrl.Result{}, fmt.Errorf("get the ReportDataSource: %w", err)
	}
	if !source.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	now := r.options.Clock.Now()
	at := now.Truncate(r.options.Interval)
	last, looked := r.last(source)
	if !looked || last.at.Before(at) {
		if _, err := r.store.claim(ctx, ownerOfSource(source), now); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.look(ctx, source, last, looked, at, now); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: max(r.options.Clock.Wait(at.Add(r.options.Interval).Sub(now)), time.Millisecond)}, nil
}

// last returns the last look of this life at what the source is now.
func (r *sources) last(source *v1.ReportDataSource) (look, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, looked := r.looks[source.UID]
	return last, looked && last.generation == source.Generation
}

// look reads, and writes the samples of the steps since the last look. The first one has nothing to compare with and only
// begins to observe, and so does one after a look that failed.
func (r *sources) look(ctx context.Context, source *v1.ReportDataSource, last look, looked bool, at, now time.Time) error {
	readings, failed := r.read(ctx, source)
	next := look{generation: source.Generation, at: at, counters: map[string]float64{}}
	var samples []sample
	for _, reading := range readings {
		if !reading.counter {
			samples = append(samples, sample{reading.labels, reading.value})
			continue
		}
		key, err := json.Marshal(reading.labels)
		if err != nil {
			return err
		}
		next.counters[string(key)] = reading.value
		increase := reading.value - last.counters[string(key)]
		if increase < 0 { // it began anew
			increase = reading.value
		}
		if steps := at.Sub(last.at).Seconds(); looked && steps > 0 {
			samples = append(samples, sample{reading.labels, increase / steps})
		}
	}
	if failed != nil {
		r.mu.Lock()
		delete(r.looks, source.UID)
		r.mu.Unlock()
		return r.writeStatus(ctx, source, failed, now)
	}
	since := at
	if looked {
		since = last.at
	}
	if err := r.store.look(ctx, string(source.UID), since, at, at.Add(-r.options.Retention), r.options.Interval, samples); err != nil {
		return err // the next look takes the steps of this one, too
	}
	r.mu.Lock()
	r.looks[source.UID] = next
	r.mu.Unlock()
	return r.writeStatus(ctx, source, nil, now)
}

// writeStatus applies the status if it differs from what it was.
func (r *sources) writeStatus(ctx context.Context, source *v1.ReportDataSource, failed error, now time.Time) error {
	known := r.written.Latest(source).Status
	status := *known.DeepCopy()
	status.ObservedGeneration = source.Generation
	status.TableRef = &v1.TableRef{Name: tableName(ownerOfSource(source))}
	since, until, some, err := r.store.imported(ctx, string(source.UID))
	if err != nil {
		return err
	}
	condition := metav1.Condition{
		Type: v1.ConditionImporting, Status: metav1.ConditionTrue, Reason: v1.ReasonImporting, ObservedGeneration: source.Generation,
		Message: fmt.Sprintf("a sample is taken for every %v", r.options.Interval),
	}
	if r.options.Rate > 1 {
		condition.Message += fmt.Sprintf(" of a clock that goes %v times as fast as real time", r.options.Rate)
	}
	if some && failed == nil {
		status.PrometheusMetricsImportStatus = &v1.ImportStatus{
			ImportDataStartTime: &metav1.Time{Time: since}, ImportDataEndTime: &metav1.Time{Time: until},
			LastImportTime: &metav1.Time{Time: now.Truncate(time.Second)},
		}
	}
	if failed != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, v1.ReasonImportFailed, failed.Error()
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	if equality.Semantic.DeepEqual(status, known) {
		return nil
	}
	written, err := kit.ApplyStatus(ctx, r.client, fieldOwner, source, &status)
	if err != nil || written == nil {
		return err
	}
	r.written.Remember(written)
	return nil
}
