package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox"
)

// TestRecordOfBefore reads what the first versions left in a sandbox's directory.
func TestRecordOfBefore(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "sandboxes", "old")
	record := `{"name":"old","version":"v0.1.0","build":"b","pid":12,"started":"2026-11-20T20:00:00Z","ready":true,
		"ports":{"api":6443,"etcd":2379,"etcdPeer":2380},"children":{"etcd":13,"node-1":14},"restarts":{"etcd":2},
		"nodes":1,"loopback":7,"proxy":"http://lab:secret@127.0.0.1:8080","operators":["zundoko"]}`
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "sandbox.json"), []byte(record), 0o600)); err != nil {
		t.Fatal(err)
	}
	r, err := sandbox.Lookup(state, "old")
	if err != nil {
		t.Fatal(err)
	}
	if r.Running || r.URL() != "https://127.0.0.1:6443" || r.Ports.Peer != 2380 || r.Children["node-1"] != 14 || r.Restarts["etcd"] != 2 ||
		r.Nodes != 1 || r.Loopback != 7 || r.Proxy == "" || len(r.Operators) != 1 || r.Started.IsZero() || !r.Ready {
		t.Errorf("it was read as %+v", r)
	}
}
