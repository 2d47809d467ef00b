package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/session"
	"github.com/operator-lab/operator-lab/lessons/tutor"
	"github.com/operator-lab/operator-lab/sandbox"
)

// plainWidth is the width of the text of a lesson, in columns of a small terminal.
const plainWidth = 78

// plain runs a lesson as text, for screen readers and pipes: lines are never redrawn, and commands are typed.
type plain struct {
	*learner
	commands *commands
	told     tutor.View // what has been told of it
	moved    int64      // number of the lesson it is of
}

// inPlain runs a lesson as text until the learner quits or the input ends.
func (l *learner) inPlain(ctx context.Context, lesson *book.Lesson) error {
	p := &plain{learner: l, commands: commandsOf(l.io.in)}
	fmt.Fprintf(l.io.err, l.Text("starting the cluster of the lesson %q\n", "レッスン「%s」のクラスターを起動しています\n"), lesson.Title(l.language()))
	if err := l.begin(ctx, lesson, session.Opening{Step: p.step, Say: p.doing}); err != nil {
		return err
	}
	p.page()
	return p.loop(ctx)
}

// step prints a step of the boot on standard error.
func (p *plain) step(s sandbox.Step) { fmt.Fprintln(p.io.err, progressLine(s)) }

// doing prints on standard error what the learner waits for.
func (p *plain) doing(text string) { fmt.Fprintln(p.io.err, "  "+text) }

// commands reads lines of the input on request, and nothing behind them: that may be for a program that reads the input
// meanwhile.
type commands struct {
	wanted chan struct{}
	lines  chan string // closed at the end of the input
}

func commandsOf(in io.Reader) *commands {
	c := &commands{wanted: make(chan struct{}, 1), lines: make(chan string)}
	go func() {
		defer close(c.lines)
		for range c.wanted {
			line, err := readLine(in)
			if err != nil {
				return
			}
			c.lines <- line
		}
	}()
	return c
}

// want requests the next line.
func (c *commands) want() { c.wanted <- struct{}{} }

// readLine reads a line byte by byte, and nothing behind it.
func readLine(in io.Reader) (string, error) {
	var line []byte
	for char := make([]byte, 1); ; {
		n, err := in.Read(char)
		switch {
		case n > 0 && char[0] == '\n':
			return string(line), nil
		case n > 0:
			line = append(line, char[0])
		case err == io.EOF && len(line) > 0:
			return string(line), nil
		case err != nil:
			return "", err
		}
	}
}

// loop carries out commands and prints changes of the lesson.
func (p *plain) loop(ctx context.Context) error {
	p.prompt()
	for {
		changed, moved, over := p.events()
		p.news()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return p.ended()
		case <-changed:
		case <-moved:
		case line, more := <-p.commands.lines:
			if !more {
				return nil
			}
			over, err := p.do(ctx, strings.TrimSpace(line))
			if over || ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				p.wrong(err)
			}
			p.news()
			p.prompt()
		}
	}
}

// events are closed when the view changes, when the lesson goes on elsewhere, and when the sandbox is over.
func (p *plain) events() (changed, moved, over <-chan struct{}) {
	running, _, moved := p.Current()
	if running == nil {
		return nil, moved, nil
	}
	return running.Tutor.Changed(), moved, running.Sandbox.Done()
}

// ended returns why the sandbox has ended.
func (p *plain) ended() error {
	running, _, _ := p.Current()
	if running == nil {
		return nil
	}
	return sandboxError(running.Sandbox.Err())
}

// prompt prints a prompt on a terminal and requests the next command.
func (p *plain) prompt() {
	if isTerminal(p.io.in) {
		fmt.Fprint(p.io.out, "> ")
	}
	p.commands.want()
}

func (p *plain) say(format string, arguments ...any) {
	fmt.Fprintf(p.io.out, format+"\n", arguments...)
}

// markdown prints a text in markdown.
func (p *plain) markdown(text string) {
	if strings.TrimSpace(text) != "" {
		p.say("%s\n", strings.TrimRight(tui.Plain(text, plainWidth), "\n"))
	}
}

