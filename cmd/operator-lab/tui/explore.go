package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Exploration is what [Explore] shows: how far 'operator-lab verify' is, and what it found.
type Exploration struct {
	// Faults are the columns of the table, Places its lines.
	Faults []ExploredFault
	Places []ExploredPlace
	// Findings are what went wrong so far.
	Findings []ExploredFinding
	// Plans is how many there are; 0 while the scenario is played without faults. Played is how many of them were played.
	Plans, Played int
	// Elapsed is the time since the first plan.
	Elapsed time.Duration
	// Confirming says that what went wrong is played again, Done that all is over.
	Confirming, Done bool
}

// ExploredFault is a fault, and what it does.
type ExploredFault struct{ Name, Says string }

// ExploredPlace is a write, an event or an object, with a mark for each fault: '.' for right, 'X' for wrong, '-' for needless,
// '?' for skipped; blank when there is none, or none yet.
type ExploredPlace struct {
	Name  string
	Marks []string
}

// ExploredFinding is something that went wrong.
type ExploredFinding struct {
	// Plan is the fault and the place, Text says it in a sentence, Wrong what was wrong in the end.
	Plan, Text string
	Wrong      []string
	// Steady says that it went wrong each time. Without, it is no finding yet.
	Steady bool
	// Journal is that of the play; nil if there is none.
	Journal *trace.Journal
}

// ExploreOptions are the options of [Explore].
type ExploreOptions struct {
	// Title says what is explored, such as "zundoko / hardened".
	Title string
	// Now returns how far it is. It is called a few times a second.
	Now func() Exploration
	// Look has the language, look and terminal, and Code, as for a replay.
	Look Options
}

// Explore shows how an exploration goes on until the user quits, the context ends or a signal comes. A finding can be opened:
// its journal is replayed on the same terminal, and the exploration goes on meanwhile.
func Explore(ctx context.Context, o ExploreOptions) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	p := newExplorer(o)
	for {
		p.open = nil
		if err := runProgram(ctx, p, p.Look); err != nil || p.open == nil {
			return err
		}
		replay := p.Look
		replay.Journal, replay.Replay, replay.Title = p.open.Journal, true, p.open.Plan
		if err := Run(ctx, replay); err != nil {
			return err
		}
	}
}

// explorer is the Bubble Tea model of [Explore].
type explorer struct {
	theme
	ExploreOptions
	w, h    int
	seen    Exploration
	at      int // the finding under the cursor
	scroll  int // of the table
	letters bool
	open    *ExploredFinding
}

func newExplorer(o ExploreOptions) *explorer {
	o.Look = o.Look.withDefaults()
	return &explorer{theme: newTheme(o.Look), ExploreOptions: o, seen: o.Now()}
}

// exploreEvery is how often the page is drawn anew.
const exploreEvery = 250 * time.Millisecond

// lookAgain is the time to ask how far it is.
type lookAgain struct{}

func (p *explorer) tick() tea.Cmd {
	return tea.Tick(exploreEvery, func(time.Time) tea.Msg { return lookAgain{} })
}

// Init begins to look.
func (p *explorer) Init() tea.Cmd { return p.tick() }

// Update takes a message.
func (p *explorer) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		p.w, p.h = max(msg.Width, 0), max(msg.Height, 0)
	case lookAgain:
		p.seen = p.Now()
		return p, p.tick()
	case tea.KeyPressMsg:
		return p, p.press(msg.String())
	}
	return p, nil
}

