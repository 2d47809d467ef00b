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

	"sigs.k8s.io/yaml"
)

// preparedKept is how many prepared data directories stay on disk: one per build of the binary and set of CRDs.
const preparedKept = 8

// PreparedFile is the name of a file beside the links by which programs are started. It tells kube-apiserver that etcd
// already holds what its bootstrap hooks write.
const PreparedFile = "prepared"

// ofOneRun are prefixes of keys of what is no part of prepared data: what belongs to one API server, and what controllers
// and nodes write as soon as they run.
var ofOneRun = []string{
	"/registry/configmaps/", "/registry/csinodes/", "/registry/endpointslices/", "/registry/events/", "/registry/leases/",
	"/registry/minions/", "/registry/serviceaccounts/", "/registry/services/endpoints/",
}

// preparer makes etcd data directories that already hold what an API server writes when it starts for the first
// time (and the CRDs asked for), because that start takes a second longer than every later one. The first sandbox of a
// build of the binary and set of CRDs starts without, and what its API server has stored is kept for the later ones, in
// the state directory.
type preparer struct {
	state, binary string
	// original is the path of the data directory that is copied. It may not exist.
	original string
}

// preparer returns the preparer for a sandbox that is about to start: installing its CRDs changes them.
func (s *Sandbox) preparer() (*preparer, error) {
	p := &preparer{state: s.options.StateDir, binary: s.options.Binary}
	crds, err := yaml.Marshal(s.options.CRDs)
	if err != nil {
		return nil, err
	}
	key, err := identity(p.binary, serviceRange, string(crds))
	p.original = filepath.Join(p.dir(), key)
	return p, err
}

func (p *preparer) dir() string { return filepath.Join(p.state, "prepared") }

// lock takes the lock of all originals, shared or exclusive.
func (p *preparer) lock(how int) (*flock, error) {
	if err := os.MkdirAll(p.dir(), 0o700); err != nil {
		return nil, err
	}
	return openLock(filepath.Join(p.dir(), "lock"), how)
}

// provideData copies prepared data for an etcd that has no data yet. It reports whether there were data already, or are
// now. With neither etcd starts empty.
func (s *Sandbox) provideData(preparer *preparer) (used, prepared bool, err error) {
	if _, err := os.Stat(s.layout.etcd()); err == nil {
		return true, false, nil
	}
	marker := s.layout.program(PreparedFile) // for the API server that is about to start
	err = preparer.copyTo(s.layout.etcd())
	switch {
	case err == nil:
		prepared, err = true, os.WriteFile(marker, nil, 0o600)
	case errors.Is(err, fs.ErrNotExist):
		err = os.RemoveAll(marker)
	}
	if err == nil {
		s.step("data", "")
	}
	return false, prepared, err
}

// prepareNext prepares the data of later sandboxes in the background: what the API server has stored so far. If that
// fails, the next one starts as this one did.
func (s *Sandbox) prepareNext(ctx, lasting context.Context, preparer *preparer) error {
	client, err := s.plane.etcdAPI(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	stored, err := readStore(ctx, client, registry)
	if err != nil {
		return err
	}
	s.preparing = make(chan struct{})
	s.watchers.Go(func() {
		defer close(s.preparing)
		_ = preparer.keep(lasting, stored.without(ofOneRun))
	})
	return nil
}

// copyTo copies the prepared data for a sandbox. It returns [fs.ErrNotExist] if there is none.
func (p *preparer) copyTo(etcd string) error {
	lock, err := p.lock(syscall.LOCK_SH) // so that nobody removes it meanwhile
	if err != nil {
		return err
	}
	defer lock.unlock()
	if err := verifyManifest(p.original); err != nil {
		return err
	}
	now := time.Now()
	_ = os.Chtimes(p.original, now, now) // the least recently used is cleared first
	tmp := etcd + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := copyData(p.original, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, etcd)
}

// keep makes the prepared data of what an API server has stored, unless another process has done so meanwhile.
func (p *preparer) keep(ctx context.Context, stored *store) error {
	lock, err := p.lock(syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.unlock()
	if verifyManifest(p.original) == nil {
		return nil
	}
	p.clear()
	work := layout{filepath.Join(p.dir(), fmt.Sprintf("work-%d", os.Getpid()))}
	defer func() { _ = os.RemoveAll(work.dir) }()
	if err := p.make(ctx, work, stored); err != nil {
		return fmt.Errorf("prepare the data of later sandboxes: %w", err)
	}
	if err := writeManifest(work.etcd()); err != nil {
		return err
	}
	if err := os.RemoveAll(p.original); err != nil {
		return err
	}
	return os.Rename(work.etcd(), p.original)
}

// clear removes what interrupted runs left, and the least recently used originals.
func (p *preparer) clear() {
	entries, _ := os.ReadDir(p.dir())
	type original struct {
		path string
		used time.Time
	}
	var originals []original
	for _, entry := range entries {
		path := filepath.Join(p.dir(), entry.Name())
		info, err := entry.Info()
		switch {
		case err != nil || !entry.IsDir():
		case verifyManifest(path) != nil:
			_ = os.RemoveAll(path)
		default:
			originals = append(originals, original{path, info.ModTime()})
		}
	}
	slices.SortFunc(originals, func(a, b original) int { return b.used.Compare(a.used) })
	for i, o := range originals {
		if i >= preparedKept-1 {
			_ = os.RemoveAll(o.path)
		}
	}
}

// make starts etcd, writes what is to be stored, and leaves etcd's data directory.
func (p *preparer) make(ctx context.Context, l layout, stored *store) error {
	for _, dir := range []string{l.dir, l.logs()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := link(p.binary, l.bin(), "etcd"); err != nil {
		return err
	}
	keys, err := openPKI(l.pki())
	if err != nil {
		return err
	}
	held, err := reservePorts(ports{}, portsOfOthers(p.state, ""))
	if err != nil {
		return err
	}
	defer held.release()
	plane := &plane{layout: l, pki: keys, ports: held.ports}
	etcd := plane.etcdProgram()
	if err := startTogether(ctx, etcd); err != nil {
		return errors.Join(err, etcd.stop())
	}
	return errors.Join(plane.fill(ctx, stored), etcd.stop())
}

// fill writes to an empty etcd what is to be stored.
func (p *plane) fill(ctx context.Context, stored *store) error {
	client, err := p.etcdAPI(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	_, err = write(ctx, client, changes(&store{}, stored, nil))
	return err
}
