package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/guard"
	"github.com/operator-lab/operator-lab/sandbox/storage"
)

// StateDir returns the directory of all sandboxes: $OPERATOR_LAB_STATE_DIR, else operator-lab below the XDG state
// directory ($XDG_STATE_HOME, else ~/.local/state).
func StateDir() (string, error) {
	if dir := os.Getenv("OPERATOR_LAB_STATE_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "operator-lab"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", &Problem{fmt.Errorf("find the state directory: %w", err), stateHint}
	}
	return filepath.Join(home, ".local", "state", "operator-lab"), nil
}

// layout names the files of one sandbox.
//
//	<state>/sandboxes/<name>/   sandbox.json  lock  kubeconfig  pki/  etcd/  logs/  bin/  nodes/  volumes/  egress.yaml  troubles.json  lab  sockets/
//	                            checkpoints/  restoring/  restored/  undone/
//	<state>/prepared/<key>/     etcd data directories to start from, one per version and set of CRDs
//	<state>/assets/<key>/       links for envtest, see [Assets]
type layout struct{ dir string }

func (l layout) record() string     { return filepath.Join(l.dir, "sandbox.json") }
func (l layout) lock() string       { return filepath.Join(l.dir, "lock") }
func (l layout) ephemeral() string  { return filepath.Join(l.dir, "ephemeral") }
func (l layout) kubeconfig() string { return filepath.Join(l.dir, "kubeconfig") }
func (l layout) pki() string        { return filepath.Join(l.dir, "pki") }
func (l layout) etcd() string       { return filepath.Join(l.dir, "etcd") }
func (l layout) logs() string       { return filepath.Join(l.dir, "logs") }
func (l layout) bin() string        { return filepath.Join(l.dir, "bin") }
func (l layout) nodes() string      { return filepath.Join(l.dir, "nodes") }
func (l layout) volumes() string    { return filepath.Join(l.dir, "volumes") }
func (l layout) catalogs() string   { return filepath.Join(l.dir, "catalogs") }
func (l layout) egress() string     { return filepath.Join(l.dir, "egress.yaml") }
func (l layout) program(name string) string {
	return filepath.Join(l.bin(), name)
}

func sandboxesDir(state string) string { return filepath.Join(state, "sandboxes") }

func layoutOf(state, name string) layout { return layout{filepath.Join(sandboxesDir(state), name)} }

// validName matches the names of sandboxes, which become names of directories and of contexts in a kubeconfig.
var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

// CheckName returns a [*Problem] if a sandbox cannot have the name.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return &Problem{
			fmt.Errorf("%q is not a sandbox name", name),
			"use up to 40 lower-case letters, digits and dashes, such as 'demo' or 'team-a'",
		}
	}
	return nil
}

// Record describes a sandbox. It is stored in the sandbox's directory.
type Record struct {
	// Name is the name of the sandbox.
	Name string `json:"name"`
	// Version is the version of operator-lab that last ran it.
	Version string `json:"version"`
	// Build identifies the build of the binary, also among builds of one version.
	Build string `json:"build"`
	// PID is the process that runs it; 0 if none does.
	PID int `json:"pid,omitempty"`
	// Started is when it was last started.
	Started time.Time `json:"started"`
	// Ready is set once everything could be used.
	Ready bool `json:"ready"`
	// Ports are the loopback ports of its programs.
	Ports ports `json:"ports"`
	// Children maps the name of each program to its pid; 0 while it does not run.
	Children map[string]int `json:"children,omitempty"`
	// Restarts counts how often a program died and was started again.
	Restarts map[string]int `json:"restarts,omitempty"`
	// Nodes is the number of simulated nodes.
	Nodes int `json:"nodes,omitempty"`
	// FakeNodes is the number of nodes that only answer.
	FakeNodes int `json:"fakeNodes,omitempty"`
	// Loopback is the second byte of the addresses of this machine that stand for the cluster's; see [network.Plan].
	Loopback int `json:"loopback,omitempty"`
	// Proxy is the URL of an HTTP proxy that knows the cluster's names, with its credentials.
	Proxy string `json:"proxy,omitempty"`
	// Operators are the bundled operators that run in the process that runs the sandbox.
	Operators []string `json:"operators,omitempty"`

	// Running says whether a process holds the sandbox's lock now. It is not stored.
	Running bool `json:"-"`
	// Dir is the sandbox's directory.
	Dir string `json:"-"`
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (r *Record) Kubeconfig() string { return layout{r.Dir}.kubeconfig() }

// LogFile returns the path of a program's log.
func (r *Record) LogFile(program string) string {
	return filepath.Join(layout{r.Dir}.logs(), program+".log")
}

// URL returns the API server's address.
func (r *Record) URL() string { return fmt.Sprintf("https://127.0.0.1:%d", r.Ports.API) }

// Lookup reads a sandbox's record. It returns [os.ErrNotExist] if there is none of that name.
func Lookup(state, name string) (*Record, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	l := layoutOf(state, name)
	r, err := readRecord(l)
	if err != nil {
		return nil, err
	}
	r.Running = locked(l.lock())
	return r, nil
}

// AwaitStopped returns when no process holds the sandbox and none of its programs is alive, or with ctx's error.
func (r *Record) AwaitStopped(ctx context.Context) error {
	l := layout{r.Dir}
	for locked(l.lock()) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	if _, err := os.Stat(l.bin()); !errors.Is(err, os.ErrNotExist) { // an ephemeral one is deleted
		return guard.AwaitGone(ctx, l.bin())
	}
	return nil
}

// List reads the records of all sandboxes, sorted by name. Directories without a readable record are skipped.
func List(state string) ([]*Record, error) {
	entries, err := os.ReadDir(sandboxesDir(state))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(err)
	}
	var records []*Record
	for _, entry := range entries {
		if r, err := Lookup(state, entry.Name()); err == nil {
			records = append(records, r)
		}
	}
	return records, nil
}

