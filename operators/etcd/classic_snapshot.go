package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// save stores a snapshot of the member that is furthest.
func (r *classicBackups) save(ctx context.Context, backup *v1beta2.EtcdBackup, bucket *s3Store, periodic bool) (status v1beta2.EtcdBackupStatus, err error) {
	began := r.options.Clock.Now().UTC()
	var secure *tls.Config
	if backup.Spec.ClientTLSSecret != "" {
		if secure, err = classicTLS(ctx, r.reader, backup.Namespace, backup.Spec.ClientTLSSecret); err != nil {
			return status, err
		}
	}
	etcd, revision, err := r.furthest(ctx, backup.Spec.EtcdEndpoints, secure)
	if err != nil {
		return status, fmt.Errorf("create a client of etcd: %w", err)
	}
	defer func() { _ = etcd.Close() }() // the snapshot is there, or it is not
	answer, err := etcd.Status(ctx, etcd.Endpoints()[0])
	if err != nil {
		return status, fmt.Errorf("ask etcd for its version: %w", err)
	}
	name := bucket.key
	if periodic {
		name += fmt.Sprintf("_v%d_%s", revision, began.Format("2006-01-02-15:04:05"))
	}
	if err := classicStore(ctx, etcd, bucket, name); err != nil {
		return status, err
	}
	return v1beta2.EtcdBackupStatus{
		Succeeded: true, EtcdVersion: answer.Version, EtcdRevision: revision, LastSuccessDate: &metav1.Time{Time: began},
	}, nil
}

// classicStore stores a snapshot, by way of a file: a bucket wants to know the size first.
func classicStore(ctx context.Context, etcd *clientv3.Client, bucket *s3Store, name string) (err error) {
	snapshot, err := etcd.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("receive a snapshot: %w", err)
	}
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	file, err := os.CreateTemp("", "etcd-backup-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	size, err := io.Copy(file, snapshot)
	if err != nil {
		return fmt.Errorf("receive a snapshot: %w", err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return bucket.Put(ctx, name, file, size)
}

// furthest returns a client of the endpoint with the highest revision. It needs an answer of all of them: the more
// members somebody names, to be on the safe side, the sooner there is no backup (B-04).
func (r *classicBackups) furthest(ctx context.Context, endpoints []string, secure *tls.Config) (best *clientv3.Client, revision int64, err error) {
	var failures []error
	for _, endpoint := range endpoints {
		etcd, err := classicClient(ctx, r.options, []string{endpoint}, secure)
		if err != nil {
			failures = append(failures, fmt.Errorf("endpoint %s: %w", endpoint, err))
			continue
		}
		at, err := classicRevision(ctx, etcd)
		if err != nil {
			failures = append(failures, fmt.Errorf("endpoint %s: %w", endpoint, err))
		}
		if err != nil || at <= revision {
			_ = etcd.Close() // nobody needs it
			continue
		}
		log.FromContext(ctx).Info("asked for the revision", "endpoint", endpoint, "revision", at)
		if best != nil {
			_ = best.Close() // nobody needs it any more
		}
		best, revision = etcd, at
	}
	if best == nil {
		failures = append(failures, errors.New("no endpoint answers"))
	}
	if len(failures) > 0 && best != nil {
		_ = best.Close() // it is not used
	}
	return best, revision, errors.Join(failures...)
}

func classicRevision(ctx context.Context, etcd *clientv3.Client) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, classicPatience)
	defer cancel()
	answer, err := etcd.Get(ctx, "/", clientv3.WithSerializable())
	if err != nil {
		return 0, err
	}
	return answer.Header.Revision, nil
}
