package metering

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/kit"
	v1 "github.com/operator-lab/operator-lab/operators/metering/v1"
)

// +kubebuilder:rbac:groups=metering.openshift.io,resources=reports,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=metering.openshift.io,resources=reports/status;reportdatasources/status,verbs=patch
// +kubebuilder:rbac:groups=metering.openshift.io,resources=reportdatasources;reportqueries,verbs=get;list;watch
// +kubebuilder:rbac:groups=metering.openshift.io,namespace=openshift-metering,resources=reportdatasources;reportqueries,verbs=create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=metrics.k8s.io,resources=pods,verbs=list
// +kubebuilder:rbac:groups=operator-lab.dev,resources=loops,verbs=list
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=openshift-metering,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",namespace=openshift-metering,resources=configmaps;events,verbs=create;patch

// These are all the operator may do, and all it does: config/rbac/hardened is generated from them. Loops are those of a lab;
// elsewhere there are none.

// fieldOwner owns the fields the operator writes.
const fieldOwner = client.FieldOwner("reporting-operator")

// retryAfter is how long an invalid report waits, in the machine's time, if nobody changes it: what it names may come.
const retryAfter = 10 * time.Second

// again asks for another pass at once.
var again = ctrl.Result{RequeueAfter: time.Millisecond}

// reports makes one period of a Report after the other. Nothing about them is kept but in the database and the status.
type reports struct {
	client  client.Client
	store   *store
	options Options
	events  events.EventRecorder
	written kit.LastWritten[*v1.Report]
}

func setupReports(mgr ctrl.Manager, s *store, o Options) error {
	r := &reports{client: mgr.GetClient(), store: s, options: o, events: mgr.GetEventRecorder(string(fieldOwner))}
	return ctrl.NewControllerManagedBy(mgr).
		Named(ReportController).
		For(&v1.Report{}, builder.WithPredicates(kit.SpecChanged())).
		WithOptions(o.Controller).
		Complete(r)
}

func ownerOfReport(r *v1.Report) owner { return owner{string(r.UID), kindReport, r.Namespace, r.Name} }

// period is what a pass found about the next period of a Report.
type period struct {
	report *v1.Report // from the cache, never changed
	known  v1.ReportStatus

	since, until time.Time
	reason       string
	message      string
	running      bool
	wait         time.Duration // until the next pass; 0: none is needed
}

