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

// writtenFile remembers what was written beside it, so that a manifest which the learner has changed is told from one
// that only an older release of the lesson had.
const writtenFile = ".written.json"

// manifests are those of a lesson, in the directory where the learner has them.
type manifests struct {
	dir string
	// written are digests of what was written last, by name.
	written map[string]string
}

func openManifests(dir string) (*manifests, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	m := &manifests{dir, map[string]string{}}
	data, err := os.ReadFile(filepath.Join(dir, writtenFile))
	if err == nil {
		_ = json.Unmarshal(data, &m.written) // damaged: then all of them count as the learner's
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return m, err
}

// write writes one, and returns where that of the learner is if it had to give way. One that the learner has changed is
// left alone as long as the lesson's own is the same, unless all is to be as it was.
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

// close remembers what was written.
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

// setAside gives a file a name of its own that is free, so that nothing of the learner's is lost.
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

// writeFiles puts the lesson's manifests where the learner has them; see [manifests.write].
func (t *Tutor) writeFiles(again bool) error {
	if t.options.Dir == "" {
		return nil
	}
	m, err := openManifests(t.options.Dir) // also without manifests: the learner's shell begins there
	if err != nil {
		return err
	}
	for _, name := range t.options.Lesson.Files {
		text, err := fs.ReadFile(t.options.Lesson.FS, name)
		if err != nil {
			return err
		}
		moved, err := m.write(name, text, again)
		if err != nil {
			return fmt.Errorf("write the lesson's %s: %w", name, err)
		}
		if moved != "" {
			t.options.Say(t.t("your %s is now %s", "変更された %s は %s に移しました", name, filepath.Base(moved)))
		}
	}
	return m.close()
}
