package workshop_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/workshop"
)

// shop returns a workshop with the project cafe and the hook sync.sh, and a function that writes a file of the learner.
func shop(t *testing.T) (w *workshop.Workshop, dir string, write func(name, text string)) {
	t.Helper()
	dir = t.TempDir()
	w, err := workshop.New(workshop.Options{Dir: dir, Operators: []book.Operator{
		{Name: "zundoko"}, {Name: "cafe", Project: true}, {Name: "metacontroller", Hook: "sync.sh"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return w, dir, func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoneOfTheLearners(t *testing.T) {
	t.Parallel()
	if w, err := workshop.New(workshop.Options{Operators: []book.Operator{{Name: "zundoko"}}}); w != nil || err != nil {
		t.Errorf("a lesson with bundled operators has a workshop: %v, %v", w, err)
	}
}

func TestProgramsAreNamed(t *testing.T) {
	t.Parallel()
	w, _, _ := shop(t)
	var names []string
	for _, p := range w.Programs() {
		names = append(names, p.Name())
	}
	if diff := cmp.Diff([]string{"cafe", "metacontroller"}, names); diff != "" {
		t.Error(diff)
	}
}

// TestRestore brings back files that were changed, removed and added, and those of nobody's stay.
func TestRestore(t *testing.T) {
	t.Parallel()
	w, dir, write := shop(t)
	write("cafe/go.mod", "module cafe")
	write("cafe/controller/controller.go", "package controller")
	write("sync.sh", "echo '{}'")
	write("notes.txt", "mine")
	files, err := w.Save()
	if err != nil || len(files) != 3 {
		t.Fatalf("%d files were saved: %v", len(files), err)
	}
	write("cafe/controller/controller.go", "package broken")
	write("cafe/more/deep/file.go", "package deep")
	write("notes.txt", "mine, changed")
	if err := errors.Join(os.Remove(filepath.Join(dir, "sync.sh")), w.Restore(files)); err != nil {
		t.Fatal(err)
	}
	again, err := w.Save()
	if diff := cmp.Diff(files, again); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "notes.txt")); err != nil || string(text) != "mine, changed" {
		t.Errorf("a file that is no operator's is %q: %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "cafe", "more")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that came later is there: %v", err)
	}
	if err := w.Restore(workshop.Files{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "cafe")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a project that was not there at the start is: %v", err)
	}
}

// TestSetAside keeps a hook that was not changed, and renames what an earlier sitting has left.
func TestSetAside(t *testing.T) {
	t.Parallel()
	w, dir, write := shop(t)
	write("cafe/go.mod", "module cafe")
	write("sync.sh", "original")
	rename := func(path string) (string, error) { return path + ".yours", os.Rename(path, path+".yours") }
	original := func(string) ([]byte, error) { return []byte("original"), nil }
	moved, err := w.SetAside(original, rename)
	if diff := cmp.Diff(map[string]string{"cafe": "cafe.yours"}, moved); diff != "" || err != nil {
		t.Error(diff, err)
	}
	write("sync.sh", "changed")
	if moved, err = w.SetAside(original, rename); err != nil || moved["sync.sh"] != "sync.sh.yours" {
		t.Errorf("moved %v: %v", moved, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "sync.sh.yours")); err != nil || string(text) != "changed" {
		t.Errorf("what was set aside is %q: %v", text, err)
	}
}
