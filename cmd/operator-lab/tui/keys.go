package tui

import (
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// keyGroup is under which heading of the help a key stands.
type keyGroup int

const (
	groupLoop keyGroup = iota
	groupTime
	groupLook
	groupMove
	groupAct
	groupLesson
	groupOther
)

// command is what a key does. The footer and the help are made of these.
type command struct {
	key.Binding
	japanese string
	// rank says how soon it is shown in the footer; zero is never.
	rank  int
	group keyGroup
	do    func(*Model) tea.Cmd
	// refusal says why it cannot be done now; empty if it can. Nil: always.
	refusal func(*scene) string
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

func bind(group keyGroup, rank int, keys []string, shown, english, japanese string, do func(*Model) tea.Cmd, refusal func(*scene) string) *command {
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

func newKeyMap() keyMap {
	k := func(keys ...string) []string { return keys }
	commands := []*command{
		bind(groupLoop, 1, k("space"), "space", "pause|pause: workers take no keys; again: resume", "停止|一時停止: ワーカーはキーを取り出さない。もう一度で再開", just((*Model).pauseOrResume), (*scene).noLoop),
		bind(groupLoop, 2, k("s"), "s", "step|let one worker take one key", "1調整|ワーカー 1 つがキーを 1 つ取り出す", just((*Model).stepOne), (*scene).noLoop),
		bind(groupLoop, 3, k("S"), "S", "call|go on to the next write and hold it before it is sent", "1書込|次の書き込みまで進み、送信前に保留する", just((*Model).stepCall), (*scene).noLoop),

		bind(groupTime, 5, k("["), "[ ]", "rewind|the previous, the next reconcile: everything as of its end", "時間|前/次の調整。画面全体がその終了時点になる", just(func(m *Model) { m.goSpan(-1) }), (*scene).nothingYet),
		bind(groupTime, 0, k("]"), "", "", "", just(func(m *Model) { m.goSpan(1) }), (*scene).nothingYet),
		bind(groupTime, 12, k("{"), "{ }", "event|the previous, the next event of the journal", "イベント|前/次のイベント", just(func(m *Model) { m.goEvent(-1) }), (*scene).nothingYet),
		bind(groupTime, 0, k("}"), "", "", "", just(func(m *Model) { m.goEvent(1) }), (*scene).nothingYet),
		bind(groupTime, 5, k("L", "end"), "L", "live|back to the live edge (also: end)", "現在|現在に戻る (end も同じ)", just((*Model).goLive), nil),
		bind(groupTime, 0, k("home"), "home", "the beginning|to the beginning", "先頭|先頭へ", just((*Model).goHome), (*scene).nothingYet),
		bind(groupTime, 0, k("f"), "f", "follow the newest, or not", "最新を追従する/しない", just((*Model).toggleFollow), nil),

		bind(groupAct, 6, k("x"), "x", "break|delete the selected object, or change a field, behind the operator's back", "壊す|選択中のオブジェクトを無断で削除、または変更", just((*Model).breakMenu), (*scene).noCluster),
		bind(groupAct, 9, k("e"), "e", "edit|edit the selected object in $EDITOR", "編集|選択中のオブジェクトを $EDITOR で編集", (*Model).edit, (*scene).noEdit),

		bind(groupAct, 4, k("!"), "!", "shell|a shell in which kubectl finds this cluster", "シェル|kubectl でこのクラスターを操作できるシェル", (*Model).shell, (*scene).noShell),

		bind(groupLesson, 1, k("n"), "n", "next|the next task, when this one is done", "次へ|次のタスクへ (終わったら)", (*Model).next, (*scene).noNext),
		bind(groupLesson, 3, k("a"), "a", "answer|answer the question", "回答|質問に答える", (*Model).answer, (*scene).noQuestion),
		bind(groupLesson, 3, k("h"), "h", "hint|a hint; again: a stronger one", "ヒント|ヒント。もう一度でより詳しく", (*Model).hint, (*scene).noHint),
		bind(groupLesson, 4, k("u"), "u", "undo|bring the cluster back to the start of this task", "元に戻す|クラスターをこのタスクの開始時点に戻す", (*Model).undo, (*scene).noLesson),
		bind(groupLesson, 13, k("v"), "v", "solution|look at the solution", "解答|解答を見る", (*Model).solve, (*scene).noLesson),
		bind(groupLesson, 0, k("t"), "t", "check now|check the task now; it is also checked by itself", "確認|今すぐ確認する (自動でも確認される)", (*Model).check, (*scene).noLesson),

		bind(groupLook, 7, k("w"), "w", "why|why it happened, and what it led to; again: in the other language", "なぜ|起きた理由とその結果。もう一度で英語", just((*Model).showWhy), (*scene).nothingYet),
		bind(groupLook, 0, k("d"), "d", "detail: what changed", "詳細: 差分", just(func(m *Model) { m.showTab(DiffTab) }), nil),
		bind(groupLook, 0, k("y"), "y", "detail: the object as YAML", "詳細: YAML", just(func(m *Model) { m.showTab(YAMLTab) }), nil),
		bind(groupLook, 0, k("c"), "c", "detail: conditions", "詳細: conditions", just(func(m *Model) { m.showTab(ConditionsTab) }), nil),
		bind(groupLook, 0, k("l"), "l", "detail: log lines", "詳細: ログ", just(func(m *Model) { m.showTab(LogTab) }), nil),
		bind(groupLook, 11, k("/"), "/", "filter|show only what contains a text, in the focused pane", "絞込|文字列を含むものだけを表示", just((*Model).startFilter), nil),
		bind(groupLook, 13, k("o"), "o", "operator|choose whose loop is shown", "オペレーター|表示するループを選択", just((*Model).operatorMenu), (*scene).oneOperator),

		bind(groupMove, 0, k("up", "k"), "up k", "up", "上へ", just(func(m *Model) { m.move(-1) }), nil),
		bind(groupMove, 0, k("down", "j"), "down j", "down", "下へ", just(func(m *Model) { m.move(1) }), nil),
		bind(groupMove, 0, k("pgup"), "pgup", "a page up", "1 ページ上へ", just(func(m *Model) { m.turn(-1) }), nil),
		bind(groupMove, 0, k("pgdown"), "pgdn", "a page down", "1 ページ下へ", just(func(m *Model) { m.turn(1) }), nil),
		bind(groupMove, 0, k("enter"), "enter", "open or close a reconcile; details", "調整を開閉、詳細へ", just((*Model).enter), nil),
		bind(groupMove, 0, k("esc"), "esc", "back", "戻る", just((*Model).back), nil),
		bind(groupMove, 0, k("tab"), "tab", "next pane (shift+tab: previous)", "次のペイン (shift+tab: 前)", just(func(m *Model) { m.cycle(1) }), nil),
		bind(groupMove, 0, k("shift+tab"), "", "", "", just(func(m *Model) { m.cycle(-1) }), nil),
		bind(groupMove, 15, k("1", "2", "3", "4", "5", "6"), "1-6", "pane|focus a pane; again: zoom", "ペイン|ペインに移動。もう一度で拡大", nil, nil),
		bind(groupMove, 10, k("z"), "z", "zoom|give the focused pane half of the screen, all of it, and back", "拡大|ペインを半画面、全画面、元に戻す", just((*Model).zoomIn), nil),

		bind(groupOther, 2, k("?"), "?", "help|all keys", "ヘルプ|すべてのキー", just((*Model).showHelp), nil),
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

// footer is one line of the keys that matter most, made of the key map.
func (s *scene) footer(w int) row {
	switch {
	case s.busy != nil && s.busy.shown:
		return s.footerOf([]string{"q"}, []string{s.t("quit", "終了")})
	case s.flash != "":
		return text(note, " "+s.flash)
	case s.typing:
		return s.footerOf([]string{s.t("type", "入力"), "enter", "esc"},
			[]string{s.t("to filter", "で絞り込み"), s.t("keep it", "確定"), s.t("clear it", "解除")})
	case s.popup != nil:
		keys, texts := s.popup.keys(s)
		return s.footerOf(keys, texts)
	}
	return s.footerOf(s.mostUseful(w))
}

// lastRank is the rank of the keys that leave the footer first.
const lastRank = 15

// mostUseful chooses the keys that can be used now and fit, those of the lowest
// rank first, and returns them in the order of the key map.
func (s *scene) mostUseful(w int) (keys, texts []string) {
	chosen := map[*command]bool{}
	used := 1
	for rank := 1; rank <= lastRank; rank++ {
		for _, c := range s.keys.commands {
			n := width(c.Help().Key) + width(s.short(c)) + 3
			if c.rank == rank && used+n <= w+1 && s.refuse(c) == "" {
				chosen[c] = true
				used += n
			}
		}
	}
	for _, c := range s.keys.commands {
		if chosen[c] {
			keys, texts = append(keys, c.Help().Key), append(texts, s.short(c))
		}
	}
	return keys, texts
}

// short returns what a key does now, in a word or two.
func (s *scene) short(c *command) string {
	if mode := s.state.Mode(); c.Help().Key == "space" && (mode.Paused || mode.HoldWrites) {
		return s.t("resume", "再開")
	}
	if c.Help().Key == "L" && s.replay {
		return s.t("end", "末尾")
	}
	short, _ := c.words(s.lang)
	return short
}

func (s *scene) footerOf(keys, texts []string) row {
	r := text(plain, " ")
	for i := range keys {
		if i > 0 {
			r.add(plain, "  ")
		}
		r.add(tool, keys[i]).add(plain, " "+texts[i])
	}
	return r
}

// refuse says why a command cannot be done now; empty if it can.
func (s *scene) refuse(c *command) string {
	if c.refusal == nil {
		return ""
	}
	return c.refusal(s)
}

func (s *scene) noLoop() string {
	switch {
	case s.replay:
		return s.t("this is a recording: there is no loop to hold", "記録の再生中: 操作できるループはない")
	case s.controls.Loop == nil:
		return s.t("there is no loop to hold here", "操作できるループがない")
	case s.past():
		return s.t("this is the past: press L first", "過去を表示中: 先に L を押す")
	}
	return ""
}

func (s *scene) noCluster() string {
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

func (s *scene) noEdit() string {
	if r := s.noCluster(); r != "" {
		return r
	}
	switch o := s.target(); {
	case o == nil:
		return s.t("select an object first (press 1)", "先にオブジェクトを選択 (1 を押す)")
	case o.Deleted:
		return o.Ref.String() + s.t(" is gone", " は削除済")
	}
	return ""
}

// target is the object that edits and faults are about, or nil.
func (s *scene) target() *trace.Object { return s.subject().object }

func (s *scene) nothingYet() string {
	if len(s.index.marks) == 0 {
		return s.t("nothing has happened yet", "まだ何も起きていない")
	}
	return ""
}

func (s *scene) oneOperator() string {
	if len(s.index.operators) < 2 {
		return s.t("there is only one operator", "オペレーターは 1 つだけ")
	}
	return ""
}

func (s *scene) noShell() string {
	switch {
	case s.replay:
		return s.t("this is a recording: there is no cluster for a shell", "記録の再生中: シェルで操作するクラスターはない")
	case s.controls.Shell == nil:
		return s.t("there is no shell here", "ここにはシェルがない")
	}
	return ""
}

func (s *scene) noLesson() string {
	if !s.guided || s.page.Lesson == "" {
		return s.t("there is no lesson here", "レッスンはない")
	}
	return ""
}

func (s *scene) noNext() string {
	switch {
	case s.noLesson() != "":
		return s.noLesson()
	case !s.page.Done && s.page.Missing == "":
		return s.t("this task is not done yet", "このタスクはまだ終わっていない")
	case !s.page.Done:
		return s.t("not yet: ", "未達: ") + s.cutTo(s.page.Missing, max(20, s.w-18))
	case s.page.Next == "":
		return s.t("this was the last task; q leaves", "最後のタスクまで終わりました。q で終了します")
	}
	return ""
}

func (s *scene) noHint() string {
	switch {
	case s.noLesson() != "":
		return s.noLesson()
	case s.page.More:
		return ""
	case len(s.page.Hints) == 0:
		return s.t("this task has no hints; v shows the solution", "このタスクにヒントはない。v で解答を表示")
	}
	return s.t("there are no more hints; v shows the solution", "ヒントはこれですべて。v で解答を表示")
}

func (s *scene) noQuestion() string {
	switch {
	case s.noLesson() != "":
		return s.noLesson()
	case s.page.Question == "":
		return s.t("this task asks no question", "このタスクに質問はない")
	}
	return ""
}
