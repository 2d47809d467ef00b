package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/progress"
	"github.com/operator-lab/operator-lab/lessons/session"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// learner runs lessons for the person at this terminal.
type learner struct {
	*session.Session
	io       streams
	look     lookFlags
	course   *course
	progress *progress.File
}

// newLearner reads the learner's progress.
func newLearner(io streams, look lookFlags, c *course) (*learner, error) {
	o, err := sessionOptions(io)
	if err != nil {
		return nil, err
	}
	if o.Progress, err = openProgress(io, o.State); err != nil {
		return nil, err
	}
	o.Language, o.After = lessonLanguage(look), c.After
	return &learner{Session: session.New(o), io: io, look: look, course: c, progress: o.Progress}, nil
}

// sessionOptions returns the options of sessions, for running and for verifying lessons.
func sessionOptions(io streams) (o session.Options, err error) {
	quietLibraries()
	if o.State, err = sandbox.StateDir(); err != nil {
		return o, err
	}
	if o.Kubectl, err = ownKubectl(); err != nil {
		return o, err
	}
	o.Sandbox, err = sandboxOptions(io.err, true)
	return o, err
}

// sessionError adds the exit code to the error of a lesson that could not be opened.
func sessionError(err error) error {
	switch {
	case errors.Is(err, session.ErrSandbox):
		return sandboxError(err)
	case errors.Is(err, session.ErrLesson):
		return &exitError{exitUsage, err}
	}
	return err
}

// openProgress reads the progress file. If it cannot be read, it prints why and keeps the file; nothing is recorded then.
func openProgress(io streams, state string) (*progress.File, error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, err
	}
	file, err := progress.Open(filepath.Join(state, progress.FileName))
	if damaged, is := errors.AsType[*progress.Damaged](err); is {
		fmt.Fprintf(io.err, "warning: %s\nhint: %s\n", damaged, damaged.Hint())
		return file, nil
	}
	return file, err
}

func (l *learner) language() book.Language { return lessonLanguage(l.look) }

// lessonLanguage returns the language of the lessons' texts.
func lessonLanguage(look lookFlags) book.Language {
	if look.language() == trace.Japanese {
		return book.Japanese
	}
	return book.English
}

// begin opens the first lesson.
func (l *learner) begin(ctx context.Context, lesson *book.Lesson, o session.Opening) error {
	return sessionError(l.Begin(ctx, lesson, o))
}

// controls returns the controls of the running lesson for the screen.
func (l *learner) controls() (tui.Controls, error) {
	running, _, _ := l.Current()
	if running == nil {
		return tui.Controls{}, l.Between()
	}
	scheme, err := personScheme(typesOf(running.Lesson)...)
	if err != nil {
		return tui.Controls{}, err
	}
	you, err := personIn(running.Sandbox, running.Lab.Journal(), scheme)
	if err != nil {
		return tui.Controls{}, err
	}
	c := tui.Controls{
		Cluster: screenObjects{you}, Shell: l.greetedShell, Command: l.shownCommand,
		Sandbox: session.SandboxName, Facts: "k8s " + dependency("k8s.io/kubernetes"),
	}
	operator := ""
	if len(running.Lesson.Operators) > 0 {
		operator = running.Lesson.Operators[0].Name
		if loop := running.Lab.Taps(operator); loop != nil {
			c.Loop, c.Restart = loop, func() { running.Lab.Restart(operator) }
		}
	}
	c.Faults = faultMenu(asObjects(you), operator, l.look.language(), running.Lesson.Nodes > 0)
	return c, nil
}

// greetedShell returns the learner's shell. It first prints the task, because the screen is hidden meanwhile.
func (l *learner) greetedShell() (*exec.Cmd, error) {
	cmd, err := l.Shell()
	if err != nil {
		return nil, err
	}
	t := l.Tutor()
	if t == nil {
		return nil, l.Between()
	}
	v := t.View()
	text := "\n" + session.TaskNumber(v.Index, v.Tasks, v.TaskTitle) + "\n\n" + tui.Plain(v.Text, plainWidth) + "\n" +
		l.Text("(exit goes back to the screen)", "(exit で画面に戻ります)") + "\n"
	return greeted(cmd, text), nil
}

// shownCommand returns a command that runs another one in the learner's shell; see [shown].
func (l *learner) shownCommand(command string) (*exec.Cmd, error) {
	cmd, err := l.Shell()
	if err != nil {
		return nil, err
	}
	return shown(cmd, command, l.language()), nil
}

// shown returns a command that runs another one in a shell, says how it failed, and waits for enter, because the screen
// will hide what it printed.
func shown(shell *exec.Cmd, command string, language book.Language) *exec.Cmd {
	const script = `printf '\n$ %s\n\n' "$1"; "$2" -c "$1"; code=$?
[ $code -eq 0 ] || printf '(%s %d)\n' "$3" $code
printf '\n%s' "$4"; read -r _`
	cmd := exec.Command("sh", "-c", script, "sh", command, shell.Path,
		language.Choose("exit code", "終了コード"), language.Choose("(enter goes back to the screen)", "(enter で画面に戻ります)"))
	cmd.Dir, cmd.Env = shell.Dir, shell.Env
	return cmd
}

// greeted returns a shell that prints a text first.
func greeted(cmd *exec.Cmd, text string) *exec.Cmd {
	greeted := exec.Command("sh", "-c", `printf '%s\n' "$1"; exec "$2"`, "sh", text, cmd.Path)
	greeted.Dir, greeted.Env = cmd.Dir, cmd.Env
	return greeted
}
