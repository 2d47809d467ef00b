package tutor

import (
	"os"
	"path/filepath"
	"testing"
)

// TestManifests checks that manifests which the learner has changed are kept, and that those of an older lesson are
// replaced.
func TestManifests(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "song.yaml")
	write := func(text string, again bool) (moved string) {
		t.Helper()
		m, err := openManifests(dir)
		if err != nil {
			t.Fatal(err)
		}
		if moved, err = m.write("song.yaml", []byte(text), again); err != nil {
			t.Fatal(err)
		}
		if err := m.close(); err != nil {
			t.Fatal(err)
		}
		return filepath.Base(moved)
	}
	change := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	has := func(name, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v, not %q", name, got, err, want)
		}
	}
	write("one", false)
	write("two", false) // a newer release of the lesson
	has("song.yaml", "two")
	change("mine")
	write("two", false) // the lesson is started again
	has("song.yaml", "mine")
	if moved := write("two", true); moved != "song.yaml.yours" { // an undo
		t.Errorf("it was moved to %q", moved)
	}
	has("song.yaml", "two")
	has("song.yaml.yours", "mine")
	change("mine again")
	if moved := write("three", false); moved != "song.yaml.yours2" { // both have changed
		t.Errorf("it was moved to %q", moved)
	}
	has("song.yaml", "three")
	has("song.yaml.yours", "mine")
	has("song.yaml.yours2", "mine again")
}

// TestManifestsOfUnknownOrigin checks that existing manifests without a record count as the learner's.
func TestManifestsOfUnknownOrigin(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"song.yaml": "mine", writtenFile: "{"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := openManifests(dir)
	if err != nil {
		t.Fatal(err)
	}
	if moved, err := m.write("song.yaml", []byte("one"), false); err != nil || moved != "" {
		t.Errorf("it was moved to %q, %v", moved, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "song.yaml")); err != nil || string(text) != "mine" {
		t.Errorf("there is %q, %v", text, err)
	}
}
