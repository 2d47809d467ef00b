package trace

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// htmlRow is one entry of the page's list: a reconcile, or an event outside of any.
type htmlRow struct {
	at        time.Duration
	seq       int64
	Anchor    string
	Reconcile bool // it is a reconcile
	Look      htmlLook
	Failed    bool
	Writes    bool

	Number, Controller, Key string
	Time, Took              string
	Result, Woken, Wrote    string
	Own                     bool

	Why      string
	Wakes    []htmlChain
	Unshown  int // number of wakes left out
	Steps    []htmlStep
	Skipped  int // number of steps left out
	Error    string
	Next     *htmlChain
	Actor    string
	Text     string
	Write    *htmlStep // for an aside that is a write
	Expanded bool      // it has details to open
}

// htmlLook is the CSS class and the symbol of an outcome, so that nothing is conveyed by colour alone. Both are
// constants of this package, never text of a file.
type htmlLook struct{ Class, Icon string }

func htmlLookOf(reconcile *Reconcile) htmlLook {
	switch {
	case reconcile.Running() && reconcile.Held != nil:
		return htmlLook{"held", "held"}
	case reconcile.Running():
		return htmlLook{"running", "running"}
	}
	switch reconcile.Outcome() {
	case OutcomeDone:
		return htmlLook{"done", "done"}
	case OutcomeRequeueAfter:
		return htmlLook{"again", "again"}
	case OutcomeRequeue:
		return htmlLook{"again", "requeue"}
	case OutcomeError:
		return htmlLook{"error", "error"}
	case OutcomeTerminal:
		return htmlLook{"error", "terminal"}
	case OutcomePanic:
		return htmlLook{"error", "panic"}
	}
	return htmlLook{"aborted", "aborted"}
}

// htmlStep is a call, a held write or a log line.
type htmlStep struct {
	Log, Failed, Write         bool
	After                      string // since the reconcile began
	Verb, Object, Source, Note string
	Version, Status, Took      string
	Text                       string // text of a log line
	Error, Stack               string
	Diff                       []htmlLine
	Cut                        int  // number of diff lines left out
	Same                       bool // there are objects, and they do not differ
	Effects                    []htmlChain
	Unshown                    int // number of effects left out
}

// Fold reports whether the step has details below its line.
func (s htmlStep) Fold() bool { return len(s.Diff) > 0 || s.Same }

// htmlChain is a sequence of causes and effects.
type htmlChain struct {
	Links []htmlLink
	Own   bool
}

// htmlLink is an element of a chain.
type htmlLink struct{ Text, Href string }

func (c *htmlChain) add(text, href string) { c.Links = append(c.Links, htmlLink{htmlText(text), href}) }

// rows returns the reconciles and the other events in the order they happened.
func (m *htmlMaker) rows() []htmlRow {
	out := make([]htmlRow, 0, len(m.reconciles)+len(m.aside))
	// Newest first: if the diffs are too many, those of the oldest are left out.
	for _, v := range slices.Backward(m.reconciles) {
		out = append(out, m.reconcileRow(v))
	}
	for _, v := range slices.Backward(m.aside) {
		out = append(out, m.asideRow(v))
	}
	sort.Slice(out, func(i, k int) bool {
		if out[i].at != out[k].at {
			return out[i].at < out[k].at
		}
		return out[i].seq < out[k].seq
	})
	return out
}

func (m *htmlMaker) reconcileRow(reconcile *Reconcile) htmlRow {
	r := htmlRow{
		Anchor: fmt.Sprintf("r%d", reconcile.ID), at: reconcile.Started, seq: reconcile.First, Reconcile: true, Look: htmlLookOf(reconcile), Expanded: true,
		Number: fmt.Sprintf("#%d", reconcile.ID), Controller: htmlText(orElse(reconcile.Controller, reconcile.Operator)),
		Key: htmlText(reconcile.Key.String()), Time: htmlClock(reconcile.Started),
		Result: m.OutcomeText(reconcile, m.l), Woken: m.woken(reconcile), Own: m.Own(reconcile),
		Why: cut(m.WhyReconcile(reconcile, m.l), htmlBigDetail),
	}
	if e := reconcile.End; e != nil {
		r.Took, r.Error = FormatDuration(max(0, e.Duration)), cut(e.Error, htmlBigDetail)
		r.Failed = e.Error != "" || r.Look.Class == "error"
		r.Next = m.next(reconcile)
	}
	for i, wake := range m.Wakes(reconcile) {
		if i == htmlChains {
			r.Unshown = len(reconcile.Woken) - i
			break
		}
		r.Wakes = append(r.Wakes, m.wakeChain(wake, reconcile))
	}
	m.steps(&r, reconcile)
	return r
}

