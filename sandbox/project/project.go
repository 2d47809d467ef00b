package project

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/helm"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/images"
)

// Options says where the project is, and fixes what is not to be guessed. What is empty is taken from lab.yaml, if the
// project has one.
type Options struct {
	// Dir is a directory inside a Go module, or one with the watches.yaml of Helm charts or of Ansible's roles, or with a
	// lab.yaml that names a hook; empty means the current one.
	Dir string
	// WorkDir is a private directory for what Find learns, Build makes and Plan writes. It is made if it is missing. The
	// next run for the same project and Options is quicker with the same directory. One run uses it at a time.
	WorkDir string
	// Main is the directory of the main package, relative to Dir or to the module's root; empty means the only one that
	// uses controller-runtime.
	Main string
	// Tags are build tags.
	Tags []string
	// Manifests are files and directories to apply in place of config/default, relative to the current directory. A directory
	// may be a kustomization, a Helm chart or a bundle of OLM.
	Manifests []string
	// Values are files of values for Helm charts, relative to the current directory; later ones win.
	Values []string
	// Samples are files and directories to offer in place of config/samples, relative to the current directory.
	Samples []string
	// Controllers are files with CompositeControllers and DecoratorControllers of Metacontroller to run in place of an operator in Dir,
	// and Hook is the program that answers their webhooks; empty: they are asked where they are. Both are relative to the current
	// directory.
	Controllers []string
	Hook        string
	// Foreign says that the plan is for a cluster of the user's: kinds of other operators are not made up there, and without
	// a ServiceAccount the operator has the user's own permissions.
	Foreign bool
}

// Project is an operator's source: a Go module, Helm charts, roles and playbooks of Ansible, or a hook.
type Project struct {
	// Root is the directory of the module.
	Root string
	// Name is made of the last element of the module's path. It is a DNS label.
	Name string
	// Module is the module's path.
	Module string
	// MainDir is the directory of the main package, and MainPath its import path.
	MainDir, MainPath string
	// GoVersion is the one that go.mod asks for, such as 1.24.0.
	GoVersion string
	// ControllerRuntime is the release of controller-runtime, such as v0.24.1; empty if the program does not use it, or
	// if a directory replaces it.
	ControllerRuntime string
	// ControllerRuntimeDir holds its source; with a vendor directory only the packages that the project uses.
	ControllerRuntimeDir string
	// Vendored says that a vendor directory is used, Workspace that a go.work file is.
	Vendored, Workspace bool
	// Linked says that Build can put the taps in; NotLinked says why not.
	Linked    bool
	NotLinked string
	// SourceDirs are the directories of the packages that the program is made of, without those of other modules.
	SourceDirs []string
	// Watches is the file watches.yaml of an operator that is made of Helm charts; empty for a program. Such an operator runs
	// in the lab's process, and has taps without being built.
	Watches string
	// Charts are those that the file names.
	Charts []Chart
	// Hooked says that the operator is CompositeControllers and DecoratorControllers among the manifests, which run in the lab's
	// process, too, and Hook is the program that answers their webhooks; empty: they are asked where they are.
	Hooked bool
	Hook   string
	// Ansible is what an Ansible operator has in place of a program of its own; nil for others. Root and Module are those of the
	// program that all Ansible operators have.
	Ansible *Ansible `json:"-"`
	// Config is the file lab.yaml that was read; empty if there is none.
	Config string
	// Nodes is how many simulated nodes that file asks for; nil if it does not. Images is the file that says which programs
	// images are; empty if it names none.
	Nodes  *int
	Images string

	options Options
	config  Config
	found   found
	// ca signed the certificates of webhooks; nil before they are made.
	ca []byte
}

// InProcess reports whether the operator runs in the lab's process, and has taps without being built.
func (p *Project) InProcess() bool { return p.Watches != "" || p.Hooked }

// found is what Build needs of the discovery.
type found struct {
	// Flags are for all calls of the go tool: -mod and -modfile.
	Flags []string
	// GoWork is the private copy of go.work.
	GoWork string
	// VendorDir is the vendor directory in use.
	VendorDir string
}

// cached is the file with what was found.
type cached struct {
	Key     string
	Project *Project
	Found   found
}

