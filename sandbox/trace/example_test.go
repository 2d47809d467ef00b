package trace_test

import (
	"fmt"
	"log"
	"os"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// A journal that 'operator-lab run --record' wrote is read, and the reconciles in it that failed are explained.
func ExampleTimeline() {
	file, err := os.Open("testdata/tour.jsonl")
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = file.Close() }()
	journal, _, err := trace.Load(file, trace.Options{})
	if err != nil {
		log.Panic(err)
	}
	timeline := trace.NewTimeline(journal)
	timeline.Update()
	for _, e := range journal.Since(0) {
		if e.Kind == trace.KindEnd && e.Failed() {
			state := timeline.At(e.Seq) // as it was then
			fmt.Println(state.Why(e, trace.English))
		}
	}
	// Output:
	// #7 ran because Secret flaky was added by its own create in #6. It failed: the choir is late. It will run again in 5ms (try 1).
	// #8 ran because #7 failed and its back-off of 5ms ran out (try 1). It failed: the choir is late. It will run again in 10ms (try 2).
	// #9 ran because #8 failed and its back-off of 10ms ran out (try 2). It failed: the choir is late. It will run again in 20ms (try 3).
	// #12 ran because Secret broken was added by its own create in #11. It failed: terminal error: no such word. It will not be retried.
}

// Events are appended as they happen, and printed as a paragraph for each reconcile when it has ended.
func ExamplePrinter() {
	journal := trace.New(trace.Options{})
	key := trace.Key{Namespace: "default", Name: "web"}
	object := trace.Ref{Kind: "ConfigMap", Namespace: "default", Name: "web"}
	reconcile := journal.NewReconcile()
	for _, e := range []trace.Event{
		{Kind: trace.KindDequeue},
		{Kind: trace.KindStart},
		{Kind: trace.KindCall, Verb: trace.VerbGet, Object: object, Source: trace.Cache, ResourceVersion: "7"},
		{Kind: trace.KindCall, Verb: trace.VerbUpdate, Object: object, ResourceVersion: "8"},
		{Kind: trace.KindEnd, Outcome: trace.OutcomeDone},
	} {
		e.Operator, e.Controller, e.Key, e.Reconcile = "keeper", "configmap", key, reconcile
		journal.Append(e)
	}
	if err := trace.NewPrinter(os.Stdout, journal, trace.PrintOptions{HideTimes: true}).Update(); err != nil {
		log.Panic(err)
	}
	// Output:
	// #1     configmap default/web     done           woken from outside
	//        read ConfigMap web (cache)   update ConfigMap web (rv 8)
}
