package etcd_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/report"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// s3 runs a server of S3 in the test's namespace, with the bucket backups, and returns its URL. The Secret aws has its keys.
func (env *testEnv) s3() string {
	env.t.Helper()
	labels := map[string]string{"app": "minio"}
	env.MustCreate(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: "minio", Labels: labels},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "minio", Image: "minio/minio", Args: []string{"server", "/data"},
			Env: []corev1.EnvVar{
				{Name: "MINIO_ROOT_USER", Value: "keeper"},
				{Name: "MINIO_ROOT_PASSWORD", Value: "of the backups"},
				{Name: "MINIO_DEFAULT_BUCKETS", Value: "backups"},
			},
			Ports:        []corev1.ContainerPort{{ContainerPort: 9000}},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		}}, Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}},
	})
	env.MustCreate(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: "minio"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 9000, TargetPort: intstr.FromInt32(9000)}}},
	})
	env.keys("aws", "keeper", "of the backups")
	return "http://minio." + env.Name + ".svc:9000"
}

func (env *testEnv) keys(secret, id, key string) {
	env.t.Helper()
	env.MustCreate(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: secret},
		Data: map[string][]byte{
			"credentials": []byte("[default]\naws_access_key_id = " + id + "\naws_secret_access_key = " + key + "\n"),
			"config":      []byte("[default]\nregion = us-east-1\n"),
		},
	})
}

// TestBackupAndRestore: AC-E11. A cluster with TLS, and backups in S3.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	env.operate(t, etcd.Options{})
	endpoint := env.s3()
	cluster := env.newCluster()
	ca := newAuthority(t)
	domain := "." + env.Name + ".svc"
	hosts := []string{"*." + cluster.Name + domain, cluster.Name + "-client" + domain, "localhost"}
	for secret, prefix := range map[string]string{"operator": "etcd-client", "server": "server", "peer": "peer"} {
		env.MustCreate(ca.secret(t, env.Name, secret, prefix, hosts))
	}
	cluster.Spec.TLS = tls("peer", "server", "operator")
	env.MustCreate(cluster)
	env.settles(cluster)

	backup := &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: "once"},
		Spec: v1beta2.EtcdBackupSpec{
			EtcdEndpoints: []string{"https://" + cluster.Name + "-client" + domain + ":2379"}, ClientTLSSecret: "operator",
			StorageType: v1beta2.StorageS3,
			S3:          &v1beta2.S3Source{Path: "backups/example/etcd.backup", AWSSecret: "aws", Endpoint: endpoint, ForcePathStyle: true},
		},
	}
	env.MustCreate(backup)
	status := env.backedUp(backup)
	if status.EtcdRevision != 1 || status.EtcdVersion == "" || status.Location != "backups/example/etcd.backup" {
		t.Errorf("the status is %+v", status)
	}

	write := func(key string) (revision int64) {
		t.Helper()
		store := env.storeWith(t, clientv3.Config{Endpoints: backup.Spec.EtcdEndpoints, TLS: ca.client(t)})
		defer func() { _ = store.Close() }()
		sandboxtest.Eventually(t, "write "+key, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			answer, err := store.Put(ctx, key, "v")
			if err == nil {
				revision = answer.Header.Revision
			}
			return err
		})
		return revision
	}
	revision := write("a")
	periodic := backup.DeepCopy()
	periodic.ObjectMeta = metav1.ObjectMeta{Namespace: env.Name, Name: "often"}
	periodic.Spec.BackupPolicy = &v1beta2.BackupPolicy{BackupIntervalInSecond: 1, MaxBackups: 2}
	periodic.Spec.S3.Path = "backups/often"
	env.MustCreate(periodic)
	first := env.backedUp(periodic).Location
	for _, key := range []string{"2", "3"} {
		env.backedUpAt(periodic, revision)
		revision = write(key)
	}
	env.backedUpAt(periodic, revision)
	if periodic.Status.Kept != 2 {
		t.Errorf("%d backups are kept, want 2", periodic.Status.Kept)
	}
	env.MustDelete(periodic)

	restore := &v1beta2.EtcdRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: cluster.Name},
		Spec: v1beta2.EtcdRestoreSpec{
			EtcdCluster:       v1beta2.ClusterReference{Name: cluster.Name},
			BackupStorageType: v1beta2.StorageS3,
			S3:                &v1beta2.S3Source{Path: first, AWSSecret: "aws", Endpoint: endpoint, ForcePathStyle: true},
		},
	}
	env.MustCreate(restore) // the first one was deleted, as the third one came
	env.restore(restore, etcd.ConditionChecked, metav1.ConditionFalse, report.ReasonBackupMissing)
	env.MustDelete(restore)
	sandboxtest.Eventually(t, "the restore is gone", func() error {
		if env.Exists(restore) {
			return fmt.Errorf("it is there")
		}
		return nil
	})
	restore.ResourceVersion, restore.UID = "", ""
	restore.Spec.S3.Path = periodic.Status.Location
	env.MustCreate(restore)
	env.restore(restore, etcd.ConditionReady, metav1.ConditionTrue, etcd.ReasonRestored)
	env.settles(cluster)
	store := env.storeWith(t, clientv3.Config{Endpoints: backup.Spec.EtcdEndpoints, TLS: ca.client(t)})
	sandboxtest.Eventually(t, "after the restore there is what was in the backup", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		answer, err := store.Get(ctx, "3")
		if err == nil && len(answer.Kvs) != 1 {
			err = fmt.Errorf("there is %v", answer)
		}
		return err
	})
}

