package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/tutor"
	"github.com/operator-lab/operator-lab/sandbox"
)

// plainWidth is how wide the text of a lesson is: that of a small terminal, which a screen reader does not mind.
const plainWidth = 78

// plain is a lesson as text: whole sentences, appended and never redrawn, and commands that are typed.
type plain struct {
	*session
	commands <-chan string
	told     tutor.View // what has been told of it
	moved    int64      // the room it is of
}

// inPlain holds a lesson as text until the learner quits or the input ends.
func (s *session) inPlain(ctx context.Context, lesson *book.Lesson) error {
	p := &plain{session: s, commands: linesOf(s.io.in)}
	fmt.Fprintf(s.io.err, s.t("starting the cluster of the lesson %q\n", "レッスン「%s」のクラスターを起動しています\n"), lesson.Title(s.language()))
	if err := s.open(ctx, lesson, opening{step: p.step, say: p.doing}); err != nil {
		return err
	}
	p.page()
	return p.loop(ctx)
}

// step tells of the boot, on standard error.
func (p *plain) step(s sandbox.Step) { fmt.Fprintln(p.io.err, progressLine(s)) }

// doing tells what the learner waits for, on standard error.
func (p *plain) doing(text string) { fmt.Fprintln(p.io.err, "  "+text) }

// linesOf are the lines of the input; closed at its end.
func linesOf(in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
	}()
	return lines
}

// loop takes commands, and tells of what happens meanwhile.
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
		case line, more := <-p.commands:
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
	room, _, moved := p.here()
	if room == nil {
		return nil, moved, nil
	}
	return room.tutor.Changed(), moved, room.sandbox.Done()
}

// ended says why the sandbox is over.
func (p *plain) ended() error {
	room, _, _ := p.here()
	if room == nil {
		return nil
	}
	return sandboxError(room.sandbox.Err())
}

// prompt asks for a command. It is no line: the answer is typed behind it.
func (p *plain) prompt() {
	if isTerminal(p.io.in) {
		fmt.Fprint(p.io.out, "> ")
	}
}

func (p *plain) say(format string, arguments ...any) {
	fmt.Fprintf(p.io.out, format+"\n", arguments...)
}

// text prints markdown.
func (p *plain) text(markdown string) {
	if strings.TrimSpace(markdown) != "" {
		p.say("%s\n", strings.TrimRight(tui.Plain(markdown, plainWidth), "\n"))
	}
}

func (p *plain) wrong(err error) {
	p.say("%s: %s", p.t("Error", "エラー"), err)
	if hint := sandbox.HintOf(err); hint != "" {
		p.say("%s: %s", p.t("Hint", "ヒント"), hint)
	}
}

// page prints the task from its beginning.
func (p *plain) page() {
	room, moved, _ := p.here()
	if room == nil {
		return
	}
	v := room.tutor.View()
	p.told, p.moved = v, moved
	p.say("\n%s %s", p.t("Lesson", "レッスン"), lessonNumber(v.Number, v.Title))
	p.say("%s %s\n", p.t("Task", "タスク"), taskNumber(v.Index, v.Tasks, v.TaskTitle))
	p.text(v.Text)
	if v.Question != "" {
		p.text("**" + p.t("Question", "質問") + "**: " + v.Question)
		p.say(p.t("Type 'answer' and your prediction before you act.\n", "操作する前に answer に続けて予想を入力してください。\n"))
	}
	for _, c := range v.Checks {
		p.box(c)
	}
	if v.Done {
		p.done(v)
		return
	}
	p.say(p.t("\nType kubectl commands here, or 'help' for all commands.", "\nここに kubectl コマンドを入力できます。help ですべてのコマンドを表示します。"))
}

func (p *plain) box(c tutor.Check) {
	state := p.t("to do", "未達成")
	if c.Done {
		state = p.t("done", "達成")
	}
	p.say("%s: %s", state, c.Text)
}

// news tells what has changed since it was last told.
func (p *plain) news() {
	room, moved, _ := p.here()
	if room == nil {
		return
	}
	v, before := room.tutor.View(), p.told
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
		p.text(v.Notice)
	}
	for _, hint := range v.Hints[min(len(before.Hints), len(v.Hints)):] {
		p.text("**" + p.t("Hint", "ヒント") + "**: " + hint)
	}
	if v.Solution != "" && before.Solution == "" {
		p.text("**" + p.t("Solution", "解答") + "**\n\n" + v.Solution)
	}
	if v.Done && !before.Done {
		p.done(v)
	}
}

