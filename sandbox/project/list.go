package project

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// listed is what 'go list' says about a package.
type listed struct {
	ImportPath, Name, Dir string
	Standard              bool
	Imports               []string
	Module                *listedModule
	Error                 *struct{ Pos, Err string }
}

// listedModule is what 'go list' says about a package's module.
type listedModule struct {
	Path, Version, GoVersion string
	Main                     bool
	Replace                  *struct{ Version string }
}

// own reports whether a package is of the main module, or of the modules of the workspace.
func (l *listed) own() bool { return l.Module != nil && l.Module.Main }

// listPackages lists the packages of the module and all that they depend on. A module whose go.mod or go.sum is not
// complete gets private copies, which the go tool completes.
func (p *Project) listPackages(ctx context.Context, env environment) ([]listed, error) {
	if err := p.copyWorkspace(env.GOWORK); err != nil {
		return nil, err
	}
	all, err := p.list(ctx)
	if p.Workspace || fileExists(filepath.Join(p.Root, "vendor", "modules.txt")) || !incomplete(all, err) {
		return all, err
	}
	dir := filepath.Join(p.options.WorkDir, "module")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		raw, err := os.ReadFile(filepath.Join(p.Root, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
			return nil, err
		}
	}
	p.found.Flags = []string{"-mod=mod", "-modfile=" + filepath.Join(dir, "go.mod")}
	return p.list(ctx)
}

// needsCgo reports whether there is an operator only for a build with cgo.
func (p *Project) needsCgo(ctx context.Context) bool {
	all, err := p.list(ctx, "CGO_ENABLED=1")
	if err == nil {
		_, err = p.choose(all)
	}
	return err == nil
}

// list calls 'go list' for all packages of the module, with variables added to the user's.
func (p *Project) list(ctx context.Context, env ...string) ([]listed, error) {
	args := []string{"list", "-e", "-deps", "-json=ImportPath,Name,Dir,Standard,Imports,Module,Error"}
	args = append(append(args, p.flags()...), "./...")
	out, wrong, err := goTool(ctx, p.Root, slices.Concat(p.found.env(), env), args)
	if err != nil {
		return nil, goProblem(err, wrong)
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, l)
	}
}

// flags are for 'go list' and 'go build'.
func (p *Project) flags() []string {
	if len(p.options.Tags) == 0 {
		return p.found.Flags
	}
	return append(slices.Clone(p.found.Flags), "-tags="+strings.Join(p.options.Tags, ","))
}

// incomplete reports whether go.mod or go.sum lack something that the go tool would add. It adds no package of the module itself,
// such as one that is to be generated.
func incomplete(all []listed, err error) bool {
	module := ""
	if i := slices.IndexFunc(all, func(l listed) bool { return l.own() }); i >= 0 {
		module = all[i].Module.Path
	}
	lacks := func(text string) bool {
		return strings.Contains(text, "missing go.sum entry") || strings.Contains(text, "updates to go.mod needed") ||
			strings.Contains(text, "no required module provides package") && !strings.Contains(text, "provides package "+module+"/")
	}
	return err != nil && lacks(err.Error()) ||
		slices.ContainsFunc(all, func(l listed) bool { return l.Error != nil && lacks(l.Error.Err) })
}

// copyWorkspace makes a private copy of go.work, because the go tool writes go.work.sum beside the file it uses. One
// with a vendor directory beside it is used as it is: then nothing is written.
func (p *Project) copyWorkspace(file string) error {
	if !p.Workspace || fileExists(filepath.Join(filepath.Dir(file), "vendor", "modules.txt")) {
		return nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork(file, raw, nil)
	if err != nil {
		return err
	}
	full := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(filepath.Dir(file), name)
	}
	for _, use := range slices.Clone(work.Use) {
		name := use.Path
		if err := errors.Join(work.DropUse(name), work.AddUse(full(name), "")); err != nil {
			return err
		}
	}
	for _, r := range slices.Clone(work.Replace) {
		if r.New.Version != "" {
			continue
		}
		if err := work.AddReplace(r.Old.Path, r.Old.Version, full(r.New.Path), ""); err != nil {
			return err
		}
	}
	work.Cleanup()
	p.found.GoWork = filepath.Join(p.options.WorkDir, "go.work")
	sums, err := os.ReadFile(file + ".sum")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(os.WriteFile(p.found.GoWork, modfile.Format(work.Syntax), 0o600), os.WriteFile(p.found.GoWork+".sum", sums, 0o600))
}
