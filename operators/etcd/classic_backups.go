package etcd

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// classicFinalizer is on periodic backups.
const classicFinalizer = "backup-operator-periodic"

// classicBackups behaves as the published backup operator, which was a program of its own.
type classicBackups struct {
	client  client.Client
	reader  client.Reader
	options Options
	// crash ends the operator, as the published one ended its process.
	crash func(error)
	// ended is closed when the operator has ended.
	ended chan struct{}

	mu      sync.Mutex
	runners map[types.UID]classicRunner
}

// classicRunner is a goroutine that makes backups again and again.
type classicRunner struct {
	spec   v1beta2.EtcdBackupSpec
	cancel context.CancelFunc
}

func setupClassicBackups(mgr ctrl.Manager, o Options) error {
	classicMetrics()
	crashed := make(chan error, 1)
	r := &classicBackups{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(), options: o,
		ended: make(chan struct{}), runners: map[types.UID]classicRunner{},
		crash: func(err error) {
			select {
			case crashed <- err:
			default: // it is ending already
			}
		},
	}
	return classicServe(mgr, o, BackupController, v1beta2.EtcdBackupKind, func() error {
		err := ctrl.NewControllerManagedBy(mgr).
			Named(BackupController).
			For(&v1beta2.EtcdBackup{}).
			WithOptions(o.Controller).
			Complete(r)
		if err != nil {
			return err
		}
		// The published operator ended its process. Here that would be the lab, so it is the manager that ends, with all
		// that it runs; as a pod that is the process again, which Kubernetes starts anew, and so on.
		return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			defer close(r.ended)
			select {
			case err := <-crashed:
				return err
			case <-ctx.Done():
				return nil
			}
		}))
	})
}

// Reconcile makes a backup, or sees to it that a goroutine does.
func (r *classicBackups) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	defer r.recover()
	backup := &v1beta2.EtcdBackup{}
	if err := r.client.Get(ctx, req.NamespacedName, backup); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !backup.DeletionTimestamp.IsZero() {
		r.stop(backup.UID)
		return ctrl.Result{}, r.setFinalizer(ctx, backup, false)
	}
	if policy := backup.Spec.BackupPolicy; policy != nil && policy.BackupIntervalInSecond > 0 {
		return ctrl.Result{}, r.start(ctx, backup)
	}
	// A result is final, a bad one too: what failed because a member was just starting is not tried again (B-05).
	if backup.Status.Succeeded || backup.Status.Reason != "" {
		return ctrl.Result{}, nil
	}
	status, err := r.backUp(ctx, backup, false)
	r.report(ctx, backup, status, err)
	return ctrl.Result{}, nil
}

// classicExit is an error with which the published operator ended its process.
type classicExit struct{ error }

// recover turns a panic into the end of the operator, as in the published one. Controller-runtime would go on.
func (r *classicBackups) recover() {
	switch reason := recover().(type) {
	case nil:
	case classicExit:
		r.crash(reason.error)
	default:
		r.crash(fmt.Errorf("panic: %v\n%s", reason, debug.Stack()))
	}
}

// start starts the goroutine of a periodic backup, unless there is one of the same spec.
func (r *classicBackups) start(ctx context.Context, backup *v1beta2.EtcdBackup) error {
	r.mu.Lock()
	runner, there := r.runners[backup.UID]
	r.mu.Unlock()
	if there && reflect.DeepEqual(runner.spec, backup.Spec) {
		return nil
	}
	r.stop(backup.UID)
	if err := r.setFinalizer(ctx, backup, true); err != nil {
		return err
	}
	alive, end := context.WithCancel(context.WithoutCancel(ctx)) // what a reconcile begins here outlives it
	go func() {
		<-r.ended
		end()
	}()
	wanted, cancel := context.WithCancel(alive)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runners[backup.UID] = classicRunner{spec: *backup.Spec.DeepCopy(), cancel: cancel}
	interval := time.Duration(backup.Spec.BackupPolicy.BackupIntervalInSecond) * time.Second
	go r.run(alive, wanted, client.ObjectKeyFromObject(backup), interval)
	return nil
}

// stop has the goroutine of a backup end, or so it was meant.
func (r *classicBackups) stop(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if runner, there := r.runners[uid]; there {
		runner.cancel()
		delete(r.runners, uid)
	}
}

