package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// demoEnv makes the test binary a terminal program that the pty test (or you,
// in tmux) can drive:
//
//	go test -c -o /tmp/tui.test ./cmd/operator-lab/tui
//	OPERATOR_LAB_TUI_DEMO=live /tmp/tui.test        (or boot, replay, story, panic)
const demoEnv = "OPERATOR_LAB_TUI_DEMO"

func TestMain(m *testing.M) {
	if mode := os.Getenv(demoEnv); mode != "" {
		os.Exit(demo(mode))
	}
	os.Exit(m.Run())
}

func demo(mode string) int {
	o := Options{Title: "zundoko / first-song", Language: trace.LanguageOf(os.Getenv("LANG")), Mouse: os.Getenv("DEMO_MOUSE") != ""}
	if os.Getenv("DEMO_ASCII") != "" {
		o.ASCII = true
	}
	if os.Getenv("DEMO_LESSON") != "" {
		o.Narrator = &demoLesson{}
	}
	ctx := context.Background() //nolint:forbidigo // a main function: nobody gives it one
	switch mode {
	case "replay":
		o.Journal, o.Replay = duet().journal, true
		if name := os.Getenv("DEMO_FILE"); name != "" {
			j, notice, err := load(name)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			o.Journal, o.Notice = j, notice
		}
	case "story":
		o.Journal, o.Replay = story().journal, true
	default:
		stop := liveDemo(&o, mode)
		defer stop()
	}
	if err := Run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	fmt.Println("goodbye")
	return 0
}

func load(name string) (*trace.Journal, string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, "", err
	}
	defer f.Close() //nolint:errcheck // it is only read
	j, report, err := trace.Load(f, trace.Options{})
	return j, report.Text(trace.English), err
}

// liveDemo runs a sim in real time.
func liveDemo(o *Options, mode string) (stop func()) {
	o.Journal = trace.New(trace.Options{})
	rv := 800
	words := append(append([]string{}, song...), strings.Fields(strings.Repeat("Zun Doko ", 100))...)
	h := newSim(o.Journal, o.Journal.Elapsed, &rv, "hikawa", "Hikawa", "demo", "Zundoko", words...)
	h.conflict = 3
	o.Controls = Controls{Loop: h, Cluster: &demoCluster{h}, Facts: "k8s 1.36"}
	done, over := make(chan struct{}), sync.WaitGroup{}
	over.Go(func() {
		h.begin()
		for t := time.NewTicker(2 * time.Millisecond); ; {
			select {
			case <-done:
				t.Stop()
				return
			case <-t.C:
				h.tick()
			}
		}
	})
	switch mode {
	case "boot", "bootfail":
		controls := o.Controls
		o.Controls = Controls{}
		o.Boot = func(ctx context.Context, step func(Step)) (Controls, error) {
			return demoBoot(ctx, step, controls, mode)
		}
	case "panic":
		o.Narrator = panics{}
	}
	return func() { close(done); over.Wait() }
}

func demoBoot(ctx context.Context, step func(Step), c Controls, mode string) (Controls, error) {
	for i, name := range []string{"certificates", "etcd", "kube-apiserver", "controllers", "CRDs"} {
		step(Step{Name: name})
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
			return Controls{}, ctx.Err()
		}
		if mode == "bootfail" && i == 2 {
			return Controls{}, errors.New("kube-apiserver ended: the port 6443 is taken by another program")
		}
		step(Step{Name: name, Done: true, Took: 300 * time.Millisecond, Detail: "127.0.0.1"})
	}
	return c, nil
}

// panics is a narrator that fails when the first reconcile is seen.
type panics struct{}

func (panics) Narrate(s *trace.State) Narration {
	if len(s.Spans()) > 2 {
		panic("a bug, on purpose")
	}
	return Narration{}
}

func (panics) Next() {}

// demoLesson is a lesson that ticks itself.
type demoLesson struct{}

func (*demoLesson) Narrate(s *trace.State) Narration {
	return Narration{
		Title: "2/9  Keys, not events",
		Text:  "A controller is never told what happened. It is told WHICH object to look at. The queue stores keys, so three events become one visit.\n\nCheck yourself: how many reconciles ran, and why is that safe?",
		Tasks: []Task{{"see a merge", s.Total().Merged > 0}, {"hold a write", s.Mode().HoldWrites}},
		Hint:  "Press space, then e three times, then s.",
		Next:  s.Total().Merged > 0,
	}
}

func (*demoLesson) Next() {}

// demoCluster changes the sim's objects.
type demoCluster struct{ sim *sim }

func (c *demoCluster) Get(_ context.Context, ref trace.Ref) ([]byte, error) {
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	return []byte(strings.Join(yamlLines(c.sim.raw[ref.Name]), "\n") + "\n"), nil
}

func (c *demoCluster) Update(_ context.Context, text []byte) error {
	if strings.Contains(string(text), "invalid") {
		return errors.New("spec.mood: Invalid value")
	}
	c.sim.touch()
	return nil
}

func (c *demoCluster) Patch(_ context.Context, ref trace.Ref, merge []byte) error {
	if ref.Kind != c.sim.parent.Kind {
		return errors.New(ref.String() + ": a word that was said cannot be changed")
	}
	c.sim.touch()
	return nil
}

func (c *demoCluster) Delete(_ context.Context, ref trace.Ref) error {
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	ref.UID = c.sim.uids[ref.Name]
	raw := c.sim.raw[ref.Name]
	c.sim.append(trace.Event{Kind: trace.KindCall, Actor: "you", Verb: trace.VerbDelete, Object: ref, Before: raw, Source: trace.Server, Status: 200})
	c.sim.watch(trace.Deleted, ref, c.sim.version(), raw, true)
	return nil
}
