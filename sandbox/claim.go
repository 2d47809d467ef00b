package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/guard"
	"github.com/operator-lab/operator-lab/sandbox/storage"
)

// claim takes the name of the sandbox: its directory, lock, ports and certificates.
func (s *Sandbox) claim(ctx context.Context) (err error) {
	if err := s.takeName(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(s.layout.bin(), 0o700); err != nil {
		return err
	}
	if err := s.layout.awaitPredecessor(ctx); err != nil {
		return err
	}
	if s.options.Fresh {
		if err := s.layout.wipe(); err != nil {
			return err
		}
	}
	if err := s.layout.forgetCheckpoints(); err != nil {
		return err
	}
	if err := s.openRecord(); err != nil {
		return err
	}
	for _, dir := range []string{s.layout.logs(), s.layout.bin()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := link(s.options.Binary, s.layout.bin(), slices.Concat(Programs(), OLMPrograms(), []string{"kubectl", "kubelet", kwok})...); err != nil {
		return err
	}
	keys, err := openPKI(s.layout.pki())
	if err != nil {
		return &Problem{err, damagedHint}
	}
	s.plane = &plane{layout: s.layout, pki: keys, ports: s.ports.ports, binary: s.options.Binary, onAudit: s.options.OnAudit}
	if s.admin, err = s.plane.config("admin"); err != nil {
		return err
	}
	return s.openNetwork()
}

// takeName makes and locks the directory, and removes what killed labs have left.
func (s *Sandbox) takeName(ctx context.Context) error {
	if err := os.MkdirAll(sandboxesDir(s.options.StateDir), 0o700); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	// Nobody else removes a directory after it is made and before it is locked.
	claiming, err := openLock(filepath.Join(s.options.StateDir, "claim.lock"), syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer claiming.unlock()
	sweep(s.options.StateDir)
	if err := os.MkdirAll(s.layout.dir, 0o700); err != nil {
		return err
	}
	if s.lock, err = s.takeLock(ctx); err != nil {
		return err
	}
	if s.options.Ephemeral {
		return os.WriteFile(s.layout.ephemeral(), nil, 0o600)
	}
	err = os.Remove(s.layout.ephemeral())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// takeLock takes the lock. It waits for a moment: a reader (status, list) may hold it.
func (s *Sandbox) takeLock(ctx context.Context) (*flock, error) {
	for tries := 0; ; tries++ {
		lock, err := lockFile(s.layout.lock())
		if !errors.Is(err, errLocked) {
			return lock, err
		}
		if tries == 40 {
			return nil, &Problem{
				fmt.Errorf("%w: %s", ErrNameTaken, s.options.Name),
				fmt.Sprintf("use another one with --name, or stop it with 'operator-lab down --name %s'", s.options.Name),
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// awaitPredecessor waits for the programs of a lab that was killed a moment ago to end.
func (l layout) awaitPredecessor(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return guard.AwaitGone(ctx, l.bin())
}

// wipe removes what the sandbox held, except the locks and marks of its claim.
func (l layout) wipe() error {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(l.dir, entry.Name())
		if path == l.lock() || path == l.ephemeral() || path == l.bin() {
			continue // bin holds the lock file of the programs
		}
		if err := storage.RemoveAll(path); err != nil {
			return err
		}
	}
	return os.RemoveAll(l.program(PreparedFile))
}

// openRecord reserves the ports of the last run, or others, and records them.
func (s *Sandbox) openRecord() error {
	last, err := readRecord(s.layout)
	if errors.Is(err, fs.ErrNotExist) {
		last, err = &Record{}, nil
	}
	if err != nil {
		return err
	}
	// One at a time, so that two new sandboxes see each other's ports.
	lock, err := openLock(filepath.Join(s.options.StateDir, "ports.lock"), syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.unlock()
	s.ports, err = reservePorts(last.Ports, portsOfOthers(s.options.StateDir, s.options.Name))
	if err != nil {
		return err
	}
	// The API server of another build may bring other bootstrap objects, so it has to run its hooks.
	if build, err := identity(s.options.Binary); err != nil || build != last.Build {
		if err := os.Remove(s.layout.program(PreparedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		last.Build = build
	}
	s.record = last
	return s.save(func(r *Record) {
		r.Name, r.Dir, r.Version = s.options.Name, s.layout.dir, s.options.Version
		r.PID, r.Started, r.Ready, r.Ports = os.Getpid(), s.began, false, s.ports.ports
		r.Children, r.Restarts, r.Operators, r.Nodes = nil, nil, s.options.Operators, s.options.Nodes
		r.FakeNodes = s.options.FakeNodes
	})
}
