package trace

import (
	"fmt"
	"strings"
)

// The sentences in English.

func (c cause) english() string {
	switch c.kind {
	case causeFound:
		return fmt.Sprintf("%s was there when the operator started", c.object)
	case causeOwn:
		return fmt.Sprintf("%s was %s by its own %s%s", c.object, passive(c.verb), writeNoun(c.write, c.sub), c.within.english())
	case causeOther:
		return fmt.Sprintf("%s was %s by %s%s", c.object, passive(c.verb), c.by, c.within.english())
	case causeChange:
		return fmt.Sprintf("%s was %s", c.object, passive(c.verb))
	case causeTimer:
		if c.reconcile == 0 {
			return fmt.Sprintf("a timer of %s ran out", FormatDuration(c.delay))
		}
		return fmt.Sprintf("the timer of %s that #%d set ran out", FormatDuration(c.delay), c.reconcile)
	case causeBackoff:
		return fmt.Sprintf("#%d failed and its back-off of %s ran out (try %d)", c.reconcile, FormatDuration(c.delay), c.try)
	case causeAgain:
		return fmt.Sprintf("#%d asked to be requeued", c.reconcile)
	case causeRetry:
		return fmt.Sprintf("#%d failed", c.reconcile)
	}
	return "its key was added by something other than a watch"
}

func (f reconcileFacts) english() string {
	s := fmt.Sprintf("#%d ran because %s", f.id, f.cause.english())
	switch {
	case f.cause.kind == causeUnknown:
		s = fmt.Sprintf("#%d ran; why is not known", f.id)
	case f.probably:
		s = fmt.Sprintf("#%d ran, probably because %s", f.id, f.cause.english())
	}
	if f.merged > 0 {
		s += fmt.Sprintf("; %s merged into it", plural(f.merged, "more event"))
	}
	return s + ". " + f.englishWork() + f.englishEnd()
}

func (f reconcileFacts) englishWork() string {
	changed := f.changed()
	var s string
	switch {
	case len(changed) == 0 && len(f.writes) > 0:
		s = "What it wrote changed nothing, so nothing will wake it. "
	case len(changed) == 0 && f.failed == nil && f.end != nil && f.end.Outcome == OutcomeAborted:
		s = "No write of it was answered. " // one may have been stored
	case len(changed) == 0 && f.failed == nil && f.held == nil && f.end != nil && f.end.Error == "":
		s = "It wrote nothing. "
		if f.logged {
			s = "No write is known to be its own. "
		}
	case len(changed) > 0:
		s = "It " + listed(changed, ofReconcile(englishWrite, "probably "), ", ", " and ")
		switch {
		case len(f.woke) > 0 && f.logged:
			s += ", which probably woke " + numbers(f.woke, ", ", " and ")
		case len(f.woke) > 0:
			s += ", which woke " + numbers(f.woke, ", ", " and ")
		case f.pending > 0:
			s += ", which has not come back yet"
		}
		s += ". "
	}
	if e := f.held; e != nil {
		s += fmt.Sprintf("It is held before it %s. ", presentWrite(e))
	}
	return s
}

