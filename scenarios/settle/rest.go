package settle

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

const (
	// quietFor is how long nothing may have changed. What Kubernetes' controllers answer to a change comes sooner.
	quietFor = 2 * time.Second
	// stuckFor is longer than the longest pause of a container that crashes, which is 10 s here.
	stuckFor = 12 * time.Second
	// askEvery is how often the cluster is asked.
	askEvery = 250 * time.Millisecond
)

// Rest tells whether anything can still change by itself, in a lab whose journal tells of all operators. It cannot see what programs
// in pods do until the kubelet tells of it, as a container that is still ready and soon fails its probes.
type Rest struct {
	timeline  *trace.Timeline
	operators []string
	reader    client.Reader
	workloads Workloads
	changed   time.Duration // when the journal last told of a change, since its start
	asked     time.Time     // when the cluster was asked, and the answer
	still     bool
}

// NewRest returns a Rest for operators, by name. The reader reads without a cache.
func NewRest(journal *trace.Journal, reader client.Reader, operators []string) *Rest {
	return &Rest{
		timeline: trace.NewTimeline(journal), operators: operators, reader: reader,
		workloads: Workloads{Reader: reader, Patience: stuckFor},
	}
}

// Until reports whether nothing can change within a time: all operators run, have nothing to do, and no timer that runs out before;
// the workloads and the nodes are at rest; and nobody has changed anything for a while. If the cluster does not answer, that is not
// known, and so false.
func (r *Rest) Until(ctx context.Context, within time.Duration) bool {
	for _, e := range r.timeline.Update() {
		if tellsOfChange(e) {
			r.changed = e.At
		}
	}
	now := r.timeline.Journal().Elapsed()
	return now-r.changed >= quietFor && r.loopsRest(now+within) && r.clusterRests(ctx)
}

// tellsOfChange reports whether something changed: an object, what an operator was told of, or an operator itself.
func tellsOfChange(e *trace.Event) bool {
	return slices.Contains([]trace.Kind{trace.KindWatch, trace.KindFault, trace.KindOperator, trace.KindControl}, e.Kind) || IsChange(e)
}

// loopsRest reports whether no operator does anything before a time.
func (r *Rest) loopsRest(until time.Duration) bool {
	state := r.timeline.Tip()
	for _, operator := range r.operators {
		if mode := state.ModeOf(operator); mode.Down || mode.Paused || mode.HoldWrites || mode.Gated { // the queue of a gated one is not known
			return false
		}
	}
	return len(state.Running()) == 0 && !slices.ContainsFunc(state.Queue(), func(i *trace.Item) bool {
		return i.Ready || i.Due < until
	})
}

// clusterRests reports whether the workloads and the nodes are at rest.
func (r *Rest) clusterRests(ctx context.Context) bool {
	if time.Since(r.asked) < askEvery {
		return r.still
	}
	r.asked = time.Now()
	var nodes corev1.NodeList
	still, err := r.workloads.AtRest(ctx)
	if err == nil && still {
		err = r.reader.List(ctx, &nodes)
	}
	r.still = err == nil && still && !slices.ContainsFunc(nodes.Items, isLost)
	return r.still
}

// isLost reports whether a node is not ready: its pods leave it soon.
func isLost(n corev1.Node) bool {
	return !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
