package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/sandbox"
)

// verbs returns every command, without the program's name, and the command.
func verbs(t *testing.T) map[string]*cobra.Command {
	t.Helper()
	root := rootCommand(streams{}, Programs{})
	all := map[string]*cobra.Command{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		all[path] = cmd
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(root)
	if len(all) < 40 {
		t.Fatalf("there are only %d commands", len(all))
	}
	return all
}

func TestEveryVerbRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Setenv("OPERATOR_LAB_STATE_DIR", t.TempDir())
	for path, cmd := range verbs(t) {
		if cmd.DisableFlagParsing || path == "run" { // 'run' first wants the name of an operator
			continue
		}
		t.Run(path, func(t *testing.T) {
			got := runLine(append(strings.Fields(path), "--no-such-flag"), Programs{})
			if got.code != exitUsage {
				t.Errorf("exit code %d, want %d", got.code, exitUsage)
			}
			if err := got.refusal(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEveryVerbHasHelp asks for the help of each command, and checks that the script help has it, so that a change shows in a diff.
func TestEveryVerbHasHelp(t *testing.T) {
	script := read(t, "cmd/operator-lab/cli/testdata/script/help.txtar")
	for path, cmd := range verbs(t) {
		if path == "kubectl" { // its help is upstream's
			continue
		}
		if asks := strings.TrimSuffix("operator-lab "+path, " ") + " --help\n"; !needsNoGolden(cmd) && !strings.Contains(script, asks) {
			t.Errorf("help.txtar has no %q with a file of its own; -update fills that", asks)
		}
		t.Run(path, func(t *testing.T) {
			got := runLine(append(strings.Fields(path), "--help"), Programs{})
			if got.code != exitOK || got.stderr != "" {
				t.Errorf("exit code %d, standard error %q", got.code, got.stderr)
			}
			if !strings.Contains(got.stdout, cmd.Short) && !strings.HasPrefix(got.stdout, cmd.Long) {
				t.Errorf("it is not told what the command is for:\n%s", got.stdout)
			}
		})
	}
}

// needsNoGolden reports whether the help of a command is Cobra's, for programs only, or that of one operator, of which some are enough.
func needsNoGolden(cmd *cobra.Command) bool {
	for ; cmd.HasParent(); cmd = cmd.Parent() {
		if cmd.Hidden || cmd.Name() == "help" || slices.Contains([]string{"completion", "run", "operator"}, cmd.Parent().Name()) {
			return true
		}
	}
	return false
}

func TestListWithoutSandbox(t *testing.T) {
	t.Setenv("OPERATOR_LAB_STATE_DIR", t.TempDir())
	for _, test := range []struct {
		args string
		want result
	}{
		{"list", result{exitOK, "", "there is no sandbox; start one with 'operator-lab up --detach'\n"}},
		{"list -o json", result{exitOK, "[]\n", ""}},
		{"status", result{exitFailed, "", "error: no sandbox of this name is running: default\n" +
			"hint: start it with 'operator-lab up --detach'; 'operator-lab list' shows all\n"}},
		{"status --name demo", result{exitFailed, "", "error: no sandbox of this name is running: demo\n" +
			"hint: start it with 'operator-lab up --detach --name demo'; 'operator-lab list' shows all\n"}},
	} {
		t.Run(test.args, func(t *testing.T) {
			if diff := cmp.Diff(test.want, runLine(strings.Fields(test.args), Programs{}), cmp.AllowUnexported(result{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLinkedPrograms checks that a program gets its arguments, and that its exit code is that of the command.
func TestLinkedPrograms(t *testing.T) {
	t.Setenv("OPERATOR_LAB_STATE_DIR", t.TempDir())
	for _, test := range []struct {
		args, want string
	}{
		{"kubectl version --client", "kubectl version --client"},
		{"kubectl --name demo help", "kubectl help"},
		{"kubectl get pods --kubeconfig mine", "kubectl get pods --kubeconfig mine"},
		{"oc help get", "kubectl help get"},
		{"etcdctl version", "etcdctl version"},
		{"etcdctl get --help", "etcdctl get --help"},
		{"etcdutl snapshot status x.db", "etcdutl snapshot status x.db"},
	} {
		t.Run(test.args, func(t *testing.T) {
			args := os.Args
			defer func() { os.Args = args }()
			const code = 7
			var called []string
			program := func(name string) func() int {
				return func() int {
					called = slices.Clone(os.Args)
					if called[0] != name {
						t.Errorf("it is called %q, want %q", called[0], name)
					}
					return code
				}
			}
			got := runLine(strings.Fields(test.args), Programs{
				Kubectl: program("kubectl"), Etcdctl: program("etcdctl"), Etcdutl: program("etcdutl"),
			})
			if want := (result{code: code}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if line := strings.Join(called, " "); line != test.want {
				t.Errorf("got %q, want %q", line, test.want)
			}
		})
	}
}

func TestComplain(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	broken := errors.New("it is broken")
	for _, test := range []struct {
		name string
		ctx  context.Context
		err  error
		code int
		want string
	}{
		{"nothing", t.Context(), nil, exitOK, ""},
		{"an error", t.Context(), broken, exitFailed, "error: it is broken\n"},
		{"a hint", t.Context(), &sandbox.Problem{Err: broken, Hint: "mend it"}, exitFailed, "error: it is broken\nhint: mend it\n"},
		{"a mistake", t.Context(), usageError("say y", "there is no %q", "x"), exitUsage, "error: there is no \"x\"\nhint: say y\n"},
		{"a sandbox", t.Context(), fmt.Errorf("boot: %w", sandboxError(broken)), exitSandbox, "error: boot: it is broken\n"},
		{"a code alone", t.Context(), &exitError{code: 5}, 5, ""},
		{"interrupted", over, context.Canceled, exitInterrupted, "interrupted\n"},
		{"interrupted, and failed of it", over, broken, exitInterrupted, "interrupted\n"},
		{"interrupted after a mistake", over, usageError("say y", "no"), exitUsage, "error: no\nhint: say y\n"},
		{"interrupted while it booted", over, sandboxError(context.Canceled), exitInterrupted, "interrupted\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var said strings.Builder
			if code := complain(test.ctx, test.err, &said); code != test.code || said.String() != test.want {
				t.Errorf("got %d, %q, want %d, %q", code, said.String(), test.code, test.want)
			}
		})
	}
}

func TestShellQuote(t *testing.T) {
	for word, want := range map[string]string{
		"/tmp/a-b_c.d": "/tmp/a-b_c.d", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "日本": "'日本'",
	} {
		if got := shellQuote(word); got != want {
			t.Errorf("%s: got %s, want %s", word, got, want)
		}
	}
}

func TestNeedsCluster(t *testing.T) {
	for line, want := range map[string]bool{
		"": false, "get pods": true, "get --help": false, "exec web -- ls --help": true, "version": true, "version --client": false,
		"get pods --kubeconfig=mine": false, "completion bash": false, "kustomize .": false,
	} {
		if got := needsCluster(strings.Fields(line)); got != want {
			t.Errorf("kubectl %s: got %v, want %v", line, got, want)
		}
	}
}

func TestProjectsAreNamespaces(t *testing.T) {
	for line, want := range map[string]string{
		"get projects": "get namespaces", "delete project/a": "delete namespaces/a", "get pods": "get pods", "create project": "create project",
		"describe project a": "describe namespaces a",
	} {
		if got := strings.Join(projectsAreNamespaces(strings.Fields(line)), " "); got != want {
			t.Errorf("oc %s: got %q, want %q", line, got, want)
		}
	}
}

func TestSetNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := setNamespace(file, "demo"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "namespace: demo\n") {
		t.Errorf("the namespace is not there:\n%s", text)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".kubeconfig-*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}
