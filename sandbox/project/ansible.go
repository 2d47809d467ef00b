package project

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/operator-lab/operator-lab/operators/helm"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/process"
)

// The program of all Ansible operators. Its packages are internal, so that it cannot be linked: it is built of the module as the
// Go module proxy serves it.
const (
	AnsibleModule  = "github.com/operator-framework/ansible-operator-plugins"
	AnsibleVersion = "v1.42.2"
	ansibleMain    = "cmd/ansible-operator"
	// ansiblePlugin is the directory of the module with what makes ansible-runner tell the program of its events.
	ansiblePlugin = "images/ansible-operator/ansible_runner_http"
)

// Ansible is what the user has written of an Ansible operator. The rest is upstream's program.
type Ansible struct {
	// Watches is the file watches.yaml.
	Watches string
	// Runs are its entries.
	Runs []AnsibleRun
}

// AnsibleRun is what is run for each object of a kind.
type AnsibleRun struct {
	// APIVersion and Kind are those of the objects.
	APIVersion, Kind string
	// Role or Playbook is what the file names; the other one is empty.
	Role, Playbook string
}

// ansibleEntry is an entry of watches.yaml, as far as it is checked here.
type ansibleEntry struct {
	Group, Version, Kind string
	Role, Playbook       string
	Finalizer            *struct{ Role, Playbook string }
}

// ansibleHint is for everything that is wrong with a watches.yaml of roles and playbooks.
const ansibleHint = "watches.yaml is a list of group, version, kind and role or playbook"

// ansibleFile returns the file watches.yaml of a directory with an Ansible operator; empty if it is none. One with a go.mod beside
// it is a program that reads that file itself.
func ansibleFile(dir string) string {
	file := filepath.Join(dir, helm.WatchesFile)
	if fileExists(filepath.Join(dir, "go.mod")) {
		return ""
	}
	raw, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(raw, []byte("role:")) && !bytes.Contains(raw, []byte("playbook:")) {
		return ""
	}
	return file
}

// findAnsible finds the program of an Ansible operator, and what its file watches.yaml names.
func findAnsible(ctx context.Context, o Options, file string) (*Project, error) {
	runs, err := readAnsible(file)
	if err != nil {
		return nil, &sandbox.Problem{Err: fmt.Errorf("%s: %w", filepath.Base(file), err), Hint: ansibleHint}
	}
	source, err := ansibleSource(ctx, o.WorkDir)
	if err != nil {
		return nil, err
	}
	o.Main = filepath.Join(source, filepath.FromSlash(ansibleMain))
	p, err := findGo(ctx, o, source)
	if err != nil {
		return nil, err
	}
	p.Name, p.Ansible = label(filepath.Base(o.Dir)), &Ansible{Watches: file, Runs: runs}
	return p, nil
}

// ansibleSource returns a directory below a private one with the source of the program: the go tool takes no overlay for files in the
// module cache.
func ansibleSource(ctx context.Context, work string) (string, error) {
	dir := filepath.Join(work, "src-"+filepath.Base(AnsibleModule)+"@"+AnsibleVersion)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	from, err := download(ctx, work, AnsibleModule+"@"+AnsibleVersion)
	if err != nil {
		return "", &sandbox.Problem{
			Err:  fmt.Errorf("the program of Ansible operators cannot be had: %w", err),
			Hint: "'go mod download " + AnsibleModule + "@" + AnsibleVersion + "' says the same",
		}
	}
	part := dir + ".part" // of a copy that was interrupted
	if err := os.RemoveAll(part); err != nil {
		return "", err
	}
	if err := os.CopyFS(part, os.DirFS(from)); err != nil {
		return "", err
	}
	return dir, os.Rename(part, dir)
}

