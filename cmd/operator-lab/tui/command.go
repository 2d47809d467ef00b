package tui

import (
	"regexp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/operator-lab/operator-lab/lessons/markdown"
)

// commandPopup takes a command for the shell of the lesson. It begins with one that the lesson shows.
type commandPopup struct {
	shown         []string
	at            int   // which of them
	before, after typed // the cursor
}

// longestCommand is the maximum length of a command in bytes.
const longestCommand = 2000

// placeholder finds what the learner has to fill in.
var placeholder = regexp.MustCompile(`<[a-z][a-z -]*>|…`)

// newCommand begins with the first command of the task that was not run yet.
func newCommand(s *state) popup {
	p := &commandPopup{shown: s.commands()}
	p.take(max(0, slices.IndexFunc(p.shown, func(c string) bool { return !slices.Contains(s.ran, c) })))
	return p
}

// commands returns the commands that the lesson shows by now.
func (s *state) commands() []string {
	texts := append([]string{s.page.Text}, s.page.Hints...)
	return markdown.Commands(strings.Join(append(texts, s.page.Solution), "\n\n"))
}

// take types a command, with the cursor where something is to be filled in, or at its end.
func (p *commandPopup) take(i int) {
	p.at = (i + len(p.shown)) % len(p.shown)
	c := p.shown[p.at]
	end := len(c)
	if at := placeholder.FindStringIndex(c); at != nil {
		end = at[1]
	}
	p.before, p.after = typed(c[:end]), typed(c[end:])
}

func (p *commandPopup) window(s *state) []string {
	var rows []row
	for i, line := range strings.Split(string(p.before+"_"+p.after), "\n") {
		lead := "   "
		if i == 0 {
			lead = " $ "
		}
		rows = append(rows, wrapped(bold, lead, line, min(96, s.w-8))...)
	}
	rows = append(rows, row{}, text(dim, " "+s.t("command ", "コマンド ")+itoa(p.at+1)+"/"+itoa(len(p.shown))))
	return s.theme.window(s.screen(), s.t("Run a command of the lesson", "レッスンのコマンドを実行"), rows, 50, 0)
}

func (p *commandPopup) keys(s *state) ([]string, []string) {
	return []string{"enter", "up down", s.t("type", "入力"), "esc"},
		[]string{s.t("run it", "実行"), s.t("another", "別のコマンド"), s.t("change it", "編集"), s.t("never mind", "やめる")}
}

func (p *commandPopup) press(m *Model, pressed string) tea.Cmd {
	first := func() typed { return p.after[:len(p.after)-len(withoutFirst(string(p.after)))] }
	last := func() typed { return p.before[len(withoutLast(string(p.before))):] }
	switch pressed {
	case "esc":
		m.popup = nil
	case "up":
		p.take(p.at - 1)
	case "down":
		p.take(p.at + 1)
	case "enter":
		return p.run(m)
	case "left":
		p.before, p.after = typed(withoutLast(string(p.before))), last()+p.after
	case "right":
		p.before, p.after = p.before+first(), typed(withoutFirst(string(p.after)))
	case "home":
		p.before, p.after = "", p.before+p.after
	case "end":
		p.before, p.after = p.before+p.after, ""
	case "delete":
		p.after = typed(withoutFirst(string(p.after)))
	default:
		p.before.press(pressed, longestCommand-len(p.after))
	}
	return nil
}

func (p *commandPopup) run(m *Model) tea.Cmd {
	command := strings.TrimSpace(string(p.before + p.after))
	if command == "" {
		return nil
	}
	if missing := placeholder.FindString(command); missing != "" {
		m.say(m.t("first type what belongs there instead of ", "先に実際の値を入力: ") + missing)
		return nil
	}
	m.popup = nil
	m.ran = append(m.ran, p.shown[p.at])
	return runCommand(m.controls.Command, command)
}