// woken describes what woke a reconcile, without the words of the heading "woken by".
func (m *htmlMaker) woken(reconcile *Reconcile) string {
	return htmlText(strings.TrimPrefix(m.WokenText(reconcile, m.l), m.l.pick("woken by ", "契機: ")))
}

// steps adds what a reconcile did. A failed read does not fail the reconcile, but is marked for people who look for
// errors.
func (m *htmlMaker) steps(r *htmlRow, reconcile *Reconcile) {
	var wrote []string
	for i, e := range reconcile.Steps {
		if e.IsWrite() && e.Kind == KindCall && !e.Failed() {
			wrote = append(wrote, e.Verb+" "+e.Object.String())
		}
		r.Failed = r.Failed || e.Kind == KindCall && e.Failed()
		r.Writes = r.Writes || e.IsWrite()
		if i < htmlSteps {
			r.Steps = append(r.Steps, m.step(e, reconcile.Started))
		}
	}
	r.Skipped = len(reconcile.Steps) - len(r.Steps)
	if len(wrote) > 0 {
		r.Wrote = htmlText(wrote[0])
	}
	if n := len(wrote) - 1; n > 0 {
		r.Wrote += fmt.Sprintf(m.l.pick(" and %d more", " ほか %d 件"), n)
	}
}

func (m *htmlMaker) step(e *Event, began time.Duration) htmlStep {
	s := htmlStep{After: afterText(e.At - began), Stack: htmlStack(e.Stack)}
	if e.Kind == KindLog {
		s.Log, s.Text, s.Failed = true, cut(logText(e), htmlBigDetail), e.Error != "" || e.Stack != ""
		return s
	}
	s.After = afterText(sentAt(e) - began)
	if e.Kind == KindHook {
		s.Verb, s.Object, s.Took, s.Failed = "hook", htmlText(e.Verb), FormatDuration(max(0, e.Duration)), e.Error != ""
		s.Note = cut(HookText(e, m.l), htmlBigDetail)
		return s
	}
	s.Verb, s.Object, s.Version = htmlText(e.Verb), htmlText(e.Object.String()), htmlText(e.ResourceVersion)
	s.Source, s.Took, s.Failed, s.Write = m.source(e), FormatDuration(max(0, e.Duration)), e.Failed(), e.IsWrite()
	s.Error, s.Note = cut(e.Error, htmlBigDetail), m.note(e)
	if e.Status != 0 {
		s.Status = fmt.Sprint(e.Status)
	}
	if IsWriteVerb(e.Verb) {
		m.diff(&s, e)
	}
	if e.Kind == KindCall && e.IsWrite() && e.Error == "" {
		m.effects(&s, e)
	}
	return s
}

// afterText formats a time since a reconcile began.
func afterText(d time.Duration) string {
	if d < 100*time.Microsecond {
		return "+0ms"
	}
	return "+" + FormatDuration(d)
}

func (m *htmlMaker) source(e *Event) string {
	switch {
	case e.Kind == KindHold:
		return m.l.pick("not sent", "未送信")
	case e.Source == Cache:
		return m.l.pick("cache", "キャッシュ")
	case e.Source == Server:
		return m.l.pick("server", "サーバー")
	}
	return ""
}

