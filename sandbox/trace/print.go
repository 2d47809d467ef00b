package trace

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// PrintOptions are the options of a [Printer]. The zero value works.
type PrintOptions struct {
	// Language is the language of the output. Default: English.
	Language Language
	// Width is the maximum width of a line in cells. Default: 100.
	Width int
	// HideTimes omits durations, so that two runs can be compared.
	HideTimes bool
	// Logs prints the operator's log lines too.
	Logs bool
	// OnlyWrites are operators without taps of which only the writes are printed. Default: of all, what they read and were told, too.
	OnlyWrites []string
	// Caption returns what a written object means to people, such as the word of a Zundoko; empty for none. Default: no
	// captions.
	Caption func(kind string, object json.RawMessage) string
}

// Printer prints a journal as plain text: for each reconcile, when it ends, why it ran, what it read and wrote, and how
// it ended. It only appends lines. It must be used by one goroutine at a time.
type Printer struct {
	w        io.Writer
	o        PrintOptions
	timeline *Timeline
	pending  []*Event        // indexed, and not printed yet
	names    int             // width of the column with controller and key, so far
	results  int             // width of the column with the result, so far
	logged   map[string]bool // the operators of which it is said that their reconciles come from their log
	err      error
}

// indent precedes the lines below the first of a reconcile.
const indent = "       "

// NewPrinter returns a printer of a journal, from its beginning.
func NewPrinter(w io.Writer, j *Journal, o PrintOptions) *Printer {
	if o.Width <= 0 {
		o.Width = 100
	}
	return &Printer{w: w, o: o, timeline: NewTimeline(j), names: 24, results: 13, logged: map[string]bool{}}
}

// Update prints the events appended since the last Update. The error is the first that the writer returned.
func (p *Printer) Update() error {
	p.print(0)
	return p.err
}

// authorPatience is how long the line of a change waits for the write behind it to be told of: by the audit log, or by an
// operator whose answer is on its way. That takes a few milliseconds; of some changes nobody tells.
const authorPatience = 500 * time.Millisecond

// Follow prints until the context ends, and then the remaining events. What a change caused is printed when its author is
// known, because a line cannot be changed once it is printed.
func (p *Printer) Follow(ctx context.Context) error {
	changed, cancel := p.timeline.journal.Subscribe()
	defer cancel()
	for {
		late := p.print(authorPatience)
		if p.err != nil {
			return p.err
		}
		select {
		case <-ctx.Done():
			return p.Update()
		case <-changed:
		case <-late:
		}
	}
}

// print prints the events up to the first whose author is not known yet and that is younger than patience. The channel
// receives when it is not any more; it is nil if nothing is left.
func (p *Printer) print(patience time.Duration) (late <-chan time.Time) {
	t := p.timeline
	last := t.tip.seq
	if n := len(p.pending); n > 0 {
		last = p.pending[n-1].Seq
	}
	for _, e := range t.journal.Since(last) {
		t.index(e)
		p.pending = append(p.pending, e)
	}
	defer t.prune()
	for len(p.pending) > 0 {
		e := p.pending[0]
		if wait := patience - (t.journal.Elapsed() - e.At); patience > 0 && wait > 0 && !p.authorKnown(e) {
			return time.After(wait)
		}
		p.pending = p.pending[1:]
		if gap := e.Seq - t.tip.seq - 1; gap > 0 {
			p.line(fmt.Sprintf(p.o.Language.pick("       %d events forgotten", "       %d 件のイベントは失われた"), gap))
		}
		t.fold(e)
		p.event(e)
	}
	return nil
}

// authorKnown reports whether the line of an event can say who made the change that it tells of, if it tells of one.
func (p *Printer) authorKnown(e *Event) bool {
	s := p.timeline.tip
	switch e.Kind {
	case KindWatch:
		return e.Via != ViaGate || e.Initial || s.Cause(e) != nil
	case KindEnd:
		if reconcile := s.Reconcile(e.Reconcile); reconcile != nil && len(reconcile.Woken) > 0 {
			w := s.Wake(reconcile.Woken[0])
			return w.Watch == nil || w.Watch.Initial || w.Write != nil
		}
	}
	return true
}

