package tui

import (
	"bytes"
	"io"
	"os/exec"
	"runtime/pprof"
	"time"

	tea "charm.land/bubbletea/v2"
)

// outside gives the terminal to a command and then back to the screen, and ends with what a function makes of its result.
//
// It is tea.ExecProcess, but for a race there (charmbracelet/bubbletea#1778): the goroutine that draws is told to end and
// not waited for, and the last thing it does is to stop the ticker. If the command ends sooner, that is the ticker of the
// screen that has come back, and nothing is ever drawn again.
func outside(cmd *exec.Cmd, fn tea.ExecCallback) tea.Cmd { return tea.Exec(outsideCommand{cmd}, fn) }

type outsideCommand struct{ *exec.Cmd }

func (c outsideCommand) SetStdin(r io.Reader)  { c.Stdin = r }
func (c outsideCommand) SetStdout(w io.Writer) { c.Stdout = w }
func (c outsideCommand) SetStderr(w io.Writer) { c.Stderr = w }

// drawnPatience bounds the wait for the goroutine that draws, which has nothing left to wait for itself.
const drawnPatience = 5 * time.Second

// Run runs the command when nothing draws on the terminal any more.
func (c outsideCommand) Run() error {
	for began := time.Now(); drawing() && time.Since(began) < drawnPatience; {
		time.Sleep(time.Millisecond)
	}
	return c.Cmd.Run()
}

// drawing reports whether there is a goroutine of Bubble Tea that draws. It has no name but that of its function.
func drawing() bool {
	var stacks bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1) // a buffer takes all
	return bytes.Contains(stacks.Bytes(), []byte("bubbletea/v2.(*Program).startRenderer."))
}
