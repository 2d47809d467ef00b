package guard

import (
	"os/exec"
	"syscall"
	"testing"
)

// TestNumberGivenAgain checks that a group which ended unseen is not taken for another one that got its number.
func TestNumberGivenAgain(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*Guard, *Group){
		"a signal": func(_ *Guard, p *Group) { p.Signal(syscall.SIGKILL) },
		"Kill":     func(_ *Guard, p *Group) { p.Kill() },
		"End":      func(_ *Guard, p *Group) { p.End(0) },
		"Close":    func(g *Guard, _ *Group) { g.Close() },
		"Alive": func(_ *Guard, p *Group) {
			if p.Alive() {
				t.Error("the group is said to be alive")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := New(Options{})
			defer g.Close()
			first := exec.Command("true")
			if _, err := g.Start(first); err != nil { // so that the shell runs
				t.Fatal(err)
			}
			if err := first.Wait(); err != nil {
				t.Fatal(err)
			}
			stranger := exec.Command("cat") // until its input ends
			stranger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			input, err := stranger.StdinPipe()
			if err == nil {
				err = stranger.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			p := &Group{guard: g, id: stranger.Process.Pid, begun: "1"}
			g.add(p)
			do(g, p)
			g.Close() // the shell kills whatever is still on its list
			if err := input.Close(); err != nil {
				t.Error(err)
			}
			if err := stranger.Wait(); err != nil {
				t.Errorf("the stranger: %v", err)
			}
		})
	}
}
