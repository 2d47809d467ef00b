package project_test

import (
	"bytes"
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/project"
)

// toy writes a project of testdata as a module with the dependencies of this one, so that nothing is fetched. When the
// test ends, the project must be as it was.
func toy(t *testing.T, name string) (dir string) {
	t.Helper()
	dir = unpack(t, name)
	writeModule(t, dir, "example.com/toy")
	unchanged(t, dir)
	return dir
}

// unpack writes a project of testdata without a go.mod.
func unpack(tb testing.TB, name string) (dir string) {
	tb.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		tb.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(tb.TempDir()); err != nil {
		tb.Fatal(err)
	}
	for _, f := range archive.Files {
		write(tb, filepath.Join(dir, filepath.FromSlash(f.Name)), f.Data)
	}
	return dir
}

// writeModule writes a go.mod and a go.sum like those of this repository.
func writeModule(tb testing.TB, dir, module string) {
	tb.Helper()
	for _, name := range []string{"go.mod", "go.sum"} {
		raw, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			tb.Fatal(err)
		}
		raw = bytes.Replace(raw, []byte("module github.com/operator-lab/operator-lab\n"), []byte("module "+module+"\n"), 1)
		write(tb, filepath.Join(dir, name), raw)
	}
}

func write(tb testing.TB, file string, content []byte) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		tb.Fatal(err)
	}
}

func read(tb testing.TB, file string) string {
	tb.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	return string(raw)
}

// unchanged checks at the end of the test that nobody has written to a directory.
func unchanged(t *testing.T, dir string) {
	t.Helper()
	before := hash(t, dir)
	t.Cleanup(func() {
		if hash(t, dir) != before {
			t.Error("the user's tree has changed")
		}
	})
}

func hash(t *testing.T, dir string) (sum [sha256.Size]byte) {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		h.Write([]byte(file + info.Mode().String()))
		if d.Type().IsRegular() {
			h.Write([]byte(read(t, file)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	copy(sum[:], h.Sum(nil))
	return sum
}

// find finds a project, and makes a private directory where the options name none.
func find(tb testing.TB, o project.Options) *project.Project {
	tb.Helper()
	if o.WorkDir == "" {
		o.WorkDir = tb.TempDir()
	}
	p, err := project.Find(tb.Context(), o)
	if err != nil {
		tb.Fatalf("%v\nhint: %s", err, sandbox.HintOf(err))
	}
	return p
}

// plan makes a plan.
func plan(tb testing.TB, p *project.Project) *project.Plan {
	tb.Helper()
	got, err := p.Plan(tb.Context())
	if err != nil {
		tb.Fatalf("%v\nhint: %s", err, sandbox.HintOf(err))
	}
	return got
}

// wantProblem checks that an error has texts in its one line, and one in its hint.
func wantProblem(t *testing.T, err error, hint string, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than a line: %q", err)
	}
	if got := sandbox.HintOf(err); !strings.Contains(got, hint) || hint != "" && got == "" {
		t.Errorf("hint %q does not say %q", got, hint)
	}
}
