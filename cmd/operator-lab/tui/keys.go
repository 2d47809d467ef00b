package tui

import (
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// keyGroup is the heading of the help that a key is listed under.
type keyGroup int

const (
	groupLoop keyGroup = iota
	groupTime
	groupLook
	groupMove
	groupAct
	groupDemo
	groupLesson
	groupOther
)

// command is the effect of a key. The footer and the help are made of these.
type command struct {
	key.Binding
	japanese string
	// rank says how soon it is shown in the footer; zero is never.
	rank  int
	group keyGroup
	do    func(*Model) tea.Cmd
	// refusal says why it cannot be done now; empty if it can. Nil: always.
	refusal func(*state) string
}

// words returns what the key does in a word or two, for the footer, and in a sentence.
func (c *command) words(l trace.Language) (short, long string) {
	text := c.Help().Desc
	if l == trace.Japanese {
		text = c.japanese
	}
	short, long, found := strings.Cut(text, "|")
	if !found {
		long = short
	}
	return short, long
}

// keyMap is all keys, in the order of the help.
type keyMap struct{ commands []*command }

func bind(group keyGroup, rank int, keys []string, shown, english, japanese string, do func(*Model) tea.Cmd, refusal func(*state) string) *command {
	return &command{
		Binding: key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, english)), japanese: japanese,
		group: group, rank: rank, do: do, refusal: refusal,
	}
}

// just makes a command of a method that needs no command of Bubble Tea.
func just(f func(*Model)) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		f(m)
		return nil
	}
}

// goes makes a command of what only moves.
func goes(f func(navigator)) func(*Model) tea.Cmd { return just(func(m *Model) { f(m.nav()) }) }

// says makes a command of what moves and may have something to say about it.
func says(f func(navigator) string) func(*Model) tea.Cmd {
	return just(func(m *Model) {
		if text := f(m.nav()); text != "" {
			m.say(text)
		}
	})
}

// opens makes a command that opens a window.
func opens(f func(*state) popup) func(*Model) tea.Cmd {
	return just(func(m *Model) { m.popup = f(&m.state) })
}

// asks makes a command that asks the guide for something.
func asks(what Action) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd { return m.ask(what, "") }
}

// steps makes a command that lets the loop go on, and follows it.
func steps(f func(Loop)) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		m.follow = true
		return m.order(f)
	}
}

// plays makes a command that lets the demo go on, and follows what it leads to.
func plays(f func(Demo)) func(*Model) tea.Cmd {
	return just(func(m *Model) {
		f(m.controls.Demo)
		m.nav().goLive()
		m.refresh(true)
	})
}

