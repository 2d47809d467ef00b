package fault

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// fault is an armed fault. The mutex of its set guards the fields that change.
type fault struct {
	set  *Faults
	name string
	spec v1alpha1.FaultSpec
	matcher
	order int64 // position in the order of arming

	phase    v1alpha1.FaultPhase
	matched  int32
	reserved int32 // number of times it has happened or is about to
	times    int32
	holding  int32   // number of calls and streams that it holds or delays
	effect   *effect // what it keeps broken on nodes, or stale; nil if nothing
	view     *view   // what a stale fault shows, or will after a restart; nil if nothing
	at       time.Time
	message  string
	armedAt  time.Time
	firstAt  time.Time
	doneAt   time.Time
	expire   *time.Timer
	over     chan struct{} // closed when the fault is released, expires or is disarmed
	decided  decisions
}

// kindOf returns the kind of a fault, as a trace.Fault constant.
func kindOf(spec v1alpha1.FaultSpec) string {
	switch {
	case spec.Crash != nil:
		return trace.FaultCrash
	case spec.Hold != nil:
		return trace.FaultHold
	case spec.API != nil:
		return trace.FaultAPI
	case spec.Watch != nil:
		return trace.FaultWatch
	case spec.Stale != nil:
		return trace.FaultStale
	case spec.Conflict != nil:
		return trace.FaultConflict
	case spec.ControlPlane != nil:
		return trace.FaultControlPlane
	case spec.Pod != nil:
		return trace.FaultPod
	case spec.Node != nil:
		return trace.FaultNode
	case spec.Image != nil:
		return trace.FaultImage
	}
	return ""
}

// when returns whether the fault happens before or after the API server handles a call.
func (x *fault) when() v1alpha1.When {
	switch {
	case x.spec.Crash != nil:
		return orElse(x.spec.Crash.When, v1alpha1.After)
	case x.spec.Hold != nil:
		return orElse(x.spec.Hold.When, v1alpha1.Before)
	case x.spec.Stale != nil && x.spec.Stale.Restart:
		return v1alpha1.After
	case x.spec.API != nil && (x.reply() == v1alpha1.ReplyLost || x.reply() == v1alpha1.ReplyTrue):
		return v1alpha1.After
	}
	return v1alpha1.Before
}

// reply returns the reply of an API fault, with its defaults applied.
func (x *fault) reply() v1alpha1.APIReply {
	a := x.spec.API
	if a.Reply == "" && a.Delay.Duration > 0 {
		return v1alpha1.ReplyTrue
	}
	return orElse(a.Reply, v1alpha1.ReplyInternalError)
}

// detail returns the variant of the fault for the journal: its reply, action, program or side of the call.
func (x *fault) detail() string {
	switch {
	case x.spec.API != nil:
		return string(x.reply())
	case x.spec.Watch != nil:
		return string(x.spec.Watch.Action)
	case x.spec.Stale != nil && x.spec.Stale.Restart:
		return "Restart"
	case x.spec.Stale != nil:
		return "Began"
	case x.spec.ControlPlane != nil:
		return x.spec.ControlPlane.Program
	case x.spec.Conflict != nil:
		return ""
	case x.spec.Pod != nil:
		return string(x.spec.Pod.Action)
	case x.spec.Node != nil:
		return string(x.spec.Node.Action)
	case x.spec.Image != nil && onlySlow(x.spec.Image):
		return "Delay"
	case x.spec.Image != nil:
		return "Error"
	}
	return string(x.when())
}

// atOnce reports whether the fault happens when it is armed, without a match.
func (x *fault) atOnce() bool {
	cut := x.spec.Watch != nil && (x.spec.Watch.Action == v1alpha1.WatchCut || x.spec.Watch.Action == v1alpha1.WatchGone)
	return x.spec.Match == nil && (x.spec.Crash != nil || x.spec.ControlPlane != nil || cut || breaks(x.spec))
}

// applies reports whether the fault concerns an operator.
func (x *fault) applies(operator string) bool {
	return x.spec.Operator == "" || x.spec.Operator == operator
}

// ended reports whether the fault was released or has expired.
func (x *fault) ended() bool {
	return x.phase == v1alpha1.FaultReleased || x.phase == v1alpha1.FaultExpired
}

// spent reports whether the fault has happened, or is about to, as often as it may.
func (x *fault) spent() bool { return x.matcher.times > 0 && x.reserved >= x.matcher.times }

// done reports whether the fault can happen no more, holds nothing and keeps nothing broken.
func (x *fault) done() bool {
	return x.effect == nil && (x.ended() || x.spent() && x.times == x.reserved && x.holding == 0)
}

// match counts one match and reports whether the fault happens at it. If so, the caller later calls took, failed or
// giveBack.
func (x *fault) match() bool {
	if x.ended() || x.spent() {
		return false
	}
	x.matched++
	if x.matched < x.nth || !chosen(x.seed, x.mixed(), x.matched, x.percent) {
		return false
	}
	x.reserved++
	return true
}

// status returns the fault's status for its API object.
func (x *fault) status() v1alpha1.FaultStatus {
	s := v1alpha1.FaultStatus{Phase: x.phase, Matched: x.matched, Times: x.times, Message: x.message}
	if !x.at.IsZero() {
		at := metav1.NewMicroTime(x.at)
		s.At = &at
	}
	s.Conditions = []metav1.Condition{
		condition("Injected", x.times > 0, "Happened", "Waiting", x.firstAt, x.armedAt),
		condition("Done", x.done(), x.doneReason(), x.waitReason(), x.doneAt, x.armedAt),
	}
	return s
}

func (x *fault) doneReason() string {
	if x.ended() {
		return string(x.phase)
	}
	return "Spent"
}

func (x *fault) waitReason() string {
	if x.effect != nil {
		return "Lasting"
	}
	if x.holding > 0 {
		return "Holding"
	}
	return "Waiting"
}

func condition(kind string, is bool, yes, no string, since, otherwise time.Time) metav1.Condition {
	if is {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: yes, LastTransitionTime: metav1.NewTime(since)}
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: no, LastTransitionTime: metav1.NewTime(otherwise)}
}

// orElse returns v, or other if v is empty.
func orElse[T ~string](v, other T) T {
	if v == "" {
		return other
	}
	return v
}