// Remove deletes a stopped sandbox and everything it held.
func Remove(state, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	l := layoutOf(state, name)
	lock, err := lockFile(l.lock())
	if err != nil {
		return err
	}
	defer lock.unlock()
	return explain(errors.Join(storage.RemoveAll(l.dir), removeSockets(l)))
}

// sweep removes what is left of ephemeral sandboxes whose lab was killed. The caller holds the claim lock.
func sweep(state string) {
	entries, _ := os.ReadDir(sandboxesDir(state)) // what cannot be read is not swept
	for _, entry := range entries {
		l := layout{filepath.Join(sandboxesDir(state), entry.Name())}
		if !abandoned(l) {
			continue
		}
		lock, err := lockFile(l.lock())
		if err != nil {
			continue // it lives
		}
		if guard.Gone(l.bin()) {
			_ = errors.Join(storage.RemoveAll(l.dir), removeSockets(l)) // the next one tries again
		}
		lock.unlock()
	}
}

// abandoned reports whether nobody will use a directory again: it is marked as ephemeral, or has no record because its
// start was interrupted.
func abandoned(l layout) bool {
	if _, err := os.Stat(l.ephemeral()); err == nil {
		return true
	}
	_, err := os.Stat(l.record())
	return errors.Is(err, os.ErrNotExist)
}

func readRecord(l layout) (*Record, error) {
	b, err := os.ReadFile(l.record())
	if err != nil {
		return nil, err
	}
	r := &Record{Dir: l.dir}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, &Problem{fmt.Errorf("read %s: %w", l.record(), err), damagedHint}
	}
	return r, nil
}

// write replaces the record in one step, so that readers never see half of it.
func (r *Record) write() error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(layout{r.Dir}.record(), append(b, '\n'))
}

// writeFile writes a file of mode 0600 by renaming a complete one into place.
func writeFile(path string, b []byte) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// flock is a held lock on a file. The kernel releases it when the process ends.
type flock struct{ f *os.File }

// lockFile takes a lock without waiting; [errLocked] says that another process has it.
func lockFile(path string) (*flock, error) {
	return openLock(path, syscall.LOCK_EX|syscall.LOCK_NB)
}

var errLocked = errors.New("locked by another process")

func openLock(path string, how int) (*flock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &flock{f}, nil
}

func (l *flock) unlock() { _ = l.f.Close() }

func locked(path string) bool {
	if _, err := os.Stat(path); err != nil {
		return false
	}
	lock, err := openLock(path, syscall.LOCK_SH|syscall.LOCK_NB)
	if err != nil {
		return errors.Is(err, errLocked)
	}
	lock.unlock()
	return false
}

// portsOfOthers returns the ports that other sandboxes of this state directory use or will use again.
func portsOfOthers(state, name string) map[int]bool {
	records, _ := List(state) // what cannot be read reserves nothing
	others := map[int]bool{}
	for _, r := range slices.DeleteFunc(records, func(r *Record) bool { return r.Name == name }) {
		proxy, _ := proxyOf(r.Proxy)
		others[proxy] = true
		for _, p := range r.Ports.all() {
			others[*p] = true
		}
	}
	return others
}
