// Package gate carries faults out. It is the transport between one operator and the API server: what is to go wrong with the
// operator's calls and watches goes wrong here, at the call or the event that a [v1alpha1.FaultSpec] names, and the operator
// cannot tell it from the real thing.
//
// [Faults] is the set of faults of a lab. [Faults.Gate] makes a gate for one life of one operator, which is put between
// operator and API server by [Gate.Wrap] in this process, or by [Gate.Handler] for an operator in another one:
//
//	faults := gate.NewFaults(gate.FaultsOptions{Journal: journal, Seed: seed, Effects: lab})
//	config.Wrap(faults.Gate("zundoko").Wrap)
//	err := faults.Arm("kill-2", v1alpha1.FaultSpec{Crash: &v1alpha1.CrashFault{}, Match: …})
//
// # What is looked at
//
// Calls are counted as they arrive, whatever becomes of them: a write that the API server refuses is a match too. Never looked
// at are leases, Events, discovery, reviews of access and of tokens, dry runs, connections into pods, the lab's own API, and
// what is sent with [Outside]. Once a fault has happened as often as it may, it counts no more.
//
// A create that leaves the name to the API server matches by its generateName, and by what could become of it. A delete of a
// collection is a delete without a name.
//
// # Fields
//
// A create changes the fields that it sets; a delete none. An update changes those that differ from the object as the API
// server has it at that moment (which the gate asks for, as the operator); a field that the API server will not take from
// that write, such as the status of an update that is not of the status, is compared all the same. A patch or an apply
// changes what it names, also if the object is so already: nothing is asked. Of watch events, ADDED changes the fields that
// the object has, DELETED none, and MODIFIED those that differ from the object one resourceVersion before.
//
// # Watches
//
// Watches are asked for in JSON, so that they can be looked into whenever a fault is armed; one that is answered in something
// else all the same can only be cut. The events that a WatchList
// begins with are the state, not changes, and are neither counted nor disturbed; nor are the answers to lists. An event that
// reaches an operator by several streams, or again after a stream was cut, is one match and meets one fate. An event that is
// left out stays unknown until the next event of its object or the next list: a DELETED that is left out leaves the object in
// the informer's cache, and the ADDED of an object of the same name then looks like a change of the old one, which is also
// what an operator sees that was away at the time. A cut comes after the matching event: no event is lost by it.
//
// # Nodes
//
// Faults of pods, nodes and images happen to machines that the gate knows nothing of: [Effects.Break] does it. With a match
// it is done before the call is sent, so that whatever the call brings about meets it. What lasts does not happen again while
// it lasts, and is set right when the fault is released, deleted or expires, or its time is over: [Faults.Release],
// [Faults.Disarm] and [Faults.Close] return after that.
package gate
