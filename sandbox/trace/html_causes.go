package trace

import "fmt"

// The chains of causes and effects on the page: write → watch event → key → reconcile.

// href returns the link to a reconcile on the page; empty if it is not shown.
func (m *htmlMaker) href(id int64) string {
	if !m.shown[id] {
		return ""
	}
	return fmt.Sprintf("#r%d", id)
}

// wakeChain describes how one event led to a reconcile.
func (m *htmlMaker) wakeChain(w Wake, reconcile *Reconcile) htmlChain {
	c := htmlChain{Own: w.Own}
	switch {
	case w.Requeue != nil:
		c.add(m.requeueText(w.Requeue), m.href(w.Requeue.Reconcile))
		if w.Requeue.Kind == KindRequeue {
			c.add(m.l.pick("timer ran out", "タイマー満了"), "")
		}
	case w.Watch != nil && w.Watch.Initial:
		c.add(m.l.pick("found at start: ", "開始時に存在: ")+versionText(w.Watch), "")
	case w.Watch != nil:
		if w.Write != nil {
			c.add(m.writeText(w.Write), m.writeHref(w.Write))
		}
		c.add(m.l.pick("watch ", "watch ")+w.Watch.Verb+" "+versionText(w.Watch), "")
	case w.Event.Kind == KindReady:
		c.add(m.l.pick("timer ran out", "タイマー満了"), "")
	default:
		c.add(m.l.pick("added from outside", "外部からの追加"), "")
	}
	if w.Event.Kind != KindReady {
		c.add(m.keyText(w.Event), "")
	}
	c.add(fmt.Sprintf("#%d", reconcile.ID), "")
	return c
}

// keyText describes what an event did to the work queue.
func (m *htmlMaker) keyText(e *Event) string {
	switch {
	case e.Kind == KindDequeue:
		return m.l.pick("probably", "おそらく")
	case e.Kind == KindMerge:
		return fmt.Sprintf(m.l.pick("merged into key %s", "キー %s に統合"), e.Key)
	case e.Running:
		return fmt.Sprintf(m.l.pick("key %s, while it was reconciled", "キー %s (reconcile 中)"), e.Key)
	}
	return fmt.Sprintf(m.l.pick("key %s", "キー %s"), e.Key)
}

// writeText names a write with its author.
func (m *htmlMaker) writeText(e *Event) string {
	text := e.Verb + " " + e.Object.String()
	if e.Reconcile > 0 {
		return fmt.Sprintf(m.l.pick("%s in #%d", "%s (#%d)"), text, e.Reconcile)
	}
	return fmt.Sprintf(m.l.pick("%s by %s", "%s (%s)"), text, orElse(e.Actor, "?"))
}

func (m *htmlMaker) writeHref(e *Event) string {
	if e.Reconcile > 0 {
		return m.href(e.Reconcile)
	}
	if len(m.aside) > 0 && m.aside[0].Seq <= e.Seq && m.isAside(e) {
		return fmt.Sprintf("#e%d", e.Seq)
	}
	return ""
}

func versionText(e *Event) string {
	text := e.Object.String()
	if e.ResourceVersion != "" {
		text += " rv " + e.ResourceVersion
	}
	return text
}

// requeueText describes who set a timer, and why.
func (m *htmlMaker) requeueText(e *Event) string {
	text := timerText(e, m.l)
	if e.Reason == ReasonRequeueAfter {
		text = "RequeueAfter " + FormatDuration(e.Delay)
	}
	if e.Reconcile == 0 {
		return text
	}
	return fmt.Sprintf(m.l.pick("%s, set by #%d", "%s (#%d が設定)"), text, e.Reconcile)
}

// effects adds what a write led to: for each operator that watches the object the watch event and its effects.
func (m *htmlMaker) effects(s *htmlStep, write *Event) {
	var chains []htmlChain
	for _, watch := range m.Effects(write) {
		if watch.Kind == KindWatch {
			chains = append(chains, m.watchChains(watch)...)
		}
	}
	if n := len(chains) - htmlChains; n > 0 {
		s.Unshown, chains = n, chains[:htmlChains]
	}
	if len(chains) == 0 && !write.NoOp && write.Via != ViaRecorder {
		c := htmlChain{}
		c.add(m.l.pick("no watch event came back: no operator watches it, or not yet", "watch には届いていない (誰も watch していないか、まだ)"), "")
		chains = append(chains, c)
	}
	s.Effects = chains
}

// watchChains describes the effects of a watch event: a chain for each key that was made of it.
func (m *htmlMaker) watchChains(watch *Event) []htmlChain {
	head := func() htmlChain {
		var c htmlChain
		c.add(fmt.Sprintf(m.l.pick("watch %s, seen by %s", "watch %s (%s)"), watch.Verb, orElse(watch.Operator, "?")), "")
		return c
	}
	var out []htmlChain
	for _, e := range m.Effects(watch) {
		c := head()
		switch e.Kind {
		case KindDrop:
			c.add(m.dropText(e), "")
		case KindDequeue: // read in the program's log
			if reconcile := m.Reconcile(e.Reconcile); reconcile != nil {
				c.add(fmt.Sprintf(m.l.pick("probably #%d %s", "おそらく #%d %s"), reconcile.ID, m.OutcomeText(reconcile, m.l)), m.href(reconcile.ID))
			}
		case KindEnqueue, KindMerge:
			c.add(m.keyText(e), "")
			if reconcile := m.Answer(e); reconcile != nil {
				c.Own = m.Wake(e).Own
				c.add(fmt.Sprintf("#%d %s", reconcile.ID, m.OutcomeText(reconcile, m.l)), m.href(reconcile.ID))
			}
		default:
			continue
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		out = append(out, head())
	}
	return out
}

func (m *htmlMaker) dropText(e *Event) string {
	text := fmt.Sprintf(m.l.pick("%s made no key", "%s はキーを作らず"), orElse(e.Controller, e.Operator))
	if reason := DropReason(e, m.l); reason != "" {
		text += " (" + reason + ")"
	}
	return text
}

// next describes the timer that a reconcile set, and its effect; nil if it set none.
func (m *htmlMaker) next(reconcile *Reconcile) *htmlChain {
	for _, seq := range []int64{reconcile.End.Seq, reconcile.First} {
		for _, e := range m.Effects(&Event{Seq: seq}) {
			if e.Kind != KindRequeue {
				continue
			}
			var c htmlChain
			short := *e
			short.Reconcile = 0 // the row itself shows which reconcile it was
			c.add(m.requeueText(&short), "")
			m.ready(&c, e)
			return &c
		}
	}
	return nil
}

// ready adds the effect of a timer.
func (m *htmlMaker) ready(c *htmlChain, requeue *Event) {
	for _, e := range m.Effects(requeue) {
		if e.Kind != KindReady {
			continue
		}
		c.add(m.l.pick("timer ran out", "タイマー満了"), "")
		if reconcile := m.Answer(e); reconcile != nil {
			c.add(fmt.Sprintf("#%d %s", reconcile.ID, m.OutcomeText(reconcile, m.l)), m.href(reconcile.ID))
		}
		return
	}
}
