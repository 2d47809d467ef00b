package tui

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime/debug"
	"time"

	tea "charm.land/bubbletea/v2"
)

// busyAfter is the time after which the screen says that an action is running.
const busyAfter = 400 * time.Millisecond

// work is a request to the guide that is under way.
type work struct {
	what  Action
	steps []Step
	news  chan tea.Msg // its steps, and then that it is over
	began time.Time
	shown bool // it takes long enough to be told of
}

// toldMsg carries a step of the work, workedMsg its result.
type (
	toldMsg struct {
		*work
		Step
	}
	workedMsg struct {
		what   Action
		source *Source
		err    error
	}
)

func (w *work) do(ctx context.Context, guide Guide, text string) (out workedMsg) {
	out.what = w.what
	defer func() {
		if r := recover(); r != nil { // nobody else could give the terminal back
			out.err = fmt.Errorf("%w: %v\n%s", ErrPanic, r, debug.Stack())
		}
	}()
	telling, over := context.WithCancel(ctx) // who tells of more steps later on, tells nobody
	defer over()
	out.source, out.err = guide.Do(ctx, w.what, text, func(st Step) { send(telling, w.news, toldMsg{w, st}) })
	return out
}

// shellMsg carries the shell that is to be run, leftMsg says that it has ended.
type (
	shellMsg struct {
		cmd *exec.Cmd
		err error
	}
	leftMsg struct{ err error }
)

// window shows the steps of what the guide does.
func (w *work) window(s *state) []string {
	heading := map[Action]string{
		ActHint:     s.t("Hint", "ヒント"),
		ActCheck:    s.t("Checking", "確認中"),
		ActSolution: s.t("Solution", "解答"),
		ActUndo:     s.t("Putting the cluster back", "クラスターを戻しています"),
		ActBack:     s.t("Going back", "前のタスクに戻っています"),
		ActNext:     s.t("Going on", "次へ進んでいます"),
		ActAnswer:   s.t("Checking the answer", "回答を確認中"),
		ActFollow:   s.t("Going on", "次へ進んでいます"),
	}[w.what]
	rows := s.stepRows(w.steps, false)
	if most := max(1, s.h-4); len(rows) > most { // the newest steps matter
		rows = rows[len(rows)-most:]
	}
	if len(rows) == 0 {
		rows = []row{*(&row{}).add(plain, " ").add(warn, s.working).add(plain, s.t(" a moment...", " お待ちください..."))}
	}
	return s.theme.window(s.screen(), heading, rows, 40, 0)
}

// ask asks the guide for something, outside of Update; [Run] waits for the end of it.
func (m *Model) ask(what Action, text string) tea.Cmd {
	w := &work{what: what, news: make(chan tea.Msg, 64), began: m.clock()}
	m.busy = w
	ctx, guide := m.ctx, m.opts.Guide
	m.works.Go(func() { send(ctx, w.news, w.do(ctx, guide, text)) })
	return receive(ctx, w.news)
}

func (m *Model) told(msg toldMsg) tea.Cmd {
	msg.work.steps = addStep(msg.work.steps, msg.Step, m.nav().time())
	msg.work.shown = true
	return receive(m.ctx, msg.work.news)
}

// worked goes on after the guide has done something.
func (m *Model) worked(msg workedMsg) {
	m.busy = nil
	if msg.source != nil {
		m.moveTo(msg.source)
	}
	m.refresh(true)
	if msg.err != nil {
		m.fail(msg.err.Error())
		return
	}
	switch msg.what {
	case ActHint:
		lessonPane{&m.state}.reveal(hintPart)
	case ActSolution:
		lessonPane{&m.state}.reveal(solutionPart)
	case ActAnswer:
		if !m.page.Done {
			lessonPane{&m.state}.reveal(questionPart)
		}
	case ActUndo:
		m.ran = nil
		m.say(m.t("undone: the cluster is as it was when this task began", "クラスターはこのタスクの開始時点に戻った"))
	case ActCheck:
		m.sayChecked()
	}
}