func newKeyMap() keyMap {
	k := func(keys ...string) []string { return keys }
	commands := []*command{
		bind(groupLoop, 1, k("space"), "space", "pause|pause: workers take no keys; again: resume", "停止|一時停止: ワーカーはキーを取り出さない。もう一度で再開", (*Model).pauseOrResume, noLoop),
		bind(groupLoop, 2, k("s"), "s", "step|let one worker take one key", "1実行|ワーカー 1 つがキーを 1 つ取り出す", steps(Loop.Step), noLoop),
		bind(groupLoop, 3, k("S"), "S", "call|go on to the next write and hold it before it is sent", "1書込|次の書き込みまで進み、送信前に保留する", steps(Loop.StepCall), noLoop),

		bind(groupTime, 5, k("["), "[ ]", "rewind|the previous, the next reconcile: everything as of its end", "時間|前/次の reconcile。画面全体がその終了時点になる", says(func(n navigator) string { return n.goReconcile(-1) }), nothingYet),
		bind(groupTime, 0, k("]"), "", "", "", says(func(n navigator) string { return n.goReconcile(1) }), nothingYet),
		bind(groupTime, 12, k("{"), "{ }", "event|the previous, the next event of the journal", "イベント|前/次のイベント", says(func(n navigator) string { return n.goEvent(-1) }), nothingYet),
		bind(groupTime, 0, k("}"), "", "", "", says(func(n navigator) string { return n.goEvent(1) }), nothingYet),
		bind(groupTime, 0, k("<"), "< >", "the previous, the next reconcile that failed or was hit by a fault", "前/次の、失敗したか fault を受けた reconcile", says(func(n navigator) string { return n.goTrouble(-1) }), nothingYet),
		bind(groupTime, 0, k(">"), "", "", "", says(func(n navigator) string { return n.goTrouble(1) }), nothingYet),
		bind(groupTime, 0, k("("), "( )", "the previous, the next reconcile that wrote", "前/次の、書き込みをした reconcile", says(func(n navigator) string { return n.goWrite(-1) }), nothingYet),
		bind(groupTime, 0, k(")"), "", "", "", says(func(n navigator) string { return n.goWrite(1) }), nothingYet),
		bind(groupTime, 0, k("#"), "#", "go to the reconcile of a number", "番号の reconcile へ移動", opens(func(*state) popup { return &numberPopup{} }), nothingYet),
		bind(groupTime, 5, k("L", "end"), "L", "live|back to the live edge (also: end)", "現在|現在に戻る (end も同じ)", goes(navigator.goLive), alreadyLive),
		bind(groupTime, 0, k("home"), "home", "the beginning|to the beginning", "先頭|先頭へ", goes(navigator.goHome), nothingYet),
		bind(groupTime, 0, k("f"), "f", "follow the newest, or not", "最新を追従する/しない", goes(navigator.toggleFollow), noPanes),

		bind(groupDemo, 1, k("g"), "g", "go on|play the next deed of the demo", "続き|デモの次の操作を行う", plays(Demo.Next), noDeed),
		bind(groupDemo, 4, k("G"), "G", "play|let the demo play on by itself", "自動|デモを最後まで自動で進める", plays(Demo.PlayOn), noDeed),
		bind(groupAct, 6, k("x"), "x", "break|delete the selected object, or change a field, behind the operator's back", "壊す|選択中のオブジェクトを無断で削除、または変更", just(breakMenu), noCluster),
		bind(groupAct, 8, k("p"), "p", "apply|apply a sample; on a CSV: list, create; on a plan: approve", "適用|サンプルを適用。CSV では一覧と作成、計画では承認", opens(sampleMenu), noSample),
		bind(groupAct, 9, k("e"), "e", "edit|edit the selected object in $EDITOR", "編集|選択中のオブジェクトを $EDITOR で編集", (*Model).edit, noEdit),
		bind(groupAct, 10, k("r"), "r", "restart|end the operator, and begin its next life", "再起動|オペレーターを終了し、起動し直す", just((*Model).restart), noRestart),

		bind(groupAct, 4, k("!"), "!", "shell|a shell in which kubectl finds this cluster", "シェル|kubectl でこのクラスターを操作できるシェル", openShell, noShell),

		bind(groupLesson, 1, k("n"), "n", "next|the next task, when this one is done", "次へ|次のタスクへ (終わったら)", asks(ActNext), noNext),
		bind(groupLesson, 3, k("a"), "a", "answer|answer the question", "回答|質問に答える", opens(func(*state) popup { return &answerPopup{} }), noQuestion),
		bind(groupLesson, 0, k("$"), "$", "the commands that the lesson shows: typed for you, enter runs one", "レッスンのコマンド: 入力済みで、enter で実行", opens(newCommand), noCommand),
		bind(groupLesson, 3, k("h"), "h", "hint|a hint; again: a stronger one", "ヒント|ヒント。もう一度でより詳しく", asks(ActHint), noHint),
		bind(groupLesson, 4, k("u"), "u", "undo|bring the cluster back to the start of this task", "元に戻す|クラスターをこのタスクの開始時点に戻す", opens(undo), noLesson),
		bind(groupLesson, 0, k("N"), "N", "go back to the start of the task before", "1 つ前のタスクの開始時点に戻る", opens(back), noEarlier),
		bind(groupLesson, 13, k("v"), "v", "solution|look at the solution", "解答|解答を見る", (*Model).solve, noLesson),
		bind(groupLesson, 0, k("t"), "t", "check now|check the task now; it is also checked by itself", "確認|今すぐ確認する (自動でも確認される)", asks(ActCheck), noLesson),

		bind(groupLook, 7, k("w"), "w", "words|the sentences whole, and what all words mean, those shown first; again: in the other language", "用語|文の全体と全用語の意味 (画面の用語から)。もう一度で英語", explain, nil),
		bind(groupLook, 0, k("d"), "d", "detail: what changed", "詳細: 差分", goes(func(n navigator) { n.showTab(DiffTab) }), nil),
		bind(groupLook, 0, k("y"), "y", "detail: the object as YAML", "詳細: YAML", goes(func(n navigator) { n.showTab(YAMLTab) }), nil),
		bind(groupLook, 0, k("c"), "c", "detail: conditions", "詳細: conditions", goes(func(n navigator) { n.showTab(ConditionsTab) }), nil),
		bind(groupLook, 0, k("l"), "l", "detail: log lines", "詳細: ログ", goes(func(n navigator) { n.showTab(LogTab) }), nil),
		bind(groupLook, 14, k("C"), "C", "source|the line of source that made the call; in a lesson, also what its text points at", "ソース|呼び出しを行ったソースの行。レッスンでは、本文が指すソースも", just(chooseSource), noSource),
		bind(groupLook, 0, k("i"), "i", "kubectl describe, events or logs of the selected object, or a shell in it", "選択中のオブジェクトを kubectl で調べる (describe、events、logs、シェル)", opens(inspectMenu), noInspect),
		bind(groupLook, 0, k("Y"), "Y", "copy all of pane 4 (detail), by the terminal's clipboard", "ペイン 4 (詳細) の全文を端末のクリップボードへコピー", (*Model).copyDetail, noPanes),
		bind(groupLook, 0, k("K"), "K", "what you and the demo have changed, as kubectl commands", "自分とデモが行った変更を kubectl のコマンドで表示", opens(func(*state) popup { return &deedsPopup{} }), nil),
		bind(groupLook, 11, k("/"), "/", "filter|show only what contains a text, in the focused pane", "絞込|文字列を含むものだけを表示", goes(navigator.startFilter), noPanes),
		bind(groupLook, 13, k("o"), "o", "operator|choose whose loop is shown", "オペレーター|表示するループを選択", opens(operatorMenu), oneOperator),

		bind(groupMove, 0, k("up", "k"), "up k", "up", "上へ", goes(func(n navigator) { n.move(-1) }), nil),
		bind(groupMove, 0, k("down", "j"), "down j", "down", "下へ", goes(func(n navigator) { n.move(1) }), nil),
		bind(groupMove, 0, k("pgup"), "pgup", "a page up", "1 ページ上へ", goes(func(n navigator) { n.turn(-1) }), nil),
		bind(groupMove, 0, k("pgdown"), "pgdn", "a page down", "1 ページ下へ", goes(func(n navigator) { n.turn(1) }), nil),
		bind(groupMove, 0, k("enter"), "enter", "open or close a reconcile; details", "reconcile を開閉、詳細へ", goes(navigator.enter), nil),
		bind(groupMove, 0, k("esc"), "esc", "back", "戻る", says(navigator.back), nil),
		bind(groupMove, 0, k("tab"), "tab", "next pane (shift+tab: previous)", "次のペイン (shift+tab: 前)", goes(func(n navigator) { n.cycle(1) }), nil),
		bind(groupMove, 0, k("shift+tab"), "", "", "", goes(func(n navigator) { n.cycle(-1) }), nil),
		bind(groupMove, 15, k("1", "2", "3", "4", "5", "6"), "1-6", "pane|focus a pane; again: zoom", "ペイン|ペインに移動。もう一度で拡大", nil, noPanes),
		bind(groupMove, 10, k("z"), "z", "zoom|give the focused pane half of the screen, all of it, and back", "拡大|ペインを半画面、全画面、元に戻す", goes(navigator.zoomIn), noPanes),

		bind(groupOther, 2, k("?"), "?", "help|all keys", "キー|すべてのキー", opens(func(*state) popup { return &helpPopup{} }), nil),
		bind(groupOther, 1, k("q", "ctrl+c"), "q", "quit|quit; what is held is never sent", "終了|終了。保留中の書き込みは送信しない", func(*Model) tea.Cmd { return tea.Quit }, nil),
	}
	return keyMap{commands: commands}
}

