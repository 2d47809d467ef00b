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

// busyAfter is how long something may take before the screen says that it is under way.
const busyAfter = 400 * time.Millisecond

// work is what the guide does for a key, while it does it.
type work struct {
	what  Action
	steps []Step
	news  chan tea.Msg // its steps, and then that it is over
	began time.Time
	shown bool // it takes long enough to be told of
}

// toldMsg tells of a step of the work, workedMsg that it is over.
type (
	toldMsg struct {
		*work
		Step
	}
	workedMsg struct {
		what Action
		room *Room
		err  error
	}
)

// ask asks the guide for something, outside of Update; [Run] waits for the end of it.
func (m *Model) ask(what Action, text string) tea.Cmd {
	w := &work{what: what, news: make(chan tea.Msg, 64), began: m.clock()}
	m.busy = w
	ctx, guide := m.ctx, m.opts.Guide
	m.works.Go(func() { w.tell(ctx, w.do(ctx, guide, text)) })
	return w.await(ctx)
}

func (w *work) do(ctx context.Context, guide Guide, text string) (out workedMsg) {
	out.what = w.what
	defer func() {
		if r := recover(); r != nil { // nobody else could give the terminal back
			out.err = fmt.Errorf("%w: %v\n%s", ErrPanic, r, debug.Stack())
		}
	}()
	telling, over := context.WithCancel(ctx) // who tells of more steps later on, tells nobody
	defer over()
	out.room, out.err = guide.Do(ctx, w.what, text, func(st Step) { w.tell(telling, toldMsg{w, st}) })
	return out
}

func (w *work) tell(ctx context.Context, news tea.Msg) {
	select {
	case w.news <- news:
	case <-ctx.Done(): // the screen is gone, or the work over
	}
}

