package settle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func node(ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
}

// TestRest checks that nothing can change where it cannot, and that each thing that still can is seen. The operator has reconciled a
// key, and ten seconds have passed.
func TestRest(t *testing.T) {
	loop := func(e trace.Event) trace.Event {
		e.Operator, e.Controller, e.Key = "zundoko", "hikawa", trace.Key{Namespace: "ns", Name: "a"}
		return e
	}
	ready := loop(trace.Event{Kind: trace.KindEnqueue})
	timer := func(after time.Duration) trace.Event {
		return loop(trace.Event{Kind: trace.KindRequeue, Delay: after})
	}
	object := trace.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "a"}
	write := trace.Event{Kind: trace.KindCall, Verb: trace.VerbCreate, Object: object}
	lease, recorded := write, write
	lease.Object.Kind, recorded.Via = "Lease", trace.ViaRecorder
	crash := trace.Event{Kind: trace.KindFault, Operator: "zundoko", Values: trace.FaultPayload{Kind: trace.FaultCrash, Of: []string{"1s"}}.Values()}
	starting := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	for name, test := range map[string]struct {
		events []trace.Event // before the ten seconds
		late   []trace.Event // after them
		within time.Duration // default: a minute
		pods   []client.Object
		node   corev1.ConditionStatus // default: ready
		rests  bool
	}{
		"nothing happens":                    {rests: true},
		"a key is ready":                     {events: []trace.Event{ready}},
		"a reconcile runs":                   {events: []trace.Event{ready, loop(trace.Event{Kind: trace.KindDequeue, Reconcile: 1})}},
		"a timer runs out in time":           {events: []trace.Event{timer(30 * time.Second)}},
		"a timer runs out too late":          {events: []trace.Event{timer(2 * time.Minute)}, rests: true},
		"a timer runs out after the timeout": {events: []trace.Event{timer(30 * time.Second)}, within: 10 * time.Second, rests: true},
		"somebody writes":                    {late: []trace.Event{write}},
		"somebody renews a lease":            {late: []trace.Event{lease}, rests: true},
		"an Event is recorded":               {late: []trace.Event{recorded}, rests: true},
		"an event is delivered":              {late: []trace.Event{{Kind: trace.KindWatch, Operator: "zundoko", Object: object}}},
		"the operator is paused":             {events: []trace.Event{{Kind: trace.KindControl, Operator: "zundoko", Verb: trace.VerbPause}}},
		"the operator is down":               {events: []trace.Event{{Kind: trace.KindOperator, Operator: "zundoko", Verb: trace.VerbStop}}},
		"the operator is back after a crash": {events: []trace.Event{crash, {Kind: trace.KindOperator, Operator: "zundoko", Verb: trace.VerbStart}}, rests: true},
		"the operator has crashed":           {events: []trace.Event{crash}},
		"a pod starts":                       {pods: []client.Object{starting}},
		"a node is lost":                     {node: corev1.ConditionUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			journal := trace.New(trace.Options{Now: func() time.Time { return now }})
			for _, e := range test.events {
				journal.Append(e)
			}
			now = now.Add(10 * time.Second)
			for _, e := range test.late {
				journal.Append(e)
			}
			if test.node == "" {
				test.node = corev1.ConditionTrue
			}
			if test.within == 0 {
				test.within = time.Minute
			}
			reader := fake.NewClientBuilder().WithObjects(append(test.pods, node(test.node))...).Build()
			rest := NewRest(journal, reader, []string{"zundoko"})
			if got := rest.Until(t.Context(), test.within); got != test.rests {
				t.Errorf("at rest: %v, queue %+v, running %d", got, rest.timeline.Tip().Queue(), len(rest.timeline.Tip().Running()))
			}
		})
	}
}