func (f reconcileFacts) englishEnd() string {
	e := f.end
	if e == nil {
		if f.held != nil {
			return "Nothing has been sent."
		}
		return "It is still running."
	}
	if f.logged { // its queue is not known
		switch e.Outcome {
		case OutcomeRequeue:
			return "It asked to be requeued."
		case OutcomeError:
			return fmt.Sprintf("It failed: %s.", f.englishError())
		case OutcomePanic:
			return fmt.Sprintf("It panicked: %s.", said(e.Error))
		}
	}
	if f.again {
		const next = "It runs again at once: its key was queued again."
		switch e.Outcome {
		case OutcomeError, OutcomeTerminal:
			return fmt.Sprintf("It failed: %s. %s", f.englishError(), next)
		case OutcomePanic:
			return fmt.Sprintf("It panicked: %s. %s", said(e.Error), next)
		}
		return next
	}
	if e.QueueEnded() {
		const ended = "It does not run again in this life: its operator was ending."
		switch e.Outcome {
		case OutcomeError:
			return fmt.Sprintf("It failed: %s. %s", f.englishError(), ended)
		case OutcomePanic:
			return fmt.Sprintf("It panicked: %s. %s", said(e.Error), ended)
		}
		return "It asked to run again. " + ended
	}
	switch e.Outcome {
	case OutcomeDone:
		if len(f.woke) > 0 || f.pending > 0 {
			return "It asked for no other run."
		}
		return "It waits for a change."
	case OutcomeRequeueAfter:
		return fmt.Sprintf("It will run again in %s: RequeueAfter.", FormatDuration(e.Delay))
	case OutcomeRequeue:
		return fmt.Sprintf("It will run again in %s: it asked to be requeued.", FormatDuration(e.Delay))
	case OutcomeError:
		return fmt.Sprintf("It failed: %s. It will run again in %s (try %d).", f.englishError(), FormatDuration(e.Delay), e.Try)
	case OutcomePanic:
		return fmt.Sprintf("It panicked (%s) and will run again in %s, try %d.", said(e.Error), FormatDuration(e.Delay), e.Try)
	case OutcomeTerminal:
		return fmt.Sprintf("It failed: %s. It will not be retried.", f.englishError())
	}
	return "Its worker ended before it did."
}

// englishError says in a few words what failed.
func (f reconcileFacts) englishError() string {
	if f.failed != nil && f.failed.Reason == "Conflict" {
		return "conflict on " + f.failed.Object.String()
	}
	return said(f.end.Error)
}

func (n eventFacts) english() string {
	switch n.Kind {
	case KindWatch:
		return n.englishWatch()
	case KindFound:
		return fmt.Sprintf("%s was there when the operator had started. The operator did not read it: the lab listed what belongs to objects that it did.", n.Object)
	case KindDrop:
		s := fmt.Sprintf("%s made no key of %s %s", n.controllerName("The operator"), n.Object, n.Verb)
		switch n.Reason {
		case "":
			return s + ": a predicate dropped it, or the handler found nothing to reconcile."
		case "resync":
			return s + ": it was only a resync, nothing had changed."
		}
		return s + fmt.Sprintf(": only its status or metadata changed (generation still %d).", n.Generation)
	case KindEnqueue:
		s := fmt.Sprintf("%s %s was put into the queue because %s", n.Controller, n.Key, n.cause.english())
		if n.Running {
			return s + ". It is being reconciled right now, so it is dirty and will run once more." + n.englishNext()
		}
		return s + "." + n.englishNext()
	case KindMerge:
		return fmt.Sprintf("%s %s was in the queue already when %s: the queue holds keys, not events, so it stays one key.%s",
			n.Controller, n.Key, n.cause.english(), n.englishNext())
	case KindRequeue:
		return fmt.Sprintf("%s %s will become ready in %s: %s.", n.Controller, n.Key, FormatDuration(n.Delay), englishRequeue(n.Event))
	case KindReady:
		return fmt.Sprintf("%s %s is ready because %s.%s", n.Controller, n.Key, n.cause.english(), n.englishNext())
	case KindHold:
		who := n.Actor
		if n.Reconcile != 0 {
			who = fmt.Sprintf("#%d", n.Reconcile)
		}
		if n.Reason == ReasonPaused {
			return fmt.Sprintf("%s asked for this while the loop is paused: %s waits at the gate and is not sent yet.", who, shortCall(n.Event, English))
		}
		return fmt.Sprintf("%s is held before it %s. If sent, the change comes back as a watch event to whoever watches %s.",
			who, presentWrite(n.Event), n.Object.Kind)
	case KindCall:
		return n.englishCall()
	case KindLog:
		return fmt.Sprintf("%s%s logged: %s.", n.controllerName("The operator"), withinOf(n.Event).english(), said(logText(n.Event)))
	case KindHook:
		return ended(fmt.Sprintf("%s%s asked the hook %s about %s: %s", n.controllerName("The operator"), withinOf(n.Event).english(), n.Verb, n.Object, HookText(n.Event, English)), English)
	case KindControl:
		return upperFirst(orElse(n.Actor, person)) + ": " + controlText(n.Verb, English) + "."
	case KindOperator:
		return fmt.Sprintf("The operator %s was %s.", n.Operator, operatorText(n.Verb, English))
	case KindFault:
		return ended("The fault "+faultText(n.Event, English), English)
	case KindTraffic:
		return englishTraffic(n.Event)
	case KindMembers, KindWrites:
		return fmt.Sprintf("%s: %s.", n.Object, storeText(n.Event, English))
	case KindPackage:
		return ended(packageText(n.Event, English), English)
	case KindNote:
		return ended(oneLine(n.Message), English)
	}
	return fmt.Sprintf("%s of #%d, which is forgotten.", n.Kind, n.Reconcile)
}

