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

// Checkpoints saves and restores the state of a sandbox. Its methods may be called from any goroutine: one after the other
// saves or restores.
type Checkpoints struct {
	box    *Sandbox
	turn   chan struct{} // holds an element while one saves or restores
	ending chan struct{} // closed when the sandbox is to be stopped
}

func newCheckpoints(box *Sandbox) *Checkpoints {
	return &Checkpoints{box: box, turn: make(chan struct{}, 1), ending: make(chan struct{})}
}

// Checkpoint is the saved state of a sandbox: what its API server stores, and the disks of its nodes. It is in the
// sandbox's directory, and is deleted when the sandbox is started again.
type Checkpoint struct {
	name, dir string
	made      int64 // the revision of etcd when it was made
	revision  atomic.Int64
}

// Revision returns the revision of etcd when the checkpoint was made or was last restored: objects with a greater resource
// version have changed since.
func (c *Checkpoint) Revision() int64 { return c.revision.Load() }

func (l layout) checkpoints() string { return filepath.Join(l.dir, "checkpoints") }

// disks are the directories of a sandbox, and of a checkpoint, that the nodes write to, and the controllers that make
// and remove volumes.
var disks = []string{"nodes", "volumes"}

// Save saves the state of the sandbox under a name, in place of what was saved under it before. The control plane works on
// meanwhile. Nodes and what runs on them are stopped while their disks are copied, so that what is saved is as consistent
// as after a power cut.
func (c *Checkpoints) Save(ctx context.Context, name string) (*Checkpoint, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	point := &Checkpoint{name: name, dir: filepath.Join(c.box.layout.checkpoints(), name)}
	if err := c.makeCheckpoint(ctx, point); err != nil {
		return nil, whyNot(ctx, fmt.Errorf("make the checkpoint %s: %w", name, err))
	}
	return point, nil
}

// makeCheckpoint makes a checkpoint beside the one of its name, and then replaces that.
func (c *Checkpoints) makeCheckpoint(ctx context.Context, point *Checkpoint) (err error) {
	unfinished, replaced := point.dir+".new", point.dir+".old"
	discard := func() error { return errors.Join(storage.RemoveAll(unfinished), storage.RemoveAll(replaced)) }
	if err := errors.Join(discard(), os.MkdirAll(unfinished, 0o700)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, discard()) }()
	if point.made, err = c.fill(ctx, unfinished); err != nil {
		return err
	}
	point.revision.Store(point.made)
	if err := os.Rename(point.dir, replaced); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(unfinished, point.dir)
}

// fill copies what belongs to a checkpoint to its directory, and returns the revision of etcd.
func (c *Checkpoints) fill(ctx context.Context, dir string) (revision int64, err error) {
	if err := c.awaitPrograms(ctx); err != nil { // one that is starting writes
		return 0, err
	}
	thaw, err := c.freezeNodes(ctx)
	if err != nil {
		return 0, err
	}
	defer thaw()
	if revision, err = c.saveStore(ctx, dir); err != nil {
		return 0, err
	}
	for _, disk := range disks {
		from := filepath.Join(c.box.layout.dir, disk)
		if err := errors.Join(os.MkdirAll(from, 0o700), copyTree(ctx, from, filepath.Join(dir, disk))); err != nil {
			return 0, fmt.Errorf("copy the disks: %w", err)
		}
	}
	return revision, nil
}

// awaitPrograms returns when all programs that are not lost serve.
func (c *Checkpoints) awaitPrograms(ctx context.Context) error {
	if err := awaitAll(ctx, c.box.programs); err != nil {
		return err
	}
	return c.box.Err()
}

var errStopping = errors.New("the sandbox is being stopped")

// enter waits until nobody saves or restores. The context inside ends when the sandbox is to be stopped; stopping waits
// until leave is called.
func (c *Checkpoints) enter(ctx context.Context) (inside context.Context, leave func(), err error) {
	select {
	case c.turn <- struct{}{}:
	case <-c.ending:
		return nil, nil, errStopping
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	inside, cancel := context.WithCancelCause(ctx)
	left := make(chan struct{})
	go func() {
		select {
		case <-c.ending:
			cancel(errStopping)
		case <-left:
		}
	}()
	return inside, func() { close(left); cancel(nil); <-c.turn }, nil
}

// close cancels what is between enter and leave, and waits for it. After it enter fails.
func (c *Checkpoints) close() {
	close(c.ending)
	c.turn <- struct{}{}
}

// whyNot returns the error of a save or restore that failed: the reason for its cancellation, if it was cancelled.
func whyNot(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return explain(err)
}
