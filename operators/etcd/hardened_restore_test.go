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
)

// TestRestoreOfABackupThatChanged: what is restored is what was checked, or nothing, and nothing is lost by that. Another
// restore mends it.
func TestRestoreOfABackupThatChanged(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	s.operate(t, etcd.Options{})
	s.claim()
	cluster := s.cluster(sized(1))
	s.settles(cluster)
	s.put(cluster, "a", "1")
	old := s.pods(cluster)
	backup := s.onVolume(cluster, "b")
	s.create(backup)
	s.backedUp(backup)
	s.change(cluster, func() { cluster.Spec.Paused = true })
	s.becomes(cluster, v1beta2.ConditionProgressing, metav1.ConditionFalse, "Paused")
	restore := s.fromVolume(cluster, "dir/b")
	s.create(restore)
	s.restore(restore, etcd.ConditionReady, metav1.ConditionFalse, etcd.ReasonRestoring)
	if !strings.Contains(meta.FindStatusCondition(restore.Status.Conditions, etcd.ConditionReady).Message, "paused") {
		t.Errorf("nothing is said of the pause: %+v", restore.Status.Conditions)
	}
	s.want(cluster, "a", "1") // checked, and not begun
	s.put(cluster, "a", "2")
	s.change(backup, func() { backup.Spec.BackupPolicy = &v1beta2.BackupPolicy{TimeoutInSecond: 30} })
	s.backedUp(backup) // under the same name

	s.change(cluster, func() { cluster.Spec.Paused = false })
	s.restore(restore, etcd.ConditionReady, metav1.ConditionFalse, report.ReasonBackupChanged)
	if restore.Status.Succeeded {
		t.Errorf("the status is %+v", restore.Status)
	}
	s.want(cluster, "a", "2") // it costs nothing, not even the clients
	s.put(cluster, "b", "3")
	s.delete(restore)
	eventually(t, "the restore is gone", func() error {
		if s.exists(restore) {
			return errors.New("it is there")
		}
		return nil
	})
	s.settles(cluster)
	if now := names(s.pods(cluster)); len(now) != 1 || !now[old[0].Name] {
		t.Errorf("the members are %v, were %s", now, old[0].Name)
	}
	s.want(cluster, "b", "3")
	s.wantEvents("RestoreStarted", "GivenUp")

	restore = s.fromVolume(cluster, "dir/b")
	s.create(restore)
	s.restore(restore, etcd.ConditionReady, metav1.ConditionTrue, etcd.ReasonRestored)
	s.want(cluster, "a", "2")
}
