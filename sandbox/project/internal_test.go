package project

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestWebhookThatNeverAnswers checks that the configurations of webhooks wait for the program's server, and are not installed
// without it.
func TestWebhookThatNeverAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := NewOperator(OperatorOptions{Program: "manager", Project: &Project{Name: "toy", options: Options{WorkDir: t.TempDir()}}, Plan: &Plan{}})
	defer o.Close()
	o.port = l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	err = o.installWebhooks(over, nil)
	if !errors.Is(err, context.Canceled) || !strings.Contains(sandbox.HintOf(err), "--no-webhooks") || o.installed {
		t.Errorf("installed: %t; error %v, hint %q", o.installed, err, sandbox.HintOf(err))
	}
}

// TestGoToolIsInterrupted checks that Ctrl-C in the terminal, which reaches the process group of the lab, does not reach
// the go tool, that its compilers end with it, and that its temporary directory is gone.
func TestGoToolIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	compiler := filepath.Join(dir, "compiler")
	script := "#!/bin/sh\nmkdir $GOTMPDIR/go-build1 $TMPDIR/go-link1\nsh -c 'echo $$ >" + compiler + ".new; mv " + compiler + ".new " + compiler + "; exec sleep 600'\n"
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	temp, work := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("GOTMPDIR", temp)
	go func() {
		_, err := (&Project{Root: dir, options: Options{WorkDir: work}}).Build(ctx, BuildOptions{})
		ended <- err
	}()
	pid := 0
	sandboxtest.Eventually(t, "a compiler to run", func(context.Context) error {
		raw, err := os.ReadFile(compiler)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(raw)))
		}
		return err
	})
	if group, err := syscall.Getpgid(pid); err != nil || group == syscall.Getpgrp() {
		t.Errorf("the compiler is in group %d, that of the lab is %d (%v)", group, syscall.Getpgrp(), err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	for _, dir := range []string{temp, work} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, error %v", dir, left, err)
		}
	}
	sandboxtest.Eventually(t, "the compiler to end", func(context.Context) error {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("process %d is there: %w", pid, err)
		}
		return nil
	})
}

func TestParseConfigRefuses(t *testing.T) {
	t.Parallel()
	for content, want := range map[string][2]string{
		"main: a\nargs: x\n":         {"lab.yaml:2: ", "the keys are main, tags"},
		"sample: []\n":               {`lab.yaml:1: unknown key "sample"`, "did you mean samples?"},
		"main: [\n":                  {"lab.yaml:", "the keys are"},
		"main: a\n---\nmain: b\n":    {"lab.yaml: the file has more than one document", "the keys are"},
		"env: {\"A=B\": c}\n":        {`env: "A=B" is no variable`, "the keys are"},
		"args: [\"a\\0b\"]\n":        {`a character that no argument can have`, "the keys are"},
		"main: a\ntags: []\nmain: b": {"lab.yaml:3: ", "the keys are"},
	} {
		_, err := parseConfig("lab.yaml", []byte(content))
		if err == nil {
			t.Errorf("%q: no error", content)
			continue
		}
		if !strings.Contains(err.Error(), want[0]) || !strings.Contains(sandbox.HintOf(err), want[1]) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %q, hint %q", content, err, sandbox.HintOf(err))
		}
	}
	if c, err := parseConfig("lab.yaml", []byte("# nothing\n")); err != nil || !cmp.Equal(c, Config{}) {
		t.Errorf("%+v %v", c, err)
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte("main: cmd\ntags: [a]\nargs: [--x]\nenv: {A: b}\nmanifests: [a.yaml]\nsamples: [b]\n"))
	f.Add([]byte("args: &a [*a]\n"))
	f.Add([]byte("x: 1\n---\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if _, err := parseConfig("lab.yaml", content); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than a line: %q", err)
		}
	})
}

func FuzzDecodeObjects(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: ConfigMap\n---\n{}"))
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod"}]}`))
	f.Add([]byte("kind: List\napiVersion: v1\nitems: [1]\n"))
	f.Add([]byte("apiVersion: v1\nkind: Pod\nmetadata: 1\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		objects, err := decodeObjects(bytes.NewReader(content))
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than a line: %q", err)
		}
		for _, o := range objects {
			if o.GetKind() == "" || o.GetAPIVersion() == "" {
				t.Errorf("%v is no object", o)
			}
		}
	})
}

// FuzzWrapNew checks that a file in which calls are wrapped has the lines it had, and can be parsed.
func FuzzWrapNew(f *testing.F) {
	const imported = "import \"sigs.k8s.io/controller-runtime/pkg/manager\"\n"
	f.Add("package a\n" + imported + "var x = manager.New\n")
	f.Add("package a // why\n" + imported + "var x, y = manager.New(nil, manager.Options{}), manager.New\n")
	f.Add("package a; import c \"sigs.k8s.io/controller-runtime/pkg/cluster\"\n" + imported + "var x, y = c.New, manager.New\n")
	f.Add("//line x.go:7\npackage a;" + imported + "func f() { manager := g(); manager.New() }\n")
	f.Fuzz(func(t *testing.T, source string) {
		wrapped := wrapNew([]byte(source), "example.com/link")
		if wrapped == nil {
			return
		}
		if got, want := bytes.Count(wrapped, []byte("\n")), strings.Count(source, "\n"); got != want {
			t.Errorf("%d lines, not %d", got, want)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), "", wrapped, parser.SkipObjectResolution); err != nil {
			t.Errorf("%v:\n%s", err, wrapped)
		}
	})
}

