package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Fault is something that is to go wrong once what it matches happens. It is armed when it is created, and disarmed when
// it is deleted. Its spec cannot be changed, but for released.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Fault struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what goes wrong, and when.
	Spec FaultSpec `json:"spec"`
	// Status is how far it is.
	Status FaultStatus `json:"status,omitempty"`
}

// FaultList is a list of faults.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type FaultList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the faults.
	Items []Fault `json:"items"`
}

// FaultSpec is a fault. Exactly one of crash, hold, api, watch, stale, conflict, controlPlane, pod, node and image is set.
type FaultSpec struct {
	// Operator whose calls and events are looked at. Default: each operator's.
	Operator string `json:"operator,omitempty"`
	// Match says at which calls or watch events the fault happens. Without it a crash, a watch that is cut and the faults
	// of controlPlane, pod, node and image happen at once, and the others at the next write (stale, and a watch that is not
	// cut: at the next event).
	Match *FaultMatch `json:"match,omitempty"`
	// ExpireAfter disarms the fault this long after it was created, and does what released does. Default: never.
	ExpireAfter *metav1.Duration `json:"expireAfter,omitempty"`
	// Released lets go what the fault holds or delays, sets right what it keeps wrong, and disarms it. It is all that can
	// be changed later.
	Released bool `json:"released,omitempty"`

	// Crash ends the operator in the middle.
	Crash *CrashFault `json:"crash,omitempty"`
	// Hold stops a reconcile where it is, until it is released.
	Hold *HoldFault `json:"hold,omitempty"`
	// API answers a call wrongly, late or not at all.
	API *APIFault `json:"api,omitempty"`
	// Watch cuts or delays a watch stream, or leaves an event out.
	Watch *WatchFault `json:"watch,omitempty"`
	// Stale shows the operator the objects of a kind as they were.
	Stale *StaleFault `json:"stale,omitempty"`
	// Conflict has somebody else write the object between the operator's read and its write.
	Conflict *ConflictFault `json:"conflict,omitempty"`
	// ControlPlane kills a program of the control plane, which is then started again.
	ControlPlane *ControlPlaneFault `json:"controlPlane,omitempty"`

	// Pod lets containers die, not start, or not become ready. It needs a sandbox with nodes.
	Pod *PodFault `json:"pod,omitempty"`
	// Node takes a node away, or starts it again. It needs a sandbox with nodes.
	Node *NodeFault `json:"node,omitempty"`
	// Image makes images slow to pull, or impossible. It needs a sandbox with nodes.
	Image *ImageFault `json:"image,omitempty"`
}

// FaultMatch chooses calls or watch events. What is empty matches everything, and all that is set must match. Leader
// election, discovery and the writing of Events are never looked at.
type FaultMatch struct {
	// Verbs of the calls: create, update, patch, apply, delete, get, list. Default: those that write. For a watch
	// fault ADDED, MODIFIED and DELETED; default: all three. A stale fault has either events, which are its default, or
	// writes.
	Verbs []string `json:"verbs,omitempty"`
	// Kind of the object, such as Zundoko; plural names and lower case are accepted.
	Kind string `json:"kind,omitempty"`
	// Group of the object's API. Default: any.
	Group string `json:"group,omitempty"`
	// Subresource such as status; "-" matches only calls without one. Default: any.
	Subresource string `json:"subresource,omitempty"`
	// Namespace of the object.
	Namespace string `json:"namespace,omitempty"`
	// Name of the object; * stands for any characters.
	Name string `json:"name,omitempty"`
	// Field that the write or the event changes: a path such as spec.replicas or status.conditions.
	Field string `json:"field,omitempty"`
	// Nth match at which the fault happens first, counted from 1 since the fault was created. Default: 1.
	Nth int32 `json:"nth,omitempty"`
	// Times is how many matches it happens at, from the nth on; 0 is every one. Default: 1.
	Times *int32 `json:"times,omitempty"`
	// Percent of the matches, from the nth on, at which it happens, chosen by the seed: the same seed chooses the
	// same ones. Default: 100.
	Percent int32 `json:"percent,omitempty"`
	// Seed of that choice. Default: the seed of the run together with the fault's name.
	Seed *int64 `json:"seed,omitempty"`
}

// When says on which side of a call something happens.
type When string

// The sides of a call.
const (
	// Before the call is sent.
	Before When = "Before"
	// After the API server carried it out, and before the operator learns of it.
	After When = "After"
)

// CrashFault ends the operator as kill -9 would: nothing of it runs on, nothing is told to the API server.
type CrashFault struct {
	// When: Before or After the matching call. Default: After.
	When When `json:"when,omitempty"`
	// RestartAfter is the pause before it is started again. Default: 0, at once.
	RestartAfter metav1.Duration `json:"restartAfter,omitempty"`
}

