package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/operators/etcd/report"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/operators/kit"
)

// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdrestores,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdrestores/status,verbs=patch
// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdrestores/finalizers,verbs=update
// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdclusters,verbs=get;list;watch

// Condition types of EtcdBackup and EtcdRestore.
const (
	// ConditionChecked is True when the backup was read and is whole, and False when it is not.
	ConditionChecked = "Checked"
	// ConditionReady is True when what was asked for is done: the cluster runs on the backup, or the backup is there.
	ConditionReady = "Ready"
)

// RestoredAnnotation is on an EtcdRestore that is done, with its UID. It says so even where somebody wiped the status: what
// has been restored once is never restored again, since all that was written since would be lost. A copy of the object,
// made under the same name, is another restore.
const RestoredAnnotation = v1beta2.Group + "/restored"

// restoreWanted tells the cluster controller whether the data of a cluster are to be replaced by those of a restore.
func restoreWanted(restore *v1beta2.EtcdRestore, cluster *v1beta2.EtcdCluster) bool {
	return restore.DeletionTimestamp.IsZero() &&
		restore.Spec.EtcdCluster.Name == cluster.Name &&
		restore.Namespace == cluster.Namespace &&
		restore.Status.SHA256 != "" &&
		meta.IsStatusConditionTrue(restore.Status.Conditions, ConditionChecked) &&
		string(restore.UID) != cluster.Status.RestoredFrom &&
		!restoreDone(restore)
}

// restoreDone tells whether a restore has been done, be it long ago.
func restoreDone(restore *v1beta2.EtcdRestore) bool {
	return restore.Annotations[RestoredAnnotation] == string(restore.UID) ||
		meta.IsStatusConditionTrue(restore.Status.Conditions, ConditionReady)
}

// hardenedRestores has a pod of the agent read the backup, all of it, and says whether it is good. Only then does the
// cluster controller begin a first member with it, and delete the others when that one answers: see restoreWanted and
// seed. This controller follows that in the status, and notes when it is done.
type hardenedRestores struct {
	client  client.Client
	live    client.Reader
	events  events.EventRecorder
	pods    agentPods
	written kit.LastWritten[*v1beta2.EtcdRestore]
	clock   clock.PassiveClock
}

