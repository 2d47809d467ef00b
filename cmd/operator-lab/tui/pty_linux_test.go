package tui

import (
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/creack/pty"
)

// ptyPatience bounds every wait; it is only ever used up by a failure.
const ptyPatience = 60 * time.Second

// terminal is a program in a terminal.
type terminal struct {
	*testing.T
	cmd    *exec.Cmd
	tty    *os.File // the program's side, kept open to look at its settings
	pty    *os.File
	screen *screen
	before syscall.Termios
	ended  chan struct{} // closed when the program has ended
}

// startDemo runs this test binary as the demo program.
func startDemo(t *testing.T, mode string, w, h int, env ...string) *terminal {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), demoEnv+"="+mode, "NO_COLOR=", "DEMO_FILE=", "DEMO_LESSON=", "DEMO_ASCII=")
	cmd.Env = append(cmd.Env, env...)
	return startIn(t, cmd, w, h)
}

// startIn runs a program in a terminal of its own.
func startIn(t *testing.T, cmd *exec.Cmd, w, h int) *terminal {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo terminal here: ", err)
	}
	term := &terminal{T: t, cmd: cmd, pty: master, tty: tty, screen: newScreen(w, h), ended: make(chan struct{})}
	term.resizeTTY(w, h)
	term.before = settings(t, tty)
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", "LANG=C.UTF-8", "LC_ALL=", "LC_MESSAGES=")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	copied := make(chan struct{})
	go func() {
		_, _ = io.Copy(term.screen, master) // it ends when the terminal is closed
		close(copied)
	}()
	go func() { defer close(term.ended); _ = cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = tty.Close()
		_ = master.Close()
		<-copied
	})
	return term
}

func settings(t *testing.T, tty *os.File) syscall.Termios {
	t.Helper()
	var s syscall.Termios
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, tty.Fd(), syscall.TCGETS, uintptr(unsafe.Pointer(&s))); errno != 0 {
		t.Fatal(errno)
	}
	return s
}

func (t *terminal) resizeTTY(w, h int) {
	t.Helper()
	if err := pty.Setsize(t.pty, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)}); err != nil {
		t.Fatal(err)
	}
}

func (t *terminal) resize(w, h int) {
	t.Helper()
	t.screen.resize(w, h)
	t.resizeTTY(w, h)
}

func (t *terminal) send(keys string) {
	t.Helper()
	if _, err := t.pty.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// stepToWrite presses S until a write is held: the first key taken may belong to a reconcile that has nothing to say.
func (t *terminal) stepToWrite() {
	t.Helper()
	for range 5 {
		t.await("PAUSED", "1 ready")
		t.send("S")
		if t.shows(5*time.Second, "NOT SENT YET") {
			return
		}
	}
	t.await("NOT SENT YET")
}

// await waits until all texts are on the screen at once.
func (t *terminal) await(texts ...string) {
	t.Helper()
	if !t.shows(ptyPatience, texts...) {
		t.Fatalf("waited in vain for %q; not understood: %q; the screen is\n%s", texts, t.screen.unknown, t.screen.text())
	}
}

// shows reports whether all texts come to be on the screen at once, within a time.
func (t *terminal) shows(within time.Duration, texts ...string) bool {
	timeout := time.After(within)
	for {
		seen := t.screen.text()
		if !slices.ContainsFunc(texts, func(want string) bool { return !strings.Contains(seen, want) }) {
			return true
		}
		select {
		case <-t.screen.changed:
		case <-timeout:
			return false
		}
	}
}

// awaitEnd waits for the program's end and checks that it left the terminal as it was.
func (t *terminal) awaitEnd(code int) {
	t.Helper()
	select {
	case <-t.ended:
	case <-time.After(ptyPatience):
		t.Fatalf("the program does not end; the screen is\n%s", t.screen.text())
	}
	if got := t.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d; the screen is\n%s", got, code, t.screen.text())
	}
	if after := settings(t.T, t.tty); after != t.before {
		t.Errorf("the terminal's settings were %+v and are %+v", t.before, after)
	}
	timeout := time.After(ptyPatience) // what was written last may still be on its way
	for len(t.screen.leftOver()) > 0 {
		select {
		case <-t.screen.changed:
		case <-timeout:
			t.Fatalf("modes are left over: %v", t.screen.leftOver())
		}
	}
}

func TestInATerminal(t *testing.T) {
	term := startDemo(t, "live", 120, 40)
	term.await("LIVE", "#6", "backoff 5ms, try 1")
	term.send(" ")
	term.await("PAUSED", "1 waiting")
	term.stepToWrite()
	term.await("NOT SENT YET", "a write is held", "planned", "create Zundoko")
	term.resize(80, 24)
	term.await("PAUSED", "NOT SENT YET", "q quit")
	term.send("S") // sends it
	term.await("patch", "NOT SENT YET")
	term.send("[[")
	term.await("REWIND")
	term.resize(200, 50)
	term.await("REWIND", "Cause and effect", "as of #", "later than this")
	term.send(" ")
	term.await("press L first")
	term.resize(40, 10)
	term.await("needs 60x16")
	term.resize(120, 40)
	term.await("REWIND")
	term.send("L")
	term.await("PAUSED", "a write is held")
	term.send("w")
	term.await("What the screen says")
	term.send("w")
	term.await("保留している")
	term.send("\x1b")
	term.await("q quit")
	term.send(" ")
	term.await("LIVE")
	term.send("q")
	term.awaitEnd(0)
	term.await("goodbye")
}