func (p *Printer) event(e *Event) {
	switch e.Kind {
	case KindDequeue:
		if e.Via == ViaLog && !p.logged[e.Operator] {
			p.logged[e.Operator] = true
			p.paragraph("level", p.o.Language.pick(
				"level 2, logs and gate: its own log tells when a reconcile begins and ends; what it read and wrote is seen at the gate. "+
					"What is concluded from that is said to be probable. Its queue and its cache are not seen.",
				"レベル 2 (ログとゲート): reconcile の始まりと終わりはプログラム自身のログから、読み書きはゲートから分かる。そこからの推定には「おそらく」と付ける。キューとキャッシュは見えない。"))
		}
	case KindEnd:
		if reconcile := p.timeline.tip.Reconcile(e.Reconcile); reconcile != nil && reconcile.End == e {
			p.reconcile(reconcile)
		}
	case KindHold:
		p.aside("held", shortCall(e, p.o.Language)+p.o.Language.pick("  not sent yet", "  未送信"))
	case KindCall:
		p.call(e)
	case KindWatch:
		if e.Via == ViaGate && !p.timeline.tip.ModeOf(e.Operator).Logged && !slices.Contains(p.o.OnlyWrites, e.Operator) {
			p.aside(e.Actor, p.timeline.tip.deliveryText(e, p.o.Language))
		}
	case KindLog:
		// Log lines of controller-runtime's own start are left out.
		if p.o.Logs && (e.Reconcile != 0 || e.Error != "") || e.Stack != "" {
			p.aside("log", logText(e))
		}
	case KindControl:
		p.aside(e.Actor, controlText(e.Verb, p.o.Language))
	case KindOperator:
		p.aside("----", e.Operator+" "+operatorText(e.Verb, p.o.Language))
	case KindFault:
		p.aside("fault", strings.TrimPrefix(faultText(e, p.o.Language), "fault "))
	case KindNote:
		p.paragraph("note", e.Message)
	case KindTraffic:
		p.traffic(e)
	case KindMembers, KindWrites:
		p.store(e)
	case KindPackage:
		p.channels(e)
	}
}

// channels prints where Subscriptions stand, and draws the channels when that is elsewhere than before.
func (p *Printer) channels(e *Event) {
	p.paragraph("olm", packageText(e, p.o.Language))
	if at, known := PackageOf(e); known && movedOn(e) {
		for _, line := range at.Drawing(p.o.Language) {
			p.aside("", line)
		}
	}
}

// traffic prints an answer that differs from the one before.
func (p *Printer) traffic(e *Event) {
	if e.Verb != VerbSwitch {
		return
	}
	line := AnswerText(e)
	if !p.o.HideTimes {
		line = p.timeline.tip.TrafficLine(e)
	}
	for _, t := range p.timeline.tip.Traffic() {
		if t.Last == e {
			if after := t.switchText(p.o.Language); after != "" {
				line += "   " + after
			}
		}
	}
	p.aside("http", line)
}

// store prints changes of a store's members, or of the writes to it.
func (p *Printer) store(e *Event) {
	if e.Verb == VerbAnswer {
		return
	}
	if p.o.HideTimes {
		short := *e
		short.Duration = 0
		if e.Kind == KindWrites {
			writes := e.Writes()
			writes.Gap = ""
			short.Values = writes.Values()
		}
		e = &short
	}
	p.paragraph(string(e.Kind), e.Object.Name+": "+storeText(e, p.o.Language))
}

