package etcd

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// classicRestores behaves as the published restore operator, which was a program of its own.
type classicRestores struct {
	client  client.Client
	reader  client.Reader
	options Options
}

func setupClassicRestores(mgr ctrl.Manager, o Options) error {
	r := &classicRestores{client: mgr.GetClient(), reader: mgr.GetAPIReader(), options: o}
	return classicServe(mgr, o, RestoreController, v1beta2.EtcdRestoreKind, func() error {
		return ctrl.NewControllerManagedBy(mgr).
			Named(RestoreController).
			For(&v1beta2.EtcdRestore{}).
			WithOptions(o.Controller).
			Complete(r)
	})
}

// Reconcile restores a cluster, once. What defer is given is computed at once, and err is nil then: whatever comes of it,
// the status says that it succeeded, and what failed is not tried again, since it has a result.
func (r *classicRestores) Reconcile(ctx context.Context, req ctrl.Request) (_ ctrl.Result, err error) {
	restore := &v1beta2.EtcdRestore{}
	if err := r.client.Get(ctx, req.NamespacedName, restore); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if restore.Status.Succeeded || restore.Status.Reason != "" {
		return ctrl.Result{}, nil
	}
	defer r.report(ctx, restore, err)
	if restore.Name != restore.Spec.EtcdCluster.Name {
		err = fmt.Errorf("the EtcdRestore must have the name of its EtcdCluster, %q", restore.Spec.EtcdCluster.Name)
		return ctrl.Result{}, err
	}
	err = r.prepare(ctx, restore)
	return ctrl.Result{}, err
}

// report writes what came of a restore.
func (r *classicRestores) report(ctx context.Context, restore *v1beta2.EtcdRestore, err error) {
	if err != nil {
		restore.Status.Succeeded, restore.Status.Reason = false, err.Error()
	} else {
		restore.Status.Succeeded = true
	}
	if err := r.client.Update(ctx, restore); err != nil {
		log.FromContext(ctx).Error(err, "the status could not be written")
	}
}

// prepare deletes the EtcdCluster, whatever it is worth, before anybody has looked whether there is a backup. Then
// it creates it anew, as one that runs already, with a first member that has the data; the rest is the operator's. It ends
// when that member's pod has been created: whether it ever runs is not waited for.
func (r *classicRestores) prepare(ctx context.Context, restore *v1beta2.EtcdRestore) error {
	key := client.ObjectKey{Namespace: restore.Namespace, Name: restore.Spec.EtcdCluster.Name}
	old := &v1beta2.EtcdCluster{}
	if err := r.reader.Get(ctx, key, old); err != nil {
		return fmt.Errorf("get the EtcdCluster: %w", err)
	}
	if err := classicValidate(old); err != nil {
		return err
	}
	if err := r.client.Delete(ctx, old); err != nil {
		return fmt.Errorf("delete the EtcdCluster: %w", err)
	}
	r.deleteCompletely(ctx, key)
	cluster := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: old.Labels, Annotations: old.Annotations},
		Spec:       *old.Spec.DeepCopy(),
		Status:     v1beta2.EtcdClusterStatus{Phase: v1beta2.ClusterPhaseRunning},
	}
	cluster.Spec.Paused = true // or the operator would find no pods
	if err := r.client.Create(ctx, cluster); err != nil {
		return fmt.Errorf("create the EtcdCluster anew: %w", err)
	}
	if err := r.createSeed(ctx, restore, cluster); err != nil {
		return fmt.Errorf("create the first member: %w", err)
	}
	return r.resume(ctx, key)
}

// deleteCompletely deletes a pod of the name that members do not have, and the Services. The members are left to the
// garbage collector, in its own time, and errors to nobody.
func (r *classicRestores) deleteCompletely(ctx context.Context, key client.ObjectKey) {
	for _, object := range []client.Object{
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: key.Name}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: key.Name}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: key.Name + "-client"}},
	} {
		object.SetNamespace(key.Namespace)
		_ = r.client.Delete(ctx, object)
	}
}

// resume hands the cluster over to the operator. That writes to it too, hence a second try.
func (r *classicRestores) resume(ctx context.Context, key client.ObjectKey) error {
	return retry.OnError(wait.Backoff{Steps: 2, Duration: time.Second}, apierrors.IsConflict, func() error {
		cluster := &v1beta2.EtcdCluster{}
		if err := r.reader.Get(ctx, key, cluster); err != nil {
			return err
		}
		cluster.Spec.Paused = false
		return r.client.Update(ctx, cluster)
	})
}

// classicURLLife is the time that the first member has to fetch the backup.
const classicURLLife = 24 * time.Hour

// createSeed creates the pod of the first member. The published operator fetched the backup itself and served it to the
// pod, by a Service etcd-restore-operator of which its own pod was the backend. This one may have no pod, and then no
// Service leads to it: so the pod gets a URL that the bucket itself serves, signed in the name of the EtcdRestore's Secret.
func (r *classicRestores) createSeed(ctx context.Context, restore *v1beta2.EtcdRestore, cluster *v1beta2.EtcdCluster) error {
	if restore.Spec.BackupStorageType != v1beta2.StorageS3 || restore.Spec.S3 == nil {
		return fmt.Errorf("unknown BackupStorageType: %s", restore.Spec.BackupStorageType)
	}
	bucket, err := newS3(ctx, restore.Spec.S3, r.reader, restore.Namespace, r.options.Dial)
	if err != nil {
		return err
	}
	url, err := bucket.PresignGet(ctx, bucket.key, classicURLLife)
	if err != nil {
		return err
	}
	classicDefaults(cluster)
	c := &classicCluster{
		classicClusters: &classicClusters{client: r.client, reader: r.reader, options: r.options},
		cluster:         cluster, naming: classicRandom(r.options.Seed, "restored "+cluster.Namespace+"/"+cluster.Name),
	}
	name, err := c.newName(ctx)
	if err != nil {
		return err
	}
	return c.createRestored(ctx, name, url)
}

const classicBackupFile = dataMount + "/latest.backup"

// classicRestoreContainers fetch the backup, and make a data directory of it.
func classicRestoreContainers(cluster *v1beta2.EtcdCluster, member, url string) []corev1.Container {
	// Images of etcd until 3.5 have etcdctl for this, those since 3.5 etcdutl.
	const restore = `rm -rf %[1]s
if etcdutl version >/dev/null 2>&1; then tool=etcdutl; else tool=etcdctl; fi
ETCDCTL_API=3 $tool snapshot restore %[2]s --name=%[3]s --initial-cluster=%[3]s=%[4]s --initial-cluster-token=%[5]s --initial-advertise-peer-urls=%[4]s --data-dir=%[1]s`
	mount := []corev1.VolumeMount{{Name: dataVolume, MountPath: dataMount}}
	return []corev1.Container{
		{
			Name: "fetch-backup", Image: "curlimages/curl", VolumeMounts: mount,
			// The URL is a variable and not a part of the script, which would take its & for an end.
			Env:     []corev1.EnvVar{{Name: "BACKUP_URL", Value: url}},
			Command: []string{"/bin/sh", "-ec", `curl --fail --silent --show-error --output ` + classicBackupFile + ` "$BACKUP_URL"`},
		},
		{
			Name: "restore-datadir", Image: classicImage(cluster), VolumeMounts: mount,
			Command: []string{"/bin/sh", "-ec", fmt.Sprintf(restore, dataDir, classicBackupFile, member, peerURL(cluster, member), classicToken())},
		},
	}
}
