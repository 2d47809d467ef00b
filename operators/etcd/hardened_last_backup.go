package etcd

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// fromBackup begins the value of RecoverAnnotation by which a person has a cluster without a quorum go back to its last
// backup.
const fromBackup = "backup/"

// approvalOf returns the value of RecoverAnnotation that approves a backup. It has the revision, so it is no approval
// of a later backup.
func approvalOf(backup *v1beta2.EtcdBackup) string {
	return fmt.Sprintf("%s%s@%d", fromBackup, backup.Name, backup.Status.EtcdRevision)
}

// lastBackup returns the EtcdBackup that took the newest backup of a cluster; nil if there is none.
func (r *clusterWriter) lastBackup(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdBackup, error) {
	var list v1beta2.EtcdBackupList
	if err := r.client.List(ctx, &list, client.InNamespace(cluster.Namespace)); err != nil {
		return nil, fmt.Errorf("list EtcdBackups: %w", err)
	}
	var last *v1beta2.EtcdBackup
	for i := range list.Items {
		backup := &list.Items[i]
		taken := backup.Status.LastSuccessDate
		if taken == nil || backup.Status.Location == "" || !backsUp(backup, cluster) {
			continue
		}
		if last == nil || last.Status.LastSuccessDate.Before(taken) {
			last = backup
		}
	}
	return last, nil
}

// backsUp reports whether an EtcdBackup names the Service for clients of a cluster, or a member of it, by a name of the
// cluster's DNS. By an address it cannot be told.
func backsUp(backup *v1beta2.EtcdBackup, cluster *v1beta2.EtcdCluster) bool {
	for _, endpoint := range backup.Spec.EtcdEndpoints {
		u, err := url.Parse(endpoint)
		if err != nil {
			continue
		}
		host := u.Hostname() + "."
		_, ofMember, _ := strings.Cut(host, ".")
		for _, name := range []string{clientService(cluster) + ".", clientService(cluster) + "." + cluster.Namespace + "."} {
			if host == name || strings.HasPrefix(host, name+"svc.") {
				return true
			}
		}
		if strings.HasPrefix(ofMember, peerService(cluster)+"."+cluster.Namespace+".svc.") {
			return true
		}
	}
	return false
}

// restoreLast makes the EtcdRestore of the last backup once a person has approved that backup. From then on it is a
// restore as any other: the backup is read first, and what there is stays until a member with it answers. An approval is
// good for one restore, which the birth remembers: whatever happens later, nothing is restored without another one.
func (r *hardenedMembers) restoreLast(ctx context.Context, p *clusterPass) (busy bool, err error) {
	approved := p.cluster.Annotations[recoverKey]
	if !strings.HasPrefix(approved, fromBackup) || approved == p.birth.Approved {
		return false, nil
	}
	backup, err := r.lastBackup(ctx, p.cluster)
	if err != nil || backup == nil || approvalOf(backup) != approved {
		return false, err // tellOfLoss says which one can be approved
	}
	if p.restore == nil {
		return false, r.makeRestore(ctx, p, backup, approved)
	}
	checked := meta.FindStatusCondition(p.restore.Status.Conditions, ConditionChecked)
	switch {
	case p.restore.Annotations[recoverKey] != approved:
		p.trouble(ReasonRestoreFailed, "the backup that was approved waits, since the EtcdRestore %s is of another one: delete that", p.restore.Name)
	case checked != nil && checked.Status == metav1.ConditionFalse:
		p.trouble(ReasonRestoreFailed, "the backup that was approved is not restored: %s", checked.Message)
	default:
		p.progress("Restoring", "the backup that was approved is being checked")
	}
	return false, nil
}

// makeRestore makes the EtcdRestore of a backup that a person has approved.
func (r *hardenedMembers) makeRestore(ctx context.Context, p *clusterPass, backup *v1beta2.EtcdBackup, approved string) error {
	// The cache may be behind, and not know that this was done already.
	if latest, err := r.knowsBirth(ctx, p); err != nil || !latest {
		return err
	}
	restore := &v1beta2.EtcdRestore{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.cluster.Namespace, Name: p.cluster.Name, Labels: clusterLabels(p.cluster),
			Annotations:     map[string]string{recoverKey: approved},
			OwnerReferences: []metav1.OwnerReference{*ownedBy(p.cluster)},
		},
		Spec: v1beta2.EtcdRestoreSpec{
			EtcdCluster:           v1beta2.ClusterReference{Name: p.cluster.Name},
			BackupStorageType:     backup.Spec.StorageType,
			S3:                    backup.Spec.S3.DeepCopy(),
			PersistentVolumeClaim: backup.Spec.PersistentVolumeClaim.DeepCopy(),
		},
	}
	// A periodic backup has a name that the spec only begins.
	if restore.Spec.S3 != nil {
		restore.Spec.S3.Path = backup.Status.Location
	}
	if restore.Spec.PersistentVolumeClaim != nil {
		restore.Spec.PersistentVolumeClaim.Path = backup.Status.Location
	}
	if err := r.client.Create(ctx, restore, fieldOwner); err != nil {
		return ignoreExists(err)
	}
	r.note(p, restore, corev1.EventTypeWarning, "RestoreApproved", "Recover",
		"A person has approved to go back to revision %d, which %s took", backup.Status.EtcdRevision, backup.Name)
	return nil
}