// find returns the command of a key, or nil.
func (k keyMap) find(pressed string) *command {
	for _, c := range k.commands {
		if key.Matches(pressedKey(pressed), c.Binding) {
			return c
		}
	}
	return nil
}

// pressedKey is a key's name as a fmt.Stringer, which bubbles wants.
type pressedKey string

func (k pressedKey) String() string { return string(k) }

// refuse says why the command cannot be done now; empty if it can.
func (c *command) refuse(s *state) string {
	if c.refusal == nil {
		return ""
	}
	return c.refusal(s)
}

func noLoop(s *state) string {
	switch {
	case s.replay:
		return s.t("this is a recording: there is no loop to hold", "記録の再生中: 操作できるループはない")
	case noPanes(s) != "":
		return noPanes(s)
	case s.controls.Loop == nil:
		return s.t("there is no loop to hold here", "操作できるループがない")
	case s.past():
		return s.t("this is the past: press L first", "過去を表示中: 先に L を押す")
	}
	return ""
}

func noCluster(s *state) string {
	switch {
	case s.replay:
		return s.t("this is a recording: there is no cluster to change", "記録の再生中: 変更できるクラスターはない")
	case s.controls.Cluster == nil:
		return s.t("there is no cluster to change here", "変更できるクラスターがない")
	case s.past():
		return s.t("this is the past: press L first", "過去を表示中: 先に L を押す")
	}
	return ""
}

