package sandbox

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// TestStopWhileLaunching stops a program between its being asked to start and its being there: there is nothing yet to be
// halted, and it is ended as soon as there is.
func TestStopWhileLaunching(t *testing.T) {
	launching, halted, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	cmd := exec.Command("/bin/sh", "-c", `echo "`+guard.PIDPrefix+`$$" >&2; exec sleep 600`)
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

// TestHoldWhileLaunching takes the power from a program at all moments of its being started, and gives it back at once, as a
// restore does that is cut off: it is started again, and nobody is told that it would not come up.
func TestHoldWhileLaunching(t *testing.T) {
	launched := make(chan struct{}, 1)
	c := &command{path: "/bin/sh", args: []string{"-c", `echo "` + guard.PIDPrefix + `$$" >&2; echo "` + guard.ReadyLine + `" >&2; exec sleep 600`}}
	p := &program{name: "held", logFile: filepath.Join(t.TempDir(), "log"), halt: c.halt, launch: func(ctx context.Context, out *output) error {
		select {
		case launched <- struct{}{}:
		default:
		}
		return c.launch(ctx, out)
	}}
	if err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	watched := make(chan error, 1)
	go func() {
		watched <- p.watch(t.Context(), func(e Exit) { t.Errorf("it is said of what was held: %+v", e) })
	}()
	for range 200 {
		select {
		case <-launched:
		case err := <-watched:
			t.Fatalf("it was given up: %v", err)
		}
		p.hold()
		p.release()
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if err := <-watched; err != nil {
		t.Error(err)
	}
	if n := p.restarted(); n != 0 {
		t.Errorf("it was started again %d times because it died", n)
	}
}

// TestStartsAgain has a program not come up for some times, as one does that needs another that is just away: it is tried
// again, as often as one that dies, and then what it said last is told.
func TestStartsAgain(t *testing.T) {
	for _, test := range []struct {
		name     string
		failures int32
		comes    bool
	}{{"often", maxRestarts, true}, {"too often", maxRestarts + 1, false}} {
		t.Run(test.name, func(t *testing.T) {
			var starts, told atomic.Int32
			c := &command{path: "/bin/sh"}
			p := &program{name: "moody", logFile: filepath.Join(t.TempDir(), "log"), halt: c.halt, launch: func(ctx context.Context, out *output) error {
				script := `echo "` + guard.PIDPrefix + `$$"; echo "` + guard.ReadyLine + `"; exec sleep 600`
				if n := starts.Add(1); n > 1 && n-1 <= test.failures {
					script = "echo no; exit 1"
				}
				c.args = []string{"-c", script}
				return c.launch(ctx, out)
			}}
			if err := p.start(t.Context()); err != nil {
				t.Fatal(err)
			}
			watched := make(chan error, 1)
			go func() { watched <- p.watch(t.Context(), func(Exit) { told.Add(1) }) }()
			p.kill()
			if err := p.awaitServing(t.Context()); err != nil || (p.now() == stopped) == test.comes {
				t.Errorf("given up: %v (%v)", p.now() == stopped, err)
			}
			if err := p.stop(); err != nil {
				t.Error(err)
			}
			if err := <-watched; (err == nil) != test.comes || err != nil && !strings.Contains(err.Error(), "moody did not start; the end of its log") {
				t.Error(err)
			}
			if n := told.Load(); n != test.failures+1 {
				t.Errorf("%d ends were told, not %d", n, test.failures+1)
			}
		})
	}
}
