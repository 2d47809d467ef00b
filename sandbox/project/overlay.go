package project

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/portable"
)

// inside is the directory below the module's root that has the taps. It exists in the overlay only.
const inside = "zz_operator_lab"

// overlay are files that the go tool sees in the project's tree, besides those that are there.
type overlay struct {
	// dir has the contents.
	dir string
	// replace maps paths in the project's tree to files in dir.
	replace map[string]string
}

// file is the one for -overlay.
func (o *overlay) file() string { return filepath.Join(o.dir, "overlay.json") }

// original maps the files in dir to the paths in the project's tree.
func (o *overlay) original() map[string]string {
	original := map[string]string{}
	for in, at := range o.replace {
		original[at] = in
	}
	return original
}

// put adds a file. Its content is written only if it has changed, so that nothing is compiled twice.
func (o *overlay) put(file, name string, content []byte) error {
	at := filepath.Join(o.dir, filepath.FromSlash(name))
	o.replace[file] = at
	return writeChanged(at, content)
}

// writeChanged writes a file unless it has the content already.
func writeChanged(file string, content []byte) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}

// writeOverlay writes the overlay with the taps.
func (p *Project) writeOverlay(ctx context.Context) (overlay, error) {
	o := overlay{dir: filepath.Join(p.options.WorkDir, "overlay"), replace: map[string]string{}}
	base := path.Join(p.Module, inside)
	files, err := portable.Files(p.ControllerRuntimeDir, base)
	if err != nil {
		return o, err
	}
	if p.Vendored {
		if err := p.addMissing(ctx, base, files); err != nil {
			return o, err
		}
	}
	for name, content := range files {
		if err := o.put(filepath.Join(p.Root, inside, filepath.FromSlash(name)), path.Join("taps", name), content); err != nil {
			return o, err
		}
	}
	root := controllerRuntime
	if files[path.Join("beside", controllerRuntime, "alias.go")] != nil {
		root = path.Join(base, "beside", controllerRuntime)
	}
	hook := fmt.Sprintf(hookFile, root, base+"/link")
	if err := o.put(filepath.Join(p.MainDir, inside+".go"), "main.go", []byte(hook)); err != nil {
		return o, err
	}
	for _, dir := range p.SourceDirs {
		if err := p.wrapCalls(&o, dir, base+"/link"); err != nil {
			return o, err
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": o.replace})
	if err != nil {
		return o, err
	}
	return o, writeChanged(o.file(), raw)
}

// hookFile is the file that is added to the main package.
const hookFile = `package main

import (
	zzctrl %q
	zzlink %q
)

func init() { zzctrl.NewManager = zzlink.Wrap(zzctrl.NewManager) }
`

// edit is a text that stands in a source file, and what replaces it wherever it does, on as many lines.
type edit struct{ old, new string }

// edited returns a file of the module with its edits; the file as it is if it has none.
func (p *Project) edited(file string, source []byte) ([]byte, error) {
	if p.Ansible == nil {
		return source, nil
	}
	for _, e := range ansibleEdits[filepath.ToSlash(strings.TrimPrefix(file, p.Root+string(filepath.Separator)))] {
		if !bytes.Contains(source, []byte(e.old)) {
			return nil, fmt.Errorf("%s of %s %s has no %q", file, AnsibleModule, AnsibleVersion, e.old)
		}
		source = bytes.ReplaceAll(source, []byte(e.old), []byte(e.new))
	}
	return source, nil
}

// wrapCalls puts copies of the files of a package into the overlay that have edits, or call manager.New or cluster.New
// themselves: there the call is wrapped.
func (p *Project) wrapCalls(o *overlay, dir, link string) error {
	names, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.go"))
	if err != nil {
		return err
	}
	for _, file := range names {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // the go tool says so
		}
		changed, err := p.edited(file, raw)
		if err != nil {
			return err
		}
		if wrapped := wrapNew(changed, link); wrapped != nil {
			changed = wrapped
		}
		if bytes.Equal(changed, raw) {
			continue
		}
		rel, err := filepath.Rel(p.Root, file)
		if err != nil || !filepath.IsLocal(rel) { // of another module of the workspace
			rel = strings.TrimPrefix(file, filepath.VolumeName(file))
		}
		if err := o.put(file, path.Join("wrapped", filepath.ToSlash(rel)), changed); err != nil {
			return err
		}
	}
	return nil
}

// escapeGlob makes a pattern that matches only the path itself.
func escapeGlob(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// wrappers are the functions of the package link that wrap the function New of a package of controller-runtime, by its path.
var wrappers = map[string]string{
	controllerRuntime + "/pkg/manager": "Wrap",
	controllerRuntime + "/pkg/cluster": "WrapCluster",
}

// wrapNew returns a Go file in which manager.New is link.Wrap(manager.New), and cluster.New likewise, on the same lines;
// nil if it has neither, or cannot be parsed.
func wrapNew(source []byte, link string) []byte {
	if !bytes.Contains(source, []byte(controllerRuntime+"/pkg/")) {
		return nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, 0)
	if err != nil {
		return nil
	}
	wrapper := map[string]string{} // by the name of the imported package in the file
	for _, i := range file.Imports {
		imported, err := strconv.Unquote(i.Path.Value)
		if with := wrappers[imported]; err == nil && with != "" {
			name := path.Base(imported)
			if i.Name != nil {
				name = i.Name.Name
			}
			wrapper[name] = with
		}
	}
	type call struct {
		*ast.SelectorExpr
		wrapper string
	}
	var calls []call
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "New" {
			if x, ok := s.X.(*ast.Ident); ok && wrapper[x.Name] != "" && x.Obj == nil { // not a variable of that name
				calls = append(calls, call{s, wrapper[x.Name]})
			}
		}
		return true
	})
	if len(calls) == 0 {
		return nil
	}
	offset := func(pos token.Pos) int { return set.PositionFor(pos, false).Offset }
	out := slices.Clone(source)
	for _, c := range slices.Backward(calls) {
		out = slices.Insert(out, offset(c.End()), ')')
		out = slices.Insert(out, offset(c.Pos()), []byte("zzlink."+c.wrapper+"(")...)
	}
	return slices.Insert(out, offset(file.Name.End()), []byte("; import zzlink "+strconv.Quote(link))...)
}

