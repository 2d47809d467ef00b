package format

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// TestFile is the default name of test files, without .yaml or .yml.
const TestFile = "chainsaw-test"

// Discovery selects tests.
type Discovery struct {
	// FS is the file system of the paths; nil: the operating system's.
	FS fs.FS
	// Paths are test files, or folders that are searched recursively; default: the working directory.
	Paths []string
	// TestFile is the name of test files; default [TestFile]. Without an extension, .yaml is tried before .yml. An
	// absolute path is used for each of the paths.
	TestFile string
	// FullName adds the folder to the names that Include and Exclude match.
	FullName bool
	// Include and Exclude are regular expressions for names of tests; empty: all and none. As in Chainsaw, they work
	// like those of go test -run and -skip, and every name begins with "chainsaw/", which can be omitted here.
	Include, Exclude string
	// Selectors are label selectors, all of which must match.
	Selectors []string
	// Remarshal allows anchors to be merged and overridden, and reads the unquoted words yes, no, on and off as
	// strings.
	Remarshal bool
	// ShardIndex, from 0, selects one of ShardCount parts of the tests. A ShardCount of 0 selects all.
	ShardIndex, ShardCount int
	// Compiler is the default language of expressions; default jp.
	Compiler Compiler
	// NoTemplating turns off templates in resources unless a test turns them on.
	NoTemplating bool
}

// Discover finds tests, in the order of their folders. A bad document is returned with its Err set. The error is
// [Problems], and is returned if the tests cannot be found at all.
func Discover(d Discovery) ([]*Loaded, error) {
	f, err := newFilter(d)
	if err != nil {
		return nil, err
	}
	all, err := newLoader(d).discover(d)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(l *Loaded) bool { return l.Err == nil && !f.selector.Matches(labels.Set(l.Test.Labels)) })
	all = shard(all, d.ShardIndex, d.ShardCount)
	return slices.DeleteFunc(all, func(l *Loaded) bool { return l.Err == nil && !f.named(l.Name(d.FullName)) }), nil
}

