package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// copyRect is room for everything that a pane can show: nothing is cut, wrapped or left out.
var copyRect = Rect{W: 10_000, H: 1_000_000}

// copyDetail hands what the detail pane has, also what is not in sight, to the terminal's clipboard. Whether the terminal takes
// it is not known: it gives no answer.
func (m *Model) copyDetail() tea.Cmd {
	rows := detailPane{&m.state}.rows(copyRect)
	var text strings.Builder
	for i := range rows {
		text.WriteString(strings.TrimRight(strings.TrimPrefix(rows[i].plain(), "  "), " ") + "\n")
	}
	if len(rows) == 0 {
		m.say(m.t("nothing is selected", "何も選択されていない"))
		return nil
	}
	m.say(fmt.Sprintf(m.t("%d lines of pane 4 were given to the terminal's clipboard", "ペイン 4 の %d 行を端末のクリップボードに渡した"), len(rows)))
	return tea.SetClipboard(text.String())
}
