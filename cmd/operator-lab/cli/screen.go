package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
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
		In: io.in, Out: io.out,
	}
}

// onScreen shows the demo on the terminal until the person quits.
func (p *demoRun) onScreen(ctx context.Context) (err error) {
	var demo *runningDemo
	o := p.flags.look.options(p.io, p.journal)
	o.Title = p.op.Name + " / " + p.instance.Variant()
	o.Boot = func(ctx context.Context, step func(tui.Step)) (tui.Controls, error) {
		step(tui.Step{Name: "data"})
		began, err := p.begin(ctx, bootSteps(step))
		if err != nil {
			return tui.Controls{}, err
		}
		demo = began
		return tui.Controls{
			Loop: demo.loop, Cluster: screenObjects{demo.you},
			Faults: faultMenu(demo.you, p.op.Name, p.flags.look.language(), p.flags.nodes.nodes > 0),
			Facts:  "k8s " + dependency("k8s.io/kubernetes"),
		}, nil
	}
	err = tui.Run(ctx, o)
	if demo != nil {
		// The person has seen it all; only what came of it and where it is kept is left to say.
		err = errors.Join(err, demo.summary(context.WithoutCancel(ctx)), demo.end(ctx))
	}
	if errors.Is(err, context.Canceled) {
		err = nil // quit while it booted
	}
	return errors.Join(err, p.saveJournal())
}

// told prints where the journal is.
func (p *demoRun) told(path string) {
	fmt.Fprintf(p.io.err, "journal    %s\nreopen it  operator-lab replay %s\n", path, shellQuote(path))
}
