package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	bolt "go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcdAPI is a client of etcd with the API server's certificate.
func (p *plane) etcdAPI(ctx context.Context) (*clientv3.Client, error) {
	config, err := p.etcdTLS()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{"127.0.0.1:" + strconv.Itoa(p.ports.Etcd)}, TLS: config,
		Logger: zap.NewNop(), // what it says of an etcd that is away is said by its errors, too
	})
}

// revision is that of etcd now.
func (p *plane) revision(ctx context.Context) (int64, error) {
	client, err := p.etcdAPI(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = client.Close() }()
	answer, err := client.Get(ctx, "/", clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("ask etcd for its revision: %w", err)
	}
	return answer.Header.Revision, nil
}

// saveStore saves a snapshot of etcd to a checkpoint, and notes its revision.
func (s *Sandbox) saveStore(ctx context.Context, c *Checkpoint) error {
	client, err := s.plane.etcdAPI(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	stream, err := client.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("ask etcd for a snapshot: %w", err)
	}
	defer func() { _ = stream.Close() }()
	file := filepath.Join(c.dir, "etcd.db")
	if err := writeNew(file, stream); err != nil {
		return fmt.Errorf("save a snapshot of etcd: %w", err)
	}
	if c.revision, c.newest, err = revisionsOf(file); err != nil {
		return fmt.Errorf("read the snapshot of etcd: %w", err)
	}
	return os.Rename(file, c.snapshot())
}

func writeNew(file string, content io.Reader) (err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.Copy(f, content)
	return err
}

// revisionsOf reads what a snapshot has as its revision: nothing that etcd answers at that moment says it for sure, as
// others may write meanwhile. Deleted objects that were compacted away are not among those whose newest revision is told.
func revisionsOf(snapshot string) (revision, newest int64, err error) {
	db, err := bolt.Open(snapshot, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bolt.Tx) error {
		keys, meta := tx.Bucket([]byte("key")), tx.Bucket([]byte("meta"))
		if keys == nil || meta == nil {
			return errors.New("it has no keys")
		}
		last, _ := keys.Cursor().Last()
		newest = mainRevision(last)
		revision = max(newest, mainRevision(meta.Get([]byte("finishedCompactRev"))))
		return nil
	})
	return revision, newest, err
}

// mainRevision is the first part of a revision as etcd stores it. What is missing is older than all.
func mainRevision(b []byte) int64 {
	if len(b) < 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

// restoreStore makes a data directory for etcd of a checkpoint. Its revision is the one asked for, and all before it are
// compacted: so whoever watches is told to list again, and nobody takes an old state for a newer one.
func (s *Sandbox) restoreStore(ctx context.Context, c *Checkpoint, dir string, revision int64) error {
	cmd := exec.CommandContext(ctx, s.options.Binary)
	cmd.Args = []string{
		"etcdutl", "snapshot", "restore", c.snapshot(), "--data-dir", dir,
		"--bump-revision", strconv.FormatInt(revision-c.newest, 10), "--mark-compacted",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the lab
	said, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return fmt.Errorf("restore the snapshot of etcd: %w: %s", err, lastLine(said))
}

func lastLine(text []byte) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return strings.TrimPrefix(string(lines[len(lines)-1]), "Error: ")
}