// TestS3ThatLetsNobodyIn: wrong keys, a wrong bucket, no server; and one that is right.
func TestS3ThatLetsNobodyIn(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	env.operate(t, etcd.Options{})
	endpoint := env.s3()
	env.keys("wrong", "keeper", "of nothing")
	cluster := env.cluster(sized(1))
	env.settles(cluster)
	for name, source := range map[string]*v1beta2.S3Source{
		"keys":   {Path: "backups/b", AWSSecret: "wrong", Endpoint: endpoint, ForcePathStyle: true},
		"bucket": {Path: "none/b", AWSSecret: "aws", Endpoint: endpoint, ForcePathStyle: true},
		"server": {Path: "backups/b", AWSSecret: "aws", Endpoint: "http://nobody." + env.Name + ".svc:9000", ForcePathStyle: true},
	} {
		backup := env.onVolume(cluster, name)
		backup.Spec.StorageType, backup.Spec.S3, backup.Spec.PersistentVolumeClaim = v1beta2.StorageS3, source, nil
		env.MustCreate(backup)
		env.backup(backup, metav1.ConditionFalse, report.ReasonStorageFailed)
		if name == "bucket" && !strings.Contains(backup.Status.Reason, "none") {
			t.Errorf("nothing is said of the bucket: %s", backup.Status.Reason)
		}
	}
	good := env.onVolume(cluster, "good")
	good.Spec.StorageType, good.Spec.PersistentVolumeClaim = v1beta2.StorageS3, nil
	good.Spec.S3 = &v1beta2.S3Source{Path: "backups/dir/good", AWSSecret: "aws", Endpoint: endpoint, ForcePathStyle: true}
	env.MustCreate(good)
	if at := env.backedUp(good).Location; at != "backups/dir/good" {
		t.Errorf("the location is %s", at)
	}
}

// TestRecoveryFromAMember: a quorum is lost for good, and a person approves to go on with what is left. As long as the
// first member does not come up, the one that was left is kept, and the approval can be taken back.
func TestRecoveryFromAMember(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	env.operate(t, etcd.Options{})
	cluster := env.cluster(sized(2))
	env.settles(cluster)
	env.put(cluster, "a", "1")
	pods := env.pods(cluster)
	env.kill(pods[1])
	env.becomes(cluster, v1beta2.ConditionAvailable, metav1.ConditionFalse, "QuorumLost")
	env.wantEvents("QuorumLost")
	approve := func() { metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, v1beta2.RecoverAnnotation, pods[0].Name) }
	env.MustUpdate(cluster, func() {
		cluster.Spec.Version = stuckVersion
		approve()
	})
	env.becomes(cluster, v1beta2.ConditionDegraded, metav1.ConditionTrue, "MemberUnhealthy")
	sandboxtest.Eventually(t, "a first member is there beside the one that was left", func() error {
		if now := names(env.pods(cluster)); len(now) != 2 || !now[pods[0].Name] {
			return fmt.Errorf("the pods are %v, want %s and a first member", now, pods[0].Name)
		}
		return nil
	})
	env.MustUpdate(cluster, func() { cluster.Annotations = nil })
	env.becomes(cluster, v1beta2.ConditionDegraded, metav1.ConditionTrue, "QuorumLost")
	sandboxtest.Eventually(t, "only the one that was left is there", func() error {
		if now := names(env.pods(cluster)); len(now) != 1 || !now[pods[0].Name] {
			return fmt.Errorf("the pods are %v", now)
		}
		return nil
	})
	env.MustUpdate(cluster, func() {
		cluster.Spec.Version = ""
		approve()
	})
	sandboxtest.Eventually(t, "the one that was left is gone", func() error {
		if now := names(env.pods(cluster)); now[pods[0].Name] {
			return fmt.Errorf("the pods are %v", now)
		}
		return nil
	})
	env.settles(cluster)
	env.want(cluster, "a", "1")
}