func (m *Model) sayChecked() {
	if m.page.Done {
		m.say(m.t("this task is done", "このタスクは完了"))
		return
	}
	m.say(m.cutTo(m.t("not yet: ", "まだ: ")+m.page.Missing, m.w-4))
}

// moveTo shows another source: the state is computed anew from its journal; the focus and the zoom stay, and an answer that is
// being typed.
func (m *Model) moveTo(r *Source) {
	old := m.state
	if r.Journal != nil {
		m.opts.Journal = r.Journal
	}
	m.state = newState(m.opts)
	m.title, m.controls = orElse(r.Title, old.title), r.Controls
	m.w, m.h, m.page, m.ran = old.w, old.h, old.page, old.ran
	m.focus, m.from, m.top, m.low, m.zoom, m.tab = old.focus, old.from, old.top, old.low, old.zoom, old.tab
	m.scroll[LessonPane] = old.scroll[LessonPane]
	m.cursorAt = 0
	if answer, typing := old.popup.(*answerPopup); typing {
		m.popup = answer
	}
}

// look asks the guide for the page, and reports whether it is another.
func (m *Model) look() bool {
	if m.opts.Guide == nil || m.busy != nil {
		return false
	}
	old, page := m.page, m.opts.Guide.Page()
	if page.Serial == old.Serial && page.Lesson == old.Lesson && page.Task == old.Task {
		return false
	}
	m.page = page
	switch {
	case page.Lesson != old.Lesson || page.Task != old.Task:
		m.ran = nil
		if _, typing := m.popup.(*answerPopup); typing {
			m.popup = nil // it was to another question
		}
		m.nav().read()
	case page.Done && !old.Done, page.Notice != "" && page.Notice != old.Notice:
		m.scroll[LessonPane] = 0 // that is told at the top
	}
	return true
}

// catchUp requests the source of the lesson after a command in another terminal. It tries once per page.
func (m *Model) catchUp() tea.Cmd {
	if !m.page.Moved || m.busy != nil || m.followed == m.page.Serial {
		return nil
	}
	m.followed = m.page.Serial
	return m.ask(ActFollow, "")
}

// undo asks first: what the learner did is lost.
func undo(s *state) popup {
	return &confirmPopup{
		question: s.t("Bring the cluster back to the start of this task?", "クラスターをこのタスクの開始時点に戻しますか?"),
		do:       asks(ActUndo),
	}
}

// back asks first: what was done since is lost.
func back(s *state) popup {
	return &confirmPopup{
		question: s.t("Go back to the start of the task before? What was done since is lost.", "1 つ前のタスクの開始時点に戻りますか? それ以降の操作は失われます。"),
		do:       asks(ActBack),
	}
}

// solve shows the solution. It asks first while the learner could still find it.
func (m *Model) solve() tea.Cmd {
	switch {
	case m.page.Solution != "":
		lessonPane{&m.state}.reveal(solutionPart)
		return nil
	case m.page.Done:
		return m.ask(ActSolution, "")
	}
	m.popup = &confirmPopup{
		question: m.t("The task is not done yet. Look at the solution?", "タスクはまだ終わっていません。解答を見ますか?"),
		do:       asks(ActSolution),
	}
	return nil
}

// openShell gives the terminal to a shell of the user.
func openShell(m *Model) tea.Cmd {
	open := m.controls.Shell
	return func() tea.Msg {
		cmd, err := open()
		return shellMsg{cmd, err}
	}
}

func (m *Model) shells(msg shellMsg) tea.Cmd {
	if msg.err != nil {
		m.fail(msg.err.Error())
		return nil
	}
	return outside(msg.cmd, func(err error) tea.Msg { return leftMsg{err} })
}

// left comes back from the shell. A failure of its last command is not shown: the user has seen it.
func (m *Model) left(msg leftMsg) {
	m.refresh(true)
	if exit := (*exec.ExitError)(nil); msg.err != nil && !errors.As(msg.err, &exit) {
		m.fail(msg.err.Error())
	}
}
