package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/sandbox/storage"
)

// The directories of a restore. A complete restore is in restored: its directories only have to be moved to their
// places, and the file pending has to be written to etcd.
func (l layout) restoring() string { return filepath.Join(l.dir, "restoring") }
func (l layout) restored() string  { return filepath.Join(l.dir, "restored") }
func (l layout) undone() string    { return filepath.Join(l.dir, "undone") }
func (l layout) pending() string   { return filepath.Join(l.restored(), "store") }

// Restore brings the state of a checkpoint back, as often as wanted, and returns when everything can be used again.
// etcd and the API server keep running: watches report what changes, and objects that had changed get their earlier
// UIDs and newer resource versions. All other programs are restarted, and the nodes with what runs on them, as after a
// power cut; lost nodes come back. When the checkpoint cannot be restored, the sandbox stays as it is. When ctx ends
// before Restore returns, the sandbox is usable at once or soon, in its state before the call or in that of the
// checkpoint.
func (c *Checkpoints) Restore(ctx context.Context, point *Checkpoint) error {
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := c.restore(ctx, point); err != nil {
		return whyNot(ctx, fmt.Errorf("restore the checkpoint %s: %w", point.name, err))
	}
	return nil
}

// restore carries out [Checkpoints.Restore], step by step.
func (c *Checkpoints) restore(ctx context.Context, point *Checkpoint) error {
	then, err := c.prepareRestore(ctx, point)
	if err != nil {
		return errors.Join(err, storage.RemoveAll(c.box.layout.restoring()))
	}
	for _, p := range c.box.programs[:2] { // etcd and the API server, which a fault may keep from being started
		p.release()
	}
	if err = hold(ctx, c.box.programs[2:]); err == nil {
		err = c.commitRestore(ctx, point, then)
	}
	nodes := len(c.box.programs) - c.box.options.Nodes
	for _, p := range c.box.programs[2:nodes] {
		p.release()
	}
	var ran []types.NamespacedName
	if err == nil && c.box.options.Nodes > 0 {
		if err = c.box.programs[1].awaitServing(ctx); err == nil {
			ran, err = c.renewPods(ctx)
		}
	}
	for _, p := range c.box.programs[nodes:] {
		p.release()
	}
	if err := errors.Join(err, storage.RemoveAll(c.box.layout.restoring()), storage.RemoveAll(c.box.layout.undone())); err != nil {
		return errors.Join(err, c.awaitRestored(ctx)) // it is as it was, and is to be used again
	}
	if err := c.awaitRestored(ctx); err != nil {
		return err
	}
	return errors.Join(c.keepAddresses(ctx, then), c.awaitRunning(ctx, ran))
}

