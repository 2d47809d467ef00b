// Package settle tells whether anything in a cluster can still change by itself: an operator's keys and timers, and pods that start
// or end. verify waits for that before it compares, and an assert may give up because of it.
package settle

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// workloads are the kinds that change by themselves after they were written: their pods start, become ready and end.
var workloads = []string{"Pod", "ReplicaSet", "Deployment", "StatefulSet", "Job"}

// owners are the kinds of workloads that make others.
var owners = []schema.GroupVersionKind{
	appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), appsv1.SchemeGroupVersion.WithKind("Deployment"),
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"), batchv1.SchemeGroupVersion.WithKind("Job"),
}

// HasWorkloads reports whether a journal tells of workloads in a namespace.
func HasWorkloads(journal *trace.Journal, namespace string) bool {
	return slices.ContainsFunc(journal.Since(0), func(e *trace.Event) bool {
		return e.Object.Namespace == namespace && slices.Contains(workloads, e.Object.Kind)
	})
}

// Workloads watches the workloads of a namespace.
type Workloads struct {
	// Reader reads without a cache.
	Reader client.Reader
	// Namespace is the only namespace that is looked at. Default: all.
	Namespace string
	// Patience is how long workloads that are not as they are to be must not have changed to be taken for stuck: an image that is
	// not there, a container that waits for something.
	Patience time.Duration

	versions map[types.UID]string
	changed  time.Time // when versions became what they are
}

// AtRest reports whether the workloads are as they are to be, and their statuses say so, or whether they have been stuck for a while.
func (w *Workloads) AtRest(ctx context.Context) (bool, error) {
	now, err := workloadsIn(ctx, w.Reader, w.Namespace)
	if err != nil {
		return false, err
	}
	if versions := now.versions(); !maps.Equal(versions, w.versions) {
		w.versions, w.changed = versions, time.Now()
	}
	return !now.moves() || time.Since(w.changed) > w.Patience, nil
}

// Versions returns the resource versions of the workloads as AtRest has last seen them.
func (w *Workloads) Versions() map[types.UID]string { return w.versions }

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

// orphans reports whether a workload belongs to another one that is gone: the garbage collector is about to delete it.
func (w *workloadsOf) orphans() bool {
	there, found := w.versions(), false
	for _, list := range w.lists() {
		// No error: what is in these lists is an object.
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			o, err := meta.Accessor(item)
			if err != nil {
				return err
			}
			if owner := metav1.GetControllerOfNoCopy(o); owner != nil && slices.Contains(owners, schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)) {
				if _, is := there[owner.UID]; !is {
					found = true
				}
			}
			return nil
		})
	}
	return found
}

// moves reports whether a workload is not as it is to be, or its status not as its parts are.
func (w *workloadsOf) moves() bool {
	if w.orphans() {
		return true
	}
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
		if r.DeletionTimestamp != nil || r.Status.ObservedGeneration < r.Generation || r.Status.Replicas != ptr.Deref(r.Spec.Replicas, 1) || r.Status.ReadyReplicas != ready[r.UID] ||
			ptr.Deref(r.Status.TerminatingReplicas, 0) > 0 { // pods that end are counted above: this number is old
			return true
		}
		if owner := metav1.GetControllerOf(r); owner != nil {
			ready[owner.UID] += r.Status.ReadyReplicas
		}
	}
	for i := range w.deployments.Items {
		d := &w.deployments.Items[i]
		if d.DeletionTimestamp != nil || d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas != ptr.Deref(d.Spec.Replicas, 1) ||
			d.Status.Replicas != d.Status.UpdatedReplicas || d.Status.ReadyReplicas != ready[d.UID] || d.Status.AvailableReplicas != d.Status.ReadyReplicas ||
			ptr.Deref(d.Status.TerminatingReplicas, 0) > 0 {
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