func TestQuitWhileAWriteIsHeld(t *testing.T) {
	term := startDemo(t, "live", 120, 40)
	term.await("LIVE", "#2")
	term.send(" ")
	term.stepToWrite()
	term.send("\x03") // ctrl+c
	term.awaitEnd(0)
	term.await("goodbye")
}

func TestSignalsRestoreTheTerminal(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			term := startDemo(t, "live", 80, 24)
			term.await("LIVE", "#2")
			if err := term.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			term.awaitEnd(0)
			term.await("goodbye")
		})
	}
}

func TestPanicRestoresTheTerminal(t *testing.T) {
	term := startDemo(t, "panic", 80, 24)
	term.awaitEnd(1)
	term.await("the terminal UI failed")
}

func TestBootInATerminal(t *testing.T) {
	term := startDemo(t, "boot", 80, 24)
	term.await("certificates", "etcd")
	term.await("LIVE")
	term.send("q")
	term.awaitEnd(0)
}

func TestQuitWhileBooting(t *testing.T) {
	term := startDemo(t, "boot", 80, 24)
	term.await("certificates")
	term.send("q")
	term.awaitEnd(0)
}

func TestFailedBootInATerminal(t *testing.T) {
	term := startDemo(t, "bootfail", 80, 24)
	term.await("it did not start", "the port 6443 is taken")
	term.send("q")
	term.awaitEnd(1)
	term.await("error: kube-apiserver ended")
}

func TestEditInATerminal(t *testing.T) {
	term := startDemo(t, "live", 120, 40, "KUBE_EDITOR=", "VISUAL=", "EDITOR=echo '# edited' >>")
	term.await("LIVE", "#2")
	term.send(" 1e")
	term.await("edit Hikawa demo: done")
	term.await("MODIFIED by you")
	term.send("q")
	term.awaitEnd(0)
}

func TestLessonInATerminal(t *testing.T) {
	term := startDemo(t, "live", 80, 24, "DEMO_LESSON=1")
	term.await("5 Lesson", "1/2  See a merge", "what happened", "h hint")
	term.send("h")
	term.await("Hint 1", "pane 3 are enough")
	term.send("n")
	term.await("n: not yet")
	term.send("3")
	term.await("3 Loop", "[✓][ ]", "Not yet: The loop is paused")
	term.send("!")
	term.await("lesson$")
	term.send("echo from the $((40+2))nd shell; exit 3\r")
	term.await("3 Loop", "LESSON 2/9") // which command came last is its own business
	term.send(" ")
	term.await("PAUSED", "DONE", "n next")
	term.send("5")
	term.await("[✓] Done", "three events became one visit")
	term.send("uy")
	term.await("Putting the cluster back", "kube-apiserver")
	term.await("undone:", "LIVE", "[ ]", "Not yet:")
	term.send("3")
	term.await("[✓][ ]")
	term.send(" ")
	term.await("DONE")
	term.send("n")
	term.await("2/2  See a merge", "How many reconciles run?", "a answer")
	term.send("a1\r")
	term.await("DONE", "Your answer: 1")
	term.send("uyq") // in the middle of it
	term.awaitEnd(0)
	term.await("goodbye")
}

func TestPickInATerminal(t *testing.T) {
	term := startDemo(t, "pick", 80, 24)
	term.await("Watches and owners", "2 of 34 done")
	term.send("/zun\r")
	term.await("Run zundoko", "/zun")
	term.resize(120, 40)
	term.send("\r")
	term.awaitEnd(0)
	term.await(`picked "zundoko"`)
}

func TestExploreInATerminal(t *testing.T) {
	term := startDemo(t, "explore", 80, 24)
	term.await("of 40 plans", "crash-before at create ConfigMap", "18 of 40") // it looks again and again
	term.send("f")
	term.await("b crash-before")
	term.send("\r")
	term.await("REPLAY", "crash-before at create ConfigMap")
	term.send("q")
	term.await("operator-lab verify", "b crash-before") // the page is as it was left
	term.send("q")
	term.awaitEnd(0)
	term.await("explored, <nil>")
}

func TestReplayInATerminal(t *testing.T) {
	term := startDemo(t, "replay", 80, 24)
	term.await("REPLAY", "#16 of 16")
	term.send("[")
	term.await("REWIND", "#15 of 16")
	term.send("]]")
	term.await("REPLAY")
	term.send(" ")
	term.await("this is a recording")
	term.send("q")
	term.awaitEnd(0)
}
