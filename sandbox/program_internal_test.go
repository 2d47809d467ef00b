package sandbox

import (
	"context"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/lifeline"
)

// TestStopWhileLaunching stops a program between its being asked to start and its being there: there is nothing yet to be
// halted, and it is ended as soon as there is.
func TestStopWhileLaunching(t *testing.T) {
	launching, halted, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	cmd := exec.Command("/bin/sh", "-c", `echo "`+lifeline.PIDPrefix+`$$" >&2; exec sleep 600`)
	p := &program{
		name: "slow", logFile: filepath.Join(t.TempDir(), "log"),
		launch: func(_ context.Context, out *output) error {
			close(launching)
			<-goOn
			cmd.Stderr = out.w
			if err := cmd.Start(); err != nil {
				return err
			}
			out.started()
			return cmd.Wait()
		},
		halt: sync.OnceValue(func() error {
			close(halted)
			return nil
		}),
	}
	started, stopped := make(chan error, 1), make(chan error, 1)
	go func() { started <- p.start(t.Context()) }()
	<-launching
	go func() { stopped <- p.stop() }()
	<-halted
	close(goOn)
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
		t.Error("the program runs, and stop waits for its end")
	}
	if err := <-started; err == nil {
		t.Error("it was killed, and start does not know")
	}
}