func noRestart(s *state) string {
	switch {
	case s.replay:
		return s.t("this is a recording: there is no operator to restart", "記録の再生中: 再起動できるオペレーターはない")
	case s.controls.Restart == nil:
		return s.t("there is nothing to restart here", "再起動できるオペレーターがない")
	case s.past():
		return s.t("this is the past: press L first", "過去を表示中: 先に L を押す")
	}
	return ""
}

func noDeed(s *state) string {
	switch {
	case s.controls.Demo == nil:
		return s.t("there is no demo here", "ここにはデモがない")
	case s.deed() == "":
		return s.t("no deed of the demo waits", "待っているデモの操作はない")
	}
	return ""
}

func noSample(s *state) string {
	if reason := noCluster(s); reason != "" {
		return reason
	}
	o := s.subject().object
	if _, offers := offersOf(o); len(s.controls.Samples) == 0 && len(offers) == 0 && len(planOf(o)) == 0 {
		return s.t("there are no samples here", "サンプルがない")
	}
	return ""
}

func noEdit(s *state) string {
	if r := noCluster(s); r != "" {
		return r
	}
	switch o := s.subject().object; {
	case o == nil:
		return s.t("select an object first (press 1)", "先にオブジェクトを選択 (1 を押す)")
	case o.Deleted:
		return o.Ref.String() + s.t(" is gone", " は削除済")
	}
	return ""
}

// noPanes refuses what is about the panes of the loop, in a lesson without an operator.
func noPanes(s *state) string {
	if s.bare() {
		return s.t("this lesson has no operator", "このレッスンにオペレーターはない")
	}
	return ""
}

func alreadyLive(s *state) string {
	switch {
	case noPanes(s) != "":
		return noPanes(s)
	case s.live && s.follow:
		return s.t("this is the live edge already", "すでに現在を表示している")
	}
	return ""
}

func nothingYet(s *state) string {
	if r := noPanes(s); r != "" {
		return r
	}
	if len(s.index.marks) == 0 {
		return s.t("nothing has happened yet", "まだ何も起きていない")
	}
	return ""
}

func oneOperator(s *state) string {
	if len(s.index.operators) < 2 {
		return s.t("there is only one operator", "オペレーターは 1 つだけ")
	}
	return ""
}

func noShell(s *state) string {
	switch {
	case s.replay:
		return s.t("this is a recording: there is no cluster for a shell", "記録の再生中: シェルで操作するクラスターはない")
	case s.controls.Shell == nil:
		return s.t("there is no shell here", "ここにはシェルがない")
	}
	return ""
}

func noLesson(s *state) string {
	if !s.guided || s.page.Lesson == "" {
		return s.t("there is no lesson here", "レッスンはない")
	}
	return ""
}

func noNext(s *state) string {
	switch {
	case noLesson(s) != "":
		return noLesson(s)
	case !s.page.Done && s.page.Missing == "":
		return s.t("this task is not done yet", "このタスクはまだ終わっていない")
	case !s.page.Done:
		return s.t("not yet: ", "まだ: ") + s.cutTo(s.page.Missing, max(20, s.w-18))
	case s.page.Next == "":
		return s.t("this was the last task; q leaves", "最後のタスクまで終わりました。q で終了します")
	}
	return ""
}

func noHint(s *state) string {
	switch {
	case noLesson(s) != "":
		return noLesson(s)
	case s.page.More:
		return ""
	case len(s.page.Hints) == 0:
		return s.t("this task has no hints; v shows the solution", "このタスクにヒントはない。v で解答を表示")
	}
	return s.t("there are no more hints; v shows the solution", "ヒントはこれですべて。v で解答を表示")
}

func noEarlier(s *state) string {
	switch {
	case noLesson(s) != "":
		return noLesson(s)
	case !s.page.Earlier:
		return s.t("this is the first task; u brings back its start", "これが最初のタスク。u で開始時点に戻る")
	}
	return ""
}

func noCommand(s *state) string {
	switch {
	case noLesson(s) != "":
		return noLesson(s)
	case s.controls.Command == nil:
		return s.t("there is no shell here", "ここにはシェルがない")
	case len(s.commands()) == 0:
		return s.t("the lesson shows no command here", "ここにはレッスンのコマンドがない")
	}
	return ""
}

func noQuestion(s *state) string {
	switch {
	case noLesson(s) != "":
		return noLesson(s)
	case s.page.Question == "":
		return s.t("this task asks no question", "このタスクに質問はない")
	case s.page.Done:
		return s.t("this task is done: its answer stands", "このタスクは完了済み。答えは変えられない")
	}
	return ""
}
