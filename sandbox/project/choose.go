package project

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/operator-lab/operator-lab/sandbox"
)

const (
	controllerRuntime = "sigs.k8s.io/controller-runtime"
	clientGo          = "k8s.io/client-go"
)

// describe fills in what the listing tells about the chosen main package. It fails if controller-runtime is not to be had.
func (p *Project) describe(all []listed, main *listed, goVersion string) error {
	p.Module, p.Name = main.Module.Path, label(main.Module.Path)
	p.MainDir, p.MainPath, p.GoVersion = main.Dir, main.ImportPath, main.Module.GoVersion
	deps := closure(all, main)
	for _, l := range all {
		if !deps[l.ImportPath] || l.Standard {
			continue
		}
		if l.own() {
			p.SourceDirs = append(p.SourceDirs, l.Dir)
		}
		if dir, found := strings.CutSuffix(filepath.ToSlash(l.Dir), "/vendor/"+l.ImportPath); found {
			p.Vendored, p.found.VendorDir = true, filepath.Join(filepath.FromSlash(dir), "vendor")
		}
		if l.ImportPath != controllerRuntime && !strings.HasPrefix(l.ImportPath, controllerRuntime+"/") {
			continue
		}
		if l.Dir == "" && l.Error != nil {
			l.Error.Err = l.ImportPath + ": " + l.Error.Err
			return p.listError([]listed{l})
		}
		p.ControllerRuntimeDir = strings.TrimSuffix(l.Dir, filepath.FromSlash(strings.TrimPrefix(l.ImportPath, controllerRuntime)))
		if l.Module != nil {
			p.ControllerRuntime = l.Module.Version
			if l.Module.Replace != nil {
				p.ControllerRuntime = l.Module.Replace.Version
			}
		}
	}
	p.NotLinked = p.whyNotLinked(goVersion, deps)
	p.Linked = p.NotLinked == ""
	return nil
}

// The oldest releases that the taps compile with.
const (
	oldestGo                = "1.23"
	oldestControllerRuntime = "0.19"
)

// whyNotLinked says why the taps cannot be put in; empty if they can.
func (p *Project) whyNotLinked(goVersion string, deps map[string]bool) string {
	// The source tells, not the version, because a module may replace it. The field came with the oldest release.
	settings, err := os.ReadFile(filepath.Join(p.ControllerRuntimeDir, "pkg", "config", "controller.go"))
	number, _, _ := strings.Cut(strings.TrimPrefix(goVersion, "go"), " ")
	switch {
	case !deps[controllerRuntime+"/pkg/manager"] && !deps[controllerRuntime]:
		return "it does not use controller-runtime"
	case err != nil || !bytes.Contains(settings, []byte("SkipNameValidation")):
		return strings.TrimSpace("controller-runtime "+p.ControllerRuntime) + " is older than " + oldestControllerRuntime
	case semver.IsValid("v"+number) && semver.Compare("v"+number, "v"+oldestGo) < 0:
		return "Go " + number + " is older than " + oldestGo
	}
	return ""
}

// closure returns the import paths of a package and all that it depends on.
func closure(all []listed, from *listed) map[string]bool {
	byPath := map[string]*listed{}
	for i := range all {
		byPath[all[i].ImportPath] = &all[i]
	}
	deps := map[string]bool{from.ImportPath: true}
	for todo := []*listed{from}; len(todo) > 0; {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, path := range next.Imports {
			if l := byPath[path]; l != nil && !deps[path] {
				deps[path] = true
				todo = append(todo, l)
			}
		}
	}
	return deps
}

// aside are directories whose programs are not the operator.
var aside = []string{"test", "tests", "hack", "e2e"}

// choose returns the main package: the one named, or the only one that uses controller-runtime itself; if there is none,
// the only one that uses it by other packages, then client-go, then any.
func (p *Project) choose(all []listed) (*listed, error) {
	var mains []*listed
	var broken []listed
	for i := range all {
		l := &all[i]
		if !l.own() || !within(p.Root, l.Dir) {
			continue
		}
		if l.Error != nil {
			broken = append(broken, *l)
		}
		elements := strings.Split(p.below(l.Dir), "/")
		if l.Name == "main" && (p.options.Main != "" || !slices.ContainsFunc(aside, func(a string) bool { return slices.Contains(elements, a) })) {
			mains = append(mains, l)
		}
	}
	if p.options.Main != "" {
		return p.named(mains, broken)
	}
	uses := func(prefixes ...string) func(l *listed) bool {
		return func(l *listed) bool {
			return slices.ContainsFunc(l.Imports, func(path string) bool { return slices.Contains(prefixes, path) })
		}
	}
	depends := func(path string) func(l *listed) bool {
		return func(l *listed) bool { return closure(all, l)[path] }
	}
	for i, fits := range []func(*listed) bool{
		uses(controllerRuntime, controllerRuntime+"/pkg/manager"), depends(controllerRuntime + "/pkg/manager"),
		depends(clientGo + "/rest"), func(*listed) bool { return true },
	} {
		if i == 2 && len(broken) > 0 {
			return nil, p.listError(broken)
		}
		fitting := filter(mains, fits)
		if here := filter(fitting, func(l *listed) bool { return within(p.options.Dir, l.Dir) }); len(here) > 0 {
			fitting = here
		}
		if len(fitting) > 1 {
			names := p.files().names(fitting)
			return nil, &sandbox.Problem{
				Err:  fmt.Errorf("there are %d programs: %s", len(names), strings.Join(names, ", ")),
				Hint: "say which is the operator: --main " + names[0],
			}
		}
		if len(fitting) == 1 {
			return fitting[0], nil
		}
	}
	return nil, problem("name the directory of an operator, or write one: new operator NAME", "module %s %w", p.Root, errNoMain)
}

// errNoMain says that no program is there.
var errNoMain = errors.New("has no main package")

// named returns the main package that the options name.
func (p *Project) named(mains []*listed, broken []listed) (*listed, error) {
	for _, from := range []string{p.options.Dir, p.Root} {
		dir := p.options.Main
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(from, dir)
		}
		if full, err := filepath.EvalSymlinks(dir); err == nil {
			dir = full
		}
		for _, l := range mains {
			if l.Dir == dir {
				return l, nil
			}
		}
		if i := slices.IndexFunc(broken, func(l listed) bool { return l.Dir == dir }); i >= 0 {
			return nil, p.listError(broken[i : i+1])
		}
	}
	hint := "there is no main package at all"
	if names := p.files().names(mains); len(names) > 0 {
		hint = "there are: " + strings.Join(names, ", ")
	}
	return nil, &sandbox.Problem{Err: fmt.Errorf("%s is no main package of the module %s", p.options.Main, p.Root), Hint: hint}
}

// names returns the directories of packages, relative to where the user is, sorted.
func (u userFiles) names(mains []*listed) []string {
	names := map[string]bool{}
	for _, l := range mains {
		names[u.below(l.Dir)] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func filter(all []*listed, keep func(*listed) bool) []*listed {
	return slices.DeleteFunc(slices.Clone(all), func(l *listed) bool { return !keep(l) })
}

func within(dir, file string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(rel)
}

func fileExists(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular()
}
