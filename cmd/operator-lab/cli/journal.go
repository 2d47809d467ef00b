package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// journalsKept is the number of journals that stay in the state directory when no file is named.
const journalsKept = 20

// saveJournal keeps the record of the run and says where it is. A run in which nothing happened leaves none.
func (p *liveRun) saveJournal() error {
	if p.journal.Stats().Events == 0 {
		return nil
	}
	path := p.flags.record
	if path == "" {
		dir, err := journalsDir()
		if err != nil {
			return err
		}
		path = filepath.Join(dir, p.name+"-"+time.Now().Format("20060102-150405")+".jsonl")
	}
	if err := writeJournal(path, p.journal); err != nil {
		return fmt.Errorf("save the journal: %w", err)
	}
	if !p.flags.quiet {
		p.told(path)
	}
	return nil
}

// journalsDir makes the directory of journals and clears the oldest away.
func journalsDir() (string, error) {
	state, err := sandbox.StateDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(state, "journals")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return "", err
	}
	slices.SortFunc(files, func(a, b string) int { return modified(a).Compare(modified(b)) })
	for len(files) >= journalsKept {
		_ = os.Remove(files[0])
		files = files[1:]
	}
	return dir, nil
}

func modified(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// writeJournal writes a complete file or none.
func writeJournal(path string, journal *trace.Journal) error {
	return replace(path, journal.Save)
}

// replaceFile writes a complete file or none, so that whoever reads the file meanwhile reads all of the old or the new one.
func replaceFile(path string, text []byte) error {
	return replace(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// replace is replaceFile with a function that writes the text. The file gets mode 0600.
func replace(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}

// canWrite finds out before a run whether its journal could be saved after it.
func canWrite(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
