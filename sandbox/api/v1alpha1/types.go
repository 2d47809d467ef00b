package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Operator is an operator that the lab runs. There is one for each that is loaded; deleting it stops the operator.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Operator struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which variant of the operator is to run, and how.
	Spec OperatorSpec `json:"spec,omitempty"`
	// Status reports how the operator runs.
	Status OperatorStatus `json:"status,omitempty"`
}

// OperatorList is a list of operators.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type OperatorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the operators.
	Items []Operator `json:"items"`
}

// OperatorSpec says how an operator is to run. A change of the variant or of a parameter restarts it.
type OperatorSpec struct {
	// Variant of the operator. Default: hardened.
	Variant string `json:"variant,omitempty"`
	// Paused holds all keys in the work queue: no reconcile begins.
	Paused bool `json:"paused,omitempty"`
	// Parameters of the operator by the names that its command line has, without the dashes.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// OperatorState says what an operator is doing.
type OperatorState string

// The states of an operator.
const (
	// OperatorStarting: its manager is starting, its caches are not filled yet; or its earlier life is still ending.
	OperatorStarting OperatorState = "Starting"
	// OperatorRunning: its controllers take keys from their work queues.
	OperatorRunning OperatorState = "Running"
	// OperatorPaused: it runs, and no reconcile begins.
	OperatorPaused OperatorState = "Paused"
	// OperatorCrashed: a fault ended it, and it waits to be started again.
	OperatorCrashed OperatorState = "Crashed"
	// OperatorFailed: it ended by itself, or could not be started; the message says why.
	OperatorFailed OperatorState = "Failed"
	// OperatorStopped: it was asked to end.
	OperatorStopped OperatorState = "Stopped"
)

// OperatorStatus says how an operator is running.
type OperatorStatus struct {
	// ObservedGeneration is the generation of the spec that the status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// State it is in.
	State OperatorState `json:"state,omitempty"`
	// Message says why, where the state does not.
	Message string `json:"message,omitempty"`
	// Controllers of the operator that have taken part so far.
	Controllers []string `json:"controllers,omitempty"`
	// Restarts counts how often it was started again: after a crash, or because its spec was changed.
	Restarts int32 `json:"restarts"`
	// Version of the lab's binary, which the operator is part of.
	Version string `json:"version,omitempty"`
	// CapabilityLevel that was shown for it, from 1 (Basic Install) to 5 (Auto Pilot); 0 if none was.
	CapabilityLevel int32 `json:"capabilityLevel,omitempty"`
}

// Loop counts the reconciles of one key by one controller. It can only be read, and is in the namespace of the key;
// its name is the controller's and the key's name, joined by a dot.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Loop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says whose loop it is.
	Spec LoopSpec `json:"spec,omitempty"`
	// Status has the counts.
	Status LoopStatus `json:"status,omitempty"`
}

// LoopList is a list of loops.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type LoopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the loops.
	Items []Loop `json:"items"`
}

// LoopSpec says whose loop it is.
type LoopSpec struct {
	// Operator by its name in the lab.
	Operator string `json:"operator"`
	// Controller by controller-runtime's name for it.
	Controller string `json:"controller"`
	// Key in the work queue, namespace/name.
	Key string `json:"key"`
}

// LoopStatus counts what one controller did for one key since the lab began.
type LoopStatus struct {
	// Reconciles that ended.
	Reconciles int64 `json:"reconciles"`
	// Requeues that were asked for, with a delay or with back-off; retries after errors are not among them.
	Requeues int64 `json:"requeues"`
	// Errors that reconciles ended with; panics are among them.
	Errors int64 `json:"errors"`
	// Conflicts are writes that the API server refused because the object had changed.
	Conflicts int64 `json:"conflicts"`
	// Panics of reconciles.
	Panics int64 `json:"panics"`
	// Reads by where they were answered.
	Reads LoopReads `json:"reads"`
	// Writes that were sent.
	Writes LoopWrites `json:"writes"`
	// Events that concerned the key.
	Events LoopEvents `json:"events"`
	// Logs are the operator's log messages in reconciles of the key, in the order they first came; at most 32 of them.
	// +listType=atomic
	Logs []LoopLog `json:"logs,omitempty"`
	// Last is the newest reconcile that ended.
	Last LoopLast `json:"last,omitempty"`
	// Quiet says that the key is not in the queue, not being reconciled and not waiting for a timer.
	Quiet bool `json:"quiet"`
	// Hot says that the loop wakes itself again and again: its own writes flip a field to and fro.
	Hot bool `json:"hot"`
	// HotField is the field that flips, as kind.path.
	HotField string `json:"hotField,omitempty"`
}

// LoopReads counts reads.
type LoopReads struct {
	// Cache answered.
	Cache int64 `json:"cache"`
	// Server answered.
	Server int64 `json:"server"`
	// Items is how many objects were read, each item of a list being one.
	Items int64 `json:"items"`
}

// LoopLog is a message that was logged.
type LoopLog struct {
	// Message without its values.
	Message string `json:"message"`
	// Times it was logged.
	Times int64 `json:"times"`
	// Error says that it was logged as an error.
	Error bool `json:"error,omitempty"`
}

// LoopWrites counts writes.
type LoopWrites struct {
	// Total of the writes that the API server carried out.
	Total int64 `json:"total"`
	// NoOp are those among them that changed nothing.
	NoOp int64 `json:"noOp"`
	// Failed are writes that were refused or not answered; they are not in the total.
	Failed int64 `json:"failed"`
	// ByVerb is the total by verb: create, update, patch, apply, delete.
	ByVerb map[string]int64 `json:"byVerb,omitempty"`
	// ByKind is the total by the kind of the object, and Kind/status for a subresource.
	ByKind map[string]int64 `json:"byKind,omitempty"`
}

// LoopEvents counts events.
type LoopEvents struct {
	// Merged are keys that were added while the queue held them already.
	Merged int64 `json:"merged"`
	// Dropped are watch events of the key's own object that predicates dropped.
	Dropped int64 `json:"dropped"`
}

// LoopLast is the newest reconcile that ended.
type LoopLast struct {
	// Reconcile is its number in the journal.
	Reconcile int64 `json:"reconcile,omitempty"`
	// Outcome of it: done, requeueAfter, requeue, error, terminal, panic, aborted.
	Outcome string `json:"outcome,omitempty"`
	// Again says that the key was in the queue again when it ended, so that it runs once more at once, whatever the outcome.
	Again bool `json:"again,omitempty"`
	// Cause of it in words.
	Cause string `json:"cause,omitempty"`
	// Error it ended with.
	Error string `json:"error,omitempty"`
}
