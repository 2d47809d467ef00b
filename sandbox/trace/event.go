//go:build go1.23

package trace

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Kind is the kind of an [Event].
type Kind string

// The kinds of events. A reconcile's usual sequence is watch, enqueue, dequeue, start, call…, end, and then perhaps
// requeue and ready.
const (
	// KindWatch: an informer delivered a change of an object (Verb ADDED, MODIFIED or DELETED).
	KindWatch Kind = "watch"
	// KindFound: an object was listed that belongs to one in the journal and of which no informer told (After is the object;
	// Initial: it was made before the journal began).
	KindFound Kind = "found"
	// KindDrop: a controller saw a watch event and made no key of it (Cause is the watch event).
	KindDrop Kind = "drop"
	// KindEnqueue: a key was put into the work queue.
	KindEnqueue Kind = "enqueue"
	// KindMerge: a key was added that the queue already held; it stays one key.
	KindMerge Kind = "merge"
	// KindRequeue: a key was set to come back after Delay (Reason says why, Try counts back-offs).
	KindRequeue Kind = "requeue"
	// KindReady: the timer of a requeued key ran out (Cause is the requeue event).
	KindReady Kind = "ready"
	// KindDequeue: a worker took a key (Cause is what made it ready, Count how many were merged into it).
	KindDequeue Kind = "dequeue"
	// KindStart: a reconcile began (Cause is the dequeue event).
	KindStart Kind = "start"
	// KindHold: a write is held before it is sent (After is what would be sent), or with ReasonPaused any request waits
	// because the loop is paused.
	KindHold Kind = "hold"
	// KindCall: an API call returned.
	KindCall Kind = "call"
	// KindLog: the operator logged a line, or panicked (Message, Values, Error, Stack).
	KindLog Kind = "log"
	// KindEnd: a reconcile ended (Outcome, Error, Duration).
	KindEnd Kind = "end"
	// KindControl: the loop was paused, resumed, stepped… (Verb).
	KindControl Kind = "control"
	// KindOperator: an operator was started or stopped (Verb start, stop).
	KindOperator Kind = "operator"
	// KindFault: the lab injected a fault (Reason is its name, [FaultPayload] what it did). Verb and Object are those of
	// the call or watch event that it happened at; both are empty for an immediate fault.
	KindFault Kind = "fault"
	// KindHook: the operator asked a webhook of its own (Verb is the hook's name, [HookPayload] has what was sent and answered)
	// about an Object. After is what it answered that should be there, Before the same fields of what is there; both are
	// empty if that is not known. Status and Error are those of the answer, Duration the time until it came.
	KindHook Kind = "hook"
	// KindTraffic: a request to a URL got Status and the body Message, or Error, after Duration. Verb says
	// whether the answer differs from the one before. It belongs to no loop.
	KindTraffic Kind = "traffic"
	// KindMembers: the members of a replicated store (Object) reported their state: After is a [Membership], Before the
	// one before. Verb says whether more has changed than raft's indexes.
	KindMembers Kind = "members"
	// KindWrites: the result of repeated writes to a store (Object) since the last such event, a time of Delay. Count
	// is how many were acknowledged ([WritesPayload] has the others), Duration the longest time without an
	// acknowledgement so far, Error why the last one failed. Verb says whether the result is new; it is stop when the
	// store is gone.
	KindWrites Kind = "writes"
	// KindPackage: where the Subscriptions of OLM to a package (Object) stand in its channels: After is a [Package], Before the one
	// before.
	KindPackage Kind = "package"
	// KindNote: anything else worth recording (Message).
	KindNote Kind = "note"
)

// Beside reports whether events of the kind belong to no loop: they record use or observation of what the operators
// manage.
func (k Kind) Beside() bool {
	return k == KindTraffic || k == KindMembers || k == KindWrites || k == KindPackage
}

// Source says what answered a read, or that a call reached the API server.
type Source string

// The sources of calls. A call that failed before it was sent has none.
const (
	// Cache is the cache of the operator's manager.
	Cache Source = "cache"
	// Server is the API server.
	Server Source = "server"
)