func (n eventFacts) englishWatch() string {
	s := fmt.Sprintf("%s (rv %s)", n.cause.englishSeen(), n.ResourceVersion)
	switch {
	case len(n.keys) > 0 && len(n.woke) > 0:
		return fmt.Sprintf("%s; it put %s into the queue and is answered by %s.", s, keys(n.keys), numbers(n.woke, ", ", " and "))
	case len(n.keys) > 0:
		return fmt.Sprintf("%s; it put %s into the queue.", s, keys(n.keys))
	case len(n.woke) > 0:
		return fmt.Sprintf("%s; it is probably answered by %s.", s, numbers(n.woke, ", ", " and "))
	case n.drops > 0:
		return s + "; no key was made of it."
	}
	return s + "."
}

// englishSeen describes a watch event.
func (c cause) englishSeen() string {
	if c.kind == causeOwn || c.kind == causeOther {
		return fmt.Sprintf("%s was %s by %s%s", c.object, passive(c.verb), c.by, c.within.english())
	}
	return c.english()
}

func (n eventFacts) englishCall() string {
	if n.Via == ViaRecorder {
		return fmt.Sprintf("%s recorded an Event about %s: %s: %s", n.Actor, n.Object, n.Reason, said(n.Message))
	}
	who := n.Actor + withinOf(n.Event).english()
	switch {
	case n.Failed():
		return fmt.Sprintf("%s wanted to %s %s; it failed: %s.", who, n.Verb, n.Object, said(n.Error))
	case n.Verb == VerbWatch:
		return fmt.Sprintf("%s opened a watch of %s.", who, n.Object.Kind)
	case !n.IsWrite() && n.Verb == VerbList:
		return fmt.Sprintf("%s listed %d %s%s.", who, n.Count, n.Object.Kind, englishSource(n.Source))
	case n.Reason == "NotFound":
		return fmt.Sprintf("%s looked for %s%s and did not find it.", who, n.Object, strings.Replace(englishSource(n.Source), "from", "in", 1))
	case !n.IsWrite():
		return fmt.Sprintf("%s read %s%s (rv %s).", who, n.Object, englishSource(n.Source), n.ResourceVersion)
	case n.NoOp:
		return fmt.Sprintf("%s %s, which changed nothing: no watch event follows.", who, englishWrite(n.Event))
	case len(n.woke) > 0 && n.guess:
		return fmt.Sprintf("%s %s, which probably woke %s.", who, englishWrite(n.Event), numbers(n.woke, ", ", " and "))
	case len(n.woke) > 0:
		return fmt.Sprintf("%s %s, which woke %s.", who, englishWrite(n.Event), numbers(n.woke, ", ", " and "))
	}
	return fmt.Sprintf("%s %s.", who, englishWrite(n.Event))
}

func (n eventFacts) englishNext() string {
	if n.next == 0 {
		return ""
	}
	return fmt.Sprintf(" #%d answers it.", n.next)
}

func englishRequeue(e *Event) string {
	switch e.Reason {
	case ReasonRequeueAfter:
		return fmt.Sprintf("#%d returned RequeueAfter", e.Reconcile)
	case ReasonRequeue:
		return fmt.Sprintf("#%d asked to be requeued, try %d", e.Reconcile, e.Try)
	case ReasonBackoff:
		return fmt.Sprintf("#%d failed, back-off, try %d", e.Reconcile, e.Try)
	}
	return "it was added with a delay"
}

