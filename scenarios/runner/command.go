package runner

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/operator-lab/operator-lab/scenarios/expression"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// execution is a program that an operation runs: a script, a command, or kubectl.
type execution struct {
	// arguments are the program and its arguments.
	arguments []string
	// expand replaces $NAME in the arguments, as a shell would.
	expand bool
	format.ActionBindings
	format.ActionCheck
	format.ActionClusters
	format.ActionEnv
	format.ActionOutputs
	format.ActionTimeout
	workDir *string
	// grace is added to the timeout of a program that enforces the timeout itself.
	grace time.Duration
}

func scriptAction(s *format.Script) action {
	shell, arguments := "sh", []string{"-c"}
	set(&shell, s.Shell)
	if len(s.ShellArgs) > 0 {
		arguments = s.ShellArgs
	}
	e := execution{
		arguments:      append(append([]string{shell}, arguments...), s.Content),
		ActionBindings: s.ActionBindings, ActionCheck: s.ActionCheck, ActionClusters: s.ActionClusters,
		ActionEnv: s.ActionEnv, ActionOutputs: s.ActionOutputs, ActionTimeout: s.ActionTimeout, workDir: s.WorkDir,
	}
	return e.action(shorten(s.Content))
}

func commandAction(c *format.Command) action {
	e := execution{
		arguments: append([]string{c.Entrypoint}, c.Args...), expand: true,
		ActionBindings: c.ActionBindings, ActionCheck: c.ActionCheck, ActionClusters: c.ActionClusters,
		ActionEnv: c.ActionEnv, ActionOutputs: c.ActionOutputs, ActionTimeout: c.ActionTimeout, workDir: c.WorkDir,
	}
	return e.action(shorten(strings.Join(e.arguments, " ")))
}

func (e execution) action(name string) action {
	if e.SkipCommandOutput {
		name = ""
	}
	return action{name: name, do: func(ctx context.Context, in inherited, d *doing) error {
		in, err := in.with(ctx, settings{
			cluster: e.Cluster, clusters: e.Clusters, timeouts: &format.Timeouts{Exec: e.Timeout}, bindings: e.Bindings,
		})
		if err != nil {
			return err
		}
		return d.execute(ctx, in, e)
	}}
}

// execute runs the program and checks its result.
func (d *doing) execute(ctx context.Context, in inherited, e execution) error {
	p, err := d.program(ctx, in, e)
	if err != nil {
		return err
	}
	var stdout, stderr output
	limit := in.timeouts.exec + e.grace
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	group, err := p.run(limited, d.guard, &stdout, &stderr)
	d.programs.add(group)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	out, problems := stdout.String(), stderr.String()
	if !e.SkipLogOutput {
		d.report.Output = both(out, problems)
	}
	scope := in.scope.With("stdout", out).With("stderr", problems).With("error", exitMessage(err))
	if e.Check == nil {
		if err != nil {
			return exitProblem(err, limit, problems, e)
		}
	} else {
		list, wrong := scope.Check(ctx, e.Check, nil)
		switch {
		case wrong != nil:
			return wrong
		case len(list) > 0:
			f := report.Failure{Message: "what came of it is not as expected", Differences: differences(list)}
			if wasKilled(err) {
				f = exitProblem(err, limit, problems, e).failure
				f.Differences = differences(list)
			}
			return &problem{f, &expression.Unexpected{Fields: list}}
		}
	}
	d.outputs, err = scope.Outputs(ctx, nil, e.Outputs)
	return err
}

// exitMessage returns the value of $error.
func exitMessage(err error) any {
	if err == nil {
		return nil
	}
	return err.Error()
}

// exitProblem describes why a program failed.
func exitProblem(err error, limit time.Duration, stderr string, e execution) *problem {
	if wasKilled(err) {
		return problemf("give it more time with its timeout, or with exec in timeouts",
			"it was not over after %s, and was killed with everything it had started", limit)
	}
	last := strings.TrimSpace(stderr)
	last = last[strings.LastIndexByte(last, '\n')+1:]
	if last == "" || e.SkipLogOutput {
		return problemf("", "%w", err)
	}
	return problemf("", "%w: %s", err, last)
}