// HoldFault stops the reconcile that makes the matching call.
type HoldFault struct {
	// When: Before or After the matching call. Default: Before.
	When When `json:"when,omitempty"`
	// For is how long it holds. Default: until the fault is released, deleted or expires.
	For *metav1.Duration `json:"for,omitempty"`
}

// APIReply is a reply that a call gets in place of the API server's.
type APIReply string

// The replies.
const (
	// ReplyConflict is 409, nothing was written.
	ReplyConflict APIReply = "Conflict"
	// ReplyInternalError is 500, nothing was written.
	ReplyInternalError APIReply = "InternalError"
	// ReplyServiceUnavailable is 503, nothing was written.
	ReplyServiceUnavailable APIReply = "ServiceUnavailable"
	// ReplyTooManyRequests is 429 without Retry-After, so that the client does not try again by itself; nothing was written.
	ReplyTooManyRequests APIReply = "TooManyRequests"
	// ReplyForbidden is 403, nothing was written.
	ReplyForbidden APIReply = "Forbidden"
	// ReplyTimeout is no answer, and nothing was written.
	ReplyTimeout APIReply = "Timeout"
	// ReplyLost is no answer although the write was carried out.
	ReplyLost APIReply = "Lost"
	// ReplyTrue is the true answer; with a delay.
	ReplyTrue APIReply = "True"
)

// APIFault answers the matching call wrongly, or late.
type APIFault struct {
	// Reply: Conflict, InternalError, ServiceUnavailable, TooManyRequests, Forbidden, Timeout, Lost (carried out, and the
	// reply lost) or True. Default: InternalError, with a delay True.
	Reply APIReply `json:"reply,omitempty"`
	// Delay before the answer. Default: 0.
	Delay metav1.Duration `json:"delay,omitempty"`
}

// WatchAction names what the fault does to a watch.
type WatchAction string

// The actions.
const (
	// WatchCut ends the streams of the kind; the informer opens new ones by itself.
	WatchCut WatchAction = "Cut"
	// WatchDelay holds the stream up from the matching event on.
	WatchDelay WatchAction = "Delay"
	// WatchCoalesce leaves the matching event out; the next one of the same object tells its newest state, as when an
	// operator was away for a moment.
	WatchCoalesce WatchAction = "Coalesce"
	// WatchGone ends the stream with 410 Gone: the informer lists anew, and hears of all objects once more.
	WatchGone WatchAction = "Gone"
)

// WatchFault disturbs the watch stream that the matching event comes by.
type WatchFault struct {
	// Action: Cut, Delay, Coalesce or Gone.
	Action WatchAction `json:"action"`
	// For is how long a delayed stream is held up. Default: until the fault is released, deleted or expires.
	For *metav1.Duration `json:"for,omitempty"`
}

// StaleFault shows informers a kind as it was before the matching event or write, in all namespaces. The API server has
// that older revision for five minutes. A get, and a list without a resourceVersion, are answered as they are.
type StaleFault struct {
	// Restart ends the operator after the matching write was carried out, or after its next write after the matching
	// event; when it has started again it sees what was before. Default: it goes on, and sees what was before.
	Restart bool `json:"restart,omitempty"`
	// Relist ends the watches that were held up with 410 Gone in the end: the operator lists anew, and misses what was in
	// between. Default: they deliver all events, each when the operators have dealt with the one before, or all after 1.5 s.
	Relist bool `json:"relist,omitempty"`
	// For is how long it lasts; after a restart, from the first list of it on. Default: until the fault is released, deleted or expires.
	For *metav1.Duration `json:"for,omitempty"`
}

// ConflictFault has a second writer change the object just before the matching update or patch is sent, after the operator
// has read it.
type ConflictFault struct {
	// Patch is the JSON merge patch that the second writer sends. Default: it sets the annotation
	// operator-lab.dev/touched.
	Patch *runtime.RawExtension `json:"patch,omitempty"`
}

// ControlPlaneFault kills a program with SIGKILL.
type ControlPlaneFault struct {
	// Program: etcd, kube-apiserver, kube-controller-manager or kube-scheduler; with OLM also catalog-operator, olm-operator,
	// package-server or opm.
	Program string `json:"program"`
}

// PodAction names what the fault does to containers.
type PodAction string

// The actions.
const (
	// PodKill kills the containers that run, as kill -9 would; the kubelet starts them again.
	PodKill PodAction = "Kill"
	// PodOOMKill does the same, as if they had used up their memory.
	PodOOMKill PodAction = "OOMKill"
	// PodUnready lets readiness probes fail.
	PodUnready PodAction = "Unready"
	// PodCrash ends containers that start.
	PodCrash PodAction = "Crash"
	// PodStartLate holds up the programs of containers that start.
	PodStartLate PodAction = "StartLate"
	// PodSlow leaves the processes of containers little time.
	PodSlow PodAction = "Slow"
)

