package project_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/project"
)

func TestFind(t *testing.T) {
	t.Parallel()
	dir := toy(t, "cmd")
	p := find(t, project.Options{Dir: dir})
	if p.Root != dir || p.Name != "toy" || p.Module != "example.com/toy" || p.MainPath != "example.com/toy/cmd" || p.MainDir != filepath.Join(dir, "cmd") {
		t.Errorf("%+v", p)
	}
	if !p.Linked || p.NotLinked != "" || !strings.HasPrefix(p.ControllerRuntime, "v0.") || p.Vendored || p.Workspace || p.Config != "" {
		t.Errorf("%+v", p)
	}
	if _, err := os.Stat(filepath.Join(p.ControllerRuntimeDir, "pkg", "manager")); err != nil {
		t.Error(err)
	}
	if want := []string{filepath.Join(dir, "internal", "controller"), filepath.Join(dir, "cmd")}; !slices.Equal(p.SourceDirs, want) {
		t.Errorf("%v, not %v", p.SourceDirs, want)
	}
	// From a directory below, and by its name.
	for _, o := range []project.Options{{Dir: filepath.Join(dir, "internal")}, {Dir: dir, Main: "cmd"}, {Dir: filepath.Join(dir, "cmd"), Main: "."}} {
		if again := find(t, o); again.MainPath != p.MainPath || again.Root != dir {
			t.Errorf("%+v: %+v", o, again)
		}
	}
	if named := find(t, project.Options{Dir: dir, Main: "hack/docs"}); named.MainPath != "example.com/toy/hack/docs" {
		t.Errorf("%+v", named)
	}
}

// TestFindAgain checks that the answer is remembered until something changes that it depends on.
func TestFindAgain(t *testing.T) {
	t.Parallel()
	dir := unpack(t, "cmd")
	writeModule(t, dir, "example.com/toy")
	work := t.TempDir()
	remembered := filepath.Join(work, "project.json")
	find(t, project.Options{Dir: dir, WorkDir: work})
	// The file is changed, so that it can be told whether it was read.
	write(t, remembered, []byte(strings.ReplaceAll(read(t, remembered), `"Name":"toy"`, `"Name":"remembered"`)))
	main := filepath.Join(dir, "cmd", "main.go")
	write(t, main, []byte(read(t, main)+"\nfunc more() {}\n"))
	if p := find(t, project.Options{Dir: dir, WorkDir: work}); p.Name != "remembered" || !p.Linked || len(p.SourceDirs) != 2 {
		t.Errorf("it was not remembered: %+v", p)
	}
	write(t, filepath.Join(dir, "cmd", "more.go"), []byte("package main\n\nimport _ \"example.com/toy/more\"\n"))
	write(t, filepath.Join(dir, "more", "more.go"), []byte("package more\n"))
	if p := find(t, project.Options{Dir: dir, WorkDir: work}); p.Name != "toy" || len(p.SourceDirs) != 3 {
		t.Errorf("a package is missing: %+v", p)
	}
	write(t, remembered, []byte("{"))
	if p := find(t, project.Options{Dir: dir, WorkDir: work}); p.Name != "toy" {
		t.Errorf("%+v", p)
	}
}

func TestTwoMains(t *testing.T) {
	t.Parallel()
	dir := toy(t, "two")
	_, err := project.Find(t.Context(), project.Options{Dir: dir, WorkDir: t.TempDir()})
	wantProblem(t, err, "--main cmd/one", "2 programs: cmd/one, cmd/two")
	if p := find(t, project.Options{Dir: dir, Main: "./cmd/two"}); p.MainPath != "example.com/toy/cmd/two" || !p.Linked {
		t.Errorf("%+v", p)
	}
	if p := find(t, project.Options{Dir: filepath.Join(dir, "cmd", "one")}); p.MainPath != "example.com/toy/cmd/one" {
		t.Errorf("%+v", p)
	}
	_, err = project.Find(t.Context(), project.Options{Dir: dir, Main: "library", WorkDir: t.TempDir()})
	wantProblem(t, err, "cmd/one, cmd/plugin, cmd/two", "library is no main package")
}

func TestNotLinked(t *testing.T) {
	t.Parallel()
	p := find(t, project.Options{Dir: toy(t, "clientgo")})
	if p.MainPath != "example.com/toy" || p.Linked || p.NotLinked != "it does not use controller-runtime" {
		t.Errorf("%+v", p)
	}
	dir := unpack(t, "old")
	write(t, filepath.Join(dir, "go.mod"), []byte("module example.com/old/v2\n\ngo 1.24.0\n\nrequire sigs.k8s.io/controller-runtime v0.18.7\n\nreplace sigs.k8s.io/controller-runtime => ./old\n"))
	unchanged(t, dir)
	if p = find(t, project.Options{Dir: dir}); p.Name != "old" || p.GoVersion != "1.24.0" || p.Linked || p.NotLinked != "controller-runtime is older than 0.19" {
		t.Errorf("%+v", p)
	}
}