func (p *plain) done(v tutor.View) {
	p.say("\n%s\n", p.t("The task is done.", "タスクが完了しました。"))
	p.text(v.DoneText)
	p.text(v.Finally)
	if v.Next != "" {
		p.say(p.t("Type 'next' to go on: %s", "next で続きに進みます: %s"), v.Next)
	}
}

// do carries out a command, and reports whether it was the last.
func (p *plain) do(ctx context.Context, line string) (over bool, err error) {
	verb, rest, _ := strings.Cut(line, " ")
	t := p.tutor()
	if t == nil {
		return verb == "quit", p.between()
	}
	switch verb {
	case "":
	case "quit", "exit", "q":
		p.say(p.t("What you have done is remembered. 'operator-lab lesson next' goes on.", "進み具合は保存しました。operator-lab lesson next で続けられます。"))
		return true, nil
	case "help", "?":
		p.help()
	case "again":
		p.page()
	case "next", "n":
		return false, p.goOn(ctx)
	case "hint", "h":
		return false, t.Hint()
	case "solution", "v":
		t.Solution()
	case "answer", "a":
		return false, t.Answer(ctx, rest)
	case "reset", "undo", "u":
		return false, p.undo(ctx)
	case "check":
		return false, p.check(ctx)
	case "wait":
		return false, p.wait(ctx)
	case "solve":
		return false, t.Solve(ctx)
	case "shell", "!":
		return false, p.inShell(ctx, "")
	default:
		return false, p.inShell(ctx, strings.TrimPrefix(line, "!")) // as on the screen
	}
	return false, nil
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
		{"again", "print the task again", "タスクをもう一度表示する"},
		{"shell", "a shell in which kubectl finds the cluster", "kubectl が使えるシェルを開く"},
		{"quit", "leave; what you have done is remembered", "終了する (進み具合は保存される)"},
	} {
		p.say("%-10s %s", line[0], p.t(line[1], line[2]))
	}
	p.say(p.t("Anything else is run by the shell, in the directory of the lesson: kubectl get pods", "それ以外はレッスンのディレクトリでシェルが実行します: kubectl get pods"))
}

func (p *plain) goOn(ctx context.Context) error {
	err := p.next(ctx, opening{step: p.step, say: p.doing})
	if errors.Is(err, errBookOver) {
		p.say(p.t("This was the last lesson. Well done!", "これが最後のレッスンでした。お疲れさまでした!"))
		return nil
	}
	return err
}

// check says of each box whether it is ticked, and why not.
func (p *plain) check(ctx context.Context) error {
	if err := p.tutor().Check(ctx); err != nil {
		return err
	}
	v := p.tutor().View()
	for _, c := range v.Checks {
		p.box(c)
		for _, detail := range c.Detail {
			p.say("  %s", detail)
		}
	}
	return nil
}

// wait returns when the task is done.
func (p *plain) wait(ctx context.Context) error {
	for {
		changed, moved, over := p.events()
		p.news()
		if t := p.tutor(); t != nil && t.View().Done {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return p.ended()
		case <-changed:
		case <-moved:
		}
	}
}

// inShell runs a command, or a shell if it is empty.
func (p *plain) inShell(ctx context.Context, command string) error {
	cmd, err := p.shell()
	if err != nil {
		return err
	}
	if command != "" {
		cmd.Args = append(cmd.Args, "-c", command)
	} else {
		cmd.Stdin = p.io.in
	}
	cmd.Stdout, cmd.Stderr = p.io.out, p.io.err
	err = runUntil(ctx, cmd)
	if exited, is := errors.AsType[*exec.ExitError](err); is {
		return fmt.Errorf(p.t("the command ended with exit code %d", "コマンドは終了コード %d で終わりました"), exited.ExitCode())
	}
	return err
}

// runUntil runs a program, which is ended when ctx is.
func runUntil(ctx context.Context, cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	return cmd.Wait()
}
