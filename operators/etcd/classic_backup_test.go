package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/store"
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

// stored are the names of the objects with a prefix.
func (env *classicEnv) stored(t *testing.T, s3, prefix string) (names []string) {
	t.Helper()
	bucket, err := store.NewS3(store.S3Options{
		Bucket: "backups", Endpoint: s3, ForcePathStyle: true, Dial: env.dial,
		Credentials: store.Credentials{AccessKeyID: "keeper", SecretAccessKey: "of the backups"},
	})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := bucket.List(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		names = append(names, object.Name)
	}
	slices.Sort(names)
	return names
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

// TestClassicBackups are B-01, B-02, B-04 and B-05.
func TestClassicBackups(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	s3 := env.s3()
	stop := env.run(t)
	cluster := env.cluster(t, 1)
	member := env.becomes(t, cluster, 1)[0]
	gone := member
	gone.Name = "example-gone"
	etcdAt := env.storeAt(t, env.endpoint(member.Name))

	good := env.backup("good", s3, member)
	var bad *v1beta2.EtcdBackup
	sandboxtest.Eventually(t, "the bucket is there, and a backup succeeds", func() error {
		again := good.DeepCopy()
		env.MustCreate(again)
		defer env.MustDelete(again)
		if status := env.backedUp(t, again); !status.Succeeded || status.EtcdRevision != 1 || status.EtcdVersion == "" {
			return fmt.Errorf("%+v", status)
		}
		return nil
	})
	if names := env.stored(t, s3, "good"); !slices.Equal(names, []string{"good"}) {
		t.Errorf("there are %v", names)
	}

	bad = env.backup("bad", s3, member, gone)
	env.MustCreate(bad)
	if status := env.backedUp(t, bad); status.Succeeded || !strings.Contains(status.Reason, "example-gone") {
		t.Errorf("B-04: one of two endpoints is gone, and the result is %+v", status)
	}
	env.MustUpdate(bad, func() { bad.Spec.EtcdEndpoints = bad.Spec.EtcdEndpoints[:1] })
	after := env.backup("after", s3, member)
	env.MustCreate(after)
	env.backedUp(t, after)
	env.MustGet(bad)
	if bad.Status.Succeeded || len(env.stored(t, s3, "bad")) > 0 {
		t.Errorf("B-05: it was tried again: %+v", bad.Status)
	}

	periodic := env.backup("often", s3, member)
	periodic.Spec.BackupPolicy = &v1beta2.BackupPolicy{BackupIntervalInSecond: 1, MaxBackups: 1}
	for revision := int64(1); revision < 9; {
		answer, err := etcdAt.Put(t.Context(), "key", "value")
		if err != nil {
			t.Fatal(err)
		}
		revision = answer.Header.Revision
	}
	env.MustCreate(periodic)
	env.atRevision(t, periodic, 9)
	if _, err := etcdAt.Put(t.Context(), "key", "value"); err != nil {
		t.Fatal(err)
	}
	env.atRevision(t, periodic, 10)
	// Once a second there is one more for a moment, until it is the one that is pruned.
	sandboxtest.Eventually(t, "B-01: that of revision 9 is there, and the newest one gone", func() error {
		if names := env.stored(t, s3, "often"); len(names) != 1 || !strings.HasPrefix(names[0], "often_v9_") {
			return fmt.Errorf("there are %v", names)
		}
		return nil
	})

	before := etcd.ClassicTurns()
	env.MustDelete(periodic)
	sandboxtest.Eventually(t, "the loop turns as fast as it can", func() error {
		if n := etcd.ClassicTurns() - before; n < 100_000 {
			return fmt.Errorf("it turned %f times", n)
		}
		return nil
	})
	sandboxtest.Eventually(t, "it is gone", func() error {
		if env.Exists(periodic) {
			return errors.New("it is still there")
		}
		return nil
	})
	stop()
	sandboxtest.Eventually(t, "the loop ends with the operator", func() error {
		n := etcd.ClassicTurns()
		<-time.After(20 * time.Millisecond) // it turns far more than once in that
		if now := etcd.ClassicTurns(); now != n {
			return errors.New("it still turns")
		}
		return nil
	})
}

// atRevision waits until a backup has one of a revision.
func (env *classicEnv) atRevision(t *testing.T, backup *v1beta2.EtcdBackup, revision int64) {
	t.Helper()
	sandboxtest.Eventually(t, fmt.Sprintf("there is a backup of revision %d", revision), func() error {
		env.MustGet(backup)
		if backup.Status.EtcdRevision != revision {
			return fmt.Errorf("%+v", backup.Status)
		}
		return nil
	})
}

// TestClassicPoison is B-03: the operator ends, and ends again.
func TestClassicPoison(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*v1beta2.EtcdBackupSpec)
		says  string
	}{
		"unknown storage type": {func(s *v1beta2.EtcdBackupSpec) { s.StorageType = "Tape" }, "unknown StorageType: Tape"},
		"no block":             {func(s *v1beta2.EtcdBackupSpec) { s.S3 = nil }, "nil pointer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newClassic(t)
			backup := env.backup("poison", "", corev1.Pod{})
			c.spoil(&backup.Spec)
			env.MustCreate(backup)
			for range 2 {
				if err := env.runToEnd(t); err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("it ended with: %v", err)
				}
			}
			env.MustGet(backup)
			if backup.Status.Reason != "" {
				t.Errorf("it says why: %+v", backup.Status)
			}
		})
	}
}

// runToEnd runs the operator until it ends by itself.
func (env *classicEnv) runToEnd(t *testing.T) error {
	t.Helper()
	sameName := true
	mgr, err := ctrl.NewManager(env.operatorConfig(t, etcd.Classic), ctrl.Options{
		Scheme:     env.Scheme(),
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{env.Name: {}}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &sameName},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := etcd.SetupWithManager(mgr, env.options()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), sandboxtest.Patience)
	defer cancel()
	return mgr.Start(ctx)
}

// TestClassicRestore: a good one, whose data is back, and a bad one, which is.
func TestClassicRestore(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	s3 := env.s3()
	var byName atomic.Int32
	env.runRefused(t, func(req *http.Request) error {
		if req.Method == http.MethodDelete && strings.HasSuffix(req.URL.Path, "/pods/example") {
			byName.Add(1)
		}
		return nil
	})
	cluster := env.cluster(t, 1)
	member := env.becomes(t, cluster, 1)[0]
	if _, err := env.storeAt(t, env.endpoint(member.Name)).Put(t.Context(), "precious", "data"); err != nil {
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
	if n := byName.Load(); n != 1 {
		t.Errorf("R-03: the pod of the cluster's name was deleted %d times", n)
	}
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
	env.MustDelete(restore)

	before := cluster.UID
	bad := env.restore(s3, "backups/missing")
	env.MustCreate(bad)
	env.restored(t, bad)
	env.MustGet(cluster)
	if cluster.UID == before {
		t.Error("R-02: the cluster is the one it was")
	}
	env.passes(t, saysDead, 2)
	pods := slices.DeleteFunc(env.pods(t), func(pod corev1.Pod) bool { return pod.Status.Phase != corev1.PodRunning })
	if len(pods) > 0 {
		t.Errorf("R-02: there was no backup, and the cluster lives: %v", describePods(pods))
	}
	env.MustGet(bad)
	if !bad.Status.Succeeded || bad.Status.Reason != "" {
		t.Errorf("R-01: the status is %+v", bad.Status)
	}
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
