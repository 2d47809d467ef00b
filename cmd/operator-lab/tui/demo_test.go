package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
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
	var lesson *demoLesson
	if os.Getenv("DEMO_LESSON") != "" {
		lesson = &demoLesson{}
		o.Guide = lesson
	}
	ctx := context.Background() //nolint:forbidigo // a main function: nobody gives it one
	switch mode {
	case "pick":
		id, _, err := Pick(ctx, demoPick(o.Language))
		fmt.Printf("picked %q, %v\n", id, err)
		return 0
	case "explore":
		now := demoExploration()
		now.Findings[0].Journal = duet().journal
		err := Explore(ctx, ExploreOptions{Title: "keeper: keep", Now: func() Exploration { now.Played++; return now }, Look: Options{Language: o.Language}})
		fmt.Printf("explored, %v\n", err)
		return 0
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
		defer func() { stop() }()
		if lesson != nil {
			lesson.state = trace.NewTimeline(o.Journal)
			lesson.restart = func() *Source {
				stop()
				stop = liveDemo(&o, mode)
				return &Source{Journal: o.Journal, Controls: o.Controls}
			}
		}
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
	o.Controls = Controls{Loop: h, Cluster: &demoCluster{h}, Facts: "k8s 1.36", Shell: demoShell}
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
		o.Guide = panics{o.Journal}
	}
	return func() { close(done); over.Wait() }
}

func demoBoot(ctx context.Context, step func(Step), c Controls, mode string) (Controls, error) {
	for i, name := range []string{"certificates", "etcd", "kube-apiserver", "controllers", "CRDs"} {
		step(Step{Name: name})
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return Controls{}, ctx.Err()
		}
		if mode == "bootfail" && i == 2 {
			return Controls{}, errors.New("kube-apiserver ended: the port 6443 is taken by another program")
		}
		step(Step{Name: name, Done: true, Took: time.Second, Detail: "127.0.0.1"})
	}
	return c, nil
}

// demoShell is a shell that says where it is.
func demoShell() (*exec.Cmd, error) {
	cmd := exec.Command("sh")
	cmd.Env = append(os.Environ(), "PS1=lesson$ ")
	return cmd, nil
}

// panics is a guide that fails when some reconciles are seen.
type panics struct{ journal *trace.Journal }

func (g panics) Page() Page {
	if g.journal.Stats().Last > 60 {
		panic("a bug, on purpose")
	}
	return Page{}
}

func (panics) Do(context.Context, Action, string, func(Step)) (*Source, error) { return nil, nil }

// demoLesson is a lesson of two tasks that ticks itself. It can be undone: that begins the song anew.
type demoLesson struct {
	mu      sync.Mutex
	state   *trace.Timeline
	restart func() *Source
	task    int
	hints   int
	solved  bool
	answer  string
	last    Page
}

func (l *demoLesson) Page() Page {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == nil {
		return Page{}
	}
	l.state.Update()
	tip := l.state.Tip()
	checks := []Task{{"Three reconciles ran", tip.Total().Reconciles > 2}, {"The loop is paused", tip.Mode().Paused}}
	all := []string{"Three lines in pane 3 are enough.", "Press `space`."}
	p := Page{
		Lesson: "2/9  Keys, not events", Task: itoa(l.task+1) + "/2  See a merge", Next: "Task " + itoa(l.task+2),
		Text:   "A controller is never told **what** happened. It is told *which* object to look at.\n\n```sh\nkubectl get hikawa demo -o yaml\n```",
		Checks: checks, Hints: all[:l.hints], More: l.hints < len(all), DoneText: "The queue stores keys: three events became one visit.",
		Done: checks[0].Done && checks[1].Done,
	}
	if l.solved {
		p.Solution = "Press `space` while it sings."
	}
	if l.task == 1 {
		p.Question, p.Answer, p.Last, p.Next = "How many reconciles run?", l.answer, true, ""
		p.Done = p.Done && l.answer == "1"
	}
	for _, c := range checks {
		if !c.Done && p.Missing == "" {
			p.Missing = c.Text
		}
	}
	if p.Serial = l.last.Serial; !reflect.DeepEqual(p, l.last) {
		p.Serial++
		l.last = p
	}
	return p
}

func (l *demoLesson) Do(ctx context.Context, what Action, text string, step func(Step)) (*Source, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch what {
	case ActHint:
		l.hints++
	case ActSolution:
		l.solved = true
	case ActAnswer:
		l.answer = text
	case ActNext:
		l.task, l.hints, l.solved = l.task+1, 0, false
	case ActUndo:
		for _, name := range []string{"etcd", "kube-apiserver"} {
			step(Step{Name: name})
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			step(Step{Name: name, Done: true, Took: time.Second})
		}
		source := l.restart()
		l.state = trace.NewTimeline(source.Journal)
		return source, nil
	case ActCheck:
	}
	return nil, nil
}

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

func (c *demoCluster) Create(context.Context, []byte) error {
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

func (c *demoCluster) Fields(context.Context, string, string) ([]Field, error) { return nil, nil }

func (c *demoCluster) Delete(_ context.Context, ref trace.Ref) error {
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	ref.UID = c.sim.uids[ref.Name]
	raw := c.sim.raw[ref.Name]
	c.sim.append(trace.Event{Kind: trace.KindCall, Actor: "you", Verb: trace.VerbDelete, Object: ref, Before: raw, Source: trace.Server, Status: 200})
	c.sim.watch(trace.Deleted, ref, c.sim.version(), raw, true)
	return nil
}