// note returns further facts about a call.
func (m *htmlMaker) note(e *Event) string {
	var out []string
	if e.Verb == VerbList && e.Error == "" {
		out = append(out, fmt.Sprintf(m.l.pick("%d items", "%d 件"), e.Count))
	}
	if e.Reason == "NotFound" && !e.Failed() {
		out = append(out, m.l.pick("not found", "なし"))
	} else if e.Failed() && e.Reason != "" {
		out = append(out, htmlText(e.Reason))
	}
	if e.NoOp {
		out = append(out, m.l.pick("changed nothing", "変化なし"))
	}
	if e.Lost {
		out = append(out, LostText(m.l))
	}
	switch e.Via {
	case ViaDryRun:
		out = append(out, m.l.pick("dry run", "ドライラン"))
	case ViaWire:
		out = append(out, m.l.pick("not by the manager's client", "マネージャーのクライアント以外"))
	case ViaRecorder:
		out = append(out, m.l.pick("event recorder", "イベントレコーダー"))
	}
	if e.Line != "" {
		out = append(out, htmlText(e.Line))
	}
	if e.FieldManager != "" {
		out = append(out, m.l.pick("field manager ", "フィールドマネージャー ")+htmlText(e.FieldManager))
	}
	return strings.Join(out, m.l.pick(", ", "、"))
}

// diff adds what a write changed, or a held write would change.
func (m *htmlMaker) diff(s *htmlStep, e *Event) {
	if e.Via == ViaRecorder || len(e.After) == 0 && len(e.Before) == 0 {
		return
	}
	if m.lines >= htmlAllDiffs {
		m.lost.diffs++
		return
	}
	s.Diff = htmlDiff(e.Change())
	s.Same = len(s.Diff) == 0
	if n := len(s.Diff) - htmlDiffLines; n > 0 {
		s.Cut, s.Diff = n, s.Diff[:htmlDiffLines]
	}
	m.lines += len(s.Diff)
}

// asideRow returns the row of an event outside of any reconcile.
func (m *htmlMaker) asideRow(e *Event) htmlRow {
	r := htmlRow{
		Anchor: fmt.Sprintf("e%d", e.Seq), at: sentAt(e), seq: e.Seq, Look: htmlMarkOf(e), Time: htmlClock(sentAt(e)),
		Actor: htmlText(orElse(e.Actor, e.Operator)), Text: cut(m.Why(e, m.l), htmlBigDetail),
		Failed: e.Failed(), Writes: e.IsWrite() && e.Via != ViaRecorder,
	}
	if e.Kind == KindCall && e.Via != ViaRecorder || e.Kind == KindHold || e.Stack != "" {
		s := m.step(e, sentAt(e))
		r.Write, r.Expanded = &s, true
	}
	return r
}

// sentAt returns when a call was sent; its event is recorded when it returns. The watch event of a write often comes
// before that.
func sentAt(e *Event) time.Duration {
	if e.Kind != KindCall && e.Kind != KindTraffic && e.Kind != KindHook {
		return max(0, e.At)
	}
	return max(0, e.At-max(0, e.Duration))
}

// htmlMarkOf returns the look of an event outside of a reconcile.
func htmlMarkOf(e *Event) htmlLook {
	switch e.Kind {
	case KindControl:
		switch e.Verb {
		case VerbPause, VerbHoldWrites:
			return htmlLook{"control", "held"}
		}
		return htmlLook{"control", "play"}
	case KindOperator:
		if e.Verb == VerbStop {
			return htmlLook{"control", "stop"}
		}
		return htmlLook{"control", "play"}
	case KindFault:
		return htmlLook{"fault", "fault"}
	case KindTraffic:
		if e.Error != "" {
			return htmlLook{"fault", "error"}
		}
		return htmlLook{"control", "change"}
	case KindMembers, KindWrites:
		if StoreFails(e) {
			return htmlLook{"fault", "error"}
		}
		return htmlLook{"control", "change"}
	case KindPackage:
		return htmlLook{"control", "change"}
	case KindCall, KindHold:
		return htmlLook{"write", htmlWriteIcon(e)}
	case KindLog:
		return htmlLook{"write", "panic"}
	}
	return htmlLook{"note", "dot"}
}

func htmlWriteIcon(e *Event) string {
	switch {
	case e.Failed():
		return "error"
	case e.Via == ViaRecorder:
		return "dot"
	}
	switch e.Verb {
	case VerbCreate:
		return "add"
	case VerbDelete, VerbDeleteAll:
		return "remove"
	case VerbUpdate, VerbPatch, VerbApply:
		return "change"
	}
	return "dot"
}