// readAnsible reads a file watches.yaml, and checks what can be checked without Ansible: the program would say it only when the
// sandbox has booted.
func readAnsible(file string) ([]AnsibleRun, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var entries []ansibleEntry
	if err := yaml.Unmarshal(raw, &entries); err != nil {
		text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:\n  "), "\n")
		return nil, errors.New(text)
	}
	var runs []AnsibleRun
	seen := map[AnsibleRun]int{}
	for i, e := range entries {
		wrong := func(format string, args ...any) error {
			return fmt.Errorf("entry %d "+format, append([]any{i + 1}, args...)...)
		}
		of := AnsibleRun{APIVersion: strings.TrimPrefix(e.Group+"/"+e.Version, "/"), Kind: e.Kind}
		switch {
		case e.Kind == "" || e.Version == "":
			return nil, wrong("has no version and kind")
		case seen[of] > 0:
			return nil, wrong("is for %s of %s, as entry %d", of.Kind, of.APIVersion, seen[of])
		case e.Role == "" && e.Playbook == "":
			return nil, wrong("names neither a role nor a playbook")
		}
		seen[of] = i + 1
		places := []struct{ role, playbook string }{{e.Role, e.Playbook}}
		if e.Finalizer != nil {
			places = append(places, struct{ role, playbook string }{e.Finalizer.Role, e.Finalizer.Playbook})
		}
		for _, at := range places {
			if missing := missingAnsible(filepath.Dir(file), at.role, at.playbook); missing != "" {
				return nil, wrong("names %s, which does not exist", missing)
			}
		}
		of.Role, of.Playbook = e.Role, e.Playbook
		runs = append(runs, of)
	}
	return runs, nil
}

// missingAnsible returns the path below a directory of a role or a playbook that is not there; empty if it is, or may be somewhere
// else: in a collection, in ANSIBLE_ROLES_PATH, or where a variable says.
func missingAnsible(dir, role, playbook string) string {
	name := playbook
	if name == "" && role != "" {
		if strings.Contains(role, ".") || os.Getenv("ANSIBLE_ROLES_PATH") != "" {
			return ""
		}
		name = role
		if !filepath.IsAbs(role) {
			name = filepath.Join("roles", role)
		}
	}
	if name == "" || strings.Contains(name, "$") {
		return ""
	}
	full := name
	if !filepath.IsAbs(full) {
		full = filepath.Join(dir, name)
	}
	if _, err := os.Stat(full); errors.Is(err, fs.ErrNotExist) {
		return name
	}
	return ""
}

// AnsibleHint says how all that the program needs besides itself is installed.
const AnsibleHint = "on Debian and Ubuntu: apt-get install ansible python3-ansible-runner python3-kubernetes python3-requests-unixsocket"

// CheckAnsible says what is missing to run Ansible on this machine; nil if nothing is.
func CheckAnsible(ctx context.Context) error {
	missing := func(what string) error {
		return &sandbox.Problem{
			Err:  fmt.Errorf("an Ansible operator needs %s, which is not here", what),
			Hint: AnsibleHint,
		}
	}
	for _, name := range []string{"ansible-playbook", "ansible-runner"} {
		if _, err := exec.LookPath(name); err != nil {
			return missing("the program " + name)
		}
	}
	for _, name := range []string{"ansible_runner", "kubernetes", "requests_unixsocket"} {
		cmd := exec.CommandContext(ctx, ansiblePython(), "-c", "import sys, importlib.util; sys.exit(importlib.util.find_spec('"+name+"') is None)")
		if err := cmd.Run(); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return missing("the Python module " + name)
		}
	}
	return nil
}

// ansiblePython returns the interpreter of ansible-runner, which has its modules: that of the program's first line.
func ansiblePython() string {
	const usual = "python3"
	file, err := exec.LookPath("ansible-runner")
	if err != nil {
		return usual
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return usual
	}
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	fields := strings.Fields(strings.TrimPrefix(string(line), "#!"))
	if !bytes.HasPrefix(line, []byte("#!")) || len(fields) != 1 {
		return usual
	}
	return fields[0]
}

// The variables by which the program's changed lines are told where its files and ports are.
const (
	ansibleDirVariable     = "OPERATOR_LAB_ANSIBLE_DIR"
	ansibleProxyVariable   = "OPERATOR_LAB_ANSIBLE_PROXY"
	ansibleMetricsVariable = "OPERATOR_LAB_ANSIBLE_METRICS"
)

