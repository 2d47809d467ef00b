// Package durability tests whether a key-value store stays linearizable while everything around it breaks.
//
// Clients write and read through a Service, as an application does, and record every request, its time and its
// answer. The resulting history is linearizable if there is an order of all operations in which each happened at one
// moment between its start and its end, and every read returned the value of the last write before it. A lost
// acknowledged write, a stale read, or an old value that reappears violates it. It is checked with
// github.com/anishathalye/porcupine.
//
// Beside them, a test watches the changes of etcd's members. All of the package is test code: 'make durability' runs it for
// as long as is wanted, 'make bench' measures.
package durability
