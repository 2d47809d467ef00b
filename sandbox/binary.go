package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// BinaryEnv names the environment variable that tells programs which use this package where the operator-lab binary
// is, when it is not on PATH.
const BinaryEnv = "OPERATOR_LAB_BINARY"

const installHint = "build it with 'make build' in a clone of operator-lab, then put bin/operator-lab on PATH or set " +
	BinaryEnv + " to it"

// FindBinary looks for the operator-lab binary: $OPERATOR_LAB_BINARY, else on PATH, else in Go's bin directories.
func FindBinary() (string, error) {
	if path := os.Getenv(BinaryEnv); path != "" {
		return checkBinary(path)
	}
	if path, err := exec.LookPath("operator-lab"); err == nil {
		return checkBinary(path)
	}
	for _, dir := range goBins() {
		if path, err := checkBinary(filepath.Join(dir, "operator-lab")); err == nil {
			return path, nil
		}
	}
	return "", &Problem{ErrNoBinary, installHint}
}

func goBins() []string {
	var dirs []string
	if dir := os.Getenv("GOBIN"); dir != "" {
		dirs = append(dirs, dir)
	}
	for _, dir := range filepath.SplitList(os.Getenv("GOPATH")) {
		dirs = append(dirs, filepath.Join(dir, "bin"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, filepath.Join(home, "go", "bin"))
	}
	return dirs
}

func checkBinary(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", &Problem{fmt.Errorf("%w: %w", ErrNoBinary, err), installHint}
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return "", &Problem{fmt.Errorf("%w: %s is not an executable file", ErrNoBinary, path), installHint}
	}
	return path, nil
}

// identity identifies a build of the binary without reading all of its hundred megabytes.
func identity(binary string, more ...string) (string, error) {
	info, err := os.Stat(binary)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", info.Size(), info.ModTime().UnixNano(), strings.Join(more, "\x00")))
	return hex.EncodeToString(sum[:8]), nil
}

// link makes dir a directory of links to the binary, one for each program.
func link(binary, dir string, programs ...string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range programs {
		path := filepath.Join(dir, name)
		if target, err := os.Readlink(path); err == nil && target == binary {
			continue
		}
		if err := replaceLink(binary, path); err != nil {
			return err
		}
	}
	return nil
}

// replaceLink makes a link to the binary, also where others do so at the same time, or start the program through the old one.
func replaceLink(binary, path string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(path), ".link-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	made := filepath.Join(tmp, "link")
	if err := os.Symlink(binary, made); err != nil {
		return err
	}
	return os.Rename(made, path)
}

// Assets makes a directory that envtest accepts as KUBEBUILDER_ASSETS: links named etcd, kube-apiserver and kubectl,
// and for scripts etcdctl and etcdutl.
func Assets(state, binary string) (string, error) {
	key, err := identity(binary, binary)
	if err != nil {
		return "", explain(err)
	}
	dir := filepath.Join(state, "assets", key)
	return dir, explain(link(binary, dir, "etcd", "kube-apiserver", "kubectl", "etcdctl", "etcdutl"))
}