// ansibleEdits are the lines of the program that are changed where it is built with taps. Without them it has one directory and two
// ports of the machine, which another sandbox may use; what it does for a playbook at its proxy belongs to no reconcile; and it
// takes no events of an ansible-runner before 2.4, such as that of Debian 12, whose times have no zone.
var ansibleEdits = map[string][]edit{
	"internal/ansible/runner/eventapi/types.go": {{
		`time.Parse("2006-01-02T15:04:05.999999999+00:00", strings.Trim(string(b[:]), "\"\\"))`,
		`time.Parse("2006-01-02T15:04:05.999999999", strings.TrimSuffix(strings.Trim(string(b[:]), "\"\\"), "+00:00"))`,
	}},
	"internal/ansible/runner/runner.go":        {{`"/tmp/ansible-operator/runner/"`, `os.Getenv("` + ansibleDirVariable + `")`}},
	"internal/ansible/controller/reconcile.go": {{`"http://localhost:8888"`, `"http://localhost:"+os.Getenv("` + ansibleProxyVariable + `")`}},
	"internal/cmd/ansible-operator/run/cmd.go": {{`5050,`, `func() int { port, _ := strconv.Atoi(os.Getenv("` + ansibleMetricsVariable + `")); return port }(),`}},
	"internal/ansible/proxy/cache_response.go": {{`context.WithTimeout(context.Background(),`, `context.WithTimeout(req.Context(),`}},
	"internal/ansible/proxy/proxy.go": {
		{"\npackage proxy\n", "\npackage proxy; import zzlink \"" + AnsibleModule + "/" + inside + "/link\"\n"},
		{`l, err := server.Listen(o.Address, o.Port)`, `server.Handler = zzlink.AsReconcile(server.Handler, func(req *http.Request) (string, string, string) { ` +
			`owner, err := getRequestOwnerRef(req); if err != nil || owner == nil { return "", "", "" }; ` +
			`gv, _ := schema.ParseGroupVersion(owner.APIVersion); ` +
			`return strings.ToLower(owner.Kind + "-" + gv.Version) + "-controller", owner.Namespace, owner.Name }); ` +
			`l, err := server.Listen(o.Address, o.Port)`},
	},
}

// ansibleRuns is the directory, in the private one of a project, with the files of an Ansible operator's runs.
const ansibleRuns = "ansible"

// ansibleController returns the name of the program's controller of a kind.
func ansibleController(version, kind string) string {
	return strings.ToLower(kind+"-"+version) + "-controller"
}

// ansibleMetricsPort is where upstream's module for metrics of one's own sends them.
const ansibleMetricsPort = 5050

// ansibleCommand completes the command of an Ansible operator, which stands in the directory of the user's: roles are found below
// it. Nothing is written there.
func (o *Operator) ansibleCommand(c *process.Command, beside bool) error {
	p := o.options.Project
	all := filepath.Join(p.options.WorkDir, ansibleRuns)
	if err := os.MkdirAll(all, 0o700); err != nil {
		return err
	}
	at, err := os.MkdirTemp(all, "")
	if err != nil {
		return err
	}
	o.scratch = append(o.scratch, at)
	temp := filepath.Join(at, "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		return err
	}
	// ansible-runner finds its plugins by what is beside installed packages.
	plugin := filepath.Join(at, "python")
	for name, text := range map[string]string{
		"METADATA":         "Metadata-Version: 2.1\nName: operator-lab-ansible\nVersion: 1.0.0\n",
		"entry_points.txt": "[ansible_runner.plugins]\nhttp = ansible_runner_http\n",
	} {
		if err := writeChanged(filepath.Join(plugin, "operator_lab_ansible-1.0.0.dist-info", name), []byte(text)); err != nil {
			return err
		}
	}
	proxy, err := freePort()
	if err != nil {
		return err
	}
	metrics := ansibleMetricsPort
	if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(metrics))); err == nil {
		if err := l.Close(); err != nil {
			return err
		}
	} else {
		beside = true
	}
	if beside {
		if metrics, err = freePort(); err != nil {
			return err
		}
	}
	paths := []string{filepath.Join(p.Root, filepath.FromSlash(ansiblePlugin)), plugin}
	if given := os.Getenv("PYTHONPATH"); given != "" {
		paths = append(paths, given)
	}
	if runtime.GOOS == "linux" { // Ansible refuses a locale that is not installed; an image has this one
		c.Env = append([]string{"LC_ALL=C.UTF-8"}, c.Env...)
	}
	c.Dir = p.options.Dir
	c.Env = append(slices.Concat(ansiblePaths(c.Dir), []string{
		"PYTHONPATH=" + strings.Join(paths, string(filepath.ListSeparator)), "PYTHONDONTWRITEBYTECODE=1",
		"TMPDIR=" + temp, "ANSIBLE_HOME=" + at, "ANSIBLE_REMOTE_TEMP=" + temp, // else Ansible makes ~/.ansible
		ansibleDirVariable + "=" + filepath.Join(at, "runner"),
		ansibleProxyVariable + "=" + strconv.Itoa(proxy), ansibleMetricsVariable + "=" + strconv.Itoa(metrics),
	}), c.Env...)
	args := []string{"run", "--watches-file=" + p.Ansible.Watches}
	if o.Tapped() {
		args = append(args, "--proxy-port="+strconv.Itoa(proxy), "--ansible-log-events=everything")
	}
	for _, arg := range c.Args {
		if arg != "run" && !strings.HasPrefix(arg, "--watches-file=") { // that of its image
			args = append(args, arg)
		}
	}
	c.Args = args
	return nil
}