// Find finds the main package of an operator, or its charts, roles or hook. It calls 'go list' only if something has changed that the answer depends
// on. A source that does not compile is found, too, as long as its imports can be read; otherwise the error is a
// [BuildError].
func Find(ctx context.Context, o Options) (*Project, error) {
	if o.WorkDir == "" {
		return nil, errors.New("a project needs a private directory to work in")
	}
	if err := os.MkdirAll(o.WorkDir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if o.WorkDir, err = filepath.Abs(o.WorkDir); err != nil {
		return nil, err
	}
	dir, err := directory(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	if p, err := findHook(o); p != nil || err != nil {
		return p, err
	}
	if file := watchesFile(dir); file != "" && o.Main == "" {
		return findCharts(o, file)
	}
	if file := ansibleFile(dir); file != "" && o.Main == "" {
		return findAnsible(ctx, o, file)
	}
	if file := filepath.Join(dir, helm.WatchesFile); fileExists(file) && !fileExists(filepath.Join(dir, "go.mod")) && o.Main == "" {
		return nil, noEntry(file)
	}
	return findGo(ctx, o, dir)
}

// noEntry says what is wrong with a file watches.yaml that is neither of charts nor of roles and playbooks.
func noEntry(file string) error {
	const hint = "an entry has group, version, kind, and a chart, role or playbook"
	raw, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(raw, new(any))
	}
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		return problem(hint, "%s cannot be read: %s", file, text)
	}
	return problem(hint, "%s names no chart, role or playbook", file)
}

// findGo finds the program of the Go module that a directory is in.
func findGo(ctx context.Context, o Options, dir string) (*Project, error) {
	env, err := goEnvironment(ctx, dir)
	if err != nil {
		return nil, err
	}
	p := &Project{Root: filepath.Dir(env.GOMOD)}
	p.Workspace = env.GOWORK != "" && env.GOWORK != "off"
	if err := p.readConfig(&o); err != nil {
		return nil, err
	}
	p.options = o
	key, err := p.key(env)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(o.WorkDir, "project.json")
	if p.recall(file, key) {
		return p, nil
	}
	all, err := p.listPackages(ctx, env)
	if err != nil {
		return nil, err
	}
	main, err := p.choose(all)
	if errors.Is(err, errNoMain) && env.CGO_ENABLED == "0" && p.needsCgo(ctx) {
		return nil, problem("build it with cgo: CGO_ENABLED=1", "the main package in %s needs cgo, which CGO_ENABLED=0 leaves out", p.Root)
	}
	if err != nil {
		return nil, err
	}
	if err := p.describe(all, main, env.GOVERSION); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(cached{key, p, p.found})
	if err != nil {
		return nil, err
	}
	return p, os.WriteFile(file, raw, 0o600)
}

// directory returns the absolute path of a directory without symbolic links, as the go tool names it.
func directory(dir string) (string, error) {
	full, err := filepath.Abs(cmp.Or(dir, "."))
	if err != nil {
		return "", err
	}
	if full, err = filepath.EvalSymlinks(full); err != nil {
		return "", &sandbox.Problem{Err: fmt.Errorf("%s: no such directory", dir), Hint: "name the directory of a Go module, such as ."}
	}
	if info, err := os.Stat(full); err != nil || !info.IsDir() {
		return "", &sandbox.Problem{Err: fmt.Errorf("%s is not a directory", dir), Hint: "a program that is built already runs with: run -- " + dir}
	}
	return full, nil
}

// recall reads what was found before, if it was for the same key.
func (p *Project) recall(file, key string) bool {
	raw, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	var c cached
	if json.Unmarshal(raw, &c) != nil || c.Key != key || c.Project == nil {
		return false
	}
	c.Project.Nodes, c.Project.Images = p.Nodes, p.Images
	c.Project.Config, c.Project.config, c.Project.options, c.Project.found = p.Config, p.config, p.options, c.Found
	*p = *c.Project
	return true
}

// label is [images.OperatorName] of a module's path, without the major version at its end.
func label(modulePath string) string {
	prefix, _, ok := module.SplitPathVersion(modulePath)
	if !ok {
		prefix = modulePath
	}
	return images.OperatorName(prefix)
}

// below returns a path relative to the directory of what the user wrote, with slashes, if it is inside.
func (p *Project) below(file string) string { return p.files().below(file) }

// Program returns the project of a program that is not built here: it has no source, but manifests and samples may be
// named for it.
func Program(file string, o Options) (*Project, error) {
	if o.WorkDir == "" {
		return nil, errors.New("a program needs a private directory")
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	o.Dir = root
	return &Project{
		Root: root, Name: label(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))), options: o,
		NotLinked: "it is not built here",
	}, nil
}
