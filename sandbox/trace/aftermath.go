package trace

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// person is the actor of what the person at the screen does.
const person = "you"

// Demo is the actor of what the demo of an operator does.
const Demo = "the demo"

// ActorText names an actor in a language; the name of a program stays.
func ActorText(actor string, l Language) string {
	switch {
	case l == Japanese && actor == person:
		return "あなた"
	case l == Japanese && actor == Demo:
		return "デモ"
	}
	return actor
}

// Aftermath tells what came of the newest break: a fault, or what a person did to an object that somebody manages.
type Aftermath struct {
	// Break is the event of the break.
	Break *Event
	// Hurt reports whether anything failed or was missing since.
	Hurt bool
	// Waits names what fails or is missing still; empty if all is well.
	Waits []string
	// Took is the time until all was well, or until now.
	Took time.Duration
	// Reconciles began or ended in that time; Repeated writes had been carried out before the break by the reconcile that it hit.
	Reconciles, Repeated int
}

// breakOf returns an event if it breaks something, else nil: a fault, or a change by a person or the demo of what has a
// controller. Other changes by them say what is wanted. A deletion that is known from the audit log only comes without the
// object, and perhaps late: it is returned with the object that was there, at the time when the first event told of it.
func (s *State) breakOf(e *Event) *Event {
	switch {
	case e.Kind == KindFault && e.Error == "":
		return e
	case e.Kind != KindCall || !e.IsWrite() || e.Error != "" || e.NoOp || e.Object.Subresource != "":
		return nil
	case e.Actor != person && e.Actor != Demo, e.Verb == VerbCreate:
		return nil
	case len(e.Before) == 0 && e.Verb == VerbDelete:
		e = s.deletion(e)
	}
	if len(e.Before) == 0 || controllerOf(e.Before) == "" {
		return nil
	}
	return e
}

// deletion completes a deletion that came from the audit log with what the events before it say.
func (s *State) deletion(e *Event) *Event {
	full := *e
	for _, w := range slices.Backward(s.timeline.journal.Since(0)) {
		switch {
		case w.Seq > e.Seq || w.Object.UID != e.Object.UID || w.Object.UID == "" || len(w.After) == 0:
		case w.Kind != KindWatch && !w.byOthers():
		case w.Verb == Deleted || (&Object{Raw: w.After}).Meta().Deleting:
			full.Seq, full.At, full.Before = w.Seq, w.At, w.After
		default: // how it was before
			full.Before = w.After
			return &full
		}
	}
	return &full
}

// controllerOf returns the UID of an object's controller; empty if it has none.
func controllerOf(raw json.RawMessage) string {
	for _, owner := range (&Object{Raw: raw}).Meta().Owners {
		if owner.Controller {
			return owner.UID
		}
	}
	return ""
}

// Aftermath returns what came of the newest break until now; nil if there was none.
func (s *State) Aftermath() *Aftermath {
	if s.broken == nil {
		return nil
	}
	f := aftermath{
		Aftermath: Aftermath{Break: s.broken}, waits: map[string]string{}, done: map[string]bool{}, works: map[string]bool{}, runs: map[int64]bool{},
		versions: map[string]string{}, ready: map[string]string{},
	}
	f.begin(s)
	well, calm := f.Aftermath, 0
	for _, e := range s.timeline.journal.Since(s.broken.Seq) {
		if e.Seq > s.seq || f.Hurt && len(f.waits) == 0 && isWish(e) {
			break
		}
		was := len(f.waits)
		f.apply(e)
		f.Took = e.At - s.broken.At
		if was > 0 && len(f.waits) == 0 {
			well, calm = f.Aftermath, 0
		}
		if calm++; len(f.waits) == 0 && calm > enoughCalm {
			break
		}
	}
	if len(f.waits) == 0 && f.Hurt {
		well.Hurt = true
		return &well
	}
	f.Took = s.at - s.broken.At
	f.Waits = slices.Compact(slices.Sorted(maps.Values(f.waits)))
	return &f.Aftermath
}

// isWish reports whether a person or the demo changes something: what comes after it is not the effect of an earlier break.
func isWish(e *Event) bool {
	return e.Kind == KindCall && e.IsWrite() && e.Error == "" && (e.Actor == person || e.Actor == Demo)
}

// enoughCalm is the number of events without harm after which a break is taken to have no more effect.
const enoughCalm = 2000

// aftermath follows what fails and what is missing since a break.
type aftermath struct {
	Aftermath
	waits map[string]string // what is waited for, by what it is about
	done  map[string]bool   // writes of the reconcile that was hit; false once repeated
	runs  map[int64]bool    // reconciles that began since then
	works map[string]bool   // operators that had reconciled a key whose object is there still, if no reconcile was hit

	versions, ready map[string]string // the newest resourceVersion and readiness of objects, by UID
}

