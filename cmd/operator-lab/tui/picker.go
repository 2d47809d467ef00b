package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// picker is the Bubble Tea model of [Pick].
type picker struct {
	theme
	look Options // language, look and terminal
	PickOptions
	w, h   int
	at     string // ID of the item under the cursor
	track  int    // which of the tracks is shown; 0 is all items
	filter typed
	typing bool
	picked string
}

func newPicker(o PickOptions) *picker {
	look := Options{
		Language: o.Language, ASCII: o.ASCII, NoColor: o.NoColor, ForceColor: o.ForceColor, In: o.In, Out: o.Out, Getenv: o.Getenv,
	}.withDefaults()
	p := &picker{theme: newTheme(look), look: look, PickOptions: o, at: o.Suggested}
	if o.Track != "" {
		p.track = 1 + slices.IndexFunc(o.Tracks, func(t PickTrack) bool { return t.Name == o.Track })
	}
	p.settle()
	return p
}

// Init starts nothing: only keys change the screen.
func (p *picker) Init() tea.Cmd { return nil }

// Update takes a message.
func (p *picker) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		p.w, p.h = max(msg.Width, 0), max(msg.Height, 0)
	case tea.PasteMsg:
		if p.typing {
			p.filter.add(msg.Content, maxFilter)
			p.settle()
		}
	case tea.KeyPressMsg:
		return p, p.press(msg.String())
	}
	return p, nil
}

// View draws the screen.
func (p *picker) View() tea.View {
	v := tea.NewView(p.frame())
	v.AltScreen = true
	v.WindowTitle = "operator-lab"
	return v
}

func (p *picker) press(pressed string) tea.Cmd {
	switch {
	case pressed == "ctrl+c":
		return tea.Quit
	case p.typing:
		p.typeFilter(pressed)
		return nil
	}
	switch pressed {
	case "q":
		return tea.Quit
	case "esc":
		if p.filter == "" {
			return tea.Quit
		}
		p.filter = ""
	case "enter":
		if p.at != "" {
			p.picked = p.at
			return tea.Quit
		}
	case "/":
		p.typing = true
	case "tab":
		p.track = (p.track + 1) % (len(p.Tracks) + 1)
	case "shift+tab":
		p.track = (p.track + len(p.Tracks)) % (len(p.Tracks) + 1)
	default:
		p.move(pressed)
	}
	p.settle()
	return nil
}

func (p *picker) typeFilter(pressed string) {
	switch pressed {
	case "enter":
		p.typing = false
	case "esc":
		p.typing, p.filter = false, ""
	case "up", "down":
		p.move(pressed)
	default:
		p.filter.press(pressed, maxFilter)
	}
	p.settle()
}

// move moves the cursor.
func (p *picker) move(pressed string) {
	shown := p.shown()
	by := map[string]int{
		"up": -1, "k": -1, "down": 1, "j": 1,
		"pgup": -max(1, p.listHeight()-1), "pgdown": max(1, p.listHeight()-1),
		"home": -len(shown), "end": len(shown),
	}[pressed]
	if by == 0 || len(shown) == 0 {
		return
	}
	i := slices.IndexFunc(shown, p.here)
	p.at = shown[min(max(0, i+by), len(shown)-1)].ID
}

func (p *picker) here(item PickItem) bool { return item.ID == p.at }

// settle keeps the cursor on an item that is shown: where it is, else on what is suggested, else on the first that is not
// done.
func (p *picker) settle() {
	shown := p.shown()
	if slices.ContainsFunc(shown, p.here) {
		return
	}
	p.at = p.Suggested
	if slices.ContainsFunc(shown, p.here) {
		return
	}
	p.at = ""
	if len(shown) > 0 {
		p.at = shown[max(0, slices.IndexFunc(shown, func(item PickItem) bool { return item.Done < item.Total }))].ID
	}
}

// trackName is the name of the track that is shown; empty if all items are.
func (p *picker) trackName() string {
	if p.track == 0 {
		return ""
	}
	return p.Tracks[p.track-1].Name
}

// shown are the items of the track that pass the filter.
func (p *picker) shown() []PickItem {
	var out []PickItem
	f, track := strings.ToLower(string(p.filter)), p.trackName()
	for _, item := range p.Items {
		if track != "" && !slices.Contains(item.Tracks, track) {
			continue
		}
		all := fmt.Sprintf("%02d ", item.Number) + item.ID + " " + item.Title + " " + item.Module + " " + strings.Join(item.Tags, " ")
		if strings.Contains(strings.ToLower(all), f) {
			out = append(out, item)
		}
	}
	return out
}

// The lines around the list: what it is, the tracks, the heading; and below it a rule, what the tags mean, and the keys.
const pickerAbove, pickerBelow = 3, 3

// noteLines is how many lines of the note of a lesson are shown: more of them where the list leaves room.
func (p *picker) noteLines() int {
	rows, _ := p.allRows()
	return min(max(2, p.h-pickerAbove-pickerBelow-len(rows)), 6)
}

func (p *picker) listHeight() int { return max(0, p.h-pickerAbove-pickerBelow-p.noteLines()) }

// frame draws the whole screen: h lines of w cells, or nothing if there are none.
func (p *picker) frame() string {
	if p.w <= 0 || p.h <= 0 {
		return ""
	}
	rows := []row{p.top(), p.tracks(), p.heading()}
	rows = append(rows, p.list()...)
	rows = append(rows, text(frame, strings.Repeat(p.border[4], p.w)))
	rows = append(rows, p.note()...)
	if p.listHeight() == 0 { // hardly a screen: the list, and which keys there are
		rows = append(p.listRows(p.h-1), make([]row, p.h)...)[:p.h-1]
	}
	rows = append(rows, p.footer())
	lines := make([]string, len(rows))
	for i, r := range rows {
		lines[i] = r.draw(&p.theme, p.w)
	}
	return strings.Join(lines, "\n")
}

