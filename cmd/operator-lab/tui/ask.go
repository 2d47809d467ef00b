package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/clipperhouse/displaywidth"
)

// typed is a text that is being typed.
type typed string

// press takes a key that edits the text.
func (t *typed) press(pressed string, most int) {
	switch pressed {
	case "backspace":
		*t = typed(withoutLast(string(*t)))
	case "ctrl+u":
		*t = ""
	case "space":
		t.add(" ", most)
	default:
		if len([]rune(pressed)) == 1 || !isASCII(pressed) {
			t.add(pressed, most)
		}
	}
}

// withoutLast returns a text without its last character, with the marks that combine with it.
func withoutLast(s string) string {
	last := ""
	for g := displaywidth.StringGraphemes(s); g.Next(); {
		last = g.Value()
	}
	return strings.TrimSuffix(s, last)
}

// withoutFirst returns a text without its first character, with the marks that combine with it.
func withoutFirst(s string) string {
	g := displaywidth.StringGraphemes(s)
	g.Next()
	return strings.TrimPrefix(s, g.Value())
}

// add appends what fits.
func (t *typed) add(text string, most int) {
	for _, r := range clean(text) {
		if len(*t)+len(string(r)) > most {
			return
		}
		*t += typed(r)
	}
}

// confirmPopup asks before something is done that cannot be taken back.
type confirmPopup struct {
	question string
	do       func(*Model) tea.Cmd
}

func (p *confirmPopup) window(s *state) []string {
	rows := wrapped(plain, " ", p.question, min(72, s.w-8))
	rows = append(rows, *(&row{}).add(plain, " ").add(tool, "y").add(plain, s.t(" yes   ", " はい   ")).add(tool, "n").add(plain, s.t(" no", " いいえ")))
	return s.theme.window(s.screen(), s.t("Sure?", "確認"), rows, 40, 0)
}

func (p *confirmPopup) keys(s *state) ([]string, []string) {
	return []string{"y", "n"}, []string{s.t("yes", "はい"), s.t("no", "いいえ")}
}

func (p *confirmPopup) press(m *Model, pressed string) tea.Cmd {
	switch pressed {
	case "y", "Y":
		m.popup = nil
		return p.do(m)
	case "n", "N", "esc", "q":
		m.popup = nil
	}
	return nil
}

// longestAnswer bounds an answer: it is a number or a word.
const longestAnswer = 60

// answerPopup takes the answer to a question.
type answerPopup struct{ text typed }

func (p *answerPopup) window(s *state) []string {
	rows := markdownRows(s.page.Question, min(72, s.w-8))
	if most := s.h - 8; len(rows) > most { // it is in the lesson too
		rows = rows[:max(0, most)]
	}
	for i := range rows {
		rows[i].segs = append([]seg{{plain, " "}}, rows[i].segs...)
	}
	rows = append(rows, row{}, *(&row{}).add(plain, " ").add(tool, "> ").add(bold, string(p.text)).add(plain, "_"))
	return s.theme.window(s.screen(), s.t("Your answer", "あなたの答え"), rows, 40, 0)
}

func (p *answerPopup) keys(s *state) ([]string, []string) {
	return []string{s.t("type", "入力"), "enter", "esc"}, []string{s.t("a number or a word", "数字か単語"), s.t("send it", "送信"), s.t("never mind", "やめる")}
}

func (p *answerPopup) press(m *Model, pressed string) tea.Cmd {
	switch pressed {
	case "esc":
		m.popup = nil
	case "enter":
		if p.text == "" {
			return nil
		}
		m.popup = nil
		return m.ask(ActAnswer, string(p.text))
	default:
		p.text.press(pressed, longestAnswer)
	}
	return nil
}

// numberPopup takes the number of a reconcile to go to.
type numberPopup struct{ text typed }

func (p *numberPopup) window(s *state) []string {
	rows := []row{*(&row{}).add(plain, " ").add(tool, "# ").add(bold, string(p.text)).add(plain, "_")}
	return s.theme.window(s.screen(), s.t("Go to reconcile", "reconcile へ移動"), rows, 30, 0)
}

func (p *numberPopup) keys(s *state) ([]string, []string) {
	return []string{s.t("type", "入力"), "enter", "esc"}, []string{s.t("a number", "番号"), s.t("go there", "移動"), s.t("never mind", "やめる")}
}

func (p *numberPopup) press(m *Model, pressed string) tea.Cmd {
	switch pressed {
	case "esc":
		m.popup = nil
	case "enter":
		m.popup = nil
		for _, reconcile := range m.loop().reconciles() {
			if itoa(reconcile.ID) == string(p.text) {
				m.nav().goToReconcile(reconcile)
				return nil
			}
		}
		m.say("#: " + m.t("there is no reconcile ", "その reconcile はない: ") + string(p.text))
	default:
		p.text.press(pressed, 9)
	}
	return nil
}
