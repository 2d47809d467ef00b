package project

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/operator-lab/operator-lab/sandbox"
)

// key is a hash of all that the answer of 'go list' depends on: the options, the go tool, the files of modules, and of
// each Go file its name and what comes before its first declaration.
func (p *Project) key(env environment) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "2 %+v %+v\n", env, []any{p.options.Dir, p.options.WorkDir, p.options.Main, p.options.Tags})
	roots := []string{p.Root}
	if p.Workspace {
		raw, err := os.ReadFile(env.GOWORK)
		if err != nil {
			return "", err
		}
		work, err := modfile.ParseWork(env.GOWORK, raw, nil)
		if err != nil {
			return "", &sandbox.Problem{Err: err, Hint: "GOWORK=off builds without the workspace"}
		}
		fmt.Fprintf(h, "%s\n", raw)
		for _, use := range work.Use {
			root := use.Path
			if !filepath.IsAbs(root) {
				root = filepath.Join(filepath.Dir(env.GOWORK), root)
			}
			roots = append(roots, root)
		}
		hashFiles(h, filepath.Dir(env.GOWORK), "go.work.sum", "vendor/modules.txt")
	}
	slices.Sort(roots)
	for _, root := range slices.Compact(roots) {
		hashFiles(h, root, "go.mod", "go.sum", "vendor/modules.txt")
		if err := hashImports(h, root); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashFiles hashes files; one that is missing differs from an empty one.
func hashFiles(h io.Writer, dir string, names ...string) {
	for _, name := range names {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		fmt.Fprintf(h, "%s %t %d\n%s\n", name, err == nil, len(raw), raw)
	}
}

// hashImports hashes the beginnings of the Go files of a module.
func hashImports(h io.Writer, root string) error {
	return filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case !d.IsDir():
		case file == root:
			return nil
		case name == "vendor" || name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_"), fileExists(filepath.Join(file, "go.mod")):
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			raw = nil // the go tool says so
		}
		set := token.NewFileSet()
		head := len(raw)
		if f, err := parser.ParseFile(set, file, raw, parser.ImportsOnly|parser.ParseComments); err == nil {
			head = set.Position(f.Name.End()).Offset
			for _, i := range f.Imports {
				head = max(head, set.Position(i.End()).Offset)
			}
		}
		fmt.Fprintf(h, "%s %d\n%s\n", file, head, raw[:head])
		return nil
	})
}