func (f *aftermath) wait(about, text string) { f.waits[about], f.Hurt = text, true }

func writeText(e *Event) string { return e.Verb + " " + e.Object.String() }

// begin notes what the break itself makes wait.
func (f *aftermath) begin(s *State) {
	e := f.Break
	if e.Kind == KindCall {
		f.wait("object", e.Object.String())
		return
	}
	if e.Fault().Kind == FaultCrash {
		f.wait("operator "+e.Operator, e.Operator)
	}
	if reconcile := s.Reconcile(e.Reconcile); reconcile != nil {
		f.wait(keyText(reconcile.Controller, reconcile.Key), "#"+fmt.Sprint(reconcile.ID)+" "+reconcile.Key.String())
		for _, step := range reconcile.Steps {
			if step.IsWrite() && step.Kind == KindCall && !step.NoOp && (step.Error == "" && step.Seq < e.Seq || step.Lost) {
				f.done[writeText(step)] = true
			}
		}
		return // its key is what is waited for
	}
	there := map[Key]bool{}
	for key, object := range s.objects {
		k := Key{key.namespace, key.name}
		there[k] = there[k] || object.Verb != Deleted
	}
	for _, reconcile := range s.finished {
		if reconcile.First < e.Seq && there[reconcile.Key] {
			f.works[reconcile.Operator] = true
		}
	}
}

func keyText(controller string, k Key) string { return "key " + controller + " " + k.String() }

// apply follows one event after the break.
func (f *aftermath) apply(e *Event) {
	switch e.Kind {
	case KindOperator:
		about := "operator " + e.Operator
		if e.Verb == VerbStop {
			if healed := f.Hurt && len(f.waits) == 0; f.mayStop() && !healed {
				f.wait(about, e.Operator)
			}
			break
		}
		if f.waits[about] == "" {
			break // it was stopped for another reason
		}
		delete(f.waits, about)
		if e.Verb == VerbStart && f.works[e.Operator] { // that it runs is not enough: it has to look at what it missed
			f.wait("first "+e.Operator, e.Operator)
		}
	case KindStart:
		f.runs[e.Reconcile] = true
		f.Reconciles++
	case KindEnd:
		if e.Outcome == OutcomeAborted {
			break // its worker ended before it did
		}
		if !f.runs[e.Reconcile] { // it had begun before
			f.Reconciles++
		}
		if e.Error != "" {
			f.wait(keyText(e.Controller, e.Key), "#"+fmt.Sprint(e.Reconcile)+" "+e.Key.String())
		} else {
			delete(f.waits, keyText(e.Controller, e.Key))
			delete(f.waits, "first "+e.Operator)
		}
	case KindCall:
		if e.IsWrite() && e.Error == "" && !e.Lost && e.Reconcile != f.Break.Reconcile && f.done[writeText(e)] {
			f.Repeated++
			f.done[writeText(e)] = false
		}
		if e.byOthers() {
			f.change(e, e.changed())
		}
	case KindWatch:
		f.change(e, e.Verb)
	case KindTraffic, KindMembers, KindWrites:
		if about := string(e.Kind) + e.Object.String() + e.URL(); e.Kind == KindTraffic && e.Error != "" || StoreFails(e) {
			f.wait(about, orElse(e.Object.String(), e.URL()))
		} else {
			delete(f.waits, about)
		}
	}
}

// mayStop reports whether the break may be why an operator's program ends. Else somebody has stopped it, perhaps because all is over.
func (f *aftermath) mayStop() bool {
	if f.Break.Kind != KindFault {
		return false
	}
	switch f.Break.Fault().Kind {
	case FaultCrash, FaultStale, FaultControlPlane, FaultPod, FaultNode:
		return true
	}
	return false
}

// byOthers reports whether the audit log told of a write to an object or its status. Calls of operators and of the person at the
// screen are recorded as they are made; of objects that no operator watches, the audit log is all that tells.
func (e *Event) byOthers() bool {
	return e.Kind == KindCall && e.IsWrite() && e.Error == "" && e.Operator == "" && e.Source == Server && e.Object.UID != "" &&
		(e.Object.Subresource == "" || e.Object.Subresource == "status")
}

// changed returns what a write did to its object, in the word that a watch has for it.
func (e *Event) changed() string {
	switch {
	case endsObject(e):
		return Deleted
	case e.creates():
		return Added
	}
	return Modified
}