// vendoredModule is a module in vendor/modules.txt.
type vendoredModule struct {
	path, version string
	// dir is the directory that replaces it; it may be empty.
	dir string
}

// readVendored reads vendor/modules.txt: the modules, and the packages that are there.
func readVendored(text string) (modules []vendoredModule, packages map[string]bool) {
	packages = map[string]bool{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 1 && !strings.HasPrefix(fields[0], "#"):
			packages[fields[0]] = true
		case len(fields) >= 3 && fields[0] == "#" && fields[2] != "=>":
			m := vendoredModule{path: fields[1], version: fields[1] + "@" + fields[2]}
			switch {
			case len(fields) == 5 && fields[3] == "=>":
				m.dir = fields[4]
			case len(fields) == 6 && fields[3] == "=>":
				m.version = fields[4] + "@" + fields[5]
			}
			modules = append(modules, m)
		}
	}
	return modules, packages
}

// addMissing adds the packages that the files import and the project has not vendored. The go tool does not take
// packages into vendor/ through an overlay, so they are put beside the taps, and imported from there.
func (p *Project) addMissing(ctx context.Context, base string, files map[string][]byte) error {
	text, err := os.ReadFile(filepath.Join(p.found.VendorDir, "modules.txt"))
	if err != nil {
		return err
	}
	modules, vendored := readVendored(string(text))
	dirs := map[string]string{} // of modules
	added := map[string]bool{}
	for missing := missingImports(files, base, vendored, added); len(missing) > 0; missing = missingImports(files, base, vendored, added) {
		for _, pkg := range missing {
			added[pkg] = true
			dir, err := p.moduleDir(ctx, pkg, modules, dirs)
			if err != nil {
				return err
			}
			sources, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.go"))
			if err != nil {
				return err
			}
			for _, source := range sources {
				if strings.HasSuffix(source, "_test.go") {
					continue
				}
				raw, err := os.ReadFile(source)
				if err != nil {
					return err
				}
				files[path.Join("beside", pkg, filepath.Base(source))] = raw
			}
		}
	}
	for name, content := range files {
		for pkg := range added {
			content = bytes.ReplaceAll(content, []byte(strconv.Quote(pkg)), []byte(strconv.Quote(path.Join(base, "beside", pkg))))
		}
		files[name] = content
	}
	return nil
}

// missingImports returns the packages that are imported but neither vendored nor among the files. A package that is
// internal to another module cannot be imported from beside the taps, so it counts as missing there.
func missingImports(files map[string][]byte, base string, vendored, added map[string]bool) []string {
	var missing []string
	for name, content := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ImportsOnly)
		if err != nil {
			continue // the go tool says so
		}
		for _, i := range file.Imports {
			pkg, err := strconv.Unquote(i.Path.Value)
			first, _, _ := strings.Cut(pkg, "/")
			internal := slices.Contains(strings.Split(pkg, "/"), "internal")
			if err != nil || !strings.Contains(first, ".") || strings.HasPrefix(pkg, base+"/") || vendored[pkg] && !internal || added[pkg] || slices.Contains(missing, pkg) {
				continue
			}
			missing = append(missing, pkg)
		}
	}
	slices.Sort(missing)
	return missing
}

// moduleDir returns the directory of a package in the module cache.
func (p *Project) moduleDir(ctx context.Context, pkg string, modules []vendoredModule, dirs map[string]string) (string, error) {
	var of vendoredModule
	for _, m := range modules {
		if (pkg == m.path || strings.HasPrefix(pkg, m.path+"/")) && len(m.path) > len(of.path) {
			of = m
		}
	}
	problem := func(err error) error {
		return &sandbox.Problem{Err: fmt.Errorf("the taps need the package %s, which is not vendored: %w", pkg, err), Hint: "'go mod download' fetches it"}
	}
	if of.path == "" {
		return "", problem(fmt.Errorf("no module in %s has it", p.below(filepath.Join(p.found.VendorDir, "modules.txt"))))
	}
	below := filepath.FromSlash(strings.TrimPrefix(pkg, of.path))
	if of.dir != "" {
		if !filepath.IsAbs(of.dir) {
			of.dir = filepath.Join(filepath.Dir(p.found.VendorDir), of.dir)
		}
		return of.dir + below, nil
	}
	if dirs[of.path] == "" {
		dir, err := download(ctx, p.options.WorkDir, of.version)
		if err != nil {
			return "", problem(err)
		}
		dirs[of.path] = dir
	}
	return dirs[of.path] + below, nil
}
