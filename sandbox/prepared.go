package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// preparedKept is how many prepared data directories stay on disk: one per build of the binary and set of CRDs.
const preparedKept = 8

// PreparedFile is the name of a file beside the links by which programs are started. It tells kube-apiserver that etcd
// already holds what its bootstrap hooks write.
const PreparedFile = "prepared"

// preparer makes etcd data directories that already hold what an API server writes when it starts for the first
// time (and the CRDs asked for), because that start takes a second longer than every later one. It happens once per
// build of the binary and set of CRDs, in the state directory.
type preparer struct {
	state, binary string
	crds          []*apiextensionsv1.CustomResourceDefinition
}

func (p *preparer) dir() string { return filepath.Join(p.state, "prepared") }

// copyTo copies the prepared data for a sandbox. It makes the original first if it does not exist, and reports whether
// it did.
func (p *preparer) copyTo(ctx context.Context, etcd string) (made bool, err error) {
	key, err := p.key()
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(p.dir(), 0o700); err != nil {
		return false, err
	}
	original := filepath.Join(p.dir(), key)
	for range 2 {
		if err := p.copyLocked(original, etcd); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return made, err
		}
		if err := p.makeLocked(ctx, original); err != nil {
			return false, err
		}
		made = true
	}
	return made, fmt.Errorf("prepared data directory %s is gone", original)
}

func (p *preparer) key() (string, error) {
	crds, err := yaml.Marshal(p.crds)
	if err != nil {
		return "", err
	}
	return identity(p.binary, serviceRange, string(crds))
}

// copyLocked copies the original while it holds the shared lock, so that nobody removes it meanwhile.
func (p *preparer) copyLocked(original, etcd string) error {
	lock, err := openLock(filepath.Join(p.dir(), "lock"), syscall.LOCK_SH)
	if err != nil {
		return err
	}
	defer lock.unlock()
	if err := verifyManifest(original); err != nil {
		return err
	}
	now := time.Now()
	_ = os.Chtimes(original, now, now) // the least recently used is cleared first
	tmp := etcd + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := copyData(original, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, etcd)
}

// makeLocked makes the original under the exclusive lock, unless another process has done so meanwhile.
func (p *preparer) makeLocked(ctx context.Context, original string) error {
	lock, err := openLock(filepath.Join(p.dir(), "lock"), syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.unlock()
	if verifyManifest(original) == nil {
		return nil
	}
	p.clear()
	work := filepath.Join(p.dir(), fmt.Sprintf("work-%d", os.Getpid()))
	defer func() { _ = os.RemoveAll(work) }()
	if err := p.make(ctx, layout{work}); err != nil {
		return fmt.Errorf("prepare etcd's first data: %w", err)
	}
	if err := writeManifest(layout{work}.etcd()); err != nil {
		return err
	}
	if err := os.RemoveAll(original); err != nil {
		return err
	}
	return os.Rename(layout{work}.etcd(), original)
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

// make starts etcd and the API server once, with all bootstrap hooks, and leaves etcd's data directory.
func (p *preparer) make(ctx context.Context, l layout) error {
	for _, dir := range []string{l.dir, l.logs()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := link(p.binary, l.bin(), "etcd", "kube-apiserver"); err != nil {
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
	etcd, api := plane.etcdProgram(), plane.apiServerProgram()
	defer func() { _ = errors.Join(api.stop(), etcd.stop()) }()
	if err := startTogether(ctx, etcd, api); err != nil {
		return err
	}
	if err := errors.Join(plane.installCRDs(ctx, p.crds), plane.installStorage(ctx)); err != nil {
		return err
	}
	if err := api.stop(); err != nil {
		return err
	}
	if err := plane.forget(ctx); err != nil {
		return err
	}
	return etcd.stop()
}

// unrepeatable are the keys of objects that belong to one run of an API server: leases, its own addresses, and the
// ConfigMap that publishes its certificate authorities.
var unrepeatable = []string{
	"/registry/leases/",
	"/registry/masterleases/",
	"/registry/events/",
	"/registry/services/endpoints/default/kubernetes",
	"/registry/endpointslices/default/kubernetes",
	"/registry/configmaps/kube-system/extension-apiserver-authentication",
	"/registry/configmaps/kube-system/kube-apiserver-legacy-service-account-token-tracking",
}

// forget removes, through etcd's JSON gateway, what must not be copied into a sandbox.
func (p *plane) forget(ctx context.Context) error {
	client, err := p.etcdClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for _, prefix := range unrepeatable {
		if err := p.deletePrefix(ctx, client, prefix); err != nil {
			return fmt.Errorf("delete %s from etcd: %w", prefix, err)
		}
	}
	return nil
}

func (p *plane) deletePrefix(ctx context.Context, client *http.Client, prefix string) error {
	key := []byte(prefix)
	end := bytes.Clone(key)
	end[len(end)-1]++ // the first key after all that begin with prefix: none of them ends in 0xff
	body, err := json.Marshal(map[string][]byte{"key": key, "range_end": end})
	if err != nil {
		return err
	}
	url := fmt.Sprintf("https://127.0.0.1:%d/v3/kv/deleterange", p.ports.Etcd)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
		return fmt.Errorf("%s: %s", resp.Status, said)
	}
	return nil
}
