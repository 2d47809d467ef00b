package lab

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// effects implements [fault.Effects] for the faults of an epoch.
type effects struct {
	lab   *Lab
	epoch *epoch
	nodeEffects
}

// Crash ends a run of an operator.
func (e *effects) Crash(operator string, restartAfter time.Duration) {
	if sv := e.lab.supervisor(operator); sv != nil && sv.epoch == e.epoch {
		sv.crash(restartAfter)
	}
}

// lastWords is how long the API server may still answer the client that created the fault which kills it. It needs a
// few milliseconds; without this delay, on a busy machine, the answer may come too late, and kubectl would only print
// EOF.
const lastWords = 500 * time.Millisecond

// Kill ends a program of the control plane.
func (e *effects) Kill(program string) error {
	if program == "kube-apiserver" {
		pause(e.epoch.ctx, lastWords)
	}
	return e.lab.options.Kill(program)
}

// How long a timer runs at most that AwaitDone waits for, as after an error, how many times it waits for one, since some operators
// look again for ever, and how often it looks whether an event was delivered.
const (
	soon      = 100 * time.Millisecond
	retries   = 3
	lookEvery = time.Millisecond
)

// AwaitDone waits for an operator to have dealt with an event, or, without a version, with all that it has heard of. An operator that is
// paused has, as far as it may.
func (e *effects) AwaitDone(ctx context.Context, operator, kind, version string) {
	journal := e.epoch.journal
	heard := func(event *trace.Event) bool {
		return event.Kind == trace.KindWatch && event.Operator == operator && event.Object.Kind == kind
	}
	if version != "" && slices.ContainsFunc(journal.Since(0), heard) {
		operatorhost.AwaitEvent(ctx, journal, 0, func(event *trace.Event) bool { return heard(event) && event.ResourceVersion == version })
	}
	timeline := trace.NewTimeline(journal)
	for tried := 0; operatorhost.AwaitStill(ctx, journal, kind) == nil; {
		delivering := e.lab.Delivering(operator)
		timeline.Update() // after that: what comes of the events that all controllers have had is in it
		due, waits := timeline.Tip().NextTimer(journal.Elapsed())
		switch {
		case delivering || !operatorhost.IsStill(timeline.Tip()):
			pause(ctx, lookEvery)
		case waits && due <= soon && tried < retries:
			tried++
			pause(ctx, due+lookEvery)
		default:
			return
		}
	}
}

// somebody is the second writer's user agent: its name in the audit log, and so in the journal.
const somebody = "somebody-else"

// PatchAsOther patches an object as the second writer.
func (e *effects) PatchAsOther(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, patch []byte) error {
	config := e.lab.options.Cluster.Config()
	config.UserAgent = somebody
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.Resource(resource).Namespace(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: somebody})
	return err
}
