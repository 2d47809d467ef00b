package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/session"
)

type lessonFlags struct {
	plain bool
	track string
	look  lookFlags
}

func lessonCommand(io streams) *cobra.Command {
	var f lessonFlags
	cmd := &cobra.Command{
		Use:   "lesson [lesson]",
		Short: "Learn how operators work, on a live cluster",
		Long: `Learn how operators work: read, act on a live cluster, see at once whether it worked and why.
Without a name, choose from the lessons; with one (or its number), begin with that. The order
is a suggestion: every lesson can be opened. What you have done is remembered.

You act with the keys of the screen, in the shell that the key ! opens, or in another terminal
('operator-lab lesson shell'). The lab notices either way. The key u brings the cluster back to
the start of the task, whatever was done to it.

Without a terminal, or with --plain, it is text, prompts and typed commands.`,
		Example: `  operator-lab lesson
  operator-lab lesson run-zundoko
  operator-lab lesson 7 --lang ja
  operator-lab lesson --track ten-minutes
  operator-lab lesson ./my-lesson`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("see '"+cmd.CommandPath()+" --help'", "one lesson at a time, please")
			}
			return nil
		},
		ValidArgsFunction: completeLessons,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.look.check(); err != nil {
				return err
			}
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			return f.learn(cmd.Context(), io, name)
		},
	}
	f.bind(cmd.Flags())
	cmd.AddCommand(
		lessonNextCommand(io), lessonListCommand(io),
		lessonRemoteCommand(io, "hint", "Show the next hint for the task under way", session.Hint),
		lessonRemoteCommand(io, "check", "Look whether the task under way is done, and say what is missing", session.Check),
		lessonRemoteCommand(io, "solution", "Show the solution of the task under way", session.Solution),
		lessonRemoteCommand(io, "reset", "Bring the cluster back to the start of the task under way", session.Reset),
		lessonRemoteCommand(io, "back", "Go back to the start of the task before the one under way", session.Back),
		lessonAnswerCommand(io), lessonShellCommand(io), lessonVerifyCommand(io),
	)
	return cmd
}

func (f *lessonFlags) bind(flags *pflag.FlagSet) {
	flags.BoolVar(&f.plain, "plain", false, "text, prompts and typed commands also on a terminal")
	flags.StringVar(&f.track, "track", "", "keep to a track: ten-minutes, author, sre, packager or own")
	f.look.bind(flags)
}

// learn opens the named lesson, or lets the learner pick one.
func (f *lessonFlags) learn(ctx context.Context, io streams, name string) error {
	if name == "" && f.onScreen(io) {
		return f.pickAndLearn(ctx, io)
	}
	if name == "" {
		return f.goOn(ctx, io)
	}
	c, lesson, err := choose(name, f.track)
	if err != nil {
		return err
	}
	l, err := newLearner(io, f.look, c)
	if err != nil {
		return err
	}
	return f.hold(ctx, l, lesson)
}

func (f *lessonFlags) onScreen(io streams) bool { return !f.plain && io.terminal() }

// goOn opens the first lesson that is not done.
func (f *lessonFlags) goOn(ctx context.Context, io streams) error {
	l, err := f.learner(io)
	if err != nil {
		return err
	}
	return f.hold(ctx, l, suggested(l.course, l.progress))
}

// learner returns a learner of the bundled lessons, or of a track of them.
func (f *lessonFlags) learner(io streams) (*learner, error) {
	c, err := bundledCourse()
	if err != nil {
		return nil, err
	}
	if err := c.follow(f.track); err != nil {
		return nil, err
	}
	return newLearner(io, f.look, c)
}

// hold runs a lesson and those that the learner continues with.
func (f *lessonFlags) hold(ctx context.Context, l *learner, lesson *book.Lesson) (err error) {
	defer func() { err = errors.Join(err, l.Close(ctx)) }()
	if f.onScreen(l.io) {
		return l.onScreen(ctx, lesson)
	}
	return l.inPlain(ctx, lesson)
}

// pickAndLearn shows the picker until the person leaves it. A lesson that is picked in a track goes on with those of the track.
func (f *lessonFlags) pickAndLearn(ctx context.Context, io streams) error {
	track := ""
	for {
		l, err := f.learner(io) // anew each time: the progress is another one
		if err != nil {
			return err
		}
		o := l.pickOptions()
		o.Track = track
		var id string
		if id, track, err = tui.Pick(ctx, o); err != nil || id == "" {
			return err
		}
		if err := l.course.follow(track); err != nil {
			return err
		}
		lesson, err := l.course.Find(id)
		if err != nil {
			return err
		}
		if err := f.hold(ctx, l, lesson); err != nil {
			return err
		}
	}
}

func lessonNextCommand(io streams) *cobra.Command {
	var f lessonFlags
	cmd := &cobra.Command{
		Use:   "next",
		Short: "Go on: with the task that follows, or the first lesson that is not done",
		Long: `Go on. While a lesson is under way in another terminal, it goes on to its next task there.
Otherwise the first lesson that is not done is opened here.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.look.check(); err != nil {
				return err
			}
			at, err := underWay()
			if err != nil {
				return err
			}
			if at != nil {
				return ask(cmd.Context(), io, at, session.Next, "")
			}
			return f.goOn(cmd.Context(), io)
		},
	}
	f.bind(cmd.Flags())
	return cmd
}

func completeLessons(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	c, err := bundledCourse()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var names []string
	for _, l := range c.Lessons {
		names = append(names, fmt.Sprintf("%s\t%s", l.ID, l.Title(book.English)))
	}
	return names, cobra.ShellCompDirectiveDefault
}
