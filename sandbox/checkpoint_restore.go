package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/sandbox/storage"
)

// The directories of a restore. What is in restored is the sandbox's: it only has to be moved to its place.
func (l layout) restoring() string { return filepath.Join(l.dir, "restoring") }
func (l layout) restored() string  { return filepath.Join(l.dir, "restored") }
func (l layout) undone() string    { return filepath.Join(l.dir, "undone") }

// revisionsSpare is how many writes there may be between the preparation of a restore and the end of the last writer;
// there are hardly ever more than ten.
const revisionsSpare = 1000

// Restore brings the state of a checkpoint back, as often as wanted, and returns when everything can be used again. All
// programs are restarted, and the nodes with what runs on them, as after a power cut; lost nodes come back. Objects have
// the UIDs and resource versions of then; those who watch are told of what changed. When the checkpoint cannot be
// restored, the sandbox stays as it is. When ctx ends before Restore returns, the sandbox is or will soon be usable again,
// in the state of before or in that of the checkpoint.
func (s *Sandbox) Restore(ctx context.Context, c *Checkpoint) error {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := s.restore(ctx, c); err != nil {
		return whyNot(ctx, fmt.Errorf("restore the checkpoint %s: %w", c.name, err))
	}
	return nil
}

// restore is the table of contents of [Sandbox.Restore].
func (s *Sandbox) restore(ctx context.Context, c *Checkpoint) error {
	revision, err := s.prepareRestore(ctx, c)
	if err != nil {
		return errors.Join(err, storage.RemoveAll(s.layout.restoring()))
	}
	err = s.powerOff(ctx, func() error { return s.surpass(ctx, c, revision) })
	if err == nil {
		err = s.layout.commitRestore()
	}
	nodes := len(s.programs) - s.options.Nodes
	for _, p := range s.programs[:nodes] {
		p.release()
	}
	var ran []types.NamespacedName
	if err == nil && s.options.Nodes > 0 {
		if err = s.programs[1].awaitServing(ctx); err == nil {
			ran, err = s.renewPods(ctx)
		}
	}
	for _, p := range s.programs[nodes:] {
		p.release()
	}
	if err := errors.Join(err, storage.RemoveAll(s.layout.restoring()), storage.RemoveAll(s.layout.undone())); err != nil {
		return errors.Join(err, s.awaitRestored(ctx)) // it is as it was, and is to be used again
	}
	if err := s.awaitRestored(ctx); err != nil {
		return err
	}
	return s.awaitRunning(ctx, ran)
}

// prepareRestore makes all that the sandbox is to hold, beside what it holds. Programs run on.
func (s *Sandbox) prepareRestore(ctx context.Context, c *Checkpoint) (revision int64, err error) {
	if err := s.programs[0].awaitServing(ctx); err != nil {
		return 0, err
	}
	current, err := s.plane.revision(ctx)
	if err != nil {
		return 0, err
	}
	revision = current + revisionsSpare
	dir := s.layout.restoring()
	if err := errors.Join(storage.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return 0, err
	}
	err = s.restoreStore(ctx, c, filepath.Join(dir, "etcd"), revision)
	for _, disk := range disks {
		err = errors.Join(err, copyTree(ctx, filepath.Join(c.dir, disk), filepath.Join(dir, disk)))
	}
	if err != nil && ctx.Err() == nil && !isProblem(explain(err)) {
		err = &Problem{err, "the sandbox is as it was: go on with it, or start over with --fresh"}
	}
	return revision, err
}

// powerOff ends all programs, etcd last: when nobody writes any more, it first does something.
func (s *Sandbox) powerOff(ctx context.Context, quiet func() error) error {
	etcd, others := s.programs[0], s.programs[1:]
	var all sync.WaitGroup
	for _, p := range others {
		all.Go(p.hold)
	}
	all.Wait()
	if err := quiet(); err != nil {
		return err
	}
	etcd.hold()
	return ctx.Err()
}

// surpass sees to it that no revision is served twice: should there have been more writes than expected, etcd's part of a
// restore is made again.
func (s *Sandbox) surpass(ctx context.Context, c *Checkpoint, revision int64) error {
	current, err := s.plane.revision(ctx)
	if err != nil || current < revision {
		return err
	}
	store := filepath.Join(s.layout.restoring(), "etcd")
	if err := os.RemoveAll(store); err != nil {
		return err
	}
	return s.restoreStore(ctx, c, store, current+1)
}

// commitRestore gives the sandbox what was prepared. From its first step on it will have that, even if this process is
// killed: whoever starts the sandbox next does the rest.
func (l layout) commitRestore() error {
	if err := storage.RemoveAll(l.undone()); err != nil {
		return err
	}
	if err := os.Rename(l.restoring(), l.restored()); err != nil {
		return err
	}
	return l.settleRestore()
}

// settleRestore moves what was restored to its place, or what of it is not there yet.
func (l layout) settleRestore() error {
	for _, part := range append([]string{"etcd"}, disks...) {
		from, to := filepath.Join(l.restored(), part), filepath.Join(l.dir, part)
		if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.MkdirAll(l.undone(), 0o700); err != nil {
			return err
		}
		if err := os.Rename(to, filepath.Join(l.undone(), part)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
	}
	if err := os.Remove(l.restored()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// forgetCheckpoints finishes a restore that was cut off, and removes what is of no use to another run of the sandbox.
func (l layout) forgetCheckpoints() error {
	if err := l.settleRestore(); err != nil {
		return &Problem{fmt.Errorf("finish a restore that was cut off: %w", err), damagedHint}
	}
	return errors.Join(storage.RemoveAll(l.restoring()), storage.RemoveAll(l.undone()), storage.RemoveAll(l.checkpoints()))
}

// awaitRestored returns when everything can be used.
func (s *Sandbox) awaitRestored(ctx context.Context) error {
	if err := errors.Join(s.awaitPrograms(ctx), ctx.Err()); err != nil {
		return err
	}
	return errors.Join(s.awaitUsable(ctx), s.watchServicesAnew(ctx), s.save(func(*Record) {}))
}

// watchServicesAnew gives the network a new view of Services. The one it has would be told of what changed as well, but
// not before its informers have tried for a while.
func (s *Sandbox) watchServicesAnew(ctx context.Context) error {
	watching, cancel := context.WithCancel(s.watching)
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	return s.watchServices(watching)
}