func TestFindRefuses(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	module := func(mod string, files ...string) string {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "go.mod"), []byte(mod))
		for i := 0; i < len(files); i += 2 {
			write(t, filepath.Join(dir, files[i]), []byte(files[i+1]))
		}
		unchanged(t, dir)
		return dir
	}
	const plain = "module example.com/toy\n\ngo 1.24.0\n"
	workspace := t.TempDir()
	write(t, filepath.Join(workspace, "go.work"), []byte("go 1.24.0\n\nuse ./one\n"))
	for name, c := range map[string]struct{ dir, hint, text string }{
		"no such directory":  {filepath.Join(empty, "missing"), "directory of a Go module", "no such directory"},
		"a file":             {filepath.Join(module(plain), "go.mod"), "run -- ", "is not a directory"},
		"no module":          {empty, "run -- ./bin/manager", "is in no Go module"},
		"a workspace's root": {workspace, "./one", "is in no Go module"},
		"no main":            {module(plain, "a.go", "package a\n"), "new operator", "has no main package"},
		"a newer Go":         {module("module example.com/toy\n\ngo 1.999.0\n", "main.go", "package main\n\nfunc main() {}\n"), "newer Go", "1.999"},
		"a broken go.mod":    {module("module\n"), "go build", "go.mod:1"},
		"a broken lab.yaml":  {module(plain, "lab.yaml", "args: []\ntag: [a]\n"), "did you mean tags?", "lab.yaml:2: unknown key"},
		"a broken package":   {module(plain, "main.go", "packag main\n"), "", "main.go:1:1: "},
		"a broken import":    {module(plain, "main.go", "package main\n\nimport (\n\t\"fmt\n)\n"), "", "main.go:4:2: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := project.Find(t.Context(), project.Options{Dir: c.dir, WorkDir: t.TempDir()})
			wantProblem(t, err, c.hint, c.text)
		})
	}
}

func TestNoGoTool(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := project.Find(t.Context(), project.Options{Dir: ".", WorkDir: t.TempDir()})
	wantProblem(t, err, "https://go.dev/dl", "no Go tool in the PATH")
}

func TestNeedsCgo(t *testing.T) {
	t.Setenv("CGO_ENABLED", "0")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), []byte("module example.com/toy\n\ngo 1.24.0\n"))
	write(t, filepath.Join(dir, "main.go"), []byte("package main\n\nimport \"C\"\n\nfunc main() {}\n"))
	unchanged(t, dir)
	_, err := project.Find(t.Context(), project.Options{Dir: dir, WorkDir: t.TempDir()})
	wantProblem(t, err, "CGO_ENABLED=1", "needs cgo, which CGO_ENABLED=0 leaves out")
	t.Setenv("CGO_ENABLED", "1")
	find(t, project.Options{Dir: dir})
}

// TestNotToBeHad shows a module that requires what cannot be fetched.
func TestNotToBeHad(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	dir := unpack(t, "two")
	write(t, filepath.Join(dir, "go.mod"), []byte("module example.com/toy\n\ngo 1.24.0\n\nrequire sigs.k8s.io/controller-runtime v0.99.0\n"))
	unchanged(t, dir)
	_, err := project.Find(t.Context(), project.Options{Dir: dir, Main: "cmd/one", WorkDir: t.TempDir()})
	wantProblem(t, err, "", "sigs.k8s.io/controller-runtime")
}

// TestIncompleteSums checks that a project without a go.sum gets a private one.
func TestIncompleteSums(t *testing.T) {
	t.Parallel()
	dir := unpack(t, "clientgo")
	writeModule(t, dir, "example.com/toy")
	if err := os.Remove(filepath.Join(dir, "go.sum")); err != nil {
		t.Fatal(err)
	}
	unchanged(t, dir)
	work := t.TempDir()
	find(t, project.Options{Dir: dir, WorkDir: work})
	if !strings.Contains(read(t, filepath.Join(work, "module", "go.sum")), "k8s.io/client-go") {
		t.Error("the private go.sum lacks client-go")
	}
}

func TestWorkspace(t *testing.T) {
	t.Parallel()
	dir := workspace(t)
	p := find(t, project.Options{Dir: filepath.Join(dir, "toy")})
	if !p.Workspace || !p.Linked || p.Root != filepath.Join(dir, "toy") || p.MainPath != "example.com/toy/cmd" {
		t.Errorf("%+v", p)
	}
	if !slices.Contains(p.SourceDirs, filepath.Join(dir, "library")) {
		t.Errorf("%v lacks the other module's", p.SourceDirs)
	}
}

// workspace writes a workspace of two modules.
func workspace(t *testing.T) (dir string) {
	t.Helper()
	dir = unpack(t, "workspace")
	writeModule(t, filepath.Join(dir, "toy"), "example.com/toy")
	writeModule(t, filepath.Join(dir, "library"), "example.com/library")
	unchanged(t, dir)
	return dir
}

// vendored writes a project with a vendor directory.
func vendored(t *testing.T) (dir string) {
	t.Helper()
	dir = unpack(t, "cmd")
	writeModule(t, dir, "example.com/toy")
	cmd := exec.CommandContext(t.Context(), "go", "mod", "vendor")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	unchanged(t, dir)
	return dir
}
