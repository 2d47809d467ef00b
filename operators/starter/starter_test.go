package starter_test

import (
	"bytes"
	"go/format"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/starter"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	scenario "github.com/operator-lab/operator-lab/scenarios/format"
)

var cluster = sandboxtest.ShareSandbox(func() (sandbox.Options, error) { return sandbox.Options{Nodes: 1}, nil })

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m, cluster)) }

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"cafe": true, "cafe-operator": true, "a": true, "etcd3": true, "a--b": true, strings.Repeat("a", 40): true,
		"": false, "Cafe": false, "3d": false, "-a": false, "a-": false, "a_b": false, "a.b": false, "a/b": false, "..": false,
		"a\n": false, "é": false, "vendor": false, strings.Repeat("a", 41): false,
	} {
		if err := starter.CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]struct{ kind, resource string }{
		"cafe":              {"Cafe", "cafes"},
		"cafe-operator":     {"Cafe", "cafes"},
		"opening-hours":     {"OpeningHours", "openinghourses"},
		"policy-operator":   {"Policy", "policies"},
		"gizmo":             {"Gizmo", "gizmos"},
		"operator":          {"Operator", "operators"},
		"a--b":              {"AB", "abs"},
		"gizmo-operator-2d": {"GizmoOperator2d", "gizmooperator2ds"},
	} {
		t.Run(name, func(t *testing.T) {
			files := starter.Files(starter.Options{Name: name})
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(files["config/crd/bases/example.com_"+want.resource+".yaml"], crd); err != nil {
				t.Fatal(err)
			}
			if names := crd.Spec.Names; names.Kind != want.kind || names.Plural != want.resource || crd.Name != want.resource+".example.com" {
				t.Errorf("%s: %+v", crd.Name, names)
			}
			if len(files["config/samples/"+strings.ToLower(want.kind)+".yaml"]) == 0 {
				t.Errorf("there is no sample of %s", want.kind)
			}
			wantFiles(t, name, files)
		})
	}
}

// wantFiles checks that the files are formatted, and name neither the project that they were made from nor this module.
func wantFiles(t *testing.T, name string, files map[string][]byte) {
	t.Helper()
	for file, text := range files {
		if path.Ext(file) == ".go" {
			if formatted, err := format.Source(text); err != nil || !bytes.Equal(formatted, text) {
				t.Errorf("%s is not as gofmt writes it (%v)", file, err)
			}
		}
		if left := strings.ToLower(string(text)); !strings.Contains(name, "gizmo") && strings.Contains(left, "gizmo") || strings.Contains(left, "operators/starter") {
			t.Errorf("%s names what it was made from:\n%s", file, text)
		}
	}
}

// generated is a project in a directory.
type generated struct {
	*testing.T
	dir string
}

// run runs a program in the directory.
func (g generated) run(program string, args ...string) {
	g.Helper()
	cmd := exec.CommandContext(g.Context(), program, args...)
	cmd.Dir, cmd.Env = g.dir, append(os.Environ(), "OPERATOR_LAB_STATE_DIR="+g.TempDir(), "KUBECONFIG="+os.DevNull)
	if out, err := cmd.CombinedOutput(); err != nil {
		g.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
}

// generate writes a project.
func generate(t *testing.T, name string) generated {
	t.Helper()
	files := starter.Files(starter.Options{Name: name})
	g := generated{t, filepath.Join(t.TempDir(), name)}
	for name, text := range files {
		file := filepath.Join(g.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// TestVersions checks that the project requires the versions of this module, of modules that both have: after a change of
// go.mod, put its requirements into project.mod, and 'go mod tidy' in a new project writes both files anew.
func TestVersions(t *testing.T) {
	read := func(file string, data []byte) map[string]string {
		parsed, err := modfile.Parse(file, data, nil)
		if err != nil {
			t.Fatal(err)
		}
		versions := map[string]string{"go": parsed.Go.Version}
		for _, r := range parsed.Require {
			versions[r.Mod.Path] = r.Mod.Version
		}
		return versions
	}
	data, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	ours, shared := read("go.mod", data), 0
	for module, version := range read("project.mod", starter.Files(starter.Options{Name: "cafe"})["go.mod"]) {
		if our, has := ours[module]; has {
			shared++
			if our != version {
				t.Errorf("the project has %s %s, and this module %s", module, version, our)
			}
		}
	}
	if shared < 10 {
		t.Errorf("only %d modules are compared", shared)
	}
}

// TestProject writes a project, tests and builds it as 'operator-lab run' does, and plays its scenario while it runs in a
// sandbox with the permissions of its ServiceAccount.
func TestProject(t *testing.T) {
	sandboxtest.Long(t)
	for name, value := range map[string]string{"GOFLAGS": "-trimpath", "CGO_ENABLED": "0", "GOPROXY": "off", "GOWORK": "off"} {
		t.Setenv(name, value)
	}
	g := generate(t, "cafe-operator")
	for _, problem := range scenario.Lint(scenario.Discovery{Paths: []string{g.dir}}) {
		t.Error(problem)
	}
	g.run("go", "test", "-vet=off", "./...")
	found, err := project.Find(t.Context(), project.Options{Dir: g.dir, WorkDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := found.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	deploymentOnly := len(plan.LeftOut) == 1 && plan.LeftOut[0].Kind == "Deployment" // the process is there instead
	if !found.Linked || len(plan.Samples) != 1 || !deploymentOnly || len(plan.Notes) > 0 {
		t.Errorf("taps: %t, samples: %v, left out: %v, notes: %v", found.Linked, plan.Samples, plan.LeftOut, plan.Notes)
	}
	operator, err := found.Build(t.Context(), project.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}

	box := cluster.Get(t)
	binary, err := sandbox.FindBinary()
	if err != nil {
		t.Fatal(err)
	}
	g.run(binary, "kubectl", "--kubeconfig", box.Kubeconfig(), "apply", "-k", "config/default")
	g.start(operator, box.Kubeconfig(), "system:serviceaccount:cafe-operator-system:cafe-operator")
	g.run(binary, "test", "--kubeconfig", box.Kubeconfig(), ".")
}

// start runs the program as a user of a cluster until the test ends.
func (g generated) start(program, kubeconfig, user string) {
	g.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		g.Fatal(err)
	}
	for _, admin := range config.AuthInfos {
		admin.Impersonate = user
	}
	kubeconfig = filepath.Join(g.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		g.Fatal(err)
	}
	var log bytes.Buffer
	operator := exec.Command(program, "--health-probe-bind-address=0")
	operator.Env, operator.Stdout, operator.Stderr = append(os.Environ(), "KUBECONFIG="+kubeconfig), &log, &log
	if err := operator.Start(); err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() {
		if err := operator.Process.Signal(os.Interrupt); err != nil {
			g.Error(err)
		}
		if err := operator.Wait(); err != nil || strings.Contains(log.String(), "forbidden") {
			g.Errorf("the operator: %v\n%s", err, log.String())
		} else if g.Failed() {
			g.Log(log.String())
		}
	})
}