// call prints a call outside of a reconcile: yours, an event recorder's, or one of a program without reconciles.
func (p *Printer) call(e *Event) {
	switch {
	case e.Via == ViaRecorder:
		kind := e.EventType()
		if kind != "" {
			kind += " "
		}
		p.aside("event", fmt.Sprintf("%s  %s%s: %s", e.Object, kind, e.Reason, e.Message))
	case e.Via == ViaGate && e.Reconcile == 0:
		if !e.IsWrite() && slices.Contains(p.o.OnlyWrites, e.Operator) {
			return
		}
		p.aside(e.Actor, gateCall(e, p.o.Language)+p.caption(e))
	case e.Reconcile == 0 && e.IsWrite():
		p.aside(e.Actor, shortCall(e, p.o.Language))
	case e.Lost:
		if r := p.timeline.tip.Reconcile(e.Reconcile); r != nil && !r.Running() { // its lines are printed already
			p.aside(fmt.Sprintf("#%d", r.ID), shortCall(e, p.o.Language))
		}
	}
}

// aside prints a line that belongs to no reconcile.
func (p *Printer) aside(who, text string) {
	p.line(pad(who, len(indent)-1) + " " + text)
}

// paragraph prints a text, on several lines if it is long.
func (p *Printer) paragraph(who, text string) {
	for _, line := range fold(oneLine(text), max(20, p.o.Width-len(indent))) {
		p.aside(who, line)
		who = ""
	}
}

func (p *Printer) line(s string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(p.fit(s), " "))
	}
}

// fit makes a line safe for a terminal and shortens it to the width.
func (p *Printer) fit(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return clip(s, p.o.Width)
}

// reconcile prints a finished reconcile.
func (p *Printer) reconcile(reconcile *Reconcile) {
	name := reconcile.Controller + " " + reconcile.Key.String()
	p.names = min(max(p.names, TextWidth(name)), 44)
	first := pad(fmt.Sprintf("#%d", reconcile.ID), len(indent)-1) + " " + pad(name, p.names)
	if !p.o.HideTimes {
		first += " " + padLeft(FormatDuration(reconcile.End.Duration), 6)
	}
	result := ResultText(reconcile, p.o.Language)
	p.results = min(max(p.results, TextWidth(result)), 22)
	first += "  " + pad(result, p.results)
	woken := p.timeline.tip.WokenText(reconcile, p.o.Language)
	if TextWidth(first)+2+TextWidth(woken) <= p.o.Width {
		p.line(first + "  " + woken)
	} else {
		p.line(first)
		p.line(indent + woken)
	}
	p.work(reconcile)
	if e := reconcile.End; e.Error != "" {
		p.line(indent + p.o.Language.pick("error: ", "エラー: ") + oneLine(e.Error))
	}
}

// work prints what a reconcile read and wrote, on one line if it fits.
func (p *Printer) work(reconcile *Reconcile) {
	parts := []string{}
	if read := ReadText(reconcile, p.o.Language); read != "" {
		parts = append(parts, read)
	}
	for _, e := range reconcile.Steps {
		switch {
		case e.Kind == KindHook:
			parts = append(parts, p.hook(e))
		case e.Kind == KindCall && IsWriteVerb(e.Verb):
			parts = append(parts, shortCall(e, p.o.Language)+p.caption(e))
		}
	}
	line := ""
	for _, part := range parts {
		switch {
		case line == "":
			line = part
		case TextWidth(indent+line)+3+TextWidth(part) <= p.o.Width:
			line += "   " + part
		default:
			p.line(indent + line)
			line = part
		}
	}
	if line != "" {
		p.line(indent + line)
	}
}

// caption returns the caption of an object that was created or applied.
func (p *Printer) caption(e *Event) string {
	if p.o.Caption == nil || e.Failed() || e.Object.Subresource != "" {
		return ""
	}
	if said := p.o.Caption(e.Object.Kind, e.After); said != "" {
		return "   " + said
	}
	return ""
}