// PodFault lets containers die, not start, not become ready, or be slow. Kill and OOMKill happen once, to all containers that are
// chosen and run; while none does, the fault waits for one. The others last until the fault is released, deleted or
// expires, and concern what begins meanwhile: a container that runs already runs on under Crash and StartLate. Slow concerns both.
type PodFault struct {
	// Action: Kill, OOMKill, Unready (of containers that have a readiness probe: it fails), Crash, StartLate or
	// Slow (their processes stand still for 400 ms, run for 50 ms, and so on; a program that is no process of its own does not).
	Action PodAction `json:"action"`
	// Namespace of the pods. Default: any.
	Namespace string `json:"namespace,omitempty"`
	// Name of the pods; * stands for any characters. Default: any.
	Name string `json:"name,omitempty"`
	// Selector has labels that the pods have, all of them. Default: any.
	Selector map[string]string `json:"selector,omitempty"`
	// Container by its name in the pods. Default: all of a pod.
	Container string `json:"container,omitempty"`
	// ExitCode of a Crash, 0 to 255. Default: 1.
	ExitCode *int32 `json:"exitCode,omitempty"`
	// After is how long a container runs: before a Crash ends it (default: 0, it ends at once), or before a StartLate lets
	// its program begin.
	After *metav1.Duration `json:"after,omitempty"`
	// For is how long Unready, Crash, StartLate or Slow last. Default: until the fault is released, deleted or expires.
	For *metav1.Duration `json:"for,omitempty"`
}

// NodeAction names what the fault does to nodes.
type NodeAction string

// The actions.
const (
	// NodeLost takes the power away.
	NodeLost NodeAction = "Lost"
	// NodeRestart takes the power away and gives it back at once.
	NodeRestart NodeAction = "Restart"
)

// NodeFault takes the power of nodes away: their kubelets and all containers on them end at once, and nobody is told.
// Kubernetes finds a node that is lost NotReady some five seconds later, and some five seconds after that has its pods
// replaced elsewhere.
type NodeFault struct {
	// Action: Lost, until the fault is released, deleted or expires, or Restart.
	Action NodeAction `json:"action"`
	// Name of the nodes; * stands for any characters. Default: all.
	Name string `json:"name,omitempty"`
	// For is how long they are lost. Default: until the fault is released, deleted or expires.
	For *metav1.Duration `json:"for,omitempty"`
}

// ImageFault makes images slow to pull, or impossible, until it is released, deleted or expires. When it begins, all nodes
// forget the images, so that the next container that needs one has it pulled again.
type ImageFault struct {
	// Name of the images: a pattern as in an images file, nginx for all its tags. * stands for any characters but /, and
	// ** for those too.
	Name string `json:"name"`
	// Namespace of the pods whose images are pulled. Default: any.
	Namespace string `json:"namespace,omitempty"`
	// Error with which pulling fails, in the words of a registry. Default: not found; with a delay: pulling succeeds.
	Error string `json:"error,omitempty"`
	// Delay is how much longer pulling takes. Default: 0.
	Delay metav1.Duration `json:"delay,omitempty"`
	// For is how long it lasts. Default: until the fault is released, deleted or expires.
	For *metav1.Duration `json:"for,omitempty"`
}

// FaultPhase is how far a fault is.
type FaultPhase string

// The phases of a fault.
const (
	// FaultArmed: it waits for what it matches.
	FaultArmed FaultPhase = "Armed"
	// FaultInjected: it happened at least once; what it holds is held, what it keeps wrong is wrong, and it may happen
	// again.
	FaultInjected FaultPhase = "Injected"
	// FaultReleased: it is over, and all it held was let go.
	FaultReleased FaultPhase = "Released"
	// FaultExpired: its time ran out.
	FaultExpired FaultPhase = "Expired"
)

// FaultStatus says what became of a fault.
type FaultStatus struct {
	// Phase: Armed, Injected, Released or Expired.
	Phase FaultPhase `json:"phase,omitempty"`
	// Matched counts the calls or events that matched so far.
	Matched int32 `json:"matched"`
	// Times it happened.
	Times int32 `json:"times"`
	// At is when it last happened.
	At *metav1.MicroTime `json:"at,omitempty"`
	// Message says at what it last happened, and to whom, or why it cannot.
	Message string `json:"message,omitempty"`
	// Conditions: Injected is True once it happened, Done is True once it can happen no more, holds nothing and keeps
	// nothing wrong.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