// change follows a change of an object, of which a watch, the audit log or both may tell, the latter perhaps late.
func (f *aftermath) change(e *Event, verb string) {
	object := e.Object
	object.Subresource = ""
	uid, about := object.UID, "ready "+object.String()
	known := f.versions[uid]
	late := e.Kind == KindCall && known != "" && !newerVersion(e.ResourceVersion, known)
	if e.Kind == KindCall && known == Deleted || late && verb == Modified {
		return
	}
	was, is := orElse(readiness(e.Before), f.ready[uid]), readiness(e.After)
	if late && verb == Added { // what became of it since was told before
		was, is = f.ready[uid], f.ready[uid]
	} else {
		f.versions[uid], f.ready[uid] = e.ResourceVersion, is
	}
	if verb == Deleted {
		f.versions[uid] = Deleted
	}
	if b := f.Break; b.Kind == KindCall && object.Kind == b.Object.Kind {
		switch {
		case b.Verb != VerbDelete && object.Name == b.Object.Name && verb != Deleted && sameWish(e.After, b.Before):
			delete(f.waits, "object")
		case b.Verb == VerbDelete && uid != "" && uid == b.Object.UID: // what was deleted, which a restarted operator lists while it ends
		case b.Verb == VerbDelete && verb == Added && (object.Name == b.Object.Name || controllerOf(e.After) == controllerOf(b.Before)):
			delete(f.waits, "object")
			if readiness(b.Before) == "True" { // what is there instead has to be ready, too
				f.wait(about, object.String())
			}
		case b.Verb == VerbDelete && verb == Deleted && f.waits[about] != "":
			f.wait("object", b.Object.String()) // what came instead has gone before it was ready
		}
	}
	switch {
	case verb == Deleted || is == "True" || is != "" && (&Object{Raw: e.After}).Meta().Deleting: // what ends is not waited for
		delete(f.waits, about)
	case was == "True" && is != "":
		f.wait(about, object.String())
	}
}

// readiness returns the status of an object's condition Ready or Available; empty if it has none.
func readiness(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	for _, c := range (&Object{Raw: raw}).Meta().Conditions {
		if c.Type == "Ready" || c.Type == "Available" {
			return c.Status
		}
	}
	return ""
}

// sameWish reports whether two versions of an object ask for the same.
func sameWish(a, b json.RawMessage) bool {
	wish := func(raw json.RawMessage) map[string]any {
		var o map[string]any
		if json.Unmarshal(raw, &o) != nil {
			return nil
		}
		meta, _ := o["metadata"].(map[string]any)
		o["labels"] = meta["labels"]
		delete(o, "metadata")
		delete(o, "status")
		return o
	}
	return reflect.DeepEqual(wish(a), wish(b))
}

// Text tells what came of the break, and then what was broken: where there is little room, the end is cut.
func (a *Aftermath) Text(l Language) string {
	if l == Japanese {
		return a.japanese()
	}
	return a.english()
}

func (a *Aftermath) english() string {
	what := "Fault " + FaultText(a.Break, English)
	if a.Break.Kind == KindCall {
		who := ActorText(a.Break.Actor, English)
		what = upperFirst(who) + " " + englishWrite(a.Break)
	}
	took := FormatDuration(a.Took) + " and " + plural(a.Reconciles, "reconcile")
	var out string
	switch {
	case !a.Hurt:
		return "Nothing fails and nothing is missing so far. " + what + "."
	case len(a.Waits) == 0:
		out = "Healed after " + took
	default:
		out = "Not healed after " + took + ", waiting for " + strings.Join(a.Waits, ", ")
	}
	switch {
	case a.Repeated == 1:
		out += "; 1 write was repeated"
	case a.Repeated > 1:
		out += fmt.Sprintf("; %d writes were repeated", a.Repeated)
	}
	return out + ". " + what + "."
}

func (a *Aftermath) japanese() string {
	what := FaultText(a.Break, Japanese)
	if a.Break.Kind == KindCall {
		what = ActorText(a.Break.Actor, Japanese) + "が " + japaneseWrite(a.Break) + "した"
	}
	took := fmt.Sprintf("%s、reconcile %d 回", FormatDuration(a.Took), a.Reconciles)
	var out string
	switch {
	case !a.Hurt:
		return "今のところ失敗も欠けているものもない。" + what + "。"
	case len(a.Waits) == 0:
		out = took + "で回復"
	default:
		out = took + "でまだ回復していない (待っているもの: " + strings.Join(a.Waits, "、") + ")"
	}
	if a.Repeated > 0 {
		out += fmt.Sprintf("。繰り返した書き込み %d 件", a.Repeated)
	}
	return out + "。" + what + "。"
}
