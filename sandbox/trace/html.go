package trace

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"
)

// HTMLOptions are the options of [WriteHTML]. The zero value works.
type HTMLOptions struct {
	// Language is the language of the page. Default: English.
	Language Language
	// Title is the title of the page. Default: that of the journal, or the names of the operators.
	Title string
	// Report is that of the file that the journal was loaded from; the page shows what is missing. Default: nothing is
	// missing.
	Report Report
}

// The bounds of a page, so that the page of a long run still opens at once. The page says what was left out. A
// reconcile takes about ten events and 5 KB, so a journal of 20,000 events is shown completely.
const (
	htmlReconciles = 2000   // the newest reconciles that are shown
	htmlAsides     = 2500   // the newest events outside of reconciles
	htmlSteps      = 100    // calls and log lines of one reconcile
	htmlChains     = 8      // causes of one reconcile; watch events of one write
	htmlDiffLines  = 160    // lines of one diff
	htmlAllDiffs   = 40_000 // lines of all diffs
	htmlTextWidth  = 400    // cells of one text of the journal
	htmlBigDetail  = 4000   // cells of an error or a stack
)

//go:embed html/page.tmpl html/page.css html/page.js
var htmlFiles embed.FS

// WriteHTML writes a journal as one self-contained page: a timeline of the reconciles, and for each what woke it, what
// it called, logged and changed, and what that led to. The page loads nothing (its own policy forbids it), is readable
// without JavaScript, and is the same for the same journal.
func WriteHTML(w io.Writer, j *Journal, o HTMLOptions) error {
	css, err := htmlFiles.ReadFile("html/page.css")
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	js, err := htmlFiles.ReadFile("html/page.js")
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	t, err := template.New("page.tmpl").Funcs(template.FuncMap{"t": o.Language.pick}).ParseFS(htmlFiles, "html/page.tmpl")
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	p := newHTMLPage(j, o)
	p.CSS, p.JS = template.CSS(css), template.JS(js) // trusted: they are our own files
	p.Policy = htmlPolicy(css, js)
	out := bufio.NewWriterSize(w, 64<<10)
	if err := t.Execute(out, p); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// htmlPolicy returns the Content-Security-Policy: nothing is loaded, and only our own script and style, identified by
// their hashes, are used.
func htmlPolicy(css, js []byte) string {
	hash := func(b []byte) string {
		sum := sha256.Sum256(b)
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; style-src " + hash(css) + "; script-src " + hash(js) + "; base-uri 'none'; form-action 'none'"
}

// htmlPage is the template's data.
type htmlPage struct {
	Lang, Title, Policy string
	CSS                 template.CSS
	JS                  template.JS
	Facts               []htmlFact
	Missing             []string // what the page or the journal lacks
	Operators           []htmlOperator
	Packages            [][]string // drawings of OLM's channels, by line
	Drawing             htmlDrawing
	Rows                []htmlRow
}

// htmlFact is a name and a value in the head of the page.
type htmlFact struct {
	Name, Value string
	Bad         bool
}

// htmlOperator has the totals of an operator.
type htmlOperator struct {
	Name string
	Busy string
	*Counters
}

// htmlMaker builds a page from the state at the end of a journal.
type htmlMaker struct {
	*State
	l          Language
	reconciles []*Reconcile // the reconciles shown, in the order they began
	shown      map[int64]bool
	aside      []*Event // the other events shown
	lost       struct{ reconciles, asides, diffs int }
	lines      int // number of diff lines so far
}

func newHTMLPage(j *Journal, o HTMLOptions) htmlPage {
	t := NewTimeline(j)
	t.Update()
	m := &htmlMaker{State: t.Tip(), l: o.Language, shown: map[int64]bool{}}
	m.choose(j)
	p := htmlPage{
		Lang: o.Language.pick("en", "ja"), Title: htmlText(orElse(o.Title, j.Header().Title)), Facts: m.facts(j), Operators: m.operators(),
		Drawing: m.draw(), Rows: m.rows(),
	}
	if p.Title == "" {
		p.Title = m.title(p.Operators)
	}
	for _, at := range m.Packages() {
		lines := at.Drawing(o.Language)
		for i := range lines {
			lines[i] = clip(lines[i], htmlTextWidth)
		}
		p.Packages = append(p.Packages, lines)
	}
	p.Missing = m.missing(o.Report) // last: it also reports what the rows left out
	return p
}

// choose selects the reconciles and other events to show: the newest.
func (m *htmlMaker) choose(j *Journal) {
	m.reconciles = m.Reconciles()
	if n := len(m.reconciles) - htmlReconciles; n > 0 {
		m.lost.reconciles, m.reconciles = n, m.reconciles[n:]
	}
	for _, reconcile := range m.reconciles {
		m.shown[reconcile.ID] = true
	}
	for _, e := range j.Since(0) {
		if m.isAside(e) {
			m.aside = append(m.aside, e)
		}
	}
	if n := len(m.aside) - htmlAsides; n > 0 {
		m.lost.asides, m.aside = n, m.aside[n:]
	}
}

// isAside reports whether an event is shown although it belongs to no reconcile.
func (m *htmlMaker) isAside(e *Event) bool {
	switch e.Kind {
	case KindControl, KindOperator, KindFault, KindPackage, KindNote:
		return true
	case KindTraffic, KindMembers, KindWrites:
		return e.Verb != VerbAnswer
	case KindCall, KindHold:
		return e.Via == ViaRecorder || e.Reconcile == 0 && (e.IsWrite() || e.Failed())
	case KindLog:
		return e.Reconcile == 0 && (e.Error != "" || e.Stack != "")
	case KindDrop: // shown with the write that caused it, if that is shown
		watch := m.Cause(e)
		return watch == nil || m.Cause(watch) == nil
	}
	return false
}

func (m *htmlMaker) title(operators []htmlOperator) string {
	var names []string
	for _, o := range operators {
		if o.Reconciles > 0 && len(names) < 5 {
			names = append(names, htmlText(o.Name))
		}
	}
	if len(names) == 0 {
		return m.l.pick("A run", "実行の記録")
	}
	return strings.Join(names, ", ")
}

// facts returns the facts in the head of the page.
func (m *htmlMaker) facts(j *Journal) []htmlFact {
	h, stats, total := j.Header(), j.Stats(), m.Total()
	start := m.l.pick("not known", "不明")
	if !h.Start.IsZero() {
		start = h.Start.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	number := func(n int) string { return fmt.Sprint(n) }
	return []htmlFact{
		{Name: m.l.pick("Started", "開始"), Value: start},
		{Name: m.l.pick("Lasted", "長さ"), Value: FormatDuration(max(0, j.Duration()))},
		{Name: m.l.pick("Recorded by", "記録"), Value: "operator-lab " + htmlText(orElse(h.Product, m.l.pick("(version not known)", "(版は不明)")))},
		{Name: m.l.pick("Reconciles", "reconcile"), Value: number(total.Reconciles)},
		{Name: m.l.pick("Failed", "失敗"), Value: number(total.Errors), Bad: total.Errors > 0},
		{Name: m.l.pick("Writes", "書き込み"), Value: number(total.Writes)},
		{Name: m.l.pick("Events", "イベント"), Value: number(stats.Events)},
		{Name: m.l.pick("Forgotten", "失われたイベント"), Value: fmt.Sprint(stats.Forgotten), Bad: stats.Forgotten > 0},
	}
}

// operators returns the totals by operator, ordered by name.
func (m *htmlMaker) operators() []htmlOperator {
	totals := map[string]*Counters{}
	for k, c := range m.Controllers() {
		if totals[k.Operator] == nil {
			totals[k.Operator] = &Counters{}
		}
		totals[k.Operator].add(c)
	}
	var out []htmlOperator
	for _, name := range sortedKeys(totals) {
		if c := totals[name]; c.Reconciles+c.Watched > 0 {
			out = append(out, htmlOperator{Name: htmlText(name), Busy: FormatDuration(c.Busy), Counters: c})
		}
	}
	return out
}

// missing returns sentences about what the page does not show.
func (m *htmlMaker) missing(r Report) []string {
	var out []string
	add := func(n int, english, japanese string) {
		if n > 0 {
			out = append(out, fmt.Sprintf(m.l.pick(english, japanese), n))
		}
	}
	if n := m.timeline.journal.Stats().Forgotten; n > 0 {
		add(int(n), "The oldest %d events are forgotten: the journal is bounded.", "古いイベント %d 件は失われている (記録には上限がある)。")
	}
	r.Forgotten, r.Dropped = 0, 0 // both are covered above
	if text := r.Text(m.l); text != "" {
		out = append(out, fmt.Sprintf(m.l.pick("The file is not whole: %s.", "ファイルは完全ではない: %s。"), text))
	}
	add(m.lost.reconciles, "The oldest %d reconciles are left out of this page; they are counted above.", "古い reconcile %d 回はこのページでは省略した (上の数には含む)。")
	add(m.lost.asides, "The oldest %d things that belong to no reconcile are left out.", "reconcile に属さない古い出来事 %d 件は省略した。")
	add(m.lost.diffs, "The diffs of %d writes are left out.", "書き込み %d 件の差分は省略した。")
	return out
}

// htmlText prepares a text of the journal for one line of the page: it removes what would be invisible or break the
// line, and shortens it. The template escapes it.
func htmlText(s string) string { return cut(s, htmlTextWidth) }

// htmlClock formats a time since the journal's start as 00:41.204.
func htmlClock(d time.Duration) string {
	ms := max(0, d).Milliseconds()
	clock := fmt.Sprintf("%02d:%02d.%03d", ms/60_000%60, ms/1000%60, ms%1000)
	if h := ms / 3_600_000; h > 0 {
		return fmt.Sprintf("%d:%s", h, clock)
	}
	return clock
}