// setupHardenedRestores also watches clusters, of which an EtcdRestore has the name.
func setupHardenedRestores(mgr ctrl.Manager, o Options) error {
	r := &hardenedRestores{
		client: mgr.GetClient(),
		live:   mgr.GetAPIReader(),
		events: mgr.GetEventRecorder(string(fieldOwner)),
		pods:   agentPods{mgr.GetClient(), agentImage(o)},
		clock:  o.Clock,
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(RestoreController).
		For(&v1beta2.EtcdRestore{}, builder.WithPredicates(kit.SpecChanged())).
		Owns(&corev1.Pod{}).
		Watches(&v1beta2.EtcdCluster{}, handler.EnqueueRequestsFromMapFunc(r.restoreOf)).
		WithOptions(o.Controller).
		Complete(r)
}

// restoreOf is the EtcdRestore of a cluster. Most have none, and nobody is to be woken by each of their statuses.
func (r *hardenedRestores) restoreOf(ctx context.Context, cluster client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(cluster)
	if err := r.client.Get(ctx, key, &v1beta2.EtcdRestore{}); apierrors.IsNotFound(err) {
		return nil // when it comes, its own event does
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// restorePass is one look at an EtcdRestore.
type restorePass struct {
	restore *v1beta2.EtcdRestore // from the cache, never changed
	known   v1beta2.EtcdRestoreStatus
	cluster *v1beta2.EtcdCluster // nil: there is none
	all     attempts             // pods that check the backup
	status  v1beta2.EtcdRestoreStatus
	wait    time.Duration

	checked, ready *metav1.Condition // what the conditions should be
}

// Reconcile sees to it that the backup is checked, and says how the restore goes.
func (r *hardenedRestores) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	restore := &v1beta2.EtcdRestore{}
	if err := r.client.Get(ctx, req.NamespacedName, restore); err != nil {
		if apierrors.IsNotFound(err) {
			r.written.Forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("get the EtcdRestore: %w", err)
	}
	if !restore.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	restore = r.written.Latest(restore)
	p := &restorePass{restore: restore, known: restore.Status}
	p.status = *p.known.DeepCopy()
	p.status.ObservedGeneration = restore.Generation
	if err := r.look(ctx, p); err != nil {
		return ctrl.Result{}, err
	}
	err := r.act(ctx, p)
	err = errors.Join(err, r.writeStatus(ctx, p))
	err = errors.Join(err, r.pods.clean(ctx, p.all, restore.Generation, checkRun))
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.wait}, nil
}

func (r *hardenedRestores) look(ctx context.Context, p *restorePass) (err error) {
	if p.all, err = r.pods.list(ctx, p.restore); err != nil {
		return err
	}
	cluster := &v1beta2.EtcdCluster{}
	err = r.client.Get(ctx, client.ObjectKey{Namespace: p.restore.Namespace, Name: p.restore.Spec.EtcdCluster.Name}, cluster)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get the EtcdCluster: %w", err)
	}
	if err == nil && cluster.DeletionTimestamp.IsZero() {
		p.cluster = cluster
	}
	return nil
}

// act does what is next: nothing, when all is done; the check, when there has been none; and then it follows the cluster
// controller's work.
func (r *hardenedRestores) act(ctx context.Context, p *restorePass) error {
	if restoreDone(p.restore) {
		p.done("The cluster was restored")
		return nil
	}
	if problem := restoreProblem(p.restore); problem != "" {
		p.fail(ReasonSpecInvalid, problem)
		return nil
	}
	p.harvest()
	switch {
	case p.current(ConditionChecked) == nil || p.retries():
		return r.check(ctx, p)
	case p.current(ConditionChecked).Status != metav1.ConditionTrue:
		return nil // for good: whoever has mended the backup makes another EtcdRestore
	case p.cluster == nil:
		p.wants(ReasonClusterMissing, fmt.Sprintf("there is no EtcdCluster %s: create it, and it begins with the backup", p.restore.Spec.EtcdCluster.Name))
		return nil // its event wakes us
	case !p.runs():
		return r.follow(ctx, p)
	}
	if err := r.mark(ctx, p); err != nil {
		return err
	}
	p.done(fmt.Sprintf("The cluster runs on the backup of revision %d", p.status.EtcdRevision))
	return nil
}

// runs tells whether the cluster answers, and has the data of the backup.
func (p *restorePass) runs() bool {
	return p.cluster.Status.RestoredFrom == string(p.restore.UID) && slices.ContainsFunc(p.cluster.Status.Conditions, func(c v1beta2.ClusterCondition) bool {
		return c.Type == v1beta2.ConditionAvailable && c.Status == metav1.ConditionTrue
	})
}

// mark notes that the restore is done, in a place that nobody takes for a status: before the status says so.
func (r *hardenedRestores) mark(ctx context.Context, p *restorePass) error {
	marked := p.restore.DeepCopy()
	metav1.SetMetaDataAnnotation(&marked.ObjectMeta, RestoredAnnotation, string(p.restore.UID))
	patch := client.MergeFromWithOptions(p.restore, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, marked, patch, fieldOwner); err != nil {
		return fmt.Errorf("note that the restore is done: %w", err)
	}
	p.restore = marked
	return nil
}

// checkRun is the one thing that pods of an EtcdRestore are there for: its spec never changes.
const checkRun = "check"

// check makes the pod that reads the backup.
func (r *hardenedRestores) check(ctx context.Context, p *restorePass) error {
	if a, ok := p.all.of(checkRun).active(); ok {
		p.checking(a)
		return nil
	}
	number, wait := p.all.next(checkRun, r.clock.Now())
	if wait > 0 {
		p.wait = wait
		return nil
	}
	spec := p.restore.Spec
	if spec.BackupStorageType == v1beta2.StorageS3 {
		if problem, err := missingSecret(ctx, r.live, p.restore.Namespace, spec.S3.AWSSecret); problem != "" || err != nil {
			p.wants(ReasonSecretMissing, problem)
			p.wait = recheckInterval
			return err
		}
	}
	job := agentJob{name: "check"}
	job.do("check")
	job.storage(spec.BackupStorageType, spec.S3, spec.PersistentVolumeClaim, true)
	job.scratch()
	pod, err := r.pods.start(ctx, p.restore, job, checkRun, number, defaultTimeout)
	switch {
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		log.FromContext(ctx).Error(err, "The pod is refused")
		p.wants(ReasonRejected, err.Error())
		p.wait = recheckInterval
		return nil
	case err != nil:
		return err
	}
	p.checking(attempt{pod: pod})
	return nil
}

// final are the reasons why a check is not tried again: a backup that was not there, or not whole, and is there one day,
// must not replace the data of a cluster when nobody thinks of it any more.
var final = []string{report.ReasonBadRequest, report.ReasonBackupMissing, report.ReasonBackupUnreadable}

// retries tells whether a check failed that may go better another time.
func (p *restorePass) retries() bool {
	checked := p.current(ConditionChecked)
	return checked.Status != metav1.ConditionTrue && !slices.Contains(final, checked.Reason)
}

// restoreProblem returns what is wrong with a spec that an older schema has let in; empty if nothing is.
func restoreProblem(restore *v1beta2.EtcdRestore) string {
	spec := restore.Spec
	if spec.EtcdCluster.Name != restore.Name {
		return fmt.Sprintf("etcdCluster.name is %q: it has to be the name of the EtcdRestore", spec.EtcdCluster.Name)
	}
	return storageProblem("backupStorageType", spec.BackupStorageType, spec.S3, spec.PersistentVolumeClaim)
}