// View draws the page.
func (p *explorer) View() tea.View {
	v := tea.NewView(strings.Join(p.lines(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "operator-lab verify"
	return v
}

func (p *explorer) press(key string) tea.Cmd {
	last := len(p.seen.Findings) - 1
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "up", "k":
		p.at = max(0, p.at-1)
	case "down", "j":
		p.at = max(0, min(p.at+1, last))
	case "pgup", "K":
		p.scroll = max(0, p.scroll-p.tableHeight())
	case "pgdown", "J":
		p.scroll = max(0, min(p.scroll+p.tableHeight(), len(p.table())-p.tableHeight()))
	case "f":
		p.letters, p.scroll = !p.letters, 0
	case "enter":
		if p.at <= last && p.seen.Findings[p.at].Journal != nil {
			p.open = &p.seen.Findings[p.at]
			return tea.Quit
		}
	}
	return nil
}

// The lines of the page beside the table, the findings and the text: two of progress, one of letters, two rules, one of keys.
const exploreOther = 6

// tableHeight is half of what is there.
func (p *explorer) tableHeight() int { return max(1, (p.h-exploreOther)/2) }

// listHeight is a third of the rest; what is left has the text of the finding under the cursor.
func (p *explorer) listHeight() int { return max(1, (p.h-exploreOther-p.tableHeight())/3) }

// lines draws the page: h lines of w cells, or none.
func (p *explorer) lines() []string {
	if p.w <= 0 || p.h <= 0 {
		return nil
	}
	rows := append([]row{p.top(), p.progress(), p.heading()}, p.part(p.table(), p.scroll, p.tableHeight())...)
	rows = append(rows, p.rule(p.t(" findings ", " 見つかったもの ")))
	rows = append(rows, p.part(p.findings(), window(len(p.seen.Findings), p.at, p.listHeight()), p.listHeight())...)
	rows = append(rows, p.rule(""))
	rows = append(rows, p.part(p.text(), 0, max(0, p.h-1-len(rows)))...)
	rows = append(rows[:min(len(rows), p.h-1)], p.keys())
	lines := make([]string, len(rows))
	for i, r := range rows {
		lines[i] = r.draw(&p.theme, p.w)
	}
	return lines
}

// part returns h rows from one on, as far as there are so many.
func (p *explorer) part(rows []row, from, h int) []row {
	from = min(max(0, from), max(0, len(rows)-h))
	rows = rows[from:min(len(rows), from+h)]
	return append(slices.Clip(rows), make([]row, h-len(rows))...)
}

func (p *explorer) rule(name string) row {
	side := strings.Repeat(p.border[4], 2)
	return *(&row{}).add(frame, side).add(title, name).add(frame, strings.Repeat(p.border[4], max(0, p.w-2-width(name))))
}

func (p *explorer) top() row {
	return *(&row{}).add(title, " operator-lab verify").add(plain, "  ").add(accent, p.Title)
}

// progress says how far it is.
func (p *explorer) progress() row {
	s := &p.seen
	wrong := 0
	for _, f := range s.Findings {
		if f.Steady || !s.Done {
			wrong++
		}
	}
	rate := float64(s.Played) / max(s.Elapsed.Seconds(), 0.001)
	played := fmt.Sprintf(p.t(" %d of %d plans", " プラン %d / %d"), s.Played, s.Plans)
	switch {
	case s.Done:
		return *(&row{}).add(loud, p.t(" Done ", " 完了 ")).add(plain, played+fmt.Sprintf(p.t("; %d findings", "。見つかったもの %d 件"), wrong))
	case s.Plans == 0:
		return text(wait, p.t(" plays the scenario without faults, to learn what the operator writes", " fault なしでシナリオを動かし、オペレーターが何を書くかを調べています"))
	case s.Confirming:
		return *(&row{}).add(wait, p.t(" plays again what went wrong", " おかしくなったプランをもう一度動かしています")).add(plain, " ·"+played+fmt.Sprintf(p.t("; %d went wrong", "。おかしくなったもの %d 件"), wrong))
	}
	left := time.Duration(float64(s.Plans-s.Played) / max(rate, 0.001) * float64(time.Second)).Round(time.Second)
	if s.Played == 0 {
		return text(plain, played)
	}
	return text(plain, played+fmt.Sprintf(p.t(" · %.1f a second · about %v left · %d went wrong", " · 毎秒 %.1f · 残り約 %v · おかしくなったもの %d 件"), rate, left, wrong))
}

// letter is the letter of a column.
func letter(i int) string { return string(rune('a' + i)) }

// placeWidth is the width of the names of places.
func (p *explorer) placeWidth() int { return max(8, p.w-3-2*len(p.seen.Faults)) }

func (p *explorer) heading() row {
	if p.letters {
		return text(dim, p.t(" the faults", " fault"))
	}
	r := text(dim, " ")
	r.cell(&p.theme, dim, p.t(". right  X wrong  - needless  ? skipped", ". 正しい  X おかしい  - 不要  ? 省略"), p.placeWidth())
	for i := range p.seen.Faults {
		r.add(dim, letter(i)+" ")
	}
	return r
}

// table has a line for each place; or, when their letters are asked for, one for each fault.
func (p *explorer) table() []row {
	var rows []row
	if p.letters {
		for i, f := range p.seen.Faults {
			rows = append(rows, *(&row{}).add(bold, " "+letter(i)+" ").cell(&p.theme, plain, f.Name, 14).add(dim, f.Says))
		}
		return rows
	}
	looks := map[string]style{".": ok, "X": bad, "-": dim, "?": warn}
	for _, place := range p.seen.Places {
		r := text(plain, " ")
		r.name(&p.theme, plain, place.Name, p.placeWidth())
		for _, mark := range place.Marks {
			r.add(looks[mark], cmp.Or(mark, " ")).add(plain, " ")
		}
		rows = append(rows, r)
	}
	return rows
}

// findings has a line for each.
func (p *explorer) findings() []row {
	if len(p.seen.Findings) == 0 {
		return []row{text(dim, p.t(" none so far", " まだありません"))}
	}
	var rows []row
	for i, f := range p.seen.Findings {
		st := bad
		if !f.Steady {
			st = warn
		}
		r := text(plain, " ")
		if i == p.at {
			r = text(plain, p.theme.at)
		}
		r.add(st, p.failing+" ").add(plain, f.Plan)
		r.chosen = i == p.at
		rows = append(rows, r)
	}
	return rows
}

// text has the finding under the cursor.
func (p *explorer) text() []row {
	if p.at >= len(p.seen.Findings) {
		return nil
	}
	f := p.seen.Findings[p.at]
	rows := wrapped(plain, " ", f.Text, p.w-2)
	if !f.Steady {
		says := p.t("not confirmed: it has to go wrong three times", "未確定: 3 回とも同じようにおかしくなるかを、これから調べます")
		if p.seen.Done {
			says = p.t("not steady, and so no finding", "毎回は起きないので、見つかったものには数えません")
		}
		rows = append(rows, text(warn, " "+says))
	}
	for _, wrong := range f.Wrong {
		rows = append(rows, wrapped(dim, " - ", wrong, p.w-4)...)
	}
	return rows
}

func (p *explorer) keys() row {
	quit := p.t("stop", "中止")
	if p.seen.Done {
		quit = p.t("quit", "終了")
	}
	return keyRow([]string{"j k", "enter", "J K", "f", "q"}, []string{
		p.t("finding", "選択"), p.t("replay", "再生"), p.t("scroll the table", "表をスクロール"), p.t("the letters", "列の説明"), quit,
	})
}
