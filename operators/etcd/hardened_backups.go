package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/operators/etcd/report"
	"github.com/operator-lab/operator-lab/operators/etcd/store"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/operators/kit"
)

// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdbackups,verbs=get;list;watch
// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdbackups/status,verbs=patch
// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdbackups/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// hardenedBackups has a pod take each backup. It remembers nothing between two passes that is not in the API: when the next
// backup is due follows from when the last one was there, how long to wait after a failure from the pod that failed. So
// it does not matter when the operator is replaced, or for how long it is away, and what is deleted is forgotten.
//
// It needs no finalizer: its pods have the EtcdBackup as their owner, and backups stay when that is deleted. They are why
// somebody wanted one.
type hardenedBackups struct {
	client  client.Client
	live    client.Reader // for Secrets, of which no cache should have copies
	events  events.EventRecorder
	pods    agentPods
	written kit.LastWritten[*v1beta2.EtcdBackup]
	clock   clock.PassiveClock
}

func setupHardenedBackups(mgr ctrl.Manager, o Options) error {
	r := &hardenedBackups{
		client: mgr.GetClient(),
		live:   mgr.GetAPIReader(),
		events: mgr.GetEventRecorder(string(fieldOwner)),
		pods:   agentPods{mgr.GetClient(), agentImage(o)},
		clock:  o.Clock,
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(BackupController).
		For(&v1beta2.EtcdBackup{}, builder.WithPredicates(kit.SpecChanged())).
		Owns(&corev1.Pod{}).
		WithOptions(o.Controller).
		Complete(r)
}

// backupPass is one look at an EtcdBackup.
type backupPass struct {
	backup  *v1beta2.EtcdBackup      // from the cache, never changed
	known   v1beta2.EtcdBackupStatus // the status as it is now
	all     attempts                 // its pods
	status  v1beta2.EtcdBackupStatus // the status as it should be
	verdict *metav1.Condition        // what Ready should be, as far as the pass has come
	wait    time.Duration            // until there is something to do without an event; 0: nothing
}

// Reconcile sees to it that a backup is there, or on its way.
func (r *hardenedBackups) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	backup := &v1beta2.EtcdBackup{}
	if err := r.client.Get(ctx, req.NamespacedName, backup); err != nil {
		if apierrors.IsNotFound(err) {
			r.written.Forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("get the EtcdBackup: %w", err)
	}
	if !backup.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector takes its pods away
	}
	all, err := r.pods.list(ctx, backup)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := &backupPass{backup: backup, known: r.written.Latest(backup).Status, all: all}
	p.begin()
	p.harvest()
	err = r.act(ctx, p)
	err = errors.Join(err, r.writeStatus(ctx, p))
	// Only now: as long as the status does not tell of a pod, the pod has to.
	err = errors.Join(err, r.pods.clean(ctx, all, backup.Generation, p.run()))
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.wait}, nil
}

// act makes the pod of a backup that is due, and says what is in its way.
func (r *hardenedBackups) act(ctx context.Context, p *backupPass) error {
	if problem := backupProblem(&p.backup.Spec); problem != "" {
		p.fail(ReasonSpecInvalid, problem)
		return nil // only another spec can help, and it wakes us
	}
	if a, ok := p.all.of(p.run()).active(); ok {
		p.working(a)
		return nil
	}
	due, wait := p.due(r.clock.Now())
	if !due {
		return nil
	}
	if wait > 0 {
		p.wait = wait
		return nil
	}
	if problem, err := r.missingSecret(ctx, p.backup); problem != "" || err != nil {
		p.fail(ReasonSecretMissing, problem)
		p.wait = recheckInterval
		return err
	}
	return r.start(ctx, p)
}

func (r *hardenedBackups) start(ctx context.Context, p *backupPass) error {
	number, _ := p.all.next(p.run(), r.clock.Now())
	job, timeout := backupJob(p.backup)
	pod, err := r.pods.start(ctx, p.backup, job, p.run(), number, timeout)
	switch {
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		// The names in the spec make no valid pod, or a quota is used up: a person has to see that.
		log.FromContext(ctx).Error(err, "The pod is refused")
		p.fail(ReasonRejected, err.Error())
		p.wait = recheckInterval
		return nil
	case err != nil:
		return err
	}
	p.working(attempt{pod: pod})
	return nil
}

// recheckInterval is the time between two looks at what somebody else has to do, when no event tells of it.
const recheckInterval = 5 * time.Second