// The values of Event.Via.
const (
	// ViaRecorder marks a Kubernetes Event written by an event recorder, which happens in the background and belongs to
	// no reconcile.
	ViaRecorder = "recorder"
	// ViaWire marks a request that did not come from the manager's client, but from a clientset of the operator or from
	// the uncached reader.
	ViaWire = "wire"
	// ViaDryRun marks a write that was sent as a dry run.
	ViaDryRun = "dry-run"
	// ViaGate marks a call or a watch event of a program of which only its requests are seen: it has no queue and no
	// reconciles in the journal, unless its own log tells of them.
	ViaGate = "gate"
	// ViaLog marks the beginning (KindDequeue, KindStart) and the end of a reconcile that were read in the program's own
	// log. What its queue holds is not known.
	ViaLog = "log"
)

// Outcome is the result of a reconcile.
type Outcome string

// The outcomes of a reconcile.
const (
	OutcomeDone         Outcome = "done"         // nothing more to do until something changes
	OutcomeRequeueAfter Outcome = "requeueAfter" // asked to run again after Delay
	OutcomeRequeue      Outcome = "requeue"      // asked to run again with back-off
	OutcomeError        Outcome = "error"        // failed; is retried with back-off
	OutcomeTerminal     Outcome = "terminal"     // failed with a TerminalError; is not retried
	OutcomePanic        Outcome = "panic"        // panicked; is retried with back-off
	OutcomeAborted      Outcome = "aborted"      // the worker ended without a result
)

// The verbs of watch events, as the Kubernetes API writes them.
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
)

// The verbs of calls, and of KindControl, KindOperator, KindTraffic, KindMembers and KindWrites events.
const (
	VerbGet    = "get"
	VerbList   = "list"
	VerbWatch  = "watch"
	VerbCreate = "create"
	VerbUpdate = "update"
	VerbPatch  = "patch"
	VerbApply  = "apply"
	VerbDelete = "delete"
	// VerbDeleteAll is the delete of a collection.
	VerbDeleteAll = "deletecollection"

	VerbPause      = "pause"
	VerbResume     = "resume"
	VerbStep       = "step"
	VerbHoldWrites = "hold-writes"
	VerbSendWrites = "send-writes"
	VerbRelease    = "release"

	VerbStart = "start"
	VerbStop  = "stop"

	VerbAnswer = "answer" // of KindTraffic, KindMembers and KindWrites: the same answer as the one before
	VerbSwitch = "switch" // of KindTraffic, KindMembers and KindWrites: another answer, or the first one
)

// The reasons of KindRequeue events, and of others where it says so.
const (
	ReasonBackoff      = "backoff"                 // an error: rate limited
	ReasonRequeue      = "requeue"                 // Result.Requeue: rate limited
	ReasonRequeueAfter = "requeueAfter"            // Result.RequeueAfter
	ReasonDelayed      = "delayed"                 // added with a delay from outside of a reconcile
	ReasonProbe        = "probe"                   // added by the lab, to see what one more reconcile does (KindEnqueue)
	ReasonResync       = "resync"                  // an informer told of its object again, unchanged (KindDrop)
	ReasonStatusOnly   = "status or metadata only" // the generation did not change (KindDrop)
)

// ReasonPaused is the reason of KindHold events of requests that wait at the gate because the loop is paused.
const ReasonPaused = "paused"

// ReasonPartly is the reason of a start (KindOperator) of a program of whose requests some kinds are not recorded.
const ReasonPartly = "partly"

// Key is a key of a work queue: an object's namespace and name.
type Key struct {
	// Namespace is empty for a cluster-scoped object.
	Namespace string
	// Name is the object's name.
	Name string
}

// String returns namespace/name, or the name alone without a namespace.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// IsZero reports whether the key is empty.
func (k Key) IsZero() bool { return k == Key{} }

// MarshalText writes the key as namespace/name.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText parses the result of MarshalText; it never fails.
func (k *Key) UnmarshalText(b []byte) error {
	ns, name, found := strings.Cut(string(b), "/")
	if !found {
		ns, name = "", ns
	}
	*k = Key{Namespace: ns, Name: name}
	return nil
}

