package tui

import (
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// causePane is pane 6: the tree from what brought the selected reconcile about to everything it led to.
type causePane struct{ *state }

// causeTree builds the tree of causes and effects.
type causeTree struct {
	*state
	newest *trace.State // effects are later than their causes
	rows   []row
}

// line adds a finished line about what happened at an event.
func (b *causeTree) line(r row, seq int64) {
	if seq > b.cursor() {
		r.base |= later
	}
	b.rows = append(b.rows, r)
}

// manyCells is room enough: in the tree, names are not shortened.
const manyCells = 1 << 16

// manyEffects bounds the tree; a reconcile that writes hundreds of objects is no reading matter.
const manyEffects = 400

// trigger adds the cause of a reconcile, and where that came from.
func (b *causeTree) trigger(r *row, reconcile *trace.Reconcile) {
	if len(reconcile.Woken) == 0 {
		r.add(dim, b.t("(not known)", "(不明)"))
		return
	}
	w := b.newest.Wake(reconcile.Woken[0])
	b.addCause(r, w, manyCells)
	switch {
	case w.Requeue != nil && w.Requeue.Reconcile > 0:
		r.add(dim, b.t("  set by #", "  設定元 #")+itoa(w.Requeue.Reconcile))
	case w.Write != nil && w.Write.Reconcile > 0:
		r.add(dim, "  "+w.Write.Verb+b.t(" in #", " reconcile #")+itoa(w.Write.Reconcile))
	}
	if n := reconcile.Merged(); n > 0 {
		r.add(note, " + "+itoa(n)+b.t(" merged", " 件統合"))
	}
}

// branch begins a line below another.
func (b *causeTree) branch(indent string, last bool) (row, string) {
	r := text(frame, indent)
	if last {
		return *r.add(frame, b.end), indent + "   "
	}
	return *r.add(frame, b.tee), indent + b.bar
}

// reconcile adds a reconcile, and with deep what it led to.
func (b *causeTree) reconcile(reconcile *trace.Reconcile, indent string, last, deep bool) {
	r, below := b.branch(indent, last)
	r.add(bold, "#"+itoa(reconcile.ID)+" ").add(plain, orElse(reconcile.Controller, reconcile.Operator)+" "+keyName(reconcile.Key))
	outcome, st := b.outcome(b.snapshot, reconcile)
	r.add(st, "  "+outcome)
	if !deep {
		if reconcile.Tally.Writes == 0 && !reconcile.Running() {
			r.add(dim, b.t(", ", "、")+b.wroteNothing(reconcile))
		}
		if b.newest.Own(reconcile) {
			r.add(own, "  "+b.ownMark())
		}
		b.line(r, reconcile.First)
		return
	}
	b.line(r, reconcile.First)
	writes := writesOf(reconcile)
	again := b.index.requeue(reconcile)
	for i, e := range writes {
		b.write(e, below, i == len(writes)-1 && again == nil)
	}
	if again != nil {
		b.again(again, below)
	} else if len(writes) == 0 {
		r, _ := b.branch(below, true)
		b.line(*r.add(dim, b.wroteNothing(reconcile)), reconcile.First)
	}
}

// wroteNothing says so in two words. A reconcile that was cut off may have sent a write that was stored.
func (b *causeTree) wroteNothing(reconcile *trace.Reconcile) string {
	if reconcile.Outcome() == trace.OutcomeAborted {
		return b.t("no write was answered", "応答のあった書き込みなし")
	}
	if reconcile.Logged {
		return b.t("no write known to be its own", "自分のものと分かる書き込みなし")
	}
	return b.t("wrote nothing", "書き込みなし")
}

func writesOf(reconcile *trace.Reconcile) []*trace.Event {
	var out []*trace.Event
	for _, e := range reconcile.Steps {
		if e.IsWrite() {
			out = append(out, e)
		}
	}
	return out
}

// write adds a write, the watch events that echo it, and what they led to.
func (b *causeTree) write(e *trace.Event, indent string, last bool) {
	if len(b.rows) > manyEffects {
		return
	}
	r, below := b.branch(indent, last)
	r.add(bold, e.Verb+" ").add(plain, e.Object.String())
	switch result, st := b.callResult(e); e.Kind {
	case trace.KindHold:
		r.add(planned, b.t("  NOT SENT YET", "  未送信"))
	default:
		r.add(st, "  "+result)
	}
	if e.Probably {
		r.add(dim, b.t(" probably", " おそらく"))
	}
	b.line(r, e.Seq)
	var watches []*trace.Event
	for _, w := range b.newest.Effects(e) {
		if w.Kind == trace.KindWatch {
			watches = append(watches, w)
		}
	}
	for i, w := range watches {
		b.watch(w, below, i == len(watches)-1)
	}
}

// watch adds a watch event and the keys made of it.
func (b *causeTree) watch(e *trace.Event, indent string, last bool) {
	r, below := b.branch(indent, last)
	r.add(plain, b.t("watch ", "watch ")+e.Verb).add(dim, " "+b.theme.arrow+" ")
	var woken []*trace.Reconcile
	keys, reason, logged := "", "", b.newest.ModeOf(e.Operator).Logged
	for _, k := range b.newest.Effects(e) {
		switch k.Kind {
		case trace.KindDrop:
			reason = orElse(trace.DropReason(k, b.lang), b.t("a predicate dropped it", "predicate が破棄"))
		case trace.KindDequeue: // read in the program's log
			if reconcile := b.newest.Reconcile(k.Reconcile); reconcile != nil {
				woken = append(woken, reconcile)
			}
		case trace.KindEnqueue, trace.KindMerge:
			if keys != "" {
				keys += ", "
			}
			keys += queueName(k.Operator, k.Controller, k.Key)
			if k.Kind == trace.KindMerge {
				keys += b.t(" (merged)", " (統合)")
			}
			if reconcile := b.newest.Answer(k); reconcile != nil {
				woken = append(woken, reconcile)
			}
		}
	}
	switch {
	case keys != "":
		r.add(plain, b.t("key ", "キー ")+keys)
	case logged && len(woken) > 0:
		r.add(dim, b.t("probably", "おそらく"))
	case logged:
		r.add(dim, b.t("key not seen", "キーは見えない"))
	default:
		r.add(dim, b.t("no key", "キーなし"))
		if reason != "" {
			r.add(dim, " ("+reason+")")
		}
	}
	b.line(r, e.Seq)
	for i, reconcile := range woken {
		b.reconcile(reconcile, below, i == len(woken)-1, false)
	}
}

// again adds the timer a reconcile set and the reconcile it led to.
func (b *causeTree) again(timer *trace.Event, indent string) {
	r, below := b.branch(indent, true)
	r.add(wait, b.timerText(timer))
	var answer *trace.Reconcile
	for _, ready := range b.newest.Effects(timer) {
		if ready.Kind == trace.KindReady {
			answer = b.newest.Answer(ready)
		}
	}
	b.line(r, timer.Seq)
	if answer != nil {
		b.reconcile(answer, below, true, false)
	}
}

func (s causePane) draw(in Rect) content {
	reconcile := s.causeReconcile()
	p := content{title: s.t("Cause and effect", "原因と結果")}
	if reconcile == nil {
		p.rows = []row{text(dim, s.t("  select a reconcile", "  reconcile を選択すると表示"))}
		if s.gated() {
			p.rows = []row{text(dim, s.t("  not seen: only its requests are", "  見えない: 記録できるのはリクエストだけ"))}
		}
		return p
	}
	p.title += "  #" + itoa(reconcile.ID)
	if !s.live {
		p.right = s.t("dimmed: later", "薄字: これより後")
	}
	rows := s.tree(reconcile)
	p.rows = scrolled(s.state, CausePane, rows, in.H)
	return p
}

// tree draws the whole tree, as far as it is known now: what had not
// happened at the cursor is dimmed.
func (s causePane) tree(reconcile *trace.Reconcile) []row {
	if i := reconcileAt(s.index.reconciles, reconcile.First); i >= 0 && s.index.reconciles[i].ID == reconcile.ID {
		reconcile = s.index.reconciles[i]
	}
	b := causeTree{state: s.state, newest: s.index.timeline.Tip()}
	root := text(plain, "  ")
	b.trigger(&root, reconcile)
	b.line(root, reconcile.First)
	b.reconcile(reconcile, "  ", true, true)
	return b.rows
}

// move scrolls the tree.
func (s causePane) move(n int) { s.scrollBy(CausePane, n) }
