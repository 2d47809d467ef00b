package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/pflag"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/lessons/session"
	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// lookFlags are the flags for language, colours and the screen.
type lookFlags struct {
	lang     string
	ascii    bool
	color    bool
	noColor  bool
	noMotion bool
	mouse    bool
}

func (f *lookFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.lang, "lang", "", "language: en or ja (default: that of the locale)")
	flags.BoolVar(&f.ascii, "ascii", false, "draw with ASCII characters only")
	flags.BoolVar(&f.color, "color", false, "use colours, also where NO_COLOR asks for none")
	flags.BoolVar(&f.noColor, "no-color", false, "use no colours, as with NO_COLOR")
	flags.BoolVar(&f.noMotion, "no-motion", false, "show no running clocks")
	flags.BoolVar(&f.mouse, "mouse", false, "let the mouse be used; select text with shift then")
}

func (f *lookFlags) check() error {
	if f.color && f.noColor {
		return usageError("use one of them", "--color and --no-color exclude each other")
	}
	switch f.lang {
	case "", "en", "ja":
		return nil
	}
	return usageError("use --lang en or --lang ja", "there is no language %q", f.lang)
}

func (f *lookFlags) language() trace.Language {
	if f.lang != "" {
		return trace.LanguageOf(f.lang)
	}
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if locale := os.Getenv(name); locale != "" {
			return trace.LanguageOf(locale)
		}
	}
	return trace.English
}

// options returns the options of the screen that flags set.
func (f *lookFlags) options(io streams, journal *trace.Journal) tui.Options {
	return tui.Options{
		Journal: journal, Language: f.language(), ASCII: f.ascii, NoColor: f.noColor, ForceColor: f.color, NoMotion: f.noMotion, Mouse: f.mouse,
		In: io.in, Out: io.out, Code: bundledSource(false),
	}
}

// bundledSource returns files of the bundled operators, as this binary was built from.
func bundledSource(changed bool) func(operator, file string) (string, bool, error) {
	return func(operator, file string) (string, bool, error) {
		if _, known := operators.Find(operator); !known && !strings.HasPrefix(file, "operators/"+operator+"/") {
			return "", false, errors.New("the source is not at hand")
		}
		text, err := operators.Source(file)
		return text, changed, err
	}
}

// onScreen shows the run on the terminal until the person quits.
func (p *liveRun) onScreen(ctx context.Context) (err error) {
	var s *liveOperator
	o := p.flags.look.options(p.io, p.journal)
	o.Title = p.title
	if len(p.flags.nodes.olmOperators()) > 0 {
		o.Operator = p.name
	}
	if p.source != nil {
		o.Code = p.source
	}
	o.Boot = func(ctx context.Context, step func(tui.Step)) (tui.Controls, error) {
		first := tui.Step{Name: "data"}
		if p.cluster != nil {
			first = tui.Step{Name: "cluster", Detail: p.cluster.config.Host}
		}
		step(first)
		p.step = step
		began, err := p.begin(ctx, bootSteps(step))
		if err != nil {
			return tui.Controls{}, err
		}
		s = began
		controls := tui.Controls{
			Loop: s.loop, Cluster: screenObjects{s.you},
			Faults:  faultMenu(s.arming(), p.name, p.flags.look.language(), p.flags.nodes.run()),
			Samples: p.subject.samples(s), Demo: p.subject.paced(),
			Shell:   func() (*exec.Cmd, error) { return p.greetedShell(s.target) },
			Command: func(command string) (*exec.Cmd, error) { return p.shownCommand(s.target, command) },
			Reach:   reached(s.target.name),
			Sandbox: s.target.name,
			Restart: func() { s.lab.Restart(s.name) },
			Facts:   "k8s " + dependency("k8s.io/kubernetes"),
		}
		if c := p.cluster; c != nil { // it is reached as ever
			controls.Shell, controls.Command, controls.Sandbox, controls.Facts = nil, nil, "", "k8s "+strings.TrimPrefix(c.version, "v")
			controls.Reach = "kubectl --kubeconfig " + shellQuote(c.file) + " --context " + shellQuote(c.context)
		}
		return controls, nil
	}
	p.screen.Store(true)
	err = tui.Run(ctx, o)
	p.screen.Store(false)
	if s != nil {
		// The person has seen it all; only what came of it and where it is kept is left to say.
		p.tellStory()
		err = errors.Join(err, p.subject.summary(context.WithoutCancel(ctx), s), s.end(ctx))
	}
	if errors.Is(err, context.Canceled) {
		err = nil // quit while it booted
	}
	return errors.Join(err, p.saveJournal())
}

// tellStory prints in four lines what happened.
func (p *liveRun) tellStory() {
	timeline := trace.NewTimeline(p.journal)
	timeline.Update()
	for _, line := range timeline.Tip().Story(p.flags.look.language(), p.flags.nodes.olmOperators()...) {
		fmt.Fprintln(p.io.out, line)
	}
}

// reached is the command that reaches a sandbox from another terminal.
func reached(name string) string { return "operator-lab kubectl --name " + name }

// shellOf returns a shell in which kubectl uses the sandbox.
func shellOf(t *target) (*exec.Cmd, error) {
	kubectl, err := ownKubectl()
	if err != nil {
		return nil, err
	}
	return session.Place{Kubeconfig: t.kubeconfig, Proxy: t.proxy, Cache: t.dir}.Shell(kubectl)
}

// shownCommand returns a command that runs another one in such a shell; see [shown].
func (p *liveRun) shownCommand(t *target, command string) (*exec.Cmd, error) {
	cmd, err := shellOf(t)
	if err != nil {
		return nil, err
	}
	return shown(cmd, command, lessonLanguage(p.flags.look)), nil
}

// greetedShell returns such a shell, which first says how to come back.
func (p *liveRun) greetedShell(t *target) (*exec.Cmd, error) {
	cmd, err := shellOf(t)
	if err != nil {
		return nil, err
	}
	text := "\nkubectl finds the sandbox %s here; the operator goes on. In another terminal:\n\n    %s get pods -A\n\n(exit goes back to the screen)\n"
	if p.flags.look.language() == trace.Japanese {
		text = "\nここの kubectl はサンドボックス %s につながります。オペレーターは動き続けます。別の端末からは:\n\n    %s get pods -A\n\n(exit で画面に戻ります)\n"
	}
	return greeted(cmd, fmt.Sprintf(text, t.name, reached(t.name))), nil
}

// noStep is for runs without a screen.
func noStep(tui.Step) {}

// told prints where the journal is.
func (p *liveRun) told(path string) {
	text := p.flags.look.language().Choose("journal    %s\nreopen it  operator-lab replay %s\n", "記録       %s\n再表示     operator-lab replay %s\n")
	fmt.Fprintf(p.io.err, text, path, shellQuote(path))
}
