// Package fault injects faults. It is the transport between one operator and the API server: calls and watches fail
// here, at the call or event that a [v1alpha1.FaultSpec] names, and the operator cannot tell it from a real failure.
//
// [Faults] is the set of faults of a lab. [Faults.Injector] makes an injector for one run of one operator. [Injector.Wrap] puts it
// between an operator in this process and the API server, [Proxy] does so for an operator in another process:
//
//	faults := fault.NewFaults(fault.FaultsOptions{Journal: journal, Seed: seed, Effects: lab})
//	config.Wrap(faults.Injector("zundoko").Wrap)
//	err := faults.Arm("kill-2", v1alpha1.FaultSpec{Crash: &v1alpha1.CrashFault{}, Match: …})
//
// # Which calls count
//
// Calls are counted as they arrive, whatever their outcome: a write that the API server refuses is a match too. Never
// matched are leases, Events, discovery, reviews of access and of tokens, dry runs, connections into pods, the lab's
// own API, and requests sent with [Outside]. A fault that has happened as often as it may counts no further matches.
//
// A create with a generateName matches by that prefix, or by a name that could be generated from it. A deletecollection
// is a delete without a name.
//
// # Fields
//
// A create changes the fields that it sets; a delete changes none. An update changes the fields that differ from the
// object in the API server at that moment, which the injector reads with the operator's credentials; a field that the API
// server ignores in that write, such as the status in an update of the main resource, is compared all the same. A patch
// or an apply changes the fields that it names, even if they already have these values: the object is not read. Of
// watch events, ADDED changes the fields that the object has, DELETED none, and MODIFIED those that differ from the
// object one resourceVersion before.
//
// # Watches
//
// Watches are requested in JSON, so that a fault armed later can still inspect them; one that is answered in another
// format can only be cut. The initial events of a WatchList are the state, not changes, and are neither counted nor
// disturbed; nor are the answers to lists. An event that reaches an operator by several streams, or again after a
// stream was cut, is one match and is treated the same each time. An event that is left out stays unknown until the
// next event of its object or the next list: a DELETED that is left out leaves the object in the informer's cache, and
// the ADDED of an object of the same name then looks like a change of the old one. An operator that was disconnected at
// that time sees the same. A cut comes after the matching event: no event is lost by it.
//
// # Older views
//
// A stale fault answers the operator's lists of a resource at an older revision, with resourceVersionMatch=Exact, and
// watches from there; events that are newer are held up until it is over. So an informer that is new, or that goes on,
// sees what was. A get of one object, and a list that asks for something newer or, without a resourceVersion, for the
// newest, are answered as they are. So would be the initial events of a watch that asks for the newest, as informers of
// newer clients do; they are answered with what was all the same, because those of older clients ask with
// resourceVersion=0, which an API server that lags behind may answer with what was.
//
// # Nodes
//
// Faults of pods, nodes and images affect machines that the injector does not know: [Effects.Break] injects them. With a
// match that is done before the call is sent, so that the fault also affects whatever the call causes. A lasting fault
// does not happen again while it lasts. It is repaired when the fault is released, deleted or expires, or when its time
// is over; [Faults.Release], [Faults.Disarm] and [Faults.Close] return after the repair.
package fault
