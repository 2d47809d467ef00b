package tui

import (
	"sort"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// stepWidths are the widths of the columns of a reconcile's steps.
type stepWidths struct{ verb, object int }

// logText returns a log line as text.
func logText(e *trace.Event) string {
	var b strings.Builder
	b.WriteString(e.Message)
	for key, value := range e.Pairs() {
		b.WriteString("  " + key + "=" + value)
	}
	if e.Error != "" {
		b.WriteString(": " + e.Error)
	}
	return b.String()
}

func stepColumns(reconcile *trace.Reconcile) stepWidths {
	w := stepWidths{verb: 6, object: 18}
	for _, e := range reconcile.Steps {
		if e.Kind != trace.KindLog {
			w.verb = max(w.verb, len(e.Verb))
			w.object = max(w.object, width(e.Object.String()))
		}
	}
	w.object = min(w.object, 34)
	return w
}

// stepRow is the line of a call, a held write or a log line.
func (s loopPane) stepRow(e *trace.Event, call int, c stepWidths, w int) row {
	if e.Kind == trace.KindLog {
		st := dim
		if e.Error != "" || e.Stack != "" {
			st = bad
		}
		r := text(plain, blanks(stepIndent-2))
		r.add(dim, "  log ").add(st, logText(e))
		return *r.add(plain, "")
	}
	n := itoa(call)
	r := text(plain, blanks(stepIndent-1-len(n)))
	r.add(dim, n+" ")
	if e.Kind == trace.KindHook {
		return s.hookRow(r, e, c, w)
	}
	verb := plain
	if e.IsWrite() {
		verb = bold
	}
	c.object = min(c.object, max(12, w-stepIndent-c.verb-26))
	r.cell(&s.theme, verb, e.Verb, c.verb)
	r.name(&s.theme, plain, e.Object.String(), c.object)
	if e.Kind == trace.KindHold {
		r.cell(&s.theme, dim, "server", 6)
		return *r.add(planned, s.t("NOT SENT YET  held ", "未送信  保留 ")+age(s.now-e.At))
	}
	r.cell(&s.theme, dim, string(e.Source), 6)
	result, st := s.callResult(e)
	r.add(st, result)
	if e.Probably {
		r.add(dim, s.t(" probably", " おそらく"))
	}
	if took := trace.FormatDuration(e.Duration); r.width()+width(took)+2 <= w-1 && e.Duration > 0 {
		r.to(w-1-width(took)).add(dim, took)
	}
	return r
}

// ifSent predicts what a held write will lead to, from what the same kind of
// watch event led to before.
func (s loopPane) ifSent(reconcile *trace.Reconcile) []string {
	e := reconcile.Held
	if e == nil || !e.IsWrite() {
		return nil
	}
	verb := trace.Modified
	switch e.Verb {
	case trace.VerbCreate:
		verb = trace.Added
	case trace.VerbDelete, trace.VerbDeleteAll:
		verb = trace.Deleted
	}
	first := s.t("If sent: it comes back as ", "送信すると: ") + e.Object.Kind + " " + verb + s.t("", " として戻ってくる")
	seq := s.index.echoes[echo{reconcile.Operator, e.Object.APIVersion, e.Object.Kind, verb}]
	watch := s.index.timeline.Event(seq)
	if seq == 0 || watch == nil {
		return []string{first + s.t(", if anybody watches it.", "(watch していれば)。")}
	}
	for _, k := range s.snapshot.Effects(watch) {
		switch k.Kind {
		case trace.KindEnqueue, trace.KindMerge:
			return []string{first + ",", s.t("as ", "前回の ") + watch.Object.Name + s.t(" did, which woke ", " は次のキーを起こした: ") +
				queueName(k.Operator, k.Controller, k.Key) + "."}
		case trace.KindDrop:
			return []string{first + s.t("; the last one made no key.", "。前回はキーにならなかった。")}
		}
	}
	return []string{first + "."}
}

// stepAt returns the selected reconcile's step after or before the selected row
// by n rows, 0 for its first line; ok is false beyond its ends.
func (s loopPane) stepAt(reconcile *trace.Reconcile, n int) (step int64, ok bool) {
	if !s.opened(reconcile) {
		return 0, false
	}
	at, later := s.reconcileNow(reconcile)
	if later {
		return 0, false
	}
	i := 0
	if s.sel.step != 0 {
		i = 1 + sort.Search(len(at.Steps), func(i int) bool { return at.Steps[i].Seq >= s.sel.step })
	}
	switch i += n; {
	case i == 0:
		return 0, true
	case i < 0 || i > len(at.Steps):
		return 0, false
	}
	return at.Steps[i-1].Seq, true
}

// lastStep returns the last row of a reconcile: its last step, or 0.
func (s loopPane) lastStep(reconcile *trace.Reconcile) int64 {
	at, later := s.reconcileNow(reconcile)
	if later || len(at.Steps) == 0 || !s.open[reconcile.ID] {
		return 0
	}
	return at.Steps[len(at.Steps)-1].Seq
}

// subject returns the selected reconcile or step.
func (s loopPane) subject() subject {
	if s.gated() {
		return s.request()
	}
	reconcile := s.reconcile()
	if reconcile == nil {
		return subject{}
	}
	sub := subject{reconcile: reconcile, whole: s.sel.step == 0, event: mainStep(reconcile)}
	for _, e := range reconcile.Steps {
		if e.Seq == s.sel.step {
			sub.event = e
		}
	}
	sub.object = s.primary(reconcile)
	if sub.event != nil && sub.event.Object.Name != "" {
		sub.ref = bare(sub.event.Object)
	}
	if !sub.whole && !sub.ref.IsZero() {
		if o := s.object(sub.ref); o != nil {
			sub.object = o
		}
	}
	if sub.ref.IsZero() && sub.object != nil {
		sub.ref = sub.object.Ref
	}
	return sub
}

// mainStep returns the step to show for a reconcile as a whole: the held write,
// else a failed write, else the first that changed something; nil without writes.
func mainStep(reconcile *trace.Reconcile) *trace.Event {
	if reconcile.Held != nil {
		return reconcile.Held
	}
	var first *trace.Event
	for _, e := range reconcile.Steps {
		switch {
		case !e.IsWrite():
		case e.Error != "":
			return e
		case first == nil || first.NoOp && !e.NoOp:
			first = e
		}
	}
	return first
}
