// Package portable gives the source of the taps and of the link with the lab for a program of another module, which may
// use another release of controller-runtime: from v0.19 on, with Go 1.23 or later.
package portable

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/apirequest"
	"github.com/operator-lab/operator-lab/sandbox/link"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// home is the prefix of the import paths of the packages that are copied.
const home = "github.com/operator-lab/operator-lab/sandbox/"

// recording are the files of package trace that record a journal; the others show one.
var recording = []string{"doc.go", "event.go", "journal.go", "join.go", "meta.go", "payload.go", "writer.go"}

// Files returns the files of the packages apirequest, link, taps and trace by their slash-separated paths below a directory
// whose import path is base. The directory controllerRuntime holds the source of the release that they are compiled
// with; its source tells which files fit, not its version, because a module may replace it.
func Files(controllerRuntime, base string) (map[string][]byte, error) {
	files := map[string][]byte{}
	add := func(pkg string, source fs.FS, name string) error {
		raw, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		raw = bytes.Replace(raw, []byte("//go:build ignore\n"), []byte("//go:build go1.23\n"), 1)
		files[path.Join(pkg, path.Base(name))] = bytes.ReplaceAll(raw, []byte(`"`+home), []byte(`"`+base+"/"))
		return nil
	}
	for _, name := range recording {
		if err := add("trace", trace.Files, name); err != nil {
			return nil, err
		}
	}
	for pkg, source := range map[string]fs.FS{"taps": taps.Files, "apirequest": apirequest.Files, "link": link.Files} {
		names, err := fs.Glob(source, "*.go")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") || name == "files.go" {
				continue
			}
			if err := add(pkg, source, name); err != nil {
				return nil, err
			}
		}
	}
	older, err := olderFiles(controllerRuntime)
	if err != nil {
		return nil, err
	}
	for name, release := range older {
		delete(files, path.Join("taps", name+".go"))
		if err := add("taps", taps.Files, path.Join("older", name+"_"+release+".go")); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// olderFiles returns the files of the taps that are to be replaced, and the release from which on the replacement fits.
func olderFiles(controllerRuntime string) (map[string]string, error) {
	if _, err := os.Stat(filepath.Join(controllerRuntime, "pkg", "client", "interfaces.go")); err != nil {
		return nil, fmt.Errorf("%s is not the source of controller-runtime: %w", controllerRuntime, err)
	}
	var failed error
	// has reports whether a package, or one below it, has a text.
	has := func(pkg, text string) (found bool) {
		err := filepath.WalkDir(filepath.Join(controllerRuntime, "pkg", filepath.FromSlash(pkg)), func(file string, d fs.DirEntry, err error) error {
			if err != nil || found || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(file)
			found = bytes.Contains(raw, []byte(text))
			return err
		})
		if !errors.Is(err, fs.ErrNotExist) { // a release may lack the package
			failed = errors.Join(failed, err)
		}
		return found
	}
	older := map[string]string{}
	if !has("client", "runtime.ApplyConfiguration") {
		older["apply"] = "0.19"
	}
	if !has("client", "SubResourceApplyOption") {
		older["subapply"] = "0.19"
	}
	if !has("cache", "AddEventHandlerWithOptions(") {
		older["informer"] = "0.19"
	}
	if !has("config", "Logger logr.Logger") {
		older["logger"] = "0.19"
	}
	switch {
	case has("controller/priorityqueue", "Priority *int"):
	case has("controller/priorityqueue", "type PriorityQueue["):
		older["priority"] = "0.20"
	default:
		older["priority"] = "0.19"
	}
	return older, failed
}
