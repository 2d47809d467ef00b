// Package durability finds out whether a store of keys and values keeps its word while everything around it breaks.
//
// [Clients] write and read through a Service, as an application does, and remember what they asked, when, and what they
// were told. The [History] of that is linearizable if there is an order of all operations in which each happened at one
// moment between its begin and its end, and every read returned what the last write before it wrote. A write that was
// acknowledged and lost, a stale read, a value that comes back: each breaks it. The judge is
// github.com/anishathalye/porcupine.
//
// A [Membership] watches how etcd's members come and go.
package durability
