package hook_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/hook"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// script writes a file of a test and returns its path.
func script(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

// ask runs a program for the text "question" and returns its answer.
func ask(ctx context.Context, t *testing.T, o hook.Options) (string, error) {
	t.Helper()
	p, err := hook.New(o)
	if err != nil {
		return "", err
	}
	defer p.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://anywhere/sync", strings.NewReader("question"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := p.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	return string(answer), err
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	file := script(t, "sync.sh", `echo "$(cat) $1 $OF"`, 0o600)
	answer, err := ask(t.Context(), t, hook.Options{File: file, Env: []string{"OF=mine"}, Name: func(r *http.Request) string { return r.URL.Path[1:] }})
	if err != nil || answer != "question sync mine\n" {
		t.Errorf("it answered %q (error: %v)", answer, err)
	}
	executable := script(t, "sync", "#!/bin/sh\ncat", 0o700)
	if answer, err := ask(t.Context(), t, hook.Options{File: executable}); err != nil || answer != "question" {
		t.Errorf("it answered %q (error: %v)", answer, err)
	}
}

func TestFails(t *testing.T) {
	t.Parallel()
	_, err := ask(t.Context(), t, hook.Options{File: script(t, "sync.sh", "echo first >&2; echo 'no such key' >&2; exit 3", 0o600)})
	if err == nil || err.Error() != "sync.sh ended with exit status 3: no such key" {
		t.Errorf("the error is %v", err)
	}
	if _, err := ask(t.Context(), t, hook.Options{File: script(t, "sync.sh", "exit 4", 0o600)}); err == nil || !strings.HasSuffix(err.Error(), "without a word") {
		t.Errorf("the error is %v", err)
	}
}

// TestTooSlow ends a program, and what it has started, when the time is up.
func TestTooSlow(t *testing.T) {
	t.Parallel()
	slow := errors.New("it is too slow")
	ctx, cancel := context.WithCancelCause(t.Context())
	pipe := filepath.Join(t.TempDir(), "began")
	file := script(t, "sync.sh", "sleep 600 & touch "+pipe+"; wait", 0o600)
	ended := make(chan error, 1)
	go func() {
		_, err := ask(ctx, t, hook.Options{File: file})
		ended <- err
	}()
	sandboxtest.Eventually(t, "the program runs", func() error {
		_, err := os.Stat(pipe)
		return err
	})
	cancel(slow)
	if err := <-ended; !errors.Is(err, slow) {
		t.Errorf("the error is %v", err)
	}
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"no such file":       filepath.Join(t.TempDir(), "none.py"),
		"is no file":         t.TempDir(),
		"cannot be executed": script(t, "sync.txt", "", 0o600),
	} {
		_, err := hook.New(hook.Options{File: file})
		if err == nil || !strings.Contains(err.Error(), name) || sandbox.HintOf(err) == "" {
			t.Errorf("%s: the error is %v, with the hint %q", name, err, sandbox.HintOf(err))
		}
	}
}

// TestNoInterpreter says which one is missing.
func TestNoInterpreter(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := hook.New(hook.Options{File: script(t, "sync.py", "", 0o600)})
	if err == nil || !strings.Contains(err.Error(), "needs python3") {
		t.Errorf("the error is %v", err)
	}
}
