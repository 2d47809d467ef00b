package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// workloads are the kinds that change by themselves after they were written: their pods start, become ready and end.
var workloads = []string{"Pod", "ReplicaSet", "Deployment", "StatefulSet", "Job"}

// hasWorkloads reports whether a journal tells of workloads in a namespace.
func hasWorkloads(journal *trace.Journal, namespace string) bool {
	return slices.ContainsFunc(journal.Since(0), func(e *trace.Event) bool {
		return e.Object.Namespace == namespace && slices.Contains(workloads, e.Object.Kind)
	})
}

// stuckAfter is how long workloads that are not as they are to be must not have changed to be taken for stuck: an image that is not
// there, a container that waits for something.
const stuckAfter = 3 * time.Second

// stillness watches the workloads of a namespace.
type stillness struct {
	reader    client.Reader
	namespace string
	versions  map[types.UID]string
	changed   time.Time // when versions became what they are
}

// look reports whether the workloads are at rest.
func (s *stillness) look(ctx context.Context) (still bool, err error) {
	w, err := workloadsIn(ctx, s.reader, s.namespace)
	if err != nil {
		return false, err
	}
	if now := w.versions(); !maps.Equal(now, s.versions) {
		s.versions, s.changed = now, time.Now()
	}
	return !w.moves() || time.Since(s.changed) > stuckAfter, nil
}

// workloadsOf are the workloads of a namespace.
type workloadsOf struct {
	pods         corev1.PodList
	replicaSets  appsv1.ReplicaSetList
	deployments  appsv1.DeploymentList
	statefulSets appsv1.StatefulSetList
	jobs         batchv1.JobList
}

func (w *workloadsOf) lists() []client.ObjectList {
	return []client.ObjectList{&w.deployments, &w.replicaSets, &w.statefulSets, &w.jobs, &w.pods}
}

func workloadsIn(ctx context.Context, reader client.Reader, namespace string) (*workloadsOf, error) {
	w := &workloadsOf{}
	for _, list := range w.lists() {
		if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list the workloads: %w", err)
		}
	}
	return w, nil
}

func (w *workloadsOf) versions() map[types.UID]string {
	out := map[types.UID]string{}
	for _, list := range w.lists() {
		// No error: what is in these lists is an object.
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			o, err := meta.Accessor(item)
			if err == nil {
				out[o.GetUID()] = o.GetResourceVersion()
			}
			return err
		})
	}
	return out
}

// moves reports whether a workload is not as it is to be, or its status not as its parts are.
func (w *workloadsOf) moves() bool {
	ready := map[types.UID]int32{} // parts that are ready, by owner
	for i := range w.pods.Items {
		p := &w.pods.Items[i]
		if podMoves(p) {
			return true
		}
		if owner := metav1.GetControllerOf(p); owner != nil && podIsReady(p) {
			ready[owner.UID]++
		}
	}
	for i := range w.replicaSets.Items {
		r := &w.replicaSets.Items[i]
		if r.DeletionTimestamp != nil || r.Status.ObservedGeneration < r.Generation || r.Status.Replicas != ptr.Deref(r.Spec.Replicas, 1) || r.Status.ReadyReplicas != ready[r.UID] {
			return true
		}
		if owner := metav1.GetControllerOf(r); owner != nil {
			ready[owner.UID] += r.Status.ReadyReplicas
		}
	}
	for i := range w.deployments.Items {
		d := &w.deployments.Items[i]
		if d.DeletionTimestamp != nil || d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas != ptr.Deref(d.Spec.Replicas, 1) ||
			d.Status.Replicas != d.Status.UpdatedReplicas || d.Status.ReadyReplicas != ready[d.UID] || d.Status.AvailableReplicas != d.Status.ReadyReplicas {
			return true
		}
	}
	for i := range w.statefulSets.Items {
		s := &w.statefulSets.Items[i]
		if s.DeletionTimestamp != nil || s.Status.ObservedGeneration < s.Generation || s.Status.Replicas != ptr.Deref(s.Spec.Replicas, 1) ||
			s.Status.CurrentRevision != s.Status.UpdateRevision || s.Status.ReadyReplicas != ready[s.UID] {
			return true
		}
	}
	return slices.ContainsFunc(w.jobs.Items, func(j batchv1.Job) bool { return j.DeletionTimestamp != nil || j.Status.Active > 0 })
}

// podMoves reports whether a pod is about to become ready, or to end.
func podMoves(p *corev1.Pod) bool {
	switch {
	case p.DeletionTimestamp != nil:
		return true
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || podIsReady(p):
		return false
	}
	return !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
	})
}

func podIsReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// awaitStill returns true when the workloads are at rest, and the operator has heard so, or false if it had to wait for that: then it
// may have something to do.
func (h *playHooks) awaitStill(ctx context.Context, s *stillness) (was bool, err error) {
	for was = true; ; was = false {
		still, err := s.look(ctx)
		if err != nil {
			return false, err
		}
		if still {
			break
		}
		select {
		case <-time.After(stillEvery):
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	h.awaitVersions(ctx, h.Lab.Journal(), s.versions)
	return was, nil
}

// stillEvery is how often the workloads are looked at.
const stillEvery = 50 * time.Millisecond

// awaitVersions returns when the operator has heard of these versions of the objects that it has heard of before, or after a while.
func (h *playHooks) awaitVersions(ctx context.Context, journal *trace.Journal, versions map[types.UID]string) {
	last := map[types.UID]string{}
	for _, e := range journal.Since(0) {
		if e.Kind == trace.KindWatch {
			last[types.UID(e.Object.UID)] = e.ResourceVersion
		}
	}
	ctx, cancel := context.WithTimeout(ctx, seenPatience)
	defer cancel()
	for uid, version := range versions {
		if seen, watched := last[uid]; watched && seen != version {
			await(ctx, journal, 0, func(e *trace.Event) bool {
				return e.Kind == trace.KindWatch && e.Object.UID == string(uid) && isNewer(e.ResourceVersion, version)
			})
		}
	}
}
