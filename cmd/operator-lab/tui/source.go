package tui

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/operator-lab/operator-lab/lessons/markdown"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// sourcePopup shows the line of the operator's source that made a call, and what is around it.
type sourcePopup struct {
	textPopup
	heading string
	text    []row
}

// calledFrom returns the line of source that the subject was made at: that of its call, or of the first call of a
// reconcile; empty if it is not known.
func (sub subject) calledFrom() (operator, line string) {
	if e := sub.event; e != nil && e.Line != "" {
		return e.Operator, e.Line
	}
	if sub.reconcile != nil && sub.whole {
		for _, e := range sub.reconcile.Steps {
			if e.Line != "" {
				return e.Operator, e.Line
			}
		}
	}
	return "", ""
}

// place is a line of a file of an operator's source; the line may be missing.
type place struct{ operator, at string }

// places are those of the source that can be shown: the line of the subject, and the files that the text of a lesson points at.
func (s *state) places() []place {
	var out []place
	if operator, at := s.subject().calledFrom(); at != "" {
		out = append(out, place{operator, at})
	}
	texts := append([]string{s.page.Text}, s.page.Hints...)
	all := strings.Join(append(texts, s.page.Solution, s.page.DoneText), "\n\n")
	if s.memo.linksOf != all { // the footer asks at every frame
		s.memo.links, s.memo.linksOf = markdown.Links(all), all
	}
	for _, link := range s.memo.links {
		file := path.Join("lessons/one", link) // lessons are folders
		if parts := strings.Split(file, "/"); len(parts) > 2 && parts[0] == "operators" && path.Ext(file) != "" {
			out = append(out, place{parts[1], file})
		}
	}
	return out
}

// noSource says why no source can be shown.
func noSource(s *state) string {
	switch places := s.places(); {
	case len(places) == 0:
		return s.t("select a call of an operator that was built with taps", "タップ付きでビルドしたオペレーターの呼び出しを選択")
	case s.source == nil:
		return s.t("the source is not at hand: ", "ソースは手元にない: ") + places[0].at
	}
	return ""
}

// chooseSource opens the source, or lets one of several places be chosen.
func chooseSource(m *Model) {
	places := m.places()
	if len(places) == 1 {
		m.showSource(places[0])
		return
	}
	p := &menu{heading: m.t("Source", "ソース")}
	for _, at := range places {
		p.choices = append(p.choices, choice{text: at.at, do: just(func(m *Model) { m.showSource(at) })})
	}
	m.popup = p
}

// showSource opens the window.
func (m *Model) showSource(p place) {
	file, number, _ := strings.Cut(p.at, ":")
	text, changed, err := m.source(p.operator, file)
	if err != nil {
		m.say(p.at + ": " + err.Error())
		return
	}
	marked, err := strconv.Atoi(number)
	if err != nil {
		marked = 0
	}
	window := &sourcePopup{heading: p.at}
	if changed {
		window.heading += m.t("  (the file may have changed since)", "  (その後ファイルが変わった可能性あり)")
	}
	window.text = sourceRows(text, marked)
	before := len(folded(window.text[:min(max(0, marked-1), len(window.text))], m.w-6))
	window.top = max(0, min(before-(m.h-4)/2, len(window.rows(&m.state))-(m.h-4)))
	m.popup = window
}

// sourceRows are the lines of a file with their numbers, one of them marked.
func sourceRows(source string, marked int) []row {
	var rows []row
	for line := range strings.SplitSeq(strings.TrimSuffix(source, "\n"), "\n") {
		n := len(rows) + 1
		sign, st := " ", plain
		if n == marked {
			sign, st = ">", bold
		}
		r := text(st, " "+sign)
		r.add(dim, fmt.Sprintf("%5d  ", n))
		rows = append(rows, *r.add(st, strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    ")))
	}
	return rows
}

func (p *sourcePopup) window(s *state) []string {
	return s.theme.window(s.screen(), p.heading, p.rows(s), 50, p.top)
}

// rows are the lines of the file, each whole.
func (p *sourcePopup) rows(s *state) []row { return folded(p.text, s.w-6) }

func (p *sourcePopup) keys(s *state) ([]string, []string) {
	return []string{"j k", "esc"}, []string{s.t("scroll", "スクロール"), s.t("close", "閉じる")}
}

func (p *sourcePopup) press(m *Model, pressed string) tea.Cmd {
	return p.scroll(m, pressed, len(p.rows(&m.state)))
}

// sourceRow says in the detail pane which line of source made a call; nil if it is not known.
func (s detailPane) sourceRow(e *trace.Event) []row {
	if e == nil || e.Line == "" {
		return nil
	}
	return []row{*(&row{}).add(dim, s.t("  called at ", "  呼び出し元 ")).add(plain, e.Line).add(dim, "  C")}
}