// Ref identifies an object of the API.
type Ref struct {
	// APIVersion is the group and version, such as apps/v1.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind is the object's kind.
	Kind string `json:"kind,omitempty"`
	// Namespace is empty for a cluster-scoped object.
	Namespace string `json:"namespace,omitempty"`
	// Name is the object's name.
	Name string `json:"name,omitempty"`
	// Subresource is empty for the object itself.
	Subresource string `json:"subresource,omitempty"`
	// UID is empty if it is not known.
	UID string `json:"uid,omitempty"`
}

// String returns the kind and the name, with the subresource if there is one.
func (r Ref) String() string {
	s := strings.TrimSpace(r.Kind + " " + r.Name)
	if r.Subresource != "" {
		s += "/" + r.Subresource
	}
	return s
}

// Key returns the namespace and name of the object.
func (r Ref) Key() Key { return Key{Namespace: r.Namespace, Name: r.Name} }

// IsZero reports whether the reference is empty.
func (r Ref) IsZero() bool { return r == Ref{} }

// Event is one entry of the journal. Which fields are set depends on Kind; the zero value of a field means "does not
// apply". An event never changes after it was appended, so its slices may be shared and must not be written to.
type Event struct {
	// Seq numbers the events of a journal from 1. Append sets it.
	Seq int64 `json:"seq"`
	// At is the monotonic time since the journal's start. Append sets it if it is zero, and to the time of the event
	// before if it is earlier.
	At time.Duration `json:"at"`
	// Kind is the kind of the event.
	Kind Kind `json:"kind"`
	// Actor caused it: an operator's name, "you", "kubelet", "kube-controller-manager/deployment-controller"…
	Actor string `json:"actor,omitempty"`
	// Operator is the operator whose loop it belongs to, if any.
	Operator string `json:"operator,omitempty"`
	// Controller is controller-runtime's name of the operator's controller.
	Controller string `json:"controller,omitempty"`
	// Key is the key in the work queue.
	Key Key `json:"key,omitzero"`
	// Reconcile is the journal's number of the reconcile that it belongs to, from 1; zero if it belongs to none.
	Reconcile int64 `json:"reconcile,omitempty"`
	// Cause is the Seq of the event that caused this one; zero if there is none or it is not known.
	Cause int64 `json:"cause,omitempty"`

	// Probably marks what was concluded from times and names: that a call belongs to Reconcile, or, of a KindDequeue, that
	// Cause caused it.
	Probably bool `json:"probably,omitempty"`

	// Verb is the verb of a call, a watch event or a control.
	Verb string `json:"verb,omitempty"`
	// Object is the object that it concerns.
	Object Ref `json:"object,omitzero"`
	// ResourceVersion is that of the object after the event, or of the object read.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Generation is that of the object after the event.
	Generation int64 `json:"generation,omitempty"`
	// Before is the last known state of the object before the event; nil if there is none. It shares its bytes with an
	// earlier event's After.
	Before json.RawMessage `json:"before,omitempty"`
	// After is the object after the event, or the object to send (KindHold) or sent (a failed KindCall).
	After json.RawMessage `json:"after,omitempty"`
	// Source distinguishes reads of the cache from reads of the API server.
	Source Source `json:"source,omitempty"`
	// Via is empty for calls of the operator's client; else [ViaRecorder], [ViaWire], [ViaDryRun], [ViaGate] or
	// [ViaLog].
	Via string `json:"via,omitempty"`
	// Line is the line of the operator's source that made a call in a reconcile, as file:line, the file relative to its module; empty if it
	// is not known.
	Line string `json:"line,omitempty"`
	// FieldManager is the field manager of a write, if one was named.
	FieldManager string `json:"fieldManager,omitempty"`
	// Status is the HTTP status of a call that reached the server.
	Status int `json:"status,omitempty"`
	// NoOp marks a write that changed nothing: the resourceVersion is the same and no watch event follows.
	NoOp bool `json:"noOp,omitempty"`
	// Lost marks a write that was carried out and whose answer never reached its sender. The sender may have recorded the
	// same call as one that failed, if it lived on.
	Lost bool `json:"lost,omitempty"`
	// Count is the number of a list's items, or of adds merged into a dequeued key.
	Count int `json:"count,omitempty"`

	// Duration is that of a call, a hold or a reconcile.
	Duration time.Duration `json:"duration,omitempty"`
	// Delay is the time until a requeued key comes back.
	Delay time.Duration `json:"delay,omitempty"`
	// Try counts the back-offs of a key since it was last forgotten, from 1.
	Try int `json:"try,omitempty"`
	// Priority is that of a queued key; controller-runtime uses -100 for the initial list.
	Priority int `json:"priority,omitempty"`
	// Running marks an enqueue of a key that is being reconciled: it is "dirty" and runs again.
	Running bool `json:"running,omitempty"`
	// Initial marks a watch event of the first list, which is not a change, and an object that was found and is older than
	// the journal.
	Initial bool `json:"initial,omitempty"`

	// Outcome is the result of a reconcile.
	Outcome Outcome `json:"outcome,omitempty"`
	// Reason is that of a requeue, of a drop ("status or metadata only"), or of an API error ("Conflict").
	Reason string `json:"reason,omitempty"`
	// Error is the error's text; empty if there was none.
	Error string `json:"error,omitempty"`
	// Message is the text of a log line or note.
	Message string `json:"message,omitempty"`
	// Values are the keys and values of a log line or the payload of another kind of event. See [Event.Pairs],
	// [Event.Fault], [Event.Hook], [Event.Writes], [Event.URL] and [Event.EventType].
	Values []string `json:"values,omitempty"`
	// Level is the verbosity of a log line; 0 is always shown.
	Level int `json:"level,omitempty"`
	// Stack is the stack of a panic.
	Stack string `json:"stack,omitempty"`
}