// discover loads all tests.
func (l *loader) discover(d Discovery) ([]*Loaded, error) {
	paths := d.Paths
	if len(paths) == 0 {
		paths = []string{"."}
	}
	var (
		wrong   Problems
		folders []string
		out     []*Loaded
	)
	for _, p := range paths {
		info, err := l.stat(p)
		switch {
		case err != nil:
			wrong = append(wrong, Problem{File: p, Message: plain(err), Hint: "name folders that have tests in them, or files of tests"})
		case !info.IsDir():
			out = append(out, l.tests(p, l.dir(p))...)
		case filepath.IsAbs(d.TestFile):
			folders = append(folders, l.clean(p))
		default:
			folders, err = l.walk(folders, l.clean(p))
			if err != nil {
				wrong = append(wrong, Problem{File: p, Message: "cannot be searched: " + err.Error()})
			}
		}
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	slices.Sort(folders)
	for _, folder := range slices.Compact(folders) {
		found, err := l.folder(folder, d.TestFile)
		if err != nil {
			return nil, Problems{{File: folder, Message: "cannot be searched: " + plain(err)}}
		}
		out = append(out, found...)
	}
	return out, nil
}

func (s source) clean(name string) string {
	if s.FS != nil {
		return path.Clean(name)
	}
	return filepath.Clean(name)
}

// walk adds a folder and all folders below it. As in Chainsaw, it does not follow links to folders, which may form a
// cycle.
func (s source) walk(out []string, folder string) ([]string, error) {
	out = append(out, folder)
	entries, err := s.readDir(folder)
	if err != nil {
		return out, err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if out, err = s.walk(out, s.join(folder, e.Name())); err != nil {
			return out, err
		}
	}
	return out, nil
}

// folder loads the tests of one folder.
func (l *loader) folder(folder, name string) ([]*Loaded, error) {
	if name == "" {
		name = TestFile
	}
	names := []string{name}
	if filepath.Ext(name) == "" {
		names = []string{name + ".yaml", name + ".yml"}
	}
	for _, n := range names {
		file := l.join(folder, n)
		if info, err := l.stat(file); err == nil && !info.IsDir() {
			return l.tests(file, folder), nil
		}
	}
	if filepath.IsAbs(name) {
		return nil, nil
	}
	t, err := l.manifests(folder)
	if t == nil || err != nil {
		return nil, err
	}
	return []*Loaded{{Test: t, Folder: folder, FS: l.FS}}, nil
}

// numbered matches the name of a manifest in a folder without a test file.
var numbered = regexp.MustCompile(`^(\d+)-(.*)\.(?:yaml|yml)$`)

// manifests makes a test of a folder of numbered manifests. Manifests with the same number form a step. They are
// applied, or asserted if they are named assert, or asserted to be absent if they are named errors. It returns nil if
// there are none.
func (l *loader) manifests(folder string) (*Test, error) {
	entries, err := l.readDir(folder)
	if err != nil {
		return nil, err
	}
	type step struct{ apply, assert, errors []Operation }
	steps := map[string]*step{}
	for _, e := range entries {
		m := numbered.FindStringSubmatch(e.Name())
		if e.IsDir() || m == nil {
			continue
		}
		if steps[m[1]] == nil {
			steps[m[1]] = &step{}
		}
		s, ref, at := steps[m[1]], FileRef{File: Expression(e.Name())}, Position{File: l.join(folder, e.Name())}
		switch m[2] {
		case "assert":
			s.assert = append(s.assert, Operation{Assert: &Assert{ActionCheckRef: ActionCheckRef{FileRef: ref}}, Position: at})
		case "errors":
			s.errors = append(s.errors, Operation{Error: &Error{ActionCheckRef: ActionCheckRef{FileRef: ref}}, Position: at})
		default:
			s.apply = append(s.apply, Operation{Apply: &Apply{ActionResourceRef: ActionResourceRef{FileRef: ref}}, Position: at})
		}
	}
	if len(steps) == 0 {
		return nil, nil
	}
	out := &Test{}
	out.APIVersion, out.Kind = V1alpha1, "Test"
	out.Name = strings.ToLower(strings.ReplaceAll(l.base(folder), "_", "-"))
	for _, number := range slices.Sorted(maps.Keys(steps)) {
		s := TestStep{Name: "step-" + number, Position: Position{File: folder}}
		s.Try = slices.Concat(steps[number].apply, steps[number].assert, steps[number].errors)
		out.Spec.Steps = append(out.Spec.Steps, s)
	}
	return out, nil
}

// base returns the last element of a path.
func (s source) base(name string) string {
	if s.FS != nil {
		return path.Base(name)
	}
	return filepath.Base(name)
}

// shard returns one of count parts of about the same size.
func shard(all []*Loaded, index, count int) []*Loaded {
	if count < 1 {
		return all
	}
	size := float64(len(all)) / float64(count)
	from, to := int(size*float64(index)), int(size*float64(index+1))
	if index == count-1 {
		to = len(all)
	}
	return all[from:to]
}

// Name returns the name of the test as it is shown. If full is set, it includes the folder relative to the working
// directory.
func (l *Loaded) Name(full bool) string {
	if !full {
		return l.Test.Name
	}
	return fmt.Sprintf("%s[%s]", l.relative(), l.Test.Name)
}

// relative returns the folder relative to the working directory, or the folder as given if there is no such path.
func (l *Loaded) relative() string {
	if l.FS != nil {
		return l.Folder
	}
	here, err := os.Getwd()
	if err != nil {
		return l.Folder
	}
	abs, err := filepath.Abs(l.Folder)
	if err != nil {
		return l.Folder
	}
	rel, err := filepath.Rel(here, abs)
	if err != nil {
		return l.Folder
	}
	return rel
}