func (p *plain) wrong(err error) {
	p.say("%s: %s", p.Text("Error", "エラー"), err)
	if hint := sandbox.HintOf(err); hint != "" {
		p.say("%s: %s", p.Text("Hint", "ヒント"), hint)
	}
}

// page prints the task from its beginning.
func (p *plain) page() {
	running, moved, _ := p.Current()
	if running == nil {
		return
	}
	v := running.Tutor.View()
	p.told, p.moved = v, moved
	p.say("\n%s %s", p.Text("Lesson", "レッスン"), lessonNumber(v.Number, v.Title))
	p.say("%s %s\n", p.Text("Task", "タスク"), session.TaskNumber(v.Index, v.Tasks, v.TaskTitle))
	p.markdown(v.Text)
	if v.Question != "" {
		p.markdown("**" + p.Text("Question", "質問") + "**: " + v.Question)
		p.say(p.Text("Type 'answer' and your prediction before you act.\n", "操作する前に answer に続けて予想を入力してください。\n"))
	}
	for _, c := range v.Checks {
		p.box(c)
	}
	if v.Done {
		p.done(v)
		return
	}
	p.say(p.Text("\nType kubectl commands here, or 'help' for all commands.", "\nここに kubectl コマンドを入力できます。help ですべてのコマンドを表示します。"))
}

func (p *plain) box(c tutor.Check) {
	state := p.Text("to do", "まだ")
	if c.Done {
		state = p.Text("done", "達成")
	}
	p.say("%s: %s", state, c.Text)
}

// news prints the changes of the view since the last call.
func (p *plain) news() {
	running, moved, _ := p.Current()
	if running == nil {
		p.stays(moved)
		return
	}
	v, before := running.Tutor.View(), p.told
	if moved != p.moved || before.Task != v.Task || before.Lesson != v.Lesson {
		p.page()
		return
	}
	if before.Serial == v.Serial {
		return
	}
	p.told = v
	for i, c := range v.Checks {
		if c.Done != before.Checks[i].Done {
			p.box(c)
		}
	}
	if v.Notice != "" && v.Notice != before.Notice {
		p.markdown(v.Notice)
	}
	for _, hint := range v.Hints[min(len(before.Hints), len(v.Hints)):] {
		p.markdown("**" + p.Text("Hint", "ヒント") + "**: " + hint)
	}
	if v.Solution != "" && before.Solution == "" {
		p.markdown("**" + p.Text("Solution", "解答") + "**\n\n" + v.Solution)
	}
	if v.Done && !before.Done {
		p.done(v)
	}
}

// stays prints that the next lesson could not be opened, once.
func (p *plain) stays(moved int64) {
	if moved != p.moved && p.Stuck() {
		p.moved = moved
		p.wrong(p.Between())
	}
}

func (p *plain) done(v tutor.View) {
	p.say("\n%s\n", p.Text("The task is done.", "タスクが完了しました。"))
	p.markdown(v.DoneText)
	p.markdown(v.Finally)
	if v.Next != "" {
		p.say(p.Text("Type 'next' to go on: %s", "next で続きに進みます: %s"), v.Next)
	}
}

// do carries out a command, and reports whether it ends the lesson.
func (p *plain) do(ctx context.Context, line string) (over bool, err error) {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "":
		return false, nil
	case "quit", "exit", "q":
		p.say(p.Text("What you have done is remembered. 'operator-lab lesson next' goes on.", "進み具合は保存しました。operator-lab lesson next で続けられます。"))
		return true, nil
	case "help", "?":
		p.help()
		return false, nil
	case "next", "n":
		return false, p.goOn(ctx)
	}
	t := p.Tutor()
	if t == nil {
		return false, p.Between()
	}
	return false, p.doTask(ctx, t, line, verb, rest)
}