// missingSecret names a Secret that is needed and is not there: without it the pod would wait, and not say for what.
func (r *hardenedBackups) missingSecret(ctx context.Context, backup *v1beta2.EtcdBackup) (string, error) {
	names := []string{backup.Spec.ClientTLSSecret}
	if backup.Spec.StorageType == v1beta2.StorageS3 {
		names = append(names, backup.Spec.S3.AWSSecret)
	}
	return missingSecret(ctx, r.live, backup.Namespace, names...)
}

func missingSecret(ctx context.Context, live client.Reader, namespace string, names ...string) (string, error) {
	for _, name := range names {
		if name == "" {
			continue
		}
		err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Secret{})
		if apierrors.IsNotFound(err) {
			return fmt.Sprintf("there is no Secret %s", name), nil
		}
		if err != nil {
			return "", fmt.Errorf("look for the Secret %s: %w", name, err)
		}
	}
	return "", nil
}

// backupJob returns the job of the agent, and its time limit.
func backupJob(backup *v1beta2.EtcdBackup) (agentJob, time.Duration) {
	spec := backup.Spec
	policy := backupPolicy(backup)
	job := agentJob{name: "backup"}
	job.do("save", "--endpoints="+strings.Join(spec.EtcdEndpoints, ","))
	if periodic(backup) {
		job.args("--periodic", "--max-backups="+strconv.Itoa(policy.MaxBackups))
	}
	job.storage(spec.StorageType, spec.S3, spec.PersistentVolumeClaim, false)
	job.scratch()
	if spec.ClientTLSSecret != "" {
		job.clientTLS(spec.ClientTLSSecret)
	}
	if policy.TimeoutInSecond > 0 {
		return job, time.Duration(policy.TimeoutInSecond) * time.Second
	}
	return job, defaultTimeout
}

func backupPolicy(backup *v1beta2.EtcdBackup) v1beta2.BackupPolicy {
	if backup.Spec.BackupPolicy == nil {
		return v1beta2.BackupPolicy{}
	}
	return *backup.Spec.BackupPolicy
}

func periodic(backup *v1beta2.EtcdBackup) bool {
	return backupPolicy(backup).BackupIntervalInSecond > 0
}

// backupProblem returns what is wrong with a spec that an older schema has let in; empty if nothing is.
func backupProblem(spec *v1beta2.EtcdBackupSpec) string {
	if len(spec.EtcdEndpoints) == 0 {
		return "etcdEndpoints: there are none"
	}
	for _, endpoint := range spec.EtcdEndpoints {
		u, err := url.Parse(endpoint)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || strings.ContainsRune(endpoint, ',') {
			return fmt.Sprintf("etcdEndpoints: %q is no URL such as http://host:2379", endpoint)
		}
	}
	if policy := spec.BackupPolicy; policy != nil && (policy.MaxBackups < 0 || policy.BackupIntervalInSecond < 0 || policy.TimeoutInSecond < 0) {
		return "backupPolicy: a number is negative"
	}
	return storageProblem("storageType", spec.StorageType, spec.S3, spec.PersistentVolumeClaim)
}

func storageProblem(field string, kind v1beta2.StorageType, s3 *v1beta2.S3Source, claim *v1beta2.VolumeSource) string {
	switch kind {
	case v1beta2.StorageS3:
		if s3 == nil {
			return field + " is S3, and there is no block s3"
		}
		if _, _, err := store.SplitPath(s3.Path); err != nil {
			return "s3.path: " + err.Error()
		}
	case v1beta2.StorageVolume:
		if claim == nil {
			return field + " is PersistentVolumeClaim, and there is no block persistentVolumeClaim"
		}
		if claim.ClaimName == "" {
			return "persistentVolumeClaim.claimName is empty"
		}
		if claim.Path == "" || path.IsAbs(claim.Path) || path.Clean(claim.Path) == "." || slices.Contains(strings.Split(claim.Path, "/"), "..") {
			return fmt.Sprintf("persistentVolumeClaim.path: %q is no relative path below the volume's root, without .. in it", claim.Path)
		}
	default:
		return fmt.Sprintf("%s: %q is none of %s and %s", field, kind, v1beta2.StorageS3, v1beta2.StorageVolume)
	}
	return ""
}

// reasonText returns status.Reason of a failure.
func reasonText(result report.Result) string { return result.Reason + ": " + result.Error }
