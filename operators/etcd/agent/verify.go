package agent

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"

	"github.com/operator-lab/operator-lab/operators/etcd/report"
)

// backup describes a snapshot that was verified.
type backup struct {
	report.Result
	// lastKey is the revision of the last change that is in it. A compaction may have removed later ones.
	lastKey int64
}

// verify reads all of a snapshot: that nothing is missing or changed since etcd sent it, and that it is a database
// whose pages and keys hang together.
func verify(file string) (backup, error) {
	digest, size, err := sum(file)
	if err != nil {
		return backup{}, err
	}
	// First the sum that etcd sent with it: what was cut off would be read beyond its end by those that map it into
	// memory, which no process survives.
	if err := verifySum(file, size); err != nil {
		return backup{}, because(report.ReasonBackupUnreadable, err)
	}
	compacted, marked, err := compactedRevision(file, size-sha256.Size)
	if err != nil {
		return backup{}, because(report.ReasonBackupUnreadable, fmt.Errorf("the backup is no database of etcd: %w", err))
	}
	status, err := snapshot.NewV3(zap.NewNop()).Status(file)
	if err != nil {
		return backup{}, because(report.ReasonBackupUnreadable, fmt.Errorf("the backup is no database of etcd: %w", err))
	}
	if marked {
		status.TotalKey--
	}
	return backup{
		Result: report.Result{
			Revision:  max(status.Revision, compacted, 1), // an empty store has revision 1
			TotalKeys: status.TotalKey,
			SizeBytes: size,
			SHA256:    digest,
		},
		lastKey: status.Revision,
	}, nil
}

// pageSize is the least that the pages of a database can have.
const pageSize = 512

// verifySum compares a snapshot with the sum that etcd sent after it.
func verifySum(file string, size int64) (err error) {
	switch {
	case size == 0:
		return errors.New("the backup is an empty file")
	case size%pageSize != sha256.Size:
		return fmt.Errorf("the backup is truncated, or no snapshot of etcd: of %d bytes none can be its check sum", size)
	}
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.CopyN(h, f, size-sha256.Size); err != nil {
		return err
	}
	want, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if !bytes.Equal(h.Sum(nil), want) {
		return errors.New("the backup is damaged: it does not have the check sum that etcd sent with it")
	}
	return nil
}

// compactedRevision returns the revision below which the store was compacted. It may be beyond the last key there is:
// that of a key that was deleted at the end. It also looks whether the database has all its pages, before anybody reads
// them.
//
// marked tells that the revision was raised in an earlier restore: there is an entry of that revision, which is no key.
func compactedRevision(file string, size int64) (revision int64, marked bool, err error) {
	db, err := bolt.Open(file, 0o400, &bolt.Options{ReadOnly: true})
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(func(tx *bolt.Tx) error {
		if tx.Size() > size {
			return fmt.Errorf("of its %d bytes there are %d", tx.Size(), size)
		}
		for _, name := range [][]byte{schema.Key.Name(), schema.Meta.Name()} {
			if tx.Bucket(name) == nil {
				return fmt.Errorf("it has no bucket %q", name)
			}
		}
		for _, key := range [][]byte{schema.ScheduledCompactKeyName, schema.FinishedCompactKeyName} {
			if value := tx.Bucket(schema.Meta.Name()).Get(key); len(value) == revisionLength {
				revision = max(revision, mvcc.BytesToRev(value).Main)
			}
		}
		entry := tx.Bucket(schema.Key.Name()).Get(mvcc.RevToBytes(mvcc.Revision{Main: revision}, mvcc.NewRevBytes()))
		marked = entry != nil && len(entry) == 0
		return nil
	})
	return revision, marked, err
}

// revisionLength is that of a revision's bytes: two numbers and a separator.
const revisionLength = 17