// doTask carries out a command about the task.
func (p *plain) doTask(ctx context.Context, t *tutor.Tutor, line, verb, rest string) error {
	switch verb {
	case "again":
		p.page()
	case "hint", "h":
		return t.Hint()
	case "solution", "v":
		t.Solution()
	case "answer", "a":
		return t.Answer(ctx, rest)
	case "reset", "undo", "u":
		return p.Undo(ctx)
	case "back":
		return p.Back(ctx)
	case "check":
		return p.check(ctx, t)
	case "wait":
		return p.wait(ctx)
	case "solve":
		return t.Solve(ctx)
	case "shell", "!":
		return p.inShell(ctx, "")
	default:
		return p.inShell(ctx, strings.TrimPrefix(line, "!")) // as on the screen
	}
	return nil
}

func (p *plain) help() {
	for _, line := range [][3]string{
		{"next", "go on, when the task is done", "タスクが終わったら次へ進む"},
		{"hint", "the next hint", "次のヒント"},
		{"answer N", "answer the question", "質問に答える"},
		{"check", "look now, and say what is missing", "今すぐ確認し、足りないものを表示する"},
		{"wait", "wait until the task is done", "タスクが完了するまで待つ"},
		{"solution", "show the solution", "解答を表示する"},
		{"solve", "have the solution carried out", "解答を実行する"},
		{"reset", "bring the cluster back to the start of the task", "クラスターをタスクの開始時点に戻す"},
		{"back", "go back to the start of the task before", "1 つ前のタスクの開始時点に戻る"},
		{"again", "print the task again", "タスクをもう一度表示する"},
		{"shell", "a shell in which kubectl finds the cluster", "kubectl が使えるシェルを開く"},
		{"quit", "leave; what you have done is remembered", "終了する (進み具合は保存される)"},
	} {
		p.say("%-10s %s", line[0], p.Text(line[1], line[2]))
	}
	p.say(p.Text("Anything else is run by the shell, in the directory of the lesson: kubectl get pods", "それ以外はレッスンのディレクトリでシェルが実行します: kubectl get pods"))
}

func (p *plain) goOn(ctx context.Context) error {
	err := p.Next(ctx, session.Opening{Step: p.step, Say: p.doing})
	if errors.Is(err, session.ErrBookOver) {
		p.say("%s", p.BookOver())
		return nil
	}
	if running, moved, _ := p.Current(); running == nil && err != nil {
		p.moved = moved // told with the error
	}
	return err
}

// check runs the checks and prints the result of each, with the reasons.
func (p *plain) check(ctx context.Context, t *tutor.Tutor) error {
	if err := t.Check(ctx); err != nil {
		return err
	}
	for _, c := range t.View().Checks {
		p.box(c)
		for _, detail := range c.Detail {
			p.say("  %s", detail)
		}
	}
	return nil
}

// wait returns when the task is done, or at Ctrl-C.
func (p *plain) wait(ctx context.Context) error {
	enough, stop := context.WithCancel(ctx)
	defer stop()
	if isTerminal(p.io.in) {
		defer claimInterrupts(ctx, stop)()
	}
	for {
		changed, moved, over := p.events()
		p.news()
		if t := p.Tutor(); t != nil && t.View().Done || p.Stuck() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-enough.Done():
			p.say("\n%s", p.Text("The task is not done yet.", "タスクはまだ終わっていません。"))
			return nil
		case <-over:
			return p.ended()
		case <-changed:
		case <-moved:
		}
	}
}

// inShell runs a command, or a shell if it is empty.
func (p *plain) inShell(ctx context.Context, command string) error {
	cmd, err := p.Shell()
	if err != nil {
		return err
	}
	if command != "" {
		cmd.Args = append(cmd.Args, "-c", command)
	} else {
		cmd.Stdin = p.io.in
	}
	cmd.Stdout, cmd.Stderr = p.io.out, p.io.err
	err = runForeground(ctx, p.io, cmd, command == "")
	exited, is := errors.AsType[*exec.ExitError](err)
	if !is {
		return err
	}
	return fmt.Errorf(p.Text("the command ended with exit code %d", "コマンドは終了コード %d で終わりました"), exitCodeOf(exited))
}