func (t objectFacts) english() string {
	s := t.Ref.String()
	switch {
	case t.initial && t.created.actor == "":
		s += " was there before the operator started"
	case t.found && t.created.actor == "":
		s += " was there before it was first recorded"
	case t.created.actor == "":
		s += " was created by somebody the journal does not watch"
	default:
		s += " was created by " + t.created.actor + t.created.within.english()
	}
	if t.owner != "" {
		s += " and is owned by " + t.owner
	}
	switch {
	case t.Deleted:
		s += "; it is gone"
		if t.deleted.actor != "" {
			s += ", deleted by " + t.deleted.actor + t.deleted.within.english()
		}
		if t.changed.actor != "" && t.changed != t.deleted {
			s += ", removed by " + t.changed.actor + t.changed.within.english()
		}
	case t.Meta().Deleting && len(t.Meta().Finalizers) == 0:
		s += fmt.Sprintf("; it is being deleted and has %d s to end", t.Meta().Grace)
	case t.Meta().Deleting:
		s += "; it is being deleted and waits for its finalizers: " + strings.Join(t.Meta().Finalizers, ", ")
	case t.changed.actor != "":
		s += "; it was last changed by " + t.changed.actor + t.changed.within.english()
	}
	if t.Lagging() && !t.Deleted {
		s += fmt.Sprintf("; its status speaks of generation %d, its spec is generation %d", t.Meta().ObservedGeneration, t.Generation)
	}
	return s + "."
}

func passive(verb string) string {
	switch verb {
	case Added:
		return "added"
	case Deleted:
		return "deleted"
	case marked:
		return "marked for deletion"
	}
	return "changed"
}

// englishWrite describes a write in the past tense.
func englishWrite(e *Event) string {
	past := map[string]string{
		VerbCreate: "created", VerbUpdate: "updated", VerbPatch: "patched", VerbApply: "applied",
		VerbDelete: "deleted", VerbDeleteAll: "deleted all",
	}[e.Verb]
	if e.Lost {
		return past + " " + written(e) + " (" + LostText(English) + ")"
	}
	return past + " " + written(e)
}

// presentWrite describes a write in the present tense.
func presentWrite(e *Event) string {
	present := map[string]string{
		VerbCreate: "creates", VerbUpdate: "updates", VerbPatch: "patches", VerbApply: "applies",
		VerbDelete: "deletes", VerbDeleteAll: "deletes all",
	}[e.Verb]
	return present + " " + written(e)
}

func written(e *Event) string {
	if e.Object.Subresource == "" {
		return e.Object.String()
	}
	return "the " + e.Object.Subresource + " of " + Ref{Kind: e.Object.Kind, Name: e.Object.Name}.String()
}

func writeNoun(verb, sub string) string {
	if sub == "" {
		return verb
	}
	return sub + " " + verb
}

func (w within) english() string {
	switch {
	case w.id == 0:
		return ""
	case w.probably:
		return fmt.Sprintf(", probably in #%d", w.id)
	}
	return fmt.Sprintf(" in #%d", w.id)
}

func englishSource(s Source) string {
	switch s {
	case Cache:
		return " from the cache"
	case Server:
		return " from the API server"
	}
	return ""
}

func (n eventFacts) controllerName(otherwise string) string { return orElse(n.Controller, otherwise) }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// listed joins the texts of items into a phrase.
func listed[T any](items []T, text func(T) string, comma, and string) string {
	var b strings.Builder
	for i, item := range items {
		switch {
		case i == 0:
		case i == len(items)-1:
			b.WriteString(and)
		default:
			b.WriteString(comma)
		}
		b.WriteString(text(item))
	}
	return b.String()
}

func numbers(ids []int64, comma, and string) string {
	return listed(ids, func(id int64) string { return fmt.Sprintf("#%d", id) }, comma, and)
}

func keys(k []Key) string { return listed(k, Key.String, ", ", " and ") }