// await waits for the next step, or the end.
func (w *work) await(ctx context.Context) tea.Cmd {
	return func() tea.Msg {
		select {
		case news := <-w.news:
			return news
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *Model) told(msg toldMsg) tea.Cmd {
	msg.work.steps = addStep(msg.work.steps, msg.Step)
	msg.work.shown = true
	return msg.work.await(m.ctx)
}

// worked goes on after the guide has done something.
func (m *Model) worked(msg workedMsg) {
	m.busy = nil
	if msg.room != nil {
		m.moveTo(msg.room)
	}
	m.refresh(true)
	if msg.err != nil {
		m.fail(msg.err.Error())
		return
	}
	switch msg.what {
	case ActHint:
		m.reveal(hintPart)
	case ActSolution:
		m.reveal(solutionPart)
	case ActAnswer:
		if !m.page.Done {
			m.reveal(questionPart)
		}
	case ActUndo:
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
	m.say(m.cutTo(m.t("not yet: ", "未達: ")+m.page.Missing, m.w-4))
}

// moveTo goes on in another room: all that was found out of the journal before
// is forgotten, and where the person looks stays.
func (m *Model) moveTo(r *Room) {
	old := m.scene
	if r.Journal != nil {
		m.opts.Journal = r.Journal
	}
	m.scene = newScene(m.opts)
	m.title, m.controls = orElse(r.Title, old.title), r.Controls
	m.w, m.h, m.page = old.w, old.h, old.page
	m.focus, m.from, m.top, m.low, m.zoom, m.tab = old.focus, old.from, old.top, old.low, old.zoom, old.tab
	m.scroll[LessonPane] = old.scroll[LessonPane]
	m.cursorAt = 0
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
		m.read()
	case page.Done && !old.Done, page.Notice != "" && page.Notice != old.Notice:
		m.scroll[LessonPane] = 0 // that is told at the top
	}
	return true
}

// catchUp goes where the lesson has gone without a key of this screen. It tries once.
func (m *Model) catchUp() tea.Cmd {
	if !m.page.Moved || m.busy != nil || m.followed == m.page.Serial {
		return nil
	}
	m.followed = m.page.Serial
	return m.ask(ActFollow, "")
}

// read shows a new task: whoever does not read it cannot do it.
func (m *Model) read() {
	m.popup, m.typing, m.zoom = nil, false, ZoomNormal
	m.setFocus(LessonPane)
	m.scroll[LessonPane] = 0
}

// reveal scrolls the lesson to one of its parts, no further than needed to see all of it.
func (m *Model) reveal(p lessonPart) {
	m.setFocus(LessonPane)
	r := m.layout().Pane[LessonPane]
	t := m.lessonText(r.W-2, r.H-2 < roomy)
	m.scroll[LessonPane] = min(t.begin[p], max(0, t.end[p]-(r.H-2)))
}

// toLoop leaves the lesson for where something is going to be seen.
func (m *Model) toLoop() {
	if m.focus == LessonPane {
		m.setFocus(m.from)
	}
}

func (m *Model) hint() tea.Cmd { return m.ask(ActHint, "") }

func (m *Model) check() tea.Cmd { return m.ask(ActCheck, "") }

func (m *Model) next() tea.Cmd { return m.ask(ActNext, "") }

func (m *Model) answer() tea.Cmd {
	m.popup = &answerPopup{}
	return nil
}

// undo asks first: what the learner did is lost.
func (m *Model) undo() tea.Cmd {
	m.popup = &confirmPopup{
		question: m.t("Bring the cluster back to the start of this task?", "クラスターをこのタスクの開始時点に戻しますか?"),
		do:       func(m *Model) tea.Cmd { return m.ask(ActUndo, "") },
	}
	return nil
}

// solve shows the solution. It asks first while the learner could still find it.
func (m *Model) solve() tea.Cmd {
	switch {
	case m.page.Solution != "":
		m.reveal(solutionPart)
		return nil
	case m.page.Done:
		return m.ask(ActSolution, "")
	}
	m.popup = &confirmPopup{
		question: m.t("The task is not done yet. Look at the solution?", "タスクはまだ終わっていません。解答を見ますか?"),
		do:       func(m *Model) tea.Cmd { return m.ask(ActSolution, "") },
	}
	return nil
}

// shellMsg carries the shell that is to be run, leftMsg says that it has ended.
type (
	shellMsg struct {
		cmd *exec.Cmd
		err error
	}
	leftMsg struct{ err error }
)

// shell gives the terminal to a shell of the person at the keyboard.
func (m *Model) shell() tea.Cmd {
	open := m.controls.Shell
	return func() tea.Msg {
		cmd, err := open()
		return shellMsg{cmd, err}
	}
}

func (m *Model) shells(msg shellMsg) tea.Cmd {
	if msg.err != nil {
		m.fail("!: " + msg.err.Error())
		return nil
	}
	return tea.ExecProcess(msg.cmd, func(err error) tea.Msg { return leftMsg{err} })
}

// left comes back from the shell. That its last command failed is no news to who typed it.
func (m *Model) left(msg leftMsg) {
	m.refresh(true)
	if exit := (*exec.ExitError)(nil); msg.err != nil && !errors.As(msg.err, &exit) {
		m.fail("!: " + msg.err.Error())
	}
}

// workWindow shows the steps of what the guide does.
func (s *scene) workWindow() []string {
	heading := map[Action]string{
		ActHint:     s.t("Hint", "ヒント"),
		ActCheck:    s.t("Checking", "確認中"),
		ActSolution: s.t("Solution", "解答"),
		ActUndo:     s.t("Putting the cluster back", "クラスターを戻しています"),
		ActNext:     s.t("Going on", "次へ進んでいます"),
		ActAnswer:   s.t("Checking the answer", "回答を確認中"),
		ActFollow:   s.t("Going on", "次へ進んでいます"),
	}[s.busy.what]
	rows := s.stepRows(s.busy.steps, false)
	if most := max(1, s.h-4); len(rows) > most { // the newest steps matter
		rows = rows[len(rows)-most:]
	}
	if len(rows) == 0 {
		rows = []row{*(&row{}).add(plain, " ").add(warn, s.working).add(plain, s.t(" a moment...", " お待ちください..."))}
	}
	return s.window(heading, rows, 40, 0)
}
