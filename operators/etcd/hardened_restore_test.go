package etcd_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/report"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestRestoreOfABackupThatChanged: what is restored is what was checked, or nothing, and nothing is lost by that. Another
// restore mends it.
func TestRestoreOfABackupThatChanged(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	env.operate(t, etcd.Options{})
	env.claim()
	cluster := env.cluster(sized(1))
	env.settles(cluster)
	env.put(cluster, "a", "1")
	old := env.pods(cluster)
	backup := env.onVolume(cluster, "b")
	env.MustCreate(backup)
	env.backedUp(backup)
	env.MustUpdate(cluster, func() { cluster.Spec.Paused = true })
	env.becomes(cluster, v1beta2.ConditionProgressing, metav1.ConditionFalse, "Paused")
	restore := env.fromVolume(cluster, "dir/b")
	env.MustCreate(restore)
	env.restore(restore, etcd.ConditionReady, metav1.ConditionFalse, etcd.ReasonRestoring)
	if !strings.Contains(meta.FindStatusCondition(restore.Status.Conditions, etcd.ConditionReady).Message, "paused") {
		t.Errorf("nothing is said of the pause: %+v", restore.Status.Conditions)
	}
	env.want(cluster, "a", "1") // checked, and not begun
	env.put(cluster, "a", "2")
	env.MustUpdate(backup, func() { backup.Spec.BackupPolicy = &v1beta2.BackupPolicy{TimeoutInSecond: 30} })
	env.backedUp(backup) // under the same name

	env.MustUpdate(cluster, func() { cluster.Spec.Paused = false })
	env.restore(restore, etcd.ConditionReady, metav1.ConditionFalse, report.ReasonBackupChanged)
	if restore.Status.Succeeded {
		t.Errorf("the status is %+v", restore.Status)
	}
	env.want(cluster, "a", "2") // it costs nothing, not even the clients
	env.put(cluster, "b", "3")
	env.MustDelete(restore)
	sandboxtest.Eventually(t, "the restore is gone", func() error {
		if env.Exists(restore) {
			return errors.New("it is there")
		}
		return nil
	})
	env.settles(cluster)
	if now := names(env.pods(cluster)); len(now) != 1 || !now[old[0].Name] {
		t.Errorf("the members are %v, were %s", now, old[0].Name)
	}
	env.want(cluster, "b", "3")
	env.wantEvents("RestoreStarted", "GivenUp")

	restore = env.fromVolume(cluster, "dir/b")
	env.MustCreate(restore)
	env.restore(restore, etcd.ConditionReady, metav1.ConditionTrue, etcd.ReasonRestored)
	env.want(cluster, "a", "2")
}
