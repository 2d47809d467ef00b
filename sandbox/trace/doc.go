//go:build go1.23

// Package trace is the journal: an ordered, bounded, in-memory record of everything the lab observes about a reconcile
// loop, with functions to read it.
//
// Writers (the taps of an operator, the lab itself, you) call [Journal.Append]. Readers (the terminal UI, the plain
// printer, JSON lines, checks) poll [Journal.Since]; they never slow a writer down. Everything shown to a person is
// computed from the journal alone:
//
//   - [Timeline] folds the events into a [State], at the newest event or at any
//     earlier one: rewinding is moving a cursor.
//   - [Timeline.Why] says in one sentence why a reconcile ran, in English or Japanese.
//   - [Printer] prints one short paragraph per reconcile.
//   - [Journal.Save] and [Load] write and read it as JSON lines.
//
// Besides the standard library the package uses only the widths of characters, and it knows no Kubernetes types: objects
// are raw JSON.
package trace