func both(stdout, stderr string) string {
	stdout, stderr = strings.TrimRight(stdout, "\n"), strings.TrimRight(stderr, "\n")
	switch {
	case stderr == "":
		return stdout
	case stdout == "":
		return stderr
	}
	return stdout + "\n" + stderr
}

// program returns the program of an execution.
func (d *doing) program(ctx context.Context, in inherited, e execution) (program, error) {
	variables, environment, err := d.environment(ctx, in, e)
	if err != nil {
		return program{}, err
	}
	if in.cluster != nil {
		file, err := d.kubeconfig(in.cluster)
		if err != nil {
			return program{}, err
		}
		environment = append(environment, "KUBECONFIG="+file)
	}
	arguments := e.arguments[1:]
	if e.expand {
		arguments = expand(variables, arguments)
	}
	directory, err := d.workFolder(in)
	if err != nil {
		return program{}, err
	}
	if e.workDir != nil {
		if directory = filepath.Join(directory, *e.workDir); filepath.IsAbs(*e.workDir) {
			directory = *e.workDir
		}
	}
	path, err := lookPath(e.arguments[0], valueOf(environment, "PATH"))
	return program{path, arguments, directory, environment}, err
}

// kubeconfig writes a kubeconfig for one program and returns its path.
func (t *testRun) kubeconfig(c *cluster) (string, error) {
	content, err := c.kubeconfig()
	if err != nil {
		return "", err
	}
	file, err := t.tempFile("kubeconfig-", content)
	t.files = append(t.files, file)
	return file, err
}

// environment returns the variables of the operation by name, and the complete environment of its program.
func (d *doing) environment(ctx context.Context, in inherited, e execution) (map[string]string, []string, error) {
	environment := os.Environ()
	if strings.ContainsRune(d.Kubectl, filepath.Separator) {
		directory, err := filepath.Abs(filepath.Dir(d.Kubectl))
		if err != nil {
			return nil, nil, err
		}
		environment = append(environment, "PATH="+directory+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	environment = append(environment, d.Environment...)
	variables := map[string]string{}
	for _, b := range e.Env {
		name, value, err := in.scope.Bind(ctx, b, nil)
		if err != nil {
			return nil, nil, err
		}
		text, ok := value.(string)
		if s, is := value.(fmt.Stringer); is && !ok {
			text, ok = s.String(), true
		}
		if !ok {
			return nil, nil, problemf("make it one with to_string, or quotes", "the variable %s must be a string", name)
		}
		variables[name] = text
		environment = append(environment, name+"="+text)
	}
	if _, ok := variables["NAMESPACE"]; !ok {
		variables["NAMESPACE"] = in.namespace
		environment = append(environment, "NAMESPACE="+in.namespace)
	}
	return variables, environment, nil
}

// valueOf returns the value of a variable; the last of several counts.
func valueOf(environment []string, name string) string {
	for _, variable := range slices.Backward(environment) {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}

// expand replaces $NAME and ${NAME} by the variables of the operation, or else by those of this process. Unknown names
// stay, and $$ becomes a dollar sign.
func expand(variables map[string]string, in []string) []string {
	out := make([]string, len(in))
	for i, text := range in {
		out[i] = os.Expand(text, func(name string) string {
			if name == "$" {
				return "$"
			}
			if value, ok := variables[name]; ok {
				return value
			}
			if value, ok := os.LookupEnv(name); ok {
				return value
			}
			return "$" + name
		})
	}
	return out
}

// workFolder returns the test's folder on disk. A test that is not on disk, such as a bundled one, is copied.
func (t *testRun) workFolder(in inherited) (string, error) {
	files := t.planned.loaded.FS
	if files == nil {
		return in.folder, nil
	}
	if t.folder != "" {
		return t.folder, nil
	}
	sub, err := fs.Sub(files, in.folder)
	if err != nil {
		return "", err
	}
	temp, err := t.temp()
	if err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp(temp, "folder-")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(folder, sub); err != nil {
		return "", fmt.Errorf("copy the files of the test: %w", err)
	}
	t.folder = folder
	return folder, nil
}
