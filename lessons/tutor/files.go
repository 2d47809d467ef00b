package tutor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// writtenFile records the digests of the manifests as they were written. It tells a manifest that the learner has
// changed from one of an older release.
const writtenFile = ".written.json"

// manifests are the manifests of a lesson in the learner's directory.
type manifests struct {
	dir string
	// written maps a name to the digest of the text that was written last.
	written map[string]string
}

func openManifests(dir string) (*manifests, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	m := &manifests{dir, map[string]string{}}
	data, err := os.ReadFile(filepath.Join(dir, writtenFile))
	if err == nil {
		_ = json.Unmarshal(data, &m.written) // if it is damaged, all manifests count as changed by the learner
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return m, err
}

// write writes one manifest. A file that the learner has changed is kept as long as the lesson's text is the one
// written last, unless again is true. Otherwise it is renamed, and moved is its new path.
func (m *manifests) write(name string, text []byte, again bool) (moved string, err error) {
	path := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	have, err := os.ReadFile(path)
	last, known := m.written[name]
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && digestOfText(have) == last:
	case err != nil:
		return "", err
	case string(have) == string(text):
	case !again && (!known || last == digestOfText(text)):
		return "", nil
	default:
		if moved, err = setAside(path); err != nil {
			return "", err
		}
	}
	m.written[name] = digestOfText(text)
	return moved, os.WriteFile(path, text, 0o600)
}

// close saves the digests.
func (m *manifests) close() error {
	data, err := json.Marshal(m.written)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(m.dir, writtenFile), data, 0o600)
}

func digestOfText(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// setAside renames a file to a free name, so that the learner's changes are not lost.
func setAside(path string) (moved string, err error) {
	moved = path + ".yours"
	for n := 2; ; n++ {
		if _, err := os.Lstat(moved); errors.Is(err, fs.ErrNotExist) {
			return moved, os.Rename(path, moved)
		} else if err != nil {
			return "", err
		}
		moved = path + ".yours" + strconv.Itoa(n)
	}
}

// writeFiles writes the lesson's manifests into the learner's directory; see [manifests.write].
func (t *Tutor) writeFiles(again bool) error {
	if t.options.Dir == "" {
		return nil
	}
	m, err := openManifests(t.options.Dir) // also without manifests: the learner's shell begins there
	if err != nil {
		return err
	}
	for _, name := range t.options.Lesson.Files {
		if again && t.options.Lesson.HasHook(name) { // an undo brings back what it was when the task began
			continue
		}
		text, err := fs.ReadFile(t.options.Lesson.FS, name)
		if err != nil {
			return err
		}
		moved, err := m.write(name, text, again)
		if err != nil {
			return fmt.Errorf("write the lesson's %s: %w", name, err)
		}
		if moved != "" {
			t.options.Say(t.textf("your %s is now %s", "変更された %s は %s に移しました", name, filepath.Base(moved)))
		}
	}
	return m.close()
}

// setAside renames what an earlier sitting has left of the learner's operators: the lesson begins without it.
func (t *Tutor) setAside() error {
	if t.options.Workshop == nil {
		return nil
	}
	moved, err := t.options.Workshop.SetAside(func(name string) ([]byte, error) { return fs.ReadFile(t.options.Lesson.FS, name) }, setAside)
	for name, to := range moved {
		t.options.Say(t.textf("your %s is now %s", "変更された %s は %s に移しました", name, to))
	}
	return err
}
