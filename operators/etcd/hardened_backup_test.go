package etcd_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/report"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// backupsClaim is where the backups of a test go.
const backupsClaim = "backups"

// claim makes a volume for backups.
func (env *testEnv) claim() {
	env.t.Helper()
	env.MustCreate(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: backupsClaim},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	})
}

// onVolume is a backup of a cluster, on the volume.
func (env *testEnv) onVolume(cluster *v1beta2.EtcdCluster, name string) *v1beta2.EtcdBackup {
	return &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: name},
		Spec: v1beta2.EtcdBackupSpec{
			EtcdEndpoints:         []string{"http://" + cluster.Name + "-client." + env.Name + ".svc:2379"},
			StorageType:           v1beta2.StorageVolume,
			PersistentVolumeClaim: &v1beta2.VolumeSource{ClaimName: backupsClaim, Path: "dir/" + name},
		},
	}
}

// fromVolume is a restore of a cluster, from the volume.
func (env *testEnv) fromVolume(cluster *v1beta2.EtcdCluster, path string) *v1beta2.EtcdRestore {
	return &v1beta2.EtcdRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: cluster.Name},
		Spec: v1beta2.EtcdRestoreSpec{
			EtcdCluster:           v1beta2.ClusterReference{Name: cluster.Name},
			BackupStorageType:     v1beta2.StorageVolume,
			PersistentVolumeClaim: &v1beta2.VolumeSource{ClaimName: backupsClaim, Path: path},
		},
	}
}

// holdsCondition tells whether one of some conditions is as it should be, for this generation.
func holdsCondition(all []metav1.Condition, generation int64, kind string, status metav1.ConditionStatus, reason string) error {
	c := meta.FindStatusCondition(all, kind)
	switch {
	case c == nil:
		return fmt.Errorf("there is no condition %s", kind)
	case c.Status != status || c.Reason != reason || c.ObservedGeneration != generation:
		return fmt.Errorf("%s is %s, %s of generation %d: %s", kind, c.Status, c.Reason, c.ObservedGeneration, c.Message)
	}
	return nil
}

// backedUp waits until a backup is Ready.
func (env *testEnv) backedUp(backup *v1beta2.EtcdBackup) v1beta2.EtcdBackupStatus {
	env.t.Helper()
	env.backup(backup, metav1.ConditionTrue, etcd.ReasonBackedUp)
	if !backup.Status.Succeeded || backup.Status.Reason != "" {
		env.t.Errorf("Ready, and the status is %+v", backup.Status)
	}
	return backup.Status
}

func (env *testEnv) backup(backup *v1beta2.EtcdBackup, status metav1.ConditionStatus, reason string) {
	env.t.Helper()
	sandboxtest.Eventually(env.t, fmt.Sprintf("the EtcdBackup %s becomes Ready=%s, %s", backup.Name, status, reason), func() error {
		env.MustGet(backup)
		return holdsCondition(backup.Status.Conditions, backup.Generation, etcd.ConditionReady, status, reason)
	})
}

func (env *testEnv) restore(restore *v1beta2.EtcdRestore, kind string, status metav1.ConditionStatus, reason string) {
	env.t.Helper()
	sandboxtest.Eventually(env.t, fmt.Sprintf("the EtcdRestore %s becomes %s=%s, %s", restore.Name, kind, status, reason), func() error {
		env.MustGet(restore)
		return holdsCondition(restore.Status.Conditions, restore.Generation, kind, status, reason)
	})
}

// agents are the pods of the agent that somebody owns.
func (env *testEnv) agents(owner client.Object) (pods []corev1.Pod) {
	env.t.Helper()
	var list corev1.PodList
	if err := env.List(env.t.Context(), &list, client.InNamespace(env.Name)); err != nil {
		env.t.Fatal(err)
	}
	for _, pod := range list.Items {
		if metav1.IsControlledBy(&pod, owner) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// onVolumePod runs commands where the volume is /backup, and waits for their end.
func (env *testEnv) onVolumePod(name, script string) {
	env.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "shell", Image: "busybox", Command: []string{"sh", "-c", script},
				VolumeMounts: []corev1.VolumeMount{{Name: "backup", MountPath: "/backup"}},
			}},
			Volumes: []corev1.Volume{{Name: "backup", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: backupsClaim},
			}}},
		},
	}
	env.MustCreate(pod)
	sandboxtest.Eventually(env.t, "the pod "+name+" ends", func() error {
		env.MustGet(pod)
		if pod.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("it is %s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
		}
		return nil
	})
}

