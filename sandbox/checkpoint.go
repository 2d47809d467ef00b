package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/operator-lab/operator-lab/sandbox/storage"
)

// Checkpoint is the saved state of a sandbox: what its API server stores, and the disks of its nodes. It is in the
// sandbox's directory, and goes when the sandbox is started again.
type Checkpoint struct {
	name, dir string
	made      int64 // the revision of etcd when it was made
	revision  atomic.Int64
}

// Revision is that of etcd when the checkpoint was made, or was last restored: objects with a greater resource version
// have changed since.
func (c *Checkpoint) Revision() int64 { return c.revision.Load() }

func (l layout) checkpoints() string { return filepath.Join(l.dir, "checkpoints") }

// disks are what the nodes write to, and the controllers that make and remove volumes: the names of directories of a
// sandbox, and of a checkpoint.
var disks = []string{"nodes", "volumes"}

// Checkpoint saves the state of the sandbox under a name, in place of what was saved under it before. Nobody notices, but
// for nodes and what runs on them: those stand still while their disks are copied, so that what is saved is as consistent
// as after a power cut.
func (s *Sandbox) Checkpoint(ctx context.Context, name string) (*Checkpoint, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	c := &Checkpoint{name: name, dir: filepath.Join(s.layout.checkpoints(), name)}
	if err := s.makeCheckpoint(ctx, c); err != nil {
		return nil, whyNot(ctx, fmt.Errorf("make the checkpoint %s: %w", name, err))
	}
	return c, nil
}

// makeCheckpoint makes it beside the one of its name, which it then replaces.
func (s *Sandbox) makeCheckpoint(ctx context.Context, c *Checkpoint) (err error) {
	unfinished, replaced := c.dir+".new", c.dir+".old"
	discard := func() error { return errors.Join(storage.RemoveAll(unfinished), storage.RemoveAll(replaced)) }
	if err := errors.Join(discard(), os.MkdirAll(unfinished, 0o700)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, discard()) }()
	if c.made, err = s.fill(ctx, unfinished); err != nil {
		return err
	}
	c.revision.Store(c.made)
	if err := os.Rename(c.dir, replaced); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(unfinished, c.dir)
}

// fill copies what belongs to a checkpoint to its directory, and returns the revision of etcd.
func (s *Sandbox) fill(ctx context.Context, dir string) (revision int64, err error) {
	if err := s.awaitPrograms(ctx); err != nil { // one that is starting writes
		return 0, err
	}
	thaw, err := s.freezeNodes(ctx)
	if err != nil {
		return 0, err
	}
	defer thaw()
	if revision, err = s.saveStore(ctx, dir); err != nil {
		return 0, err
	}
	for _, disk := range disks {
		from := filepath.Join(s.layout.dir, disk)
		if err := errors.Join(os.MkdirAll(from, 0o700), copyTree(ctx, from, filepath.Join(dir, disk))); err != nil {
			return 0, fmt.Errorf("copy the disks: %w", err)
		}
	}
	return revision, nil
}

// awaitPrograms returns when all programs that are not lost serve.
func (s *Sandbox) awaitPrograms(ctx context.Context) error {
	for _, p := range s.programs {
		if err := p.awaitServing(ctx); err != nil {
			return fmt.Errorf("wait for %s: %w", p.name, err)
		}
	}
	return s.Err()
}

var errStopping = errors.New("the sandbox is being stopped")

// enter waits until nobody makes or restores a checkpoint. Its context ends when the sandbox is to be stopped, which waits
// until leave is called.
func (s *Sandbox) enter(ctx context.Context) (inside context.Context, leave func(), err error) {
	select {
	case s.turn <- struct{}{}:
	case <-s.ending:
		return nil, nil, errStopping
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	inside, cancel := context.WithCancelCause(ctx)
	left := make(chan struct{})
	go func() {
		select {
		case <-s.ending:
			cancel(errStopping)
		case <-left:
		}
	}()
	return inside, func() { close(left); cancel(nil); <-s.turn }, nil
}

// keepOut ends what is inside and returns when it has left. Nobody enters any more.
func (s *Sandbox) keepOut() {
	close(s.ending)
	s.turn <- struct{}{}
}

// whyNot is the error of what has been inside: that it was to end, where that is the cause.
func whyNot(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return explain(err)
}
