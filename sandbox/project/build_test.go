package project_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// build builds a project, and checks whether the program has the link with the lab.
func build(t *testing.T, p *project.Project, o project.BuildOptions, linked bool) (binary string, compiled []string) {
	t.Helper()
	o.Progress = func(path string) { compiled = append(compiled, path) }
	binary, err := p.Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	symbols := read(t, binary)
	if got := strings.Contains(symbols, p.Module+"/zz_operator_lab/link.Wrap"); got != linked {
		t.Errorf("the program has the link: %t", got)
	}
	return binary, compiled
}

// failWithout runs a program in which manager.New is called but no API server can be found, with a socket that is none:
// the link says so at each manager that it is part of.
func failWithout(t *testing.T, binary, says string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Env = append(os.Environ(), "KUBECONFIG=", "OPERATOR_LAB_LINK="+filepath.Join(t.TempDir(), "none"))
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), says) {
		t.Errorf("%v, not %q:\n%s", err, says, out)
	}
}

// TestBuild builds an operator that calls manager.New itself.
func TestBuild(t *testing.T) {
	t.Parallel()
	dir := unpack(t, "direct")
	writeModule(t, dir, "example.com/toy")
	before := hash(t, dir)
	work := t.TempDir()
	p := find(t, project.Options{Dir: dir, WorkDir: work})
	if p.MainPath != "example.com/toy" || !p.Linked {
		t.Fatalf("%+v", p)
	}
	binary, _ := build(t, p, project.BuildOptions{}, true)
	failWithout(t, binary, "operator-lab cannot be reached")
	symbols := read(t, binary)
	named := strings.Contains(symbols, "example.com/toy/app/app.go") || strings.Contains(symbols, filepath.Join(dir, "app", "app.go"))
	if !named || strings.Contains(symbols, work) {
		t.Error("the names of the program's files are not those of the project")
	}

	// Again, without a change: nothing is compiled, and no file is written anew.
	first, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	written := hash(t, filepath.Join(work, "overlay"))
	binary, compiled := build(t, p, project.BuildOptions{}, true)
	second, err := os.Stat(binary)
	if err != nil || !os.SameFile(first, second) || len(compiled) > 0 || hash(t, filepath.Join(work, "overlay")) != written {
		t.Errorf("built again: %v, %v", compiled, err)
	}
	if hash(t, dir) != before {
		t.Error("the user's tree has changed")
	}

	// One that begins while another is under way waits for it, else an older program could take the place of the newer one.
	app := filepath.Join(dir, "app", "app.go")
	source := read(t, app)
	save := func(version string) { // with a name that nothing compiled has, so that the main package is compiled again, too
		text := strings.Replace(source, "\t{", "\t{ println("+strconv.Quote(version)+")", 1)
		write(t, app, fmt.Appendf(nil, "%s\nvar At%d int\n", text, time.Now().UnixNano()))
	}
	wantVersion := func(version string) {
		if !strings.Contains(read(t, binary), version) {
			t.Errorf("the program is not that of %s", version)
		}
	}
	later := sync.OnceValue(func() <-chan error {
		save("version two")
		done := make(chan error, 1)
		go func() {
			_, err := p.Build(t.Context(), project.BuildOptions{Progress: func(string) { wantVersion("version one") }})
			done <- err
		}()
		return done
	})
	save("version one")
	overlapped := false
	_, err = p.Build(t.Context(), project.BuildOptions{Progress: func(path string) {
		if path == p.MainPath { // all else is compiled
			overlapped = true
			later()
		}
	}})
	if err = errors.Join(err, <-later()); err != nil {
		t.Fatal(err)
	}
	if wantVersion("version two"); !overlapped {
		t.Error("the second build began after the first one")
	}
	write(t, app, []byte(source))

	// Errors name the files of the project, and their lines, also in a file of the overlay.
	lines := strings.Split(source, "\n")
	at := slices.Index(lines, "\t{") + 1
	lines[at-1] += " unknown()"
	write(t, app, []byte(strings.Join(lines, "\n")))
	wantBuildError(t, p, at, "undefined: unknown", "go build ./...")
	write(t, app, []byte("package app\n\nfunc Run() error { return nil\n"))
	wantBuildError(t, p, 4, "expected }", "go build ./...")

	// What has to be generated first is told to be.
	write(t, app, []byte("package app\n\nimport _ \"example.com/toy/generated\"\n"))
	p = find(t, project.Options{Dir: dir})
	wantBuildError(t, p, 3, "no required module provides package example.com/toy/generated", "make generate")
	write(t, app, []byte("package app\n\nimport \"k8s.io/apimachinery/pkg/runtime\"\n\nvar _ runtime.Object = &struct{}{}\n"))
	wantBuildError(t, p, 5, "missing method DeepCopyObject", "make generate")
}

// wantBuildError checks that app/app.go does not compile, and which hint there is.
func wantBuildError(t *testing.T, p *project.Project, line int, text, hint string) {
	t.Helper()
	_, err := p.Build(t.Context(), project.BuildOptions{})
	var wrong *project.BuildError
	if !errors.As(err, &wrong) {
		t.Fatalf("%v is no BuildError", err)
	}
	if got := wrong.Lines[0]; got.File != "app/app.go" || got.Line != line || !strings.Contains(got.Message, text) {
		t.Errorf("%+v, not line %d: %s", got, line, text)
	}
	if got := sandbox.HintOf(err); !strings.Contains(got, hint) {
		t.Errorf("hint %q, not %q", got, hint)
	}
}

func TestBuildPlain(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	build(t, find(t, project.Options{Dir: toy(t, "direct")}), project.BuildOptions{Plain: true}, false)
}

func TestBuildVendored(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	work := t.TempDir()
	p := find(t, project.Options{Dir: vendored(t), WorkDir: work})
	if !p.Vendored || !p.Linked || !strings.HasPrefix(p.ControllerRuntime, "v0.") || !strings.HasPrefix(p.ControllerRuntimeDir, p.Root) {
		t.Errorf("%+v", p)
	}
	build(t, p, project.BuildOptions{}, true)
	read(t, filepath.Join(work, "overlay", "taps", "beside", "sigs.k8s.io", "controller-runtime", "pkg", "client", "interceptor", "intercept.go"))
}

func TestBuildWorkspace(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	p := find(t, project.Options{Dir: filepath.Join(workspace(t), "toy")})
	build(t, p, project.BuildOptions{}, true)
}