// run makes a backup at every tick. When it is not wanted any more it does not end: the break leaves the select and not
// the loop. From then on it runs as fast as it can, for as long as the operator lives, and still tries at every tick (B-02).
func (r *classicBackups) run(alive, wanted context.Context, key types.NamespacedName, interval time.Duration) {
	defer r.recover()
	ticker := r.options.Clock.NewTicker(interval)
	defer ticker.Stop()
	for alive.Err() == nil { // the published one ended with its process only
		classicBackupTurns.Inc()
		select {
		case <-wanted.Done():
			break //nolint:staticcheck // it is the flaw
		case <-ticker.C():
			r.again(wanted, key)
		}
	}
}

// again makes a periodic backup.
func (r *classicBackups) again(wanted context.Context, key types.NamespacedName) {
	ctx := context.WithoutCancel(wanted)
	backup := &v1beta2.EtcdBackup{}
	err := r.reader.Get(ctx, key, backup)
	if apierrors.IsNotFound(err) {
		log.FromContext(ctx).Info("the EtcdBackup is gone: no more backups")
	}
	var status v1beta2.EtcdBackupStatus
	if err == nil {
		status, err = r.backUp(wanted, backup, true)
	}
	r.report(ctx, backup, status, err)
}

// report writes what came of a backup.
func (r *classicBackups) report(ctx context.Context, backup *v1beta2.EtcdBackup, status v1beta2.EtcdBackupStatus, err error) {
	logger := log.FromContext(ctx)
	if err != nil {
		logger.Error(err, "the backup failed")
		backup.Status.Succeeded, backup.Status.Reason = false, err.Error()
	} else {
		backup.Status = status
	}
	if err := r.client.Update(ctx, backup); err != nil {
		logger.Error(err, "the status could not be written")
	}
}

func (r *classicBackups) setFinalizer(ctx context.Context, backup *v1beta2.EtcdBackup, wanted bool) error {
	change := controllerutil.RemoveFinalizer
	if wanted {
		change = controllerutil.AddFinalizer
	}
	if !change(backup, classicFinalizer) {
		return nil
	}
	if err := r.client.Update(ctx, backup); err != nil {
		return fmt.Errorf("update the finalizers: %w", err)
	}
	return nil
}

// errClassicEndpoints is the one thing about a backup that is looked at.
var errClassicEndpoints = errors.New("spec.etcdEndpoints must not be empty")

// backUp makes a backup. A storage type that it does not know ends the operator: for as long as that EtcdBackup is there,
// nobody gets a backup any more (B-03).
func (r *classicBackups) backUp(ctx context.Context, backup *v1beta2.EtcdBackup, periodic bool) (v1beta2.EtcdBackupStatus, error) {
	if len(backup.Spec.EtcdEndpoints) == 0 {
		return v1beta2.EtcdBackupStatus{}, errClassicEndpoints
	}
	var policy v1beta2.BackupPolicy
	if backup.Spec.BackupPolicy != nil {
		policy = *backup.Spec.BackupPolicy
	}
	timeout := time.Minute
	if policy.TimeoutInSecond > 0 {
		timeout = time.Duration(policy.TimeoutInSecond) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if backup.Spec.StorageType != v1beta2.StorageS3 {
		panic(classicExit{fmt.Errorf("unknown StorageType: %s", backup.Spec.StorageType)})
	}
	// Without the block s3 this is nil, and there is a panic (B-03).
	bucket, err := newS3(ctx, backup.Spec.S3, r.reader, backup.Namespace, r.options.Dial)
	if err != nil {
		return v1beta2.EtcdBackupStatus{}, err
	}
	status, err := r.save(ctx, backup, bucket, periodic)
	if err != nil || !periodic || policy.MaxBackups <= 0 {
		return status, err
	}
	return status, classicPrune(ctx, bucket, policy.MaxBackups)
}

// classicPrune keeps the backups whose names come last. They begin with the revision, and v9 comes after v10: the newest
// backup goes, and the old ones stay (B-01).
func classicPrune(ctx context.Context, bucket *s3Store, keep int) error {
	objects, err := bucket.List(ctx, bucket.key)
	if err != nil {
		return err
	}
	names := make([]string, len(objects))
	for i, object := range objects {
		names[i] = object.Name
	}
	slices.Sort(names)
	for _, name := range names[:max(0, len(names)-keep)] {
		if err := bucket.Delete(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
