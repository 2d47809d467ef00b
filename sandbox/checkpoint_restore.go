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

// The directories of a restore. What is in restored is the sandbox's: it only has to be moved to its place, and what is in
// the file pending is to be written to etcd.
func (l layout) restoring() string { return filepath.Join(l.dir, "restoring") }
func (l layout) restored() string  { return filepath.Join(l.dir, "restored") }
func (l layout) undone() string    { return filepath.Join(l.dir, "undone") }
func (l layout) pending() string   { return filepath.Join(l.restored(), "store") }

// Restore brings the state of a checkpoint back, as often as wanted, and returns when everything can be used again. etcd
// and the API server go on: those who watch are told of what changes, and objects that had changed have the UIDs of then
// and newer resource versions. All other programs are restarted, and the nodes with what runs on them, as after a power
// cut; lost nodes come back. When the checkpoint cannot be restored, the sandbox stays as it is. When ctx ends before
// Restore returns, the sandbox is or will soon be usable again, in the state of before or in that of the checkpoint.
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
	then, err := s.prepareRestore(ctx, c)
	if err != nil {
		return errors.Join(err, storage.RemoveAll(s.layout.restoring()))
	}
	for _, p := range s.programs[:2] { // etcd and the API server, which a fault may keep from being started
		p.release()
	}
	if err = hold(ctx, s.programs[2:]); err == nil {
		err = s.commitRestore(ctx, c, then)
	}
	nodes := len(s.programs) - s.options.Nodes
	for _, p := range s.programs[2:nodes] {
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
	return errors.Join(s.keepAddresses(ctx, then), s.awaitRunning(ctx, ran))
}

// keepAddresses puts back the IPAddresses that the API server has deleted, or made anew, because it was told of them before
// it was told of their Services, and took them for leaked. Nothing tells when it knows the Services; restore calls this once all other programs serve again,
// which takes far longer than a watch event.
func (s *Sandbox) keepAddresses(ctx context.Context, then *store) error {
	client, err := s.plane.etcdAPI(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	now, err := readStore(ctx, client, addresses)
	if err != nil {
		return err
	}
	was := then.below(addresses)
	// An address that was given since then stays.
	now.Kvs = slices.DeleteFunc(now.Kvs, func(kv *mvccpb.KeyValue) bool {
		return !slices.ContainsFunc(was.Kvs, func(each *mvccpb.KeyValue) bool { return bytes.Equal(each.Key, kv.Key) })
	})
	_, err = write(ctx, client, changes(now, was, nil))
	return err
}

// prepareRestore makes all that the sandbox is to hold, beside what it holds. Programs run on.
func (s *Sandbox) prepareRestore(ctx context.Context, c *Checkpoint) (then *store, err error) {
	if err := s.programs[0].awaitServing(ctx); err != nil {
		return nil, err
	}
	dir := s.layout.restoring()
	if err := errors.Join(storage.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return nil, err
	}
	file := filepath.Join(c.dir, storeName(c.made))
	then, err = loadStore(file)
	if err == nil {
		err = copyTree(ctx, file, filepath.Join(dir, filepath.Base(s.layout.pending())))
	}
	for _, disk := range disks {
		err = errors.Join(err, copyTree(ctx, filepath.Join(c.dir, disk), filepath.Join(dir, disk)))
	}
	if err != nil && ctx.Err() == nil && !isProblem(explain(err)) {
		err = &Problem{err, "the sandbox is as it was: go on with it, or start over with --fresh"}
	}
	return then, err
}

// hold ends programs, and keeps them from being started.
func hold(ctx context.Context, programs []*program) error {
	var all sync.WaitGroup
	for _, p := range programs {
		all.Go(p.hold)
	}
	all.Wait()
	return ctx.Err()
}

// commitRestore gives the sandbox what was prepared. From its first step on it will have that, whatever happens: if this
// process is killed, whoever starts the sandbox next does the rest.
func (s *Sandbox) commitRestore(ctx context.Context, c *Checkpoint, then *store) error {
	// An earlier restore may have failed to reach etcd; this one replaces it.
	if err := errors.Join(storage.RemoveAll(s.layout.undone()), storage.RemoveAll(s.layout.restored())); err != nil {
		return err
	}
	if err := os.Rename(s.layout.restoring(), s.layout.restored()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	if err := s.layout.settleDisks(); err != nil {
		return err
	}
	for {
		revision, err := s.settleStore(ctx, then)
		if err == nil {
			c.revision.Store(revision)
			return nil
		}
		if !isEtcdAway(err) {
			return err
		}
		if err := errors.Join(s.Err(), s.programs[0].awaitServing(ctx)); err != nil {
			return err
		}
	}
}

// settleStore writes to etcd what is pending.
func (s *Sandbox) settleStore(ctx context.Context, then *store) (revision int64, err error) {
	client, err := s.plane.etcdAPI(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = client.Close() }()
	if revision, err = putBack(ctx, client, then); err != nil {
		return 0, err
	}
	return revision, errors.Join(os.Remove(s.layout.pending()), os.Remove(s.layout.restored()))
}

// finishRestore writes to etcd, which has just been started, what an earlier lab was killed before it had written.
func (s *Sandbox) finishRestore(ctx context.Context) error {
	then, err := loadStore(s.layout.pending())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = s.settleStore(ctx, then)
	}
	if err != nil {
		return &Problem{fmt.Errorf("finish a restore that was cut off: %w", err), damagedHint}
	}
	return nil
}

// settleDisks moves what was restored to its place, or what of it is not there yet. An earlier version of the lab restored
// the directory of etcd as well.
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

// forgetCheckpoints finishes a restore that was cut off, all but what is to be written to etcd, and removes what is of no
// use to another run of the sandbox.
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

// awaitRestored returns when everything can be used.
func (s *Sandbox) awaitRestored(ctx context.Context) error {
	if err := errors.Join(s.awaitPrograms(ctx), ctx.Err()); err != nil {
		return err
	}
	return errors.Join(s.awaitUsable(ctx), s.watchServicesAnew(ctx), s.save(func(*Record) {}))
}

// watchServicesAnew gives the network a new view of Services. The one it has would be told of what changed as well, but
// not before its informers have tried for a while if the API server was away.
func (s *Sandbox) watchServicesAnew(ctx context.Context) error {
	watching, cancel := context.WithCancel(s.watching)
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	return s.watchServices(watching)
}