// top says what this is, and how much is done.
func (p *picker) top() row {
	done := 0
	for _, item := range p.Items {
		if item.Done >= item.Total && item.Total > 0 {
			done++
		}
	}
	left := *(&row{}).add(title, " operator-lab").add(plain, "  "+p.t("lessons", "レッスン"))
	right := itoa(done) + p.t(" of ", " / ") + itoa(len(p.Items)) + p.t(" done ", " 完了 ")
	return *left.to(p.w-width(right)).add(plain, right)
}

// tracks lists the tracks; the one that is shown is in brackets. It stands alone beside a filter, and the first ones are left
// out where there is no room for it otherwise.
func (p *picker) tracks() row {
	r := text(plain, " ")
	names, at, f := []string{cmp.Or(p.All, p.t("all", "すべて"))}, p.track, string(p.filter)
	for _, t := range p.Tracks {
		names = append(names, t.Title)
	}
	if f != "" || p.typing {
		names, at = names[at:at+1], 0
	}
	for at > 0 && width(strings.Join(names[:at+1], "   "))+4 > p.w {
		names, at = names[1:], at-1
	}
	for i, name := range names {
		if i == at {
			r.add(bold, "["+name+"]")
		} else {
			r.add(dim, " "+name+" ")
		}
		r.add(plain, " ")
	}
	if f != "" || p.typing {
		r.add(plain, "  /"+f)
		if p.typing {
			r.add(plain, "_")
		}
	}
	return r
}

// The columns of the list, from the left: cursor, number, box, title, tasks, tags.
const (
	pickerLead   = 10
	pickerTasks  = 7
	pickerTags   = 16
	pickerWidest = 48 // of a title
)

// titleWidth is that of the column of titles: a little more than the longest.
func (p *picker) titleWidth() int {
	w := 20
	for _, item := range p.Items {
		w = max(w, width(item.Title)+2)
	}
	return max(1, min(w, pickerWidest, p.w-pickerLead-pickerTasks-pickerTags))
}

func (p *picker) heading() row {
	r := text(dim, blanks(pickerLead))
	return *r.cell(&p.theme, dim, p.t("lesson", "レッスン"), p.titleWidth()).
		cell(&p.theme, dim, p.t("tasks", "タスク"), pickerTasks-1).add(dim, p.t("phase, habits", "成熟度・習慣"))
}

// list is the part of the list that fits, with the cursor in it.
func (p *picker) list() []row {
	h := p.listHeight()
	rows := p.listRows(h)
	return append(rows, make([]row, max(0, h-len(rows)))...)
}

func (p *picker) listRows(h int) []row {
	rows, selected := p.allRows()
	if len(rows) == 0 {
		rows = []row{text(dim, p.t("  no lesson matches; esc shows all", "  一致するレッスンはない。esc ですべて表示"))}
	}
	from := window(len(rows), selected, max(1, h))
	return rows[from:min(len(rows), from+max(0, h))]
}

// allRows are those of the list, and which of them is selected; -1 without one.
func (p *picker) allRows() (rows []row, selected int) {
	selected, module := -1, ""
	for i, item := range p.shown() {
		if item.Module != module || i == 0 {
			module = item.Module
			rows = append(rows, text(bold, " "+module))
		}
		if p.here(item) {
			selected = len(rows)
		}
		rows = append(rows, p.itemRow(item))
	}
	return rows, selected
}

func (p *picker) itemRow(item PickItem) row {
	cursor := " "
	if p.here(item) {
		cursor = p.theme.at
	}
	box, st, tasks := p.untick, plain, "-"
	switch {
	case item.Total > 0 && item.Done >= item.Total:
		box, st = p.tick, ok
	case item.Done > 0:
		box, st = "[~]", wait
	}
	if item.Total > 0 {
		tasks = itoa(item.Done) + "/" + itoa(item.Total)
	}
	r := text(plain, " "+cursor)
	r.to(3).add(plain, fmt.Sprintf("%02d ", item.Number)).add(st, box).to(pickerLead)
	r.cell(&p.theme, plain, item.Title, p.titleWidth()).cell(&p.theme, st, tasks, pickerTasks-1)
	r.add(dim, strings.Join(item.Tags, " "))
	if item.ID == p.Suggested && (item.Total == 0 || item.Done < item.Total) { // of what is all done, the first is suggested
		r.add(accent, p.t("  next", "  次"))
	}
	r.chosen = p.here(item)
	return r
}

// note shows the note of the item under the cursor, and the meaning of its tags.
func (p *picker) note() []row {
	most := p.noteLines()
	rows := make([]row, most+1)
	i := slices.IndexFunc(p.Items, p.here)
	if i < 0 {
		return rows
	}
	lines := wrap(p.Items[i].Note, min(p.w-2, longestText))
	if len(lines) > most {
		lines = append(lines[:most-1:most-1], p.cutTo(lines[most-1]+" "+lines[most], min(p.w-2, longestText)))
	}
	for k, line := range lines {
		rows[k] = text(plain, " "+line)
	}
	rows[most] = text(dim, " "+p.Items[i].About)
	return rows
}

func (p *picker) footer() row {
	keys, texts := []string{"enter", "j k", "tab", "/", "q"}, []string{p.t("open", "開く"), p.t("choose", "選択"), p.t("track", "コース"), p.t("filter", "絞込"), p.t("quit", "終了")}
	if len(p.Tracks) == 0 {
		keys, texts = slices.Delete(keys, 2, 3), slices.Delete(texts, 2, 3)
	}
	if p.typing {
		return typingKeys(&p.theme)
	}
	return keyRow(keys, texts)
}
