// Package hook answers the requests to webhooks by running a program, in whatever language it is: what was sent is on its
// standard input, and what it prints is the answer. A program that ends with another exit code than 0, or not in time, is
// no answer. What it prints on its standard error goes to the log of the one who asks. It knows nothing of what is asked.
package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// mark is the variable by which the program's processes are found.
const mark = "OPERATOR_LAB_HOOK_MARK"

const (
	// mostAnswer is how many bytes a program may print; more is cut off.
	mostAnswer = 17 << 20
	// mostLog is how many bytes of its standard error are kept.
	mostLog = 64 << 10
	// mostLines is how many lines of its standard error are logged for a request.
	mostLines = 100
	// endPatience is how long a program that was killed may take to end, and what it started to close its output.
	endPatience = 2 * time.Second
)

// Options are the options of [New].
type Options struct {
	// File is the program: an executable, or a script in Python, JavaScript, shell or jq, by the end of its name.
	File string
	// Env are variables in addition to those of this process.
	Env []string
	// Name returns the name of the hook that a request is for, which is the program's argument. Default: it has none.
	Name func(*http.Request) string
}

// Program is a program that answers requests. It is a transport of HTTP that reaches nobody else.
type Program struct {
	options Options
	command []string
	guard   *guard.Guard
	close   sync.Once
}

// interpreters run scripts that are not executable, by the end of their names.
var interpreters = map[string][]string{
	".py": {"python3"}, ".js": {"node"}, ".mjs": {"node"}, ".cjs": {"node"}, ".sh": {"sh"}, ".jq": {"jq", "-f"},
}

// New returns the program of a file. The error says what is wrong with the file, with a hint.
func New(o Options) (*Program, error) {
	file, err := filepath.Abs(o.File)
	if err != nil {
		return nil, err
	}
	command, err := commandOf(o.File, file)
	if err != nil {
		return nil, err
	}
	if o.Name == nil {
		o.Name = func(*http.Request) string { return "" }
	}
	return &Program{options: o, command: command, guard: guard.New(guard.Options{Mark: mark})}, nil
}

// commandOf returns the command that runs a file.
func commandOf(name, file string) ([]string, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, &sandbox.Problem{Err: fmt.Errorf("%s: no such file", name), Hint: "name the file of the hook, such as ./sync.py"}
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &sandbox.Problem{Err: fmt.Errorf("%s is no file", name), Hint: "name the file of the hook, such as ./sync.py"}
	}
	interpreter, known := interpreters[filepath.Ext(file)]
	if info.Mode()&0o111 != 0 && (!known || hasInterpreter(file)) {
		return []string{file}, nil
	}
	if !known {
		return nil, &sandbox.Problem{Err: fmt.Errorf("%s cannot be executed", name), Hint: "chmod +x " + name + ", or end its name in .py, .js, .mjs, .sh or .jq"}
	}
	if _, err := exec.LookPath(interpreter[0]); err != nil {
		return nil, &sandbox.Problem{
			Err:  fmt.Errorf("%s needs %s, which is not in the PATH", name, interpreter[0]),
			Hint: "install it, or write the hook in another language",
		}
	}
	return append(slices.Clip(interpreter), file), nil
}

// hasInterpreter reports whether a file says itself what runs it.
func hasInterpreter(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	begin := make([]byte, 2)
	_, err = io.ReadFull(f, begin)
	return err == nil && string(begin) == "#!"
}

// Close ends what runs of the program. After it nothing is answered.
func (p *Program) Close() { p.close.Do(p.guard.Close) }

// RoundTrip runs the program for a request. It is part of http.RoundTripper.
func (p *Program) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	answer, err := p.run(req.Context(), p.options.Name(req), body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": []string{"application/json"}}, ContentLength: int64(len(answer)),
		Body: io.NopCloser(bytes.NewReader(answer)),
	}, nil
}

// run runs the program once and returns what it printed.
func (p *Program) run(ctx context.Context, hook string, body []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	args := p.command[1:]
	if hook != "" {
		args = append(slices.Clip(args), hook)
		if filepath.Base(p.command[0]) == "jq" { // for which an argument is a file
			args = append(slices.Clip(p.command[1:]), "--arg", "hook", hook)
		}
	}
	out, errs := &limited{most: mostAnswer}, &limited{most: mostLog}
	cmd := exec.Command(p.command[0], args...) //nolint:noctx // the guard ends all of its group
	cmd.Dir, cmd.Env = filepath.Dir(p.command[len(p.command)-1]), append(os.Environ(), p.options.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = bytes.NewReader(body), out, errs, endPatience
	name := filepath.Base(p.options.File)
	group, err := p.guard.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer group.End(endPatience) // what the program has started ends with it
	stop := context.AfterFunc(ctx, group.Kill)
	err = cmd.Wait()
	stop()
	lines := strings.Split(strings.TrimRight(errs.String(), "\n"), "\n")
	logger := log.FromContext(ctx)
	for _, line := range lines[:min(len(lines), mostLines)] {
		if line != "" {
			logger.Info(line, "hook", name)
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, exec.ErrWaitDelay): // something that it left behind held its output; it has ended by itself
	case err != nil:
		return nil, &Failed{Program: name, How: err.Error(), Last: lastOf(lines)}
	}
	return out.Bytes(), nil
}

// Failed is the error of a program that ended with another exit code than 0.
type Failed struct {
	// Program is the name of its file.
	Program string
	// How is how it ended, such as "exit status 1".
	How string
	// Last is the last line that it printed on its standard error.
	Last string
}

// Error returns how it ended, and its last line.
func (f *Failed) Error() string {
	if f.Last == "" {
		return fmt.Sprintf("%s ended with %s, without a word", f.Program, f.How)
	}
	return fmt.Sprintf("%s ended with %s: %s", f.Program, f.How, f.Last)
}

// lastOf returns the last line that is not empty.
func lastOf(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// limited keeps the beginning of what is written to it.
type limited struct {
	bytes.Buffer
	most int
}

// Write keeps what there is room for, and takes all.
func (l *limited) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), max(0, l.most-l.Len()))])
	return len(p), nil
}
