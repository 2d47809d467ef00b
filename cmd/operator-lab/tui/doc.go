// Package tui is the terminal UI: it shows a reconcile loop, live or recorded.
//
// What always holds:
//
//   - Every fact on the screen is computed from the journal (sandbox/trace) and
//     from nothing else. A frame is a pure function of the journal at the
//     cursor, the selection, the size and the theme.
//   - A frame is exactly h lines of exactly w cells, whatever w and h are.
//   - No meaning by colour alone: each state has a word or a mark too.
//   - A key that does nothing says why.
//   - Nothing here can slow the loop that is watched: the journal is polled on a
//     tick, and nothing in Update waits for the cluster.
//   - Rewinding moves a cursor; it undoes nothing, and the screen says so.
//   - However it ends, the terminal is left as it was found.
//
// The pages of a lesson come from the caller, a [Guide]; all else comes from the journal.
//
// [Run] has one Bubble Tea model, [Model], which takes messages and puts the
// screen together. The data it shows is the state: the journal at the cursor, and
// what the user looks at. Each numbered pane is a type that draws the state into a
// rectangle and moves its own selection; what lies across the screen, such as the
// header, is a bar. Keys are in keys.go, and what they do in act.go, navigate.go,
// menu.go, edit.go and guided.go. [Pick] has a model of its own: a list to pick a
// lesson from. [Plain] renders the text of a lesson for other places than the screen.
//
// Callers use [Run]; it is the only importer of Bubble Tea, and knows no
// Kubernetes.
package tui