// keepAddresses puts back the IPAddresses that the API server has deleted or replaced, because it saw them before their
// Services and took them for leaked. Nothing tells when it knows the Services; restore calls this once all other
// programs serve again, which takes far longer than a watch event.
func (c *Checkpoints) keepAddresses(ctx context.Context, then *store) error {
	client, err := c.box.plane.etcdAPI(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	now, err := readStore(ctx, client, addresses)
	if err != nil {
		return err
	}
	was := then.below(addresses)
	// Addresses that were allocated since then stay.
	now.Kvs = slices.DeleteFunc(now.Kvs, func(kv *mvccpb.KeyValue) bool {
		return !slices.ContainsFunc(was.Kvs, func(each *mvccpb.KeyValue) bool { return bytes.Equal(each.Key, kv.Key) })
	})
	_, err = write(ctx, client, changes(now, was, nil))
	return err
}

// prepareRestore copies the checkpoint into the directory restoring. All programs keep running.
func (c *Checkpoints) prepareRestore(ctx context.Context, point *Checkpoint) (then *store, err error) {
	if err := c.box.programs[0].awaitServing(ctx); err != nil {
		return nil, err
	}
	dir := c.box.layout.restoring()
	if err := errors.Join(storage.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return nil, err
	}
	file := filepath.Join(point.dir, storeName(point.made))
	then, err = loadStore(file)
	if err == nil {
		err = copyTree(ctx, file, filepath.Join(dir, filepath.Base(c.box.layout.pending())))
	}
	for _, disk := range disks {
		err = errors.Join(err, copyTree(ctx, filepath.Join(point.dir, disk), filepath.Join(dir, disk)))
	}
	if err != nil && ctx.Err() == nil && !isProblem(explain(err)) {
		err = &Problem{err, "the sandbox is as it was: go on with it, or start over with --fresh"}
	}
	return then, err
}

// hold ends programs, and keeps them from being started until [program.release].
func hold(ctx context.Context, programs []*program) error {
	var all sync.WaitGroup
	for _, p := range programs {
		all.Go(p.hold)
	}
	all.Wait()
	return ctx.Err()
}

// commitRestore puts the prepared state in place. After its first step the restore will be finished in any case: if
// this process is killed, by the next start of the sandbox.
func (c *Checkpoints) commitRestore(ctx context.Context, point *Checkpoint, then *store) error {
	// An earlier restore may have failed to reach etcd; this one replaces it.
	if err := errors.Join(storage.RemoveAll(c.box.layout.undone()), storage.RemoveAll(c.box.layout.restored())); err != nil {
		return err
	}
	if err := os.Rename(c.box.layout.restoring(), c.box.layout.restored()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	if err := c.box.layout.settleDisks(); err != nil {
		return err
	}
	for {
		revision, err := c.settleStore(ctx, then)
		if err == nil {
			point.revision.Store(revision)
			return nil
		}
		if !isEtcdAway(err) {
			return err
		}
		if err := errors.Join(c.box.Err(), c.box.programs[0].awaitServing(ctx)); err != nil {
			return err
		}
	}
}

// settleStore writes the pending store to etcd.
func (c *Checkpoints) settleStore(ctx context.Context, then *store) (revision int64, err error) {
	client, err := c.box.plane.etcdAPI(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = client.Close() }()
	if revision, err = putBack(ctx, client, then); err != nil {
		return 0, err
	}
	return revision, errors.Join(os.Remove(c.box.layout.pending()), os.Remove(c.box.layout.restored()))
}

// finishRestore writes the pending store of a lab that was killed before it had done so to etcd, which has just been
// started.
func (c *Checkpoints) finishRestore(ctx context.Context) error {
	then, err := loadStore(c.box.layout.pending())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = c.settleStore(ctx, then)
	}
	if err != nil {
		return &Problem{fmt.Errorf("finish a restore that was cut off: %w", err), damagedHint}
	}
	return nil
}

// settleDisks moves the restored directories to their places, or those that are not there yet. An earlier version of
// the lab also restored the directory of etcd.
func (l layout) settleDisks() error {
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
	return nil
}

// forgetCheckpoints finishes a restore that was interrupted, except for the pending store, and removes everything that
// another run of the sandbox does not need.
func (l layout) forgetCheckpoints() error {
	err := l.settleDisks()
	if _, pending := os.Lstat(l.pending()); err == nil && errors.Is(pending, fs.ErrNotExist) {
		err = storage.RemoveAll(l.restored())
	}
	if err != nil {
		return &Problem{fmt.Errorf("finish a restore that was cut off: %w", err), damagedHint}
	}
	return errors.Join(storage.RemoveAll(l.restoring()), storage.RemoveAll(l.undone()), storage.RemoveAll(l.checkpoints()))
}

// awaitRestored returns when everything can be used again.
func (c *Checkpoints) awaitRestored(ctx context.Context) error {
	if err := errors.Join(c.awaitPrograms(ctx), ctx.Err()); err != nil {
		return err
	}
	return errors.Join(c.box.awaitUsable(ctx), c.box.watchServices(ctx), c.box.save(func(*Record) {}))
}