// Summary prints the totals so far: of each operator, and of the writes by others.
func (p *Printer) Summary() error {
	l := p.o.Language
	totals := map[string]*Counters{}
	for k, c := range p.timeline.tip.Controllers() {
		if totals[k.Operator] == nil {
			totals[k.Operator] = &Counters{}
		}
		totals[k.Operator].add(c)
	}
	for _, operator := range sortedKeys(totals) {
		if c := totals[operator]; c.Reconciles > 0 {
			p.line("")
			p.operator(operator, c)
		}
	}
	for _, t := range p.timeline.tip.Traffic() {
		p.line("")
		for _, line := range t.summary(l) {
			p.line(line)
		}
	}
	for _, o := range p.timeline.tip.Stores() {
		if o.Writes != nil && o.Writes.OK+o.Writes.Failed > 0 {
			p.line("")
			for _, line := range fold(oneLine(o.Writes.summary(l, p.o.HideTimes)), p.o.Width) {
				p.line(line)
			}
		}
	}
	if n := p.timeline.journal.Stats().Forgotten; n > 0 {
		p.line(fmt.Sprintf(l.pick("the oldest %d events were forgotten", "古いイベント %d 件は失われた"), n))
	}
	return p.err
}

// operator prints the totals of one operator.
func (p *Printer) operator(name string, c *Counters) {
	l := p.o.Language
	p.line(l.pick(
		fmt.Sprintf("%s: %s, %d failed, %s in all", name, plural(c.Reconciles, "reconcile"), c.Errors, p.duration(c)),
		fmt.Sprintf("%s: reconcile %d 回 (失敗 %d 回)、計 %s", name, c.Reconciles, c.Errors, p.duration(c))))
	logged := p.timeline.tip.ModeOf(name).Logged
	if logged {
		p.line(fmt.Sprintf(l.pick(
			"  read   %d from the API server; its cache is not seen", "  読取   API サーバーから %d 回。キャッシュは見えない"), c.ServerReads))
	} else {
		p.line(fmt.Sprintf(l.pick(
			"  read   %d from the cache, %d from the API server", "  読取   キャッシュから %d 回、API サーバーから %d 回"), c.CacheReads, c.ServerReads))
	}
	p.line(fmt.Sprintf(l.pick(
		"  wrote  %d (%d changed nothing, %d conflicts)", "  書込   %d 回 (変化なし %d 回、競合 %d 回)"), c.Writes, c.NoOps, c.Conflicts))
	for _, verb := range sortedKeys(c.ByVerb) {
		p.line(fmt.Sprintf("  %6d %s", c.ByVerb[verb], verb))
	}
	if logged {
		p.line(fmt.Sprintf(l.pick(
			"  woken  %d watch events; its queue is not seen", "  契機   watch イベント %d 件。キューは見えない"), c.Watched))
		return
	}
	p.woken(name, c)
}

// woken prints what an operator's controllers made of the watch events that it got. Each judges an event for itself.
func (p *Printer) woken(name string, c *Counters) {
	l := p.o.Language
	made := map[string]*Counters{}
	for k, of := range p.timeline.tip.Controllers() {
		if k.Operator == name && of.Passed+of.Dropped+of.Merged > 0 {
			made[k.Controller] = of
		}
	}
	if len(made) <= 1 {
		p.line(fmt.Sprintf(l.pick(
			"  woken  %d watch events; %d merged into a key that was waiting, %d made no key",
			"  契機   watch イベント %d 件。待機中のキーにまとめたもの %d 件、キーにならなかったもの %d 件"), c.Watched, c.Merged, c.Dropped))
		return
	}
	p.line(fmt.Sprintf(l.pick("  woken  %d watch events, which each controller judges for itself", "  契機   watch イベント %d 件。コントローラーごとの内訳"), c.Watched))
	for _, controller := range sortedKeys(made) {
		of := made[controller]
		p.line(fmt.Sprintf(l.pick("         %s: %d merged into a key that was waiting, %d made no key",
			"         %s: 待機中のキーにまとめたもの %d 件、キーにならなかったもの %d 件"), controller, of.Merged, of.Dropped))
	}
}

func (p *Printer) duration(c *Counters) string {
	if p.o.HideTimes {
		return "-"
	}
	return FormatDuration(c.Busy)
}
