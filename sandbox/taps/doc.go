//go:build go1.23

// Package taps observes and controls an ordinary controller-runtime operator through options that any manager accepts,
// and appends what it sees to a [trace.Journal]. The operator's own code needs no change:
//
//	t := taps.New(journal, taps.Options{Operator: "zundoko"})
//	mgr, err := ctrl.NewManager(t.RESTConfig(cfg), t.ManagerOptions(ctrl.Options{Scheme: scheme}))
//	err = zundoko.SetupWithManager(t.Manager(mgr), …)
//	err = mgr.Start(ctx)
//
// If the operator lets its caller set controller options, [Taps.ControllerOptions] does what [Taps.Manager] does,
// without reflection.
//
// What is wrapped, and what that shows:
//
//   - the manager's cache: watch events, and the keys that each did or did not make;
//   - the work queue: enqueue, merge, order, timers, back-off; pause and step;
//   - the manager's client: every call, from the cache or the API server; holding writes;
//   - the transport: what really reached the API server, with which status;
//   - the logger: the operator's lines, panics, and which reconcile they belong to.
//
// Of a program that is no controller-runtime operator, or is not built here, [Taps.Recorder] sees the requests, in a proxy
// before the API server.
//
// Only the work queue differs from what the operator would have without taps. It follows the semantics of
// controller-runtime's priority queue (a test compares the two), even if the operator turned that off, does not feed
// the workqueue_* metrics, and replaces a queue that the operator brings itself. Controllers whose requests are not
// reconcile.Request are not observed.
package taps
