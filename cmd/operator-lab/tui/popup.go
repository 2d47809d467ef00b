package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// popup is a window over the screen; it gets all keys.
type popup interface {
	// window draws it: lines of the same width that fit on the screen.
	window(*state) []string
	// keys returns what the footer says.
	keys(*state) (keys, texts []string)
	press(*Model, string) tea.Cmd
}

// textPopup is a window of text that any key closes but those that scroll.
type textPopup struct{ top int }

// scroll scrolls by a key in a text of so many rows; any other key closes the window.
func (p *textPopup) scroll(m *Model, pressed string, rows int) tea.Cmd {
	n := 0
	switch pressed {
	case "up", "k":
		n = -1
	case "down", "j":
		n = 1
	case "pgup":
		n = -10
	case "pgdown":
		n = 10
	default:
		m.popup = nil
	}
	p.top = min(max(0, p.top+n), max(0, rows-(m.h-4)))
	return nil
}

// helpPopup lists all keys.
type helpPopup struct{ textPopup }

func (p *helpPopup) window(s *state) []string {
	return s.theme.window(s.screen(), s.t("All keys", "すべてのキー"), p.rows(s), 50, p.top)
}

func (p *helpPopup) keys(s *state) ([]string, []string) {
	return []string{"j k", "esc"}, []string{s.t("scroll", "スクロール"), s.t("close", "閉じる")}
}

func (p *helpPopup) press(m *Model, pressed string) tea.Cmd {
	return p.scroll(m, pressed, len(p.rows(&m.state)))
}

// messagePopup is a message that is too long for the footer.
type messagePopup struct {
	textPopup
	text string
}

func (p *messagePopup) window(s *state) []string {
	return s.theme.window(s.screen(), s.t("Message", "メッセージ"), p.rows(s), 40, p.top)
}

func (p *messagePopup) rows(s *state) []row {
	return wrapped(plain, " ", p.text, min(96, s.w-8))
}

func (p *messagePopup) keys(s *state) ([]string, []string) {
	return []string{"esc"}, []string{s.t("close", "閉じる")}
}

func (p *messagePopup) press(m *Model, pressed string) tea.Cmd {
	return p.scroll(m, pressed, len(p.rows(&m.state)))
}

// wordsPopup tells whole what the screen may have had no room for, and what all words mean, those on the screen first.
type wordsPopup struct {
	textPopup
	lang  trace.Language
	shown string // the screen it was opened on
}

func (p *wordsPopup) window(s *state) []string {
	return s.theme.window(s.screen(), s.t("What the screen says", "画面の説明"), p.rows(s), 50, p.top)
}

func (p *wordsPopup) rows(s *state) []row {
	w := min(110, s.w-8)
	rows := wrapped(bold, " ", s.why(s.subject(), p.lang), w)
	for _, remark := range (asideBar{s}).remarks() {
		rows = append(rows, row{})
		rows = append(rows, wrapped(remark.st, " ", remark.text, w)...)
	}
	rows = append(rows, row{})
	return append(rows, s.words(p.shown, p.lang, w)...)
}

func (p *wordsPopup) keys(s *state) ([]string, []string) {
	other := "日本語で"
	if p.lang == trace.Japanese {
		other = "in English"
	} else if s.ascii {
		other = "in Japanese"
	}
	return []string{"w", "j k", "esc"}, []string{other, s.t("scroll", "スクロール"), s.t("close", "閉じる")}
}

func (p *wordsPopup) press(m *Model, pressed string) tea.Cmd {
	switch {
	case pressed == "w" && p.lang == trace.Japanese:
		p.lang = trace.English
	case pressed == "w":
		p.lang = trace.Japanese
	default:
		return p.scroll(m, pressed, len(p.rows(&m.state)))
	}
	return nil
}

// rows are all keys under their headings, and what the signs mean.
func (p *helpPopup) rows(s *state) []row {
	headings := []string{
		s.t("The loop", "ループ"), s.t("Time", "時間"), s.t("Look closer", "詳しく見る"),
		s.t("Move", "移動"), s.t("Act", "操作"), s.t("Demo", "デモ"), s.t("Lesson", "レッスン"), s.t("Other", "その他"),
	}
	var rows []row
	if s.controls.Reach != "" {
		rows = append(rows, text(bold, s.t(" From another terminal", " 別の端末から")), text(tool, "   "+s.controls.Reach+" get pods -A"))
	}
	for group, heading := range headings {
		if keyGroup(group) == groupLesson && !s.guided || keyGroup(group) == groupDemo && s.controls.Demo == nil {
			continue
		}
		rows = append(rows, text(bold, " "+heading))
		for _, c := range s.keys.commands {
			if int(c.group) != group || c.Help().Key == "" {
				continue
			}
			r := text(plain, "   ")
			_, long := c.words(s.lang)
			if words, is := gatedWords[c.Help().Key]; is && s.queueless() {
				long = s.t(words.english, words.japanese)
			}
			r.cell(&s.theme, tool, c.Help().Key, 8)
			base := plain
			if reason := c.refuse(s); reason != "" {
				long += "  (" + reason + ")"
				base = faint
			}
			for i, line := range wrap(long, max(20, s.w-8-r.width())) {
				if i > 0 {
					r = text(plain, blanks(12))
				}
				full := row{segs: append(slices.Clone(r.segs), seg{plain, line}), base: base}
				rows = append(rows, full)
			}
		}
	}
	rows = append(rows, text(bold, s.t(" Signs", " 記号")))
	for _, sign := range [][2]string{
		{s.ownMark(), s.t("woken by the operator's own write", "自分自身の書き込みで起きた")},
		{s.ok + " " + s.working + " " + s.failing, s.t("ready, working, failing", "準備完了, 作業中, 失敗")},
		{"+ ~ -", s.t("added, changed, removed lately", "最近の追加, 変更, 削除")},
		{"?", s.t("planned: a write that is held", "予定: 保留中の書き込み")},
		{"cache", s.t("a read that the API server never saw", "API サーバーに届かない読み取り")},
	} {
		r := text(plain, "   ")
		rows = append(rows, *r.cell(&s.theme, plain, sign[0], 8).add(plain, sign[1]))
	}
	return rows
}

// deedsPopup lists what the person and the demo have changed, as the kubectl commands that do the same.
type deedsPopup struct{ textPopup }

func (p *deedsPopup) window(s *state) []string {
	return s.theme.window(s.screen(), s.t("What was changed, as kubectl commands", "行われた変更 (kubectl のコマンド)"), p.rows(s), 50, p.top)
}

func (p *deedsPopup) rows(s *state) []row {
	var rows []row
	for _, e := range s.index.timeline.Journal().Since(0) {
		if command := trace.Kubectl(e); command != "" {
			who := ""
			if s.controls.Demo != nil || e.Actor == trace.Demo { // else it was the person
				who = trace.ActorText(e.Actor, s.lang) + ": "
			}
			rows = append(rows, wrapped(plain, " ", clock(e.At)+"  "+who+command, min(110, s.w-8))...)
		}
	}
	if len(rows) == 0 {
		rows = []row{text(dim, s.t(" nothing yet", " まだない"))}
	}
	return rows
}

func (p *deedsPopup) keys(s *state) ([]string, []string) {
	return []string{"j k", "esc"}, []string{s.t("scroll", "スクロール"), s.t("close", "閉じる")}
}

func (p *deedsPopup) press(m *Model, pressed string) tea.Cmd {
	return p.scroll(m, pressed, len(p.rows(&m.state)))
}