// IsWrite reports whether the event is a call, sent or held, that changes something in the API server.
func (e *Event) IsWrite() bool {
	return (e.Kind == KindCall || e.Kind == KindHold) && IsWriteVerb(e.Verb) && e.Via != ViaDryRun
}

// creates reports whether the event is a call that made its object. Whether an apply did is known by its status.
func (e *Event) creates() bool {
	if !e.IsWrite() || e.Object.Subresource != "" {
		return false
	}
	return e.Verb == VerbCreate || e.Status == http.StatusCreated || e.Verb == VerbApply && e.Status == 0
}

// IsWriteVerb reports whether calls with the verb change something.
func IsWriteVerb(verb string) bool {
	switch verb {
	case VerbCreate, VerbUpdate, VerbPatch, VerbApply, VerbDelete, VerbDeleteAll:
		return true
	}
	return false
}

// Failed reports whether a call failed. A read that found nothing did not fail.
func (e *Event) Failed() bool {
	return e.Error != "" && (e.Reason != "NotFound" || e.IsWrite())
}

// QueueEnded reports whether a reconcile that asked to run again, or has to, does not: its operator was ending, and with it the queue.
func (e *Event) QueueEnded() bool {
	switch e.Outcome {
	case OutcomeRequeueAfter, OutcomeRequeue, OutcomeError, OutcomePanic:
		return e.Kind == KindEnd && e.Delay == 0 && e.Try == 0
	}
	return false
}

// size estimates the memory in bytes that an event keeps alive beyond the struct itself. Before is shared with an
// earlier event and not counted again.
func (e *Event) size() int64 {
	n := len(e.After) + len(e.Message) + len(e.Error) + len(e.Stack)
	if e.Kind == KindHook {
		n += len(e.Before) // it is no version of an object, which another event has too
	}
	for _, v := range e.Values {
		n += len(v)
	}
	return int64(n)
}

// ReconcileRef identifies a reconcile.
type ReconcileRef struct {
	// ID is its number in the journal; 0 if it is not known.
	ID int64
	// Controller is the name of the controller.
	Controller string
	// Key is the key that is reconciled.
	Key Key
}