// ansiblePaths returns the variables by which Ansible finds roles and collections: roles of the project first, as in upstream's image,
// then what it would find without ANSIBLE_HOME.
func ansiblePaths(dir string) []string {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/" // where nothing is
	}
	own := filepath.Join(home, ".ansible")
	of := func(variable string, usual ...string) string {
		return cmp.Or(os.Getenv(variable), strings.Join(usual, ":"))
	}
	return []string{
		"ANSIBLE_ROLES_PATH=" + filepath.Join(dir, "roles") + ":" +
			of("ANSIBLE_ROLES_PATH", filepath.Join(own, "roles"), "/usr/share/ansible/roles", "/etc/ansible/roles"),
		"ANSIBLE_COLLECTIONS_PATH=" + of("ANSIBLE_COLLECTIONS_PATH", filepath.Join(own, "collections"), "/usr/share/ansible/collections"),
	}
}

// WatchDirs are the directories whose files make the operator what it is: it is to be built again, or started anew, after a change
// there.
func (p *Project) WatchDirs() []string {
	if p.Ansible == nil {
		return slices.Concat(p.SourceDirs, p.manifestDirs())
	}
	home := p.options.Dir
	dirs := map[string]bool{home: true}
	for _, name := range []string{"roles", "playbooks"} {
		_ = filepath.WalkDir(filepath.Join(home, name), func(dir string, d fs.DirEntry, err error) error { // one may be missing
			if err == nil && d.IsDir() {
				dirs[dir] = true
			}
			return nil
		})
	}
	return slices.Sorted(maps.Keys(dirs))
}

// IsSource reports whether the operator is to be built again, or started anew, after a change of a file in one of [Project.WatchDirs].
func (p *Project) IsSource(file string) bool {
	switch {
	case p.Hooked:
		file = absolute(file)
		return slices.ContainsFunc(p.hookFiles(), func(of string) bool { return absolute(of) == file || absolute(of) == filepath.Dir(file) })
	case p.IsRead():
		return true
	}
	switch filepath.Ext(file) {
	case ".go", ".mod", ".sum", ".s":
		return true
	case ".yaml", ".yml", ".json":
		return slices.Contains(p.manifestDirs(), absolute(filepath.Dir(file)))
	}
	return false
}

// IsRead reports whether the operator is made of files that are read when it starts, and not compiled.
func (p *Project) IsRead() bool { return p.InProcess() || p.Ansible != nil }

// files reads what the user wrote: the directory of an Ansible operator, else that of the module.
func (p *Project) files() userFiles {
	if p.Ansible != nil {
		return userFiles{p.options.Dir}
	}
	return userFiles{p.Root}
}
