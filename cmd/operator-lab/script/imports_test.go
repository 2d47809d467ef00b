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
		name: "only the binary links Kubernetes",
		of: func(p string) bool {
			return p != module+"/cmd/operator-lab" && p != module+"/sandbox/applets"
		},
		never: under("k8s.io/kubernetes", module+"/sandbox/applets"),
	},
	{
		name: "only the screen draws on the screen",
		of: func(p string) bool {
			return p != module+"/cmd/operator-lab" && !under(module+"/cmd/operator-lab/tui")(p)
		},
		never: under("charm.land", "github.com/charmbracelet"),
	},
	{
		name:  "the screen is a view of the journal",
		of:    under(module + "/cmd/operator-lab/tui"),
		never: under("k8s.io", "sigs.k8s.io"),
	},
	{
		name: "the journal needs the standard library only",
		of:   under(module + "/sandbox/trace"),
		never: func(p string) bool {
			root, _, _ := strings.Cut(p, "/") // the standard library's have no dot
			return strings.Contains(root, ".") && !under(module+"/sandbox/trace")(p)
		},
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

// TestRulesBite checks the rules themselves: the binary breaks the ones that make an exception for it.
func TestRulesBite(t *testing.T) {
	for _, p := range list(t) {
		if p.ImportPath != module+"/cmd/operator-lab" {
			continue
		}
		if !slices.ContainsFunc(p.Deps, rules[2].never) {
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
