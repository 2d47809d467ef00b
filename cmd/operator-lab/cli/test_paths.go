package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/scenarios"
)

// testPaths are the folders and files that paths mean: those on disk, else bundled scenarios. Without any it is the
// folder we are in.
func testPaths(paths []string) ([]string, error) {
	if len(paths) == 0 {
		return []string{"."}, nil
	}
	found := make([]string, len(paths))
	var bundled string
	for i, p := range paths {
		_, err := os.Stat(p)
		switch name := bundledName(path.Clean(filepath.ToSlash(p))); {
		case err == nil:
			found[i] = p
		case !errors.Is(err, fs.ErrNotExist):
			return nil, usageError("name a folder that can be read", "%w", err)
		case !isBundled(name):
			return nil, usageError(bundledHint(name), "there is no folder and no bundled scenario %q", p)
		default:
			if bundled == "" {
				if bundled, err = unpackBundled(scenarios.Bundled()); err != nil {
					return nil, fmt.Errorf("unpack the bundled scenarios: %w", err)
				}
			}
			found[i] = filepath.Join(bundled, filepath.FromSlash(name))
		}
	}
	return found, nil
}

// bundledName completes the name of a bundled scenario by its operator's, as --list shows it.
func bundledName(name string) string {
	if strings.Contains(name, "/") || isBundled(name) {
		return name
	}
	if found, _ := fs.Glob(scenarios.Bundled(), "*/"+name+"/chainsaw-test.yaml"); len(found) == 1 {
		return path.Dir(found[0])
	}
	return name
}

func isBundled(name string) bool {
	if name == "." || !fs.ValidPath(name) {
		return false
	}
	_, err := fs.Stat(scenarios.Bundled(), name)
	return err == nil
}

// bundledHint says what there is instead of a bundled scenario.
func bundledHint(name string) string {
	if near := meant(name, append(scenarioNames(), operators.Names()...)); near != "" {
		return near + "'operator-lab test --list " + strings.Join(operators.Names(), " ") + "' lists the bundled ones"
	}
	folder := "."
	if parent := path.Dir(name); isBundled(parent) {
		folder = parent
	}
	var names []string
	entries, _ := fs.ReadDir(scenarios.Bundled(), folder)
	for _, e := range entries {
		if e.IsDir() && hasTests(path.Join(folder, e.Name())) {
			names = append(names, path.Join(folder, e.Name()))
		}
	}
	return "name a folder with tests, or bundled scenarios: " + strings.Join(names, ", ")
}

// scenarioNames returns the names of the bundled scenarios, with and without their operators'.
func scenarioNames() []string {
	var names []string
	files, _ := fs.Glob(scenarios.Bundled(), "*/*/chainsaw-test.yaml")
	for _, f := range files {
		names = append(names, path.Dir(f), path.Base(path.Dir(f)))
	}
	return names
}

// hasTests reports whether there are tests in a bundled folder, or in those below it.
func hasTests(folder string) bool {
	for _, pattern := range []string{"/chainsaw-test.yaml", "/*/chainsaw-test.yaml"} {
		if found, _ := fs.Glob(scenarios.Bundled(), folder+pattern); len(found) > 0 {
			return true
		}
	}
	return false
}

// unpackedIn is the folder of the state directory for them.
const unpackedIn = "scenarios"

// unpackBundled writes the bundled scenarios into the state directory, where their scripts can run and people can read
// them, and returns the folder. Each build that has others has another folder.
func unpackBundled(all fs.FS) (string, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(all, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files[name], err = fs.ReadFile(all, name)
		return err
	})
	if err != nil {
		return "", err
	}
	return unpackFiles(files)
}

// unpackFiles writes files into a folder of the state directory, and returns the folder: another one for other files.
func unpackFiles(files map[string][]byte) (string, error) {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(sum, "%s %d\n%s", name, len(files[name]), files[name])
	}
	state, err := sandbox.StateDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(state, unpackedIn, hex.EncodeToString(sum.Sum(nil)[:6]))
	for name, text := range files {
		if err := unpack(filepath.Join(folder, filepath.FromSlash(name)), text); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// unpack writes a file unless it is there as it should be. Another process may read it.
func unpack(file string, text []byte) error {
	if have, err := os.ReadFile(file); err == nil && bytes.Equal(have, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return replaceFile(file, text)
}
