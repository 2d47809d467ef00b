package shell_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/node/shell"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest/output"
)

// patience is the time limit for a condition on a busy machine.
const patience = 60 * time.Second

// sit sits down at a terminal.
func sit(t *testing.T, w *shell.Container, argv ...string) (keys io.Writer, s *output.Output, code <-chan int) {
	t.Helper()
	in, keyboard := io.Pipe()
	s = &output.Output{}
	ended := make(chan int, 1)
	sizes := make(chan shell.Size, 3)
	sizes <- shell.Size{Width: 120, Height: 40}
	sizes <- shell.Size{}
	sizes <- shell.Size{Width: 1, Height: 1} // what kubectl says when it attaches without a terminal of its own
	close(sizes)
	go func() {
		ended <- w.RunOnTerminal(t.Context(), argv, struct {
			io.Reader
			io.Writer
		}{in, s}, sizes)
	}()
	t.Cleanup(func() { _ = keyboard.Close() })
	return keyboard, s, ended
}

func press(t *testing.T, keys io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(keys, text); err != nil {
		t.Fatal(err)
	}
}

func TestAShellOnATerminal(t *testing.T) {
	keys, s, code := sit(t, newContainer(t), "sh")
	s.Await(t, "/ # ")
	press(t, keys, "echo 1 2 | wc -w\r")
	s.Await(t, "2\r\n")
	press(t, keys, "cd /tmp\r")
	s.Await(t, "/tmp # ")
	press(t, keys, "if true\r")
	s.Await(t, "> ")
	press(t, keys, "then echo yes''terday; fi\r")
	s.Await(t, "yesterday\r\n")
	press(t, keys, "select\r")
	s.Await(t, "sh: syntax error")
	press(t, keys, "cat <<EOF\r")
	s.Await(t, "> ")
	press(t, keys, "here''after\rEOF\r")
	s.Await(t, "\nhere''after\r\n")
	press(t, keys, "sleep infinity &\r echo code $? $0\r")
	s.Await(t, "code 0 sh\r\n")
	press(t, keys, "exit 5\r")
	if got := <-code; got != 5 {
		t.Errorf("exit code %d", got)
	}
}

// TestAShellThatAScriptBecomes is what k9s does for its shell.
func TestAShellThatAScriptBecomes(t *testing.T) {
	keys, s, code := sit(t, newContainer(t), "sh", "-c", "cd /tmp; command -v bash >/dev/null && exec bash || exec sh")
	s.Await(t, "/tmp # ")
	press(t, keys, "not to be run\x03")
	press(t, keys, "echo be''gun; sleep infinity\r")
	s.Await(t, "begun\r\n")
	press(t, keys, "\x03echo code $?\r")
	s.Await(t, "code 130")
	press(t, keys, "cd /etc; sh\r") // one in the other
	s.Await(t, "/etc # ")
	press(t, keys, "cd /; cat\r")
	press(t, keys, "tex''t\r")
	s.Await(t, "tex''t\r\ntex''t\r\n")
	press(t, keys, "\x04")
	press(t, keys, "exit 3\r")
	press(t, keys, "echo inner $?\r")
	s.Await(t, "inner 3")
	press(t, keys, "exit 5\r")
	if got := <-code; got != 5 {
		t.Errorf("exit code %d", got)
	}
	keys, s, code = sit(t, newContainer(t), "sh", "-c", "sh; cat")
	s.Await(t, "/ # ")
	press(t, keys, "\x04")
	press(t, keys, "for the ca''t\r")
	s.Await(t, "ca''t\r\nfor the ca''t\r\n")
	press(t, keys, "\x03")
	if got := <-code; got != 130 {
		t.Errorf("exit code %d", got)
	}
}

func TestCtrlC(t *testing.T) {
	keys, s, code := sit(t, newContainer(t), "sh")
	s.Await(t, "# ")
	press(t, keys, "echo be''gun; sleep infinity\r")
	s.Await(t, "begun\r\n")
	press(t, keys, "\x03")
	press(t, keys, "echo code $?\r")
	s.Await(t, "code 130")
	press(t, keys, "echo rea''ding; cat\r")
	s.Await(t, "reading\r\n")
	press(t, keys, "tex''t\r")
	s.Await(t, "tex''t\r\ntex''t\r\n")
	press(t, keys, "\x03")
	press(t, keys, "echo code again $?\r")
	s.Await(t, "code again 130")
	press(t, keys, "not to be run\x03echo af''ter\r")
	s.Await(t, "after\r\n")
	press(t, keys, "\x04")
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
	if strings.Contains(s.String(), "not: not found") {
		t.Error("an interrupted line was run")
	}
}

// TestCtrlD ends what a command reads, and not the shell: what is typed next must not be typed into somebody's own machine.
func TestCtrlD(t *testing.T) {
	keys, s, code := sit(t, newContainer(t), "sh")
	for _, word := range []string{"first", "second"} {
		press(t, keys, "echo beg''un "+word+"; cat\r")
		s.Await(t, "begun "+word)
		press(t, keys, word+" line\r")
		s.Await(t, word+" line\r\n"+word+" line\r\n")
		press(t, keys, "\x04echo code $? "+word+"\r") // typed at once
		s.Await(t, "code 0 "+word)
	}
	press(t, keys, "\x1b[A\r") // the line before
	s.Await(t, "code 0 second\r\n/ # echo code $? second\r\ncode 0 second")
	press(t, keys, "\x04")
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
}

func TestACommandOnATerminal(t *testing.T) {
	keys, s, code := sit(t, newContainer(t), "cat")
	press(t, keys, "line\r")
	s.Await(t, "line\r\nline\r\n")
	press(t, keys, "\x04")
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
	_, s, code = sit(t, newContainer(t), "echo", "hi")
	if got := <-code; got != 0 || s.String() != "hi\r\n" {
		t.Errorf("exit code %d, %q", got, s)
	}
}