func FuzzParseBuild(f *testing.F) {
	f.Add("# example.com/toy/cmd\ncmd/main.go:3:5: undefined: x\n\thave (a)\n\twant (b)\ncmd/main.go:4:1: too many errors\n")
	f.Add("go: no such module\ngo: \n")
	f.Add("main.go:7: b\n/elsewhere/x.go:1:2: c")
	p := &Project{Root: "/project", Module: "example.com/toy"}
	f.Fuzz(func(t *testing.T, output string) {
		if e := (&BuildError{Lines: p.parseBuild(output, nil)}); e.Error() == "" || len(e.Lines) > maxBuildLines || strings.Contains(e.Error(), "\n") {
			t.Errorf("%q", e.Lines)
		}
	})
}

func TestParseBuild(t *testing.T) {
	t.Parallel()
	p := &Project{Root: "/project", Module: "example.com/toy"}
	got := p.parseBuild("go: finding module for package example.com/x\n# example.com/toy/cmd\ncmd/main.go:3:5: undefined: x\n\thave (a)\n/project/b.go:7: b\n/elsewhere/c.go:1:2: c\ngo: no module\nexample.com/toy/d.go:1:1: d\n/private/e.go:9:9: e\n", map[string]string{"/private/e.go": "/project/app/e.go"})
	want := []BuildLine{
		{"cmd/main.go", 3, 5, "undefined: x\n\thave (a)"},
		{"b.go", 7, 0, "b"},
		{"/elsewhere/c.go", 1, 2, "c"},
		{"", 0, 0, "no module"},
		{"d.go", 1, 1, "d"},
		{"app/e.go", 9, 9, "e"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (&BuildError{Lines: got}).Error(); got != "cmd/main.go:3:5: undefined: x (and 5 more)" {
		t.Error(got)
	}
}

// TestBuildHint checks what is advised about messages.
func TestBuildHint(t *testing.T) {
	t.Parallel()
	p := &Project{Module: "example.com/toy"}
	for message, want := range map[string]string{
		"undefined: x": "go build ./...",
		"no required module provides package example.com/elsewhere/b; to add it:":                                     "go build ./...",
		"no required module provides package example.com/toy/b; to add it:":                                           "make generate",
		"cannot find module providing package example.com/toy/b: import lookup disabled by -mod=vendor":               "make generate",
		"pattern all:dist: no matching files found":                                                                   "make generate",
		`cgo: C compiler "gcc" not found: exec: "gcc": executable file not found in $PATH`:                            "CGO_ENABLED=0",
		"package example.com/toy\n\timports example.com/c: build constraints exclude all Go files in /home/you/toy/c": "CGO_ENABLED=1",
	} {
		if got := buildHint(p.Module, []BuildLine{{Message: "first"}, {Message: message}}); !strings.Contains(got, want) {
			t.Errorf("%s: %q", message, got)
		}
	}
}

func TestReadVendored(t *testing.T) {
	t.Parallel()
	modules, packages := readVendored("# a.b/c v1.0.0\n## explicit; go 1.22\na.b/c/d\n# e.f/g v1.1.0 => ../g\ne.f/g\n# h.i/j v2.0.0 => k.l/m v3.0.0\nh.i/j\n# e.f/g => ../g\n")
	want := []vendoredModule{{"a.b/c", "a.b/c@v1.0.0", ""}, {"e.f/g", "e.f/g@v1.1.0", "../g"}, {"h.i/j", "k.l/m@v3.0.0", ""}}
	if diff := cmp.Diff(want, modules, cmp.AllowUnexported(vendoredModule{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"a.b/c/d": true, "e.f/g": true, "h.i/j": true}, packages); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzReadVendored(f *testing.F) {
	f.Add("# a.b/c v1.0.0\n## explicit; go 1.22\na.b/c/d\n# e.f/g v1.1.0 => ../g\n# h.i/j v2.0.0 => k.l/m v3.0.0\n")
	f.Fuzz(func(t *testing.T, text string) {
		modules, _ := readVendored(text)
		for _, m := range modules {
			if m.path == "" || !strings.Contains(m.version, "@") {
				t.Errorf("%+v", m)
			}
		}
	})
}

// TestGoProblem checks which line of the go tool is told.
func TestGoProblem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"go: downloading example.com/a v1.0.0\ngo: example.com/a@v1.0.0: not found\n": "go: example.com/a@v1.0.0: not found",
		"go: downloading example.com/a v1.0.0\n":                                      "go: downloading example.com/a v1.0.0",
		"go: errors parsing go.mod:\ngo.mod:1: usage: module\n":                       "go: errors parsing go.mod: go.mod:1: usage: module",
	} {
		if err := goProblem(&exec.ExitError{}, []byte(text)); err.Error() != want {
			t.Errorf("%q, not %q", err, want)
		}
	}
}