// Reconcile finishes the next period of a Report if it is over, then says how far it is.
func (r *reports) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	report := &v1.Report{}
	if err := r.client.Get(ctx, req.NamespacedName, report); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.written.Forget(req.NamespacedName)
			return ctrl.Result{}, r.store.forget(ctx, owner{kind: kindReport, namespace: req.Namespace, name: req.Name})
		}
		return ctrl.Result{}, fmt.Errorf("get the Report: %w", err)
	}
	if !report.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	now := r.options.Clock.Now()
	seen, err := r.store.claim(ctx, ownerOfReport(report), now)
	if err != nil {
		return ctrl.Result{}, err
	}
	expires := time.Duration(0)
	if e := report.Spec.Expiration; e != nil {
		if expires = seen.Add(e.Duration).Sub(now); expires <= 0 {
			uid := report.UID
			return ctrl.Result{}, client.IgnoreNotFound(r.client.Delete(ctx, report, client.Preconditions{UID: &uid}))
		}
	}
	p := &period{report: report, known: r.written.Latest(report).Status}
	if err := r.next(ctx, p, seen, now); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.writeStatus(ctx, p); err != nil {
		return ctrl.Result{}, err
	}
	wait := p.wait
	if left := r.options.Clock.Wait(expires); expires > 0 && (wait == 0 || left < wait) {
		wait = max(left, time.Millisecond)
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

// next finds the next period and finishes it if it can.
func (r *reports) next(ctx context.Context, p *period, seen, now time.Time) error {
	err := r.advance(ctx, p, seen, now)
	if invalid, is := errors.AsType[invalidError](err); is {
		p.running, p.reason, p.message, p.wait = false, v1.ReasonInvalid, invalid.Error(), retryAfter
		return nil
	}
	return err
}

func (r *reports) advance(ctx context.Context, p *period, seen, now time.Time) error {
	spec := &p.report.Spec
	p.since = seen
	if spec.ReportingStart != nil {
		p.since = spec.ReportingStart.UTC()
	}
	done, err := r.store.done(ctx, string(p.report.UID))
	if err != nil {
		return err
	}
	if done != nil && done.until.After(p.since) {
		p.since = done.until
	}
	// A database that was lost does not make reports begin anew.
	if last := p.known.LastReportTime; last != nil && last.After(p.since) {
		p.since = last.UTC()
	}
	var over bool
	if p.until, over, err = periodFrom(spec, p.since); err != nil {
		return err
	}
	if over {
		p.reason, p.message = v1.ReasonFinished, "all of it is done, until "+stamp(p.since)
		return nil
	}
	p.running = true
	if wait := p.until.Sub(now); wait > 0 && !spec.RunImmediately {
		p.reason, p.wait = v1.ReasonPeriodWaiting, max(r.options.Clock.Wait(wait), time.Millisecond)
		p.message = fmt.Sprintf("the period from %s ends at %s", stamp(p.since), stamp(p.until))
		if done != nil {
			p.message += fmt.Sprintf("; of the one before, %v of %v were observed", done.observed, done.until.Sub(done.since))
		}
		return nil
	}
	return r.finish(ctx, p)
}

// finish computes the rows of a period and writes them, or says what is missing.
func (r *reports) finish(ctx context.Context, p *period) error {
	render := &rendering{client: r.client, namespaces: []string{p.report.Namespace, r.options.Namespace}, since: p.since, until: p.until}
	sql, columns, err := render.render(ctx, p.report.Spec.Query, p.report.Spec.Inputs, 0)
	if missing, is := errors.AsType[missingError](err); is {
		p.unmet(missing.Error(), retryAfter)
		return nil
	}
	if err != nil {
		return err
	}
	observed := p.until.Sub(p.since)
	for _, source := range render.sources {
		_, until, known, err := r.store.imported(ctx, string(source.UID))
		if err != nil {
			return err
		}
		if (!known || until.Before(p.until)) && !p.report.Spec.RunImmediately {
			has := "no samples"
			if known {
				has = "samples until " + stamp(until)
			}
			p.unmet(fmt.Sprintf("ReportDataSource %s has %s, the period ends at %s", source.Name, has, stamp(p.until)),
				max(r.options.Clock.Wait(r.options.Interval), time.Millisecond))
			return nil
		}
		part, err := r.store.observed(ctx, string(source.UID), p.since, p.until)
		if err != nil {
			return err
		}
		observed = min(observed, part)
	}
	for _, report := range render.reports {
		last := report.Status.LastReportTime
		if (last == nil || last.Before(&metav1.Time{Time: p.until})) && !p.report.Spec.RunImmediately {
			p.unmet(fmt.Sprintf("Report %s is not done until %s", report.Name, stamp(p.until)), max(r.options.Clock.Wait(r.options.Interval), time.Millisecond))
			return nil
		}
	}
	rows, err := r.store.compute(ctx, sql, columns)
	if err != nil {
		if _, is := errors.AsType[invalidError](err); is {
			return err
		}
		p.reason, p.message, p.wait = v1.ReasonFailed, "the SQL failed: "+err.Error(), retryAfter
		return nil
	}
	if err := r.store.finish(ctx, ownerOfReport(p.report), span{p.since, p.until, observed}, columns, rows, p.report.Spec.OverwriteExistingData); err != nil {
		return err
	}
	p.reason, p.wait = v1.ReasonPeriodFinished, again.RequeueAfter
	p.message = fmt.Sprintf("%s to %s: %d rows, %v of %v were observed", stamp(p.since), stamp(p.until), len(rows), observed, p.until.Sub(p.since))
	r.events.Eventf(p.report, nil, corev1.EventTypeNormal, p.reason, "Report", "%s", p.message)
	p.since = p.until
	if until, over, err := periodFrom(&p.report.Spec, p.since); err == nil {
		p.until = until
		if over {
			p.running, p.reason, p.wait = false, v1.ReasonFinished, 0
		}
	}
	return nil
}

// unmet says what a period waits for.
func (p *period) unmet(message string, wait time.Duration) {
	p.reason, p.message, p.wait = v1.ReasonUnmetDependencies, message, wait
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// writeStatus applies the status if it differs from what it was. What was last said of a finished report stays.
func (r *reports) writeStatus(ctx context.Context, p *period) error {
	status := *p.known.DeepCopy()
	status.ObservedGeneration = p.report.Generation
	done, err := r.store.done(ctx, string(p.report.UID))
	if err != nil {
		return err
	}
	if done != nil && (status.LastReportTime == nil || status.LastReportTime.Time.Before(done.until)) {
		status.LastReportTime = &metav1.Time{Time: done.until}
		status.TableRef = &v1.TableRef{Name: tableName(ownerOfReport(p.report))}
	}
	status.NextReportTime = nil
	if p.running && !p.until.IsZero() {
		status.NextReportTime = &metav1.Time{Time: p.until}
	}
	last := meta.FindStatusCondition(status.Conditions, v1.ConditionRunning)
	if last == nil || last.Reason != p.reason || p.reason != v1.ReasonFinished {
		is := metav1.ConditionFalse
		if p.running {
			is = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: v1.ConditionRunning, Status: is, Reason: p.reason, Message: strings.TrimSpace(p.message), ObservedGeneration: p.report.Generation,
		})
	}
	if equality.Semantic.DeepEqual(status, p.known) {
		return nil
	}
	written, err := kit.ApplyStatus(ctx, r.client, fieldOwner, p.report, &status)
	if err != nil || written == nil {
		return err
	}
	r.written.Remember(written)
	return nil
}