// TestBackupOnce: one backup, of one endpoint of three that answers (B-04), is made once; with another spec, once more.
func TestBackupOnce(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, etcd.Hardened)
	env.operate(t, etcd.Options{})
	env.claim()
	cluster := env.cluster(sized(1))
	env.settles(cluster)
	revision := env.put(cluster, "a", "1")
	backup := env.onVolume(cluster, "once")
	backup.Spec.EtcdEndpoints = append([]string{"http://nobody." + env.Name + ".svc:2379", "http://127.0.0.1:1"}, backup.Spec.EtcdEndpoints...)
	env.MustCreate(backup)
	status := env.backedUp(backup)
	if status.EtcdRevision != revision || status.Location != "dir/once" || status.SizeBytes == 0 || len(status.SHA256) != 64 ||
		status.EtcdVersion == "" || status.LastSuccessDate == nil || status.Kept != 1 {
		t.Errorf("the status is %+v", status)
	}
	env.wantEvents(etcd.ReasonBackedUp)

	version := backup.ResourceVersion
	revision = env.put(cluster, "a", "2")
	env.MustUpdate(backup, func() { backup.Spec.PersistentVolumeClaim.Path = "dir/twice" })
	status = env.backedUp(backup)
	if status.EtcdRevision != revision || status.Location != "dir/twice" || status.ObservedGeneration != backup.Generation {
		t.Errorf("after a change the status is %+v (resource version was %s)", status, version)
	}
	sandboxtest.Eventually(t, "only the last pod is left", func() error {
		if pods := env.agents(backup); len(pods) != 1 {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})

	// Who deletes the backup object gets rid of its pods, and keeps the backup.
	env.MustDelete(backup)
	sandboxtest.Eventually(t, "the pods are collected", func() error {
		if pods := env.agents(backup); len(pods) != 0 {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
	env.onVolumePod("look", "test -s /backup/dir/once && test -s /backup/dir/twice")
}

// TestBackupsThatCannotBe: B-03 and B-05. One that fails is tried again, and none disturbs another.
func TestBackupsThatCannotBe(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, etcd.Hardened)
	env.operate(t, etcd.Options{})
	cluster := env.newCluster()
	early := env.onVolume(cluster, "early")
	early.Spec.EtcdEndpoints = []string{"http://127.0.0.1:1"}
	env.MustCreate(early)
	env.backup(early, metav1.ConditionFalse, etcd.ReasonPodPending) // there is no claim yet
	if !strings.Contains(early.Status.Reason, backupsClaim) {
		t.Errorf("nothing is said of the claim that is missing: %s", early.Status.Reason)
	}
	env.claim()
	env.backup(early, metav1.ConditionFalse, report.ReasonNoEndpoint) // and no cluster
	if early.Status.Succeeded || early.Status.Reason == "" || early.Status.LastSuccessDate != nil {
		t.Errorf("it failed, and the status is %+v", early.Status)
	}

	secret := env.onVolume(cluster, "secret")
	secret.Spec.ClientTLSSecret = "none"
	env.MustCreate(secret)
	env.backup(secret, metav1.ConditionFalse, etcd.ReasonSecretMissing)

	noURL := env.onVolume(cluster, "no-url")
	noURL.Spec.EtcdEndpoints = []string{"here"}
	env.MustCreate(noURL)
	env.backup(noURL, metav1.ConditionFalse, etcd.ReasonSpecInvalid)

	for name, change := range map[string]func(*v1beta2.EtcdBackup){
		"type":  func(b *v1beta2.EtcdBackup) { b.Spec.StorageType = "ABS" },
		"block": func(b *v1beta2.EtcdBackup) { b.Spec.StorageType = v1beta2.StorageS3 },
		"path":  func(b *v1beta2.EtcdBackup) { b.Spec.PersistentVolumeClaim.Path = "a/../../b" },
	} {
		bad := env.onVolume(cluster, "bad-"+name)
		change(bad)
		if err := env.Create(t.Context(), bad); err == nil {
			t.Errorf("the API server took a backup with a bad %s", name)
		}
	}

	cluster = env.cluster(sized(1))
	env.settles(cluster)
	env.MustUpdate(early, func() {
		early.Spec.EtcdEndpoints = []string{"http://" + cluster.Name + "-client." + env.Name + ".svc:2379"}
	})
	env.backedUp(early)
	env.wantEvents(report.ReasonNoEndpoint)
}

// TestBackupIsTriedAgain: B-05. Nothing is changed but that the cluster is there at last.
func TestBackupIsTriedAgain(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, etcd.Hardened)
	env.operate(t, etcd.Options{})
	env.claim()
	cluster := env.newCluster()
	cluster.Spec.Size = 1
	backup := env.onVolume(cluster, "early")
	env.MustCreate(backup)
	env.backup(backup, metav1.ConditionFalse, report.ReasonNoEndpoint)
	env.MustCreate(cluster)
	env.backedUp(backup)
}

// TestPeriodicBackups: B-01 and B-02. They go on after the operator was away, the newest ones are kept by their number,
// and end with their object.
func TestPeriodicBackups(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	stop := env.operate(t, etcd.Options{})
	env.claim()
	cluster := env.cluster(sized(1))
	env.settles(cluster)
	revision := int64(1)
	for revision < 9 {
		revision = env.put(cluster, "a", fmt.Sprint(revision))
	}
	backup := env.onVolume(cluster, "often")
	backup.Spec.BackupPolicy = &v1beta2.BackupPolicy{BackupIntervalInSecond: 1, MaxBackups: 2}
	env.MustCreate(backup)
	first := env.backedUp(backup)
	oldest := fmt.Sprintf("_v%d_", revision)
	if first.EtcdRevision != revision || !strings.HasPrefix(first.Location, "dir/often"+oldest) {
		t.Errorf("the first is %+v, want revision %d", first, revision)
	}
	env.backedUpAt(backup, env.put(cluster, "a", "10"))
	stop()
	revision = env.put(cluster, "a", "11")
	env.operate(t, etcd.Options{})
	env.backedUpAt(backup, revision)
	if backup.Status.Kept != 2 {
		t.Errorf("%d are kept, want 2", backup.Status.Kept)
	}
	env.MustUpdate(backup, func() { backup.Spec.BackupPolicy.BackupIntervalInSecond = 3600 })
	last := env.backedUp(backup)
	env.onVolumePod("look", `ls /backup/dir; test -e "/backup/`+last.Location+`" && test "$(ls /backup/dir | wc -l)" -eq 2 && test "$(ls /backup/dir | grep -c `+oldest+`)" -eq 0`)
	env.MustDelete(backup)
	sandboxtest.Eventually(t, "its pods are gone", func() error {
		if pods := env.agents(backup); len(pods) > 0 {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
}

func (env *testEnv) backedUpAt(backup *v1beta2.EtcdBackup, revision int64) {
	env.t.Helper()
	sandboxtest.Eventually(env.t, fmt.Sprintf("there is a backup of revision %d", revision), func() error {
		env.MustGet(backup)
		if got := backup.Status.EtcdRevision; got != revision {
			return fmt.Errorf("the last is of revision %d: %+v", got, backup.Status)
		}
		return nil
	})
}

// TestRestore: the cluster gets the data of the backup and keeps all else, and none of it happens twice.
func TestRestore(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	stop := env.operate(t, etcd.Options{})
	env.claim()
	cluster := env.cluster(nil)
	env.settles(cluster)
	env.put(cluster, "a", "before")
	backup := env.onVolume(cluster, "b")
	env.MustCreate(backup)
	revision := env.backedUp(backup).EtcdRevision
	env.put(cluster, "a", "after")
	old := names(env.pods(cluster))
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: cluster.Name + "-client"}}
	env.MustGet(service)

	restore := env.fromVolume(cluster, "dir/b")
	env.MustCreate(restore)
	env.restore(restore, etcd.ConditionReady, metav1.ConditionTrue, etcd.ReasonRestored)
	if !restore.Status.Succeeded || restore.Status.EtcdRevision != revision || restore.Status.SHA256 != backup.Status.SHA256 {
		t.Errorf("the status is %+v, want revision %d", restore.Status, revision)
	}
	env.want(cluster, "a", "before")
	env.settles(cluster)
	env.want(cluster, "a", "before")
	if cluster.Status.RestoredFrom != string(restore.UID) {
		t.Errorf("the cluster says it is restored from %q", cluster.Status.RestoredFrom)
	}
	for name := range names(env.pods(cluster)) {
		if old[name] {
			t.Errorf("%s was there before the restore", name)
		}
	}
	was := service.UID
	if env.MustGet(service); service.UID != was {
		t.Error("the Service for clients is another one")
	}
	env.wantEvents(etcd.ReasonBackupWhole, etcd.ReasonRestored)

	// Done once is done for good, whatever becomes of the status, and whoever looks.
	env.put(cluster, "a", "later")
	now := names(env.pods(cluster))
	stop()
	env.MustUpdateStatus(restore, func() { restore.Status = v1beta2.EtcdRestoreStatus{} })
	env.MustUpdateStatus(cluster, func() { cluster.Status = v1beta2.EtcdClusterStatus{} })
	env.operate(t, etcd.Options{})
	env.restore(restore, etcd.ConditionReady, metav1.ConditionTrue, etcd.ReasonRestored)
	env.settles(cluster)
	env.want(cluster, "a", "later")
	for name := range names(env.pods(cluster)) {
		if !now[name] {
			t.Errorf("%s was not there before the operator was", name)
		}
	}
}

// TestRestoreOfWhatIsNoBackup. The status says so, and the cluster is as it was.
func TestRestoreOfWhatIsNoBackup(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	env.operate(t, etcd.Options{})
	env.claim()
	cluster := env.cluster(sized(1))
	env.settles(cluster)
	env.put(cluster, "a", "1")
	backup := env.onVolume(cluster, "b")
	env.MustCreate(backup)
	env.backedUp(backup)
	env.onVolumePod("spoil", "cd /backup/dir && head -c 5000 b > truncated && : > empty")
	before := names(env.pods(cluster))
	for path, reason := range map[string]string{
		"dir/none":      report.ReasonBackupMissing,
		"dir/truncated": report.ReasonBackupUnreadable,
		"dir/empty":     report.ReasonBackupUnreadable,
	} {
		restore := env.fromVolume(cluster, path)
		env.MustCreate(restore)
		env.restore(restore, etcd.ConditionChecked, metav1.ConditionFalse, reason)
		env.restore(restore, etcd.ConditionReady, metav1.ConditionFalse, reason)
		if restore.Status.Succeeded || restore.Status.Reason == "" || restore.Status.SHA256 != "" {
			t.Errorf("%s: the status is %+v", path, restore.Status)
		}
		env.MustDelete(restore)
		sandboxtest.Eventually(t, "it is gone", func() error {
			if env.Exists(restore) {
				return errors.New("it is there")
			}
			return nil
		})
	}
	env.settles(cluster)
	env.want(cluster, "a", "1")
	for name := range names(env.pods(cluster)) {
		if !before[name] {
			t.Errorf("%s is new", name)
		}
	}
}

// TestRestoreWithoutACluster: the restore waits for one, and R-04: it is not done before the data are there.
func TestRestoreWithoutACluster(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, etcd.Hardened)
	env.operate(t, etcd.Options{})
	env.claim()
	cluster := env.cluster(sized(1))
	env.settles(cluster)
	env.put(cluster, "a", "1")
	backup := env.onVolume(cluster, "b")
	env.MustCreate(backup)
	env.backedUp(backup)
	env.MustDelete(cluster)
	sandboxtest.Eventually(t, "the cluster is gone", func() error {
		if env.Exists(cluster) || len(env.pods(cluster)) > 0 {
			return errors.New("it is there")
		}
		return nil
	})
	restore := env.fromVolume(cluster, "dir/b")
	env.MustCreate(restore)
	env.restore(restore, etcd.ConditionReady, metav1.ConditionFalse, etcd.ReasonClusterMissing)
	cluster = env.cluster(sized(1))
	env.restore(restore, etcd.ConditionReady, metav1.ConditionTrue, etcd.ReasonRestored)
	env.want(cluster, "a", "1")
}

// TestConvergedBackupsAreLeftAlone: what is done causes no more writes, also when the operator is a new one.
func TestConvergedBackupsAreLeftAlone(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, etcd.Hardened)
	stop := env.operate(t, etcd.Options{})
	env.claim()
	cluster := env.cluster(sized(1))
	env.settles(cluster)
	backup := env.onVolume(cluster, "b")
	env.MustCreate(backup)
	env.backedUp(backup)
	pods := env.agents(backup)
	stop()
	env.operate(t, etcd.Options{})
	// A later one has its turn, so the first has had it.
	later := env.onVolume(cluster, "later")
	env.MustCreate(later)
	env.backedUp(later)
	was := backup.ResourceVersion
	if env.MustGet(backup); backup.ResourceVersion != was {
		t.Errorf("the backup was written to: %+v", backup.Status)
	}
	if now := env.agents(backup); len(now) != len(pods) || now[0].UID != pods[0].UID {
		t.Errorf("there are other pods: %v, were %v", names(now), names(pods))
	}
}
