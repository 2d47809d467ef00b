package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// manifestFile lists the files of a prepared data directory with their checksums. It is written last, so a directory
// without one is unfinished.
const manifestFile = "operator-lab.json"

func writeManifest(dir string) error {
	sums, err := checksums(dir)
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(sums, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, manifestFile), b)
}

// verifyManifest returns [fs.ErrNotExist] for a directory that is missing, unfinished or damaged: in each case it
// has to be made anew.
func verifyManifest(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return err
	}
	var want map[string]string
	if err := json.Unmarshal(b, &want); err != nil {
		return fmt.Errorf("%w: damaged manifest in %s", fs.ErrNotExist, dir)
	}
	have, err := checksums(dir)
	if err != nil {
		return err
	}
	if len(have) != len(want) {
		return fmt.Errorf("%w: %s has %d files, not %d", fs.ErrNotExist, dir, len(have), len(want))
	}
	for file, sum := range want {
		if have[file] != sum {
			return fmt.Errorf("%w: %s in %s is damaged", fs.ErrNotExist, file, dir)
		}
	}
	return nil
}

func checksums(dir string) (map[string]string, error) {
	sums := map[string]string{}
	err := walkData(dir, func(rel string) error {
		f, err := os.Open(filepath.Join(dir, rel))
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		sum := sha256.New()
		if _, err := io.Copy(sum, f); err != nil {
			return err
		}
		sums[rel] = hex.EncodeToString(sum.Sum(nil))
		return nil
	})
	return sums, err
}

func copyData(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	return walkData(from, func(rel string) error {
		target := filepath.Join(to, rel)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		return copyFile(filepath.Join(from, rel), target)
	})
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// walkData calls a function for each of etcd's files, except the write-ahead log that etcd allocates in advance, which
// holds nothing.
func walkData(dir string, visit func(rel string) error) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if entry.IsDir() || rel == manifestFile || strings.HasSuffix(rel, ".tmp") {
			return nil
		}
		return visit(rel)
	})
}
