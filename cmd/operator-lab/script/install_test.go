package script_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	modules "golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestInstall installs the binary as people do who have no clone: from the zip of the module, served by a module proxy,
// with nothing in the environment, as in the README. Only the build cache is shared with the other builds, and the
// dependencies come from the module cache: compiling or downloading them again would take minutes.
func TestInstall(t *testing.T) {
	sandboxtest.Long(t)
	built := os.Getenv("OPERATOR_LAB_BINARY")
	if built == "" {
		t.Skip("OPERATOR_LAB_BINARY is not set: the installed binary is compared with it; 'make test-all' sets it")
	}
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	version := modules.Version{Path: module, Version: "v0.0.1-test"}
	proxy := serveModule(t, root, version)
	home := t.TempDir()
	if err := sandboxtest.MakeHome(home); err != nil {
		t.Fatal(err)
	}
	goEnv := func(name string) string { return output(t, exec.CommandContext(t.Context(), "go", "env", name)) }
	env := []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"),
		"GOCACHE=" + goEnv("GOCACHE"), "GOTOOLCHAIN=local", "GOENV=off",
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(goEnv("GOMODCACHE"), "cache", "download"), "GOSUMDB=off",
		"GOFLAGS=-modcacherw", // so that the test can remove it
		"CGO_ENABLED=0",
	}
	install := exec.CommandContext(t.Context(), "go", "install", "-trimpath", "-ldflags=-s -w", module+"/cmd/operator-lab@"+version.Version)
	install.Dir, install.Env = home, env
	output(t, install)
	installed := filepath.Join(home, "go", "bin", "operator-lab")

	lines := func(binary string, args ...string) []string {
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		return strings.Split(output(t, cmd), "\n")
	}
	got, want := lines(installed, "version"), lines(built, "version")
	if fields := strings.Fields(got[0]); len(fields) != 2 || fields[1] != version.Version {
		t.Errorf("the installed binary calls itself %q, want %s", got[0], version.Version)
	}
	if diff := cmp.Diff(want[1:], got[1:]); diff != "" {
		t.Errorf("the installed binary links something else (-built +installed):\n%s", diff)
	}
	// Kubernetes' own programs know their version, too.
	if diff := cmp.Diff(lines(built, "kubectl", "version", "--client", "-o", "yaml"), lines(installed, "kubectl", "version", "--client", "-o", "yaml")); diff != "" {
		t.Errorf("kubectl differs (-built +installed):\n%s", diff)
	}
	// A binary that exports every symbol, as with cgo, is nearly twice as large.
	if got, want := size(t, installed), size(t, built); got > want*11/10 {
		t.Errorf("the installed binary has %d bytes, the built one %d", got, want)
	}
}

// serveModule writes a version of the module as it is in the repository, changes included, into a directory that
// GOPROXY can name.
func serveModule(t *testing.T, root string, version modules.Version) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	var files []zip.File
	for name := range strings.SplitSeq(strings.TrimSuffix(output(t, list), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil { // deleted and not yet committed
			files = append(files, file{root, name})
		}
	}
	proxy := t.TempDir()
	dir := filepath.Join(proxy, version.Path, "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := zip.Create(&archive, version, files); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"list":                    []byte(version.Version),
		version.Version + ".info": []byte(`{"Version": "` + version.Version + `"}`),
		version.Version + ".mod":  mod,
		version.Version + ".zip":  archive.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return proxy
}

// file is a file of the module.
type file struct{ root, name string }

func (f file) Path() string                 { return filepath.ToSlash(f.name) }
func (f file) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join(f.root, f.name)) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(f.root, f.name)) }

// output is what a command prints to its standard output.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

func size(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
