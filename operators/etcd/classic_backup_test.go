package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// endpoint is where a member's clients reach it.
func (env *classicEnv) endpoint(member string) string {
	return fmt.Sprintf("http://%s.example.%s.svc:2379", member, env.Name)
}

// backup is one of some members, not created yet.
func (env *classicEnv) backup(name, s3 string, members ...corev1.Pod) *v1beta2.EtcdBackup {
	backup := &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: name},
		Spec: v1beta2.EtcdBackupSpec{
			StorageType: v1beta2.StorageS3,
			S3:          &v1beta2.S3Source{Path: "backups/" + name, AWSSecret: "aws", Endpoint: s3, ForcePathStyle: true},
		},
	}
	for _, member := range members {
		backup.Spec.EtcdEndpoints = append(backup.Spec.EtcdEndpoints, env.endpoint(member.Name))
	}
	return backup
}

// backedUp waits until a backup has a result.
func (env *classicEnv) backedUp(t *testing.T, backup *v1beta2.EtcdBackup) v1beta2.EtcdBackupStatus {
	t.Helper()
	sandboxtest.Eventually(t, "the backup has a result", func() error {
		env.MustGet(backup)
		if !backup.Status.Succeeded && backup.Status.Reason == "" {
			return errors.New("it has none")
		}
		return nil
	})
	return backup.Status
}

// TestClassicRestore: the data of a backup are back.
func TestClassicRestore(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	s3 := env.s3()
	env.run(t)
	cluster := env.cluster(t)
	member := env.becomes(t, cluster, 1)[0]
	if _, err := env.storeAt(t, env.endpoint(member.Name)).Put(patient(t), "precious", "data"); err != nil {
		t.Fatal(err)
	}
	backup := env.backup("one", s3, member)
	sandboxtest.Eventually(t, "the bucket is there, and a backup succeeds", func() error {
		again := backup.DeepCopy()
		env.MustCreate(again)
		defer env.MustDelete(again)
		if status := env.backedUp(t, again); !status.Succeeded {
			return fmt.Errorf("%+v", status)
		}
		return nil
	})

	restore := env.restore(s3, "backups/one")
	env.MustCreate(restore)
	env.restored(t, restore)
	sandboxtest.Eventually(t, "the data are back", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		pods := env.pods(t)
		if len(pods) != 1 || pods[0].Name == member.Name {
			return fmt.Errorf("there are %v", describePods(pods))
		}
		answer, err := env.storeAt(t, env.endpoint(pods[0].Name)).Get(ctx, "precious")
		if err == nil && len(answer.Kvs) != 1 {
			err = errors.New("they are not")
		}
		return err
	})
	env.becomes(t, cluster, 1)
}

func (env *classicEnv) restore(s3, path string) *v1beta2.EtcdRestore {
	return &v1beta2.EtcdRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: "example"},
		Spec: v1beta2.EtcdRestoreSpec{
			EtcdCluster: v1beta2.ClusterReference{Name: "example"}, BackupStorageType: v1beta2.StorageS3,
			S3: &v1beta2.S3Source{Path: path, AWSSecret: "aws", Endpoint: s3, ForcePathStyle: true},
		},
	}
}

// restored waits until a restore says that it succeeded.
func (env *classicEnv) restored(t *testing.T, restore *v1beta2.EtcdRestore) {
	t.Helper()
	sandboxtest.Eventually(t, "the restore says that it succeeded", func() error {
		env.MustGet(restore)
		if !restore.Status.Succeeded {
			return fmt.Errorf("%+v", restore.Status)
		}
		return nil
	})
}
