package script_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/operator-lab/operator-lab"

// pkg is what 'go list' says about a package.
type pkg struct {
	ImportPath string
	Deps       []string
}

// rule says which packages must not reach which others, however many packages lie between. The linter (depguard) says
// it earlier, but only of direct imports.
type rule struct {
	name string
	// of are the packages the rule is for.
	of func(importPath string) bool
	// never is what they must not depend on.
	never func(importPath string) bool
}

var rules = []rule{
	{
		name: "an operator is ordinary code that knows nothing of the lab",
		of:   under(module + "/operators"),
		never: func(p string) bool {
			return under(module)(p) && !under(module+"/operators")(p)
		},
	},
	{
		name:  "imports go downwards: cmd, then lessons and scenarios, then sandbox",
		of:    under(module + "/sandbox"),
		never: under(module+"/cmd", module+"/lessons", module+"/scenarios"),
	},
	{
		name:  "lessons and scenarios know nothing of the command line",
		of:    under(module+"/lessons", module+"/scenarios"),
		never: under(module + "/cmd"),
	},
	{
		name: "only the binary links Kubernetes",
		of: func(p string) bool {
			return p != module+"/cmd/operator-lab" && p != module+"/sandbox/applets"
		},
		never: under("k8s.io/kubernetes", module+"/sandbox/applets"),
	},
	{
		name: "only the screen draws on the screen",
		of: func(p string) bool {
			return p != module+"/cmd/operator-lab" && !under(module+"/cmd/operator-lab/cli", module+"/cmd/operator-lab/tui")(p)
		},
		never: under("charm.land", "github.com/charmbracelet"),
	},
	{
		name:  "the screen is a view of the journal",
		of:    under(module + "/cmd/operator-lab/tui"),
		never: under("k8s.io", "sigs.k8s.io"),
	},
	{
		name: "the journal needs the standard library, and the widths of characters",
		of:   under(module + "/sandbox/trace"),
		never: func(p string) bool {
			return !isStandard(p) && !under(module+"/sandbox/trace", "github.com/clipperhouse")(p)
		},
	},
	{
		name: "a report knows neither Kubernetes nor the lab",
		of:   under(module + "/scenarios/report"),
		never: func(p string) bool {
			return !isStandard(p) && !under(module+"/scenarios/report", "github.com/jstemmer/go-junit-report/v2")(p)
		},
	},
	{
		name:  "a scenario is read without a cluster",
		of:    under(module + "/scenarios/format"),
		never: under("k8s.io/client-go", "k8s.io/apiserver", "sigs.k8s.io/controller-runtime"),
	},
	{
		name: "a scenario runs on any cluster: of the lab the runner knows only small helpers",
		of:   under(module+"/scenarios/format", module+"/scenarios/expression", module+"/scenarios/runner"),
		never: oursBut("/scenarios/format", "/scenarios/expression", "/scenarios/runner", "/scenarios/report",
			"/sandbox/guard", "/sandbox/nearest", "/sandbox/trace"),
	},
	{
		name: "what starts programs needs the standard library only",
		of:   under(module + "/sandbox/guard"),
		never: func(p string) bool {
			return !isStandard(p) && !under(module+"/sandbox/guard")(p)
		},
	},
	{
		name: "what a container runs knows neither the operators nor Kubernetes' client",
		of:   under(module + "/sandbox/images"),
		never: either(oursBut("/sandbox/images", "/sandbox/guard", "/sandbox/nearest", "/sandbox/pipe"),
			under("k8s.io/client-go", "k8s.io/apiserver", "sigs.k8s.io/controller-runtime")),
	},
	{
		name:  "a fault happens on the way to any API server: the injector starts none and links none",
		of:    under(module + "/sandbox/fault"),
		never: either(oursBut("/sandbox/fault", "/sandbox/api", "/sandbox/apirequest", "/sandbox/trace"), under("k8s.io/apiserver", "k8s.io/kube-aggregator")),
	},
	{
		name:  "the lab's API server knows the lab by an interface",
		of:    under(module + "/sandbox/labapi"),
		never: oursBut("/sandbox/labapi", "/sandbox/api", "/sandbox/certificate"),
	},
	{
		name: "the types of the lab's API can be imported for next to nothing",
		of:   under(module + "/sandbox/api"),
		never: either(oursBut("/sandbox/api"),
			under("k8s.io/api", "k8s.io/client-go", "k8s.io/apiserver", "sigs.k8s.io/controller-runtime")),
	},
}

func TestImportsGoDownwards(t *testing.T) {
	packages := list(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, p := range packages {
				if !r.of(p.ImportPath) {
					continue
				}
				if i := slices.IndexFunc(p.Deps, r.never); i >= 0 {
					t.Errorf("%s depends on %s", p.ImportPath, p.Deps[i])
				}
			}
		})
	}
}

// TestRulesBite checks the rules themselves: each is for some package, and the binary breaks the ones that make an
// exception for it.
func TestRulesBite(t *testing.T) {
	packages := list(t)
	for _, r := range rules {
		if !slices.ContainsFunc(packages, func(p pkg) bool { return r.of(p.ImportPath) }) {
			t.Errorf("%s: there is no package that this rule is for", r.name)
		}
	}
	for _, p := range packages {
		if p.ImportPath != module+"/cmd/operator-lab" {
			continue
		}
		if !slices.ContainsFunc(p.Deps, rules[3].never) {
			t.Errorf("%s does not depend on Kubernetes, so that rule proves nothing", p.ImportPath)
		}
		return
	}
	t.Error("the package of the binary is not listed")
}

// list is every package of the module, with everything it depends on.
func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Deps", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := decoder.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		t.Fatal("go list found no package")
	}
	return packages
}

// under matches packages and what is below them.
func under(roots ...string) func(string) bool {
	return func(p string) bool {
		return slices.ContainsFunc(roots, func(root string) bool {
			return p == root || strings.HasPrefix(p, path.Clean(root)+"/")
		})
	}
}

// oursBut matches the packages of this module but for some, named without the module, and what is below them.
func oursBut(roots ...string) func(string) bool {
	full := make([]string, len(roots))
	for i, root := range roots {
		full[i] = module + root
	}
	return func(p string) bool { return under(module)(p) && !under(full...)(p) }
}

// either matches what one of two matches.
func either(a, b func(string) bool) func(string) bool {
	return func(p string) bool { return a(p) || b(p) }
}

// isStandard reports whether a package is of the standard library: the path of no other begins without a dot.
func isStandard(p string) bool {
	root, _, _ := strings.Cut(p, "/")
	return !strings.Contains(root, ".")
}
