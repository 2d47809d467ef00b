package settle

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// settled returns a Deployment with one pod that is ready, through its ReplicaSet, and a StatefulSet with another one.
func settled() *workloadsOf {
	kinds := map[types.UID]string{"deployment": "Deployment", "replicaset": "ReplicaSet", "statefulset": "StatefulSet", "cr": "Site"}
	owned := func(name string, by types.UID) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 2, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: kinds[by], UID: by, Controller: new(true)},
		}}
	}
	ready := corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	w := &workloadsOf{}
	w.deployments.Items = []appsv1.Deployment{{
		ObjectMeta: owned("deployment", "cr"), Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1},
	}}
	w.replicaSets.Items = []appsv1.ReplicaSet{{
		ObjectMeta: owned("replicaset", "deployment"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(1))},
		Status: appsv1.ReplicaSetStatus{ObservedGeneration: 2, Replicas: 1, ReadyReplicas: 1},
	}}
	w.statefulSets.Items = []appsv1.StatefulSet{{
		ObjectMeta: owned("statefulset", "cr"), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(1))},
		Status: appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 1, ReadyReplicas: 1, CurrentRevision: "a", UpdateRevision: "a"},
	}}
	w.pods.Items = []corev1.Pod{
		{ObjectMeta: owned("pod", "replicaset"), Status: ready}, {ObjectMeta: owned("member", "statefulset"), Status: ready},
	}
	return w
}

// TestWorkloadsMove checks what is at rest, and that each thing that is about to change is seen.
func TestWorkloadsMove(t *testing.T) {
	if settled().moves() {
		t.Error("what is at rest moves")
	}
	for name, test := range map[string]struct {
		change func(w *workloadsOf)
		moves  bool
	}{
		"a new generation of a Deployment": {func(w *workloadsOf) { w.deployments.Items[0].Generation++ }, true},
		"a pod too few":                    {func(w *workloadsOf) { *w.deployments.Items[0].Spec.Replicas++ }, true},
		"a ReplicaSet is behind its pods":  {func(w *workloadsOf) { w.replicaSets.Items[0].Status.ReadyReplicas-- }, true},
		"a Deployment is behind":           {func(w *workloadsOf) { w.deployments.Items[0].Status.ReadyReplicas-- }, true},
		"a Deployment is gone":             {func(w *workloadsOf) { w.deployments.Items = nil }, true},
		"a StatefulSet is gone":            {func(w *workloadsOf) { w.statefulSets.Items = nil }, true},
		"a Deployment rolls":               {func(w *workloadsOf) { w.deployments.Items[0].Status.Replicas++ }, true},
		"a StatefulSet rolls":              {func(w *workloadsOf) { w.statefulSets.Items[0].Status.UpdateRevision = "b" }, true},
		"a StatefulSet is behind its pods": {func(w *workloadsOf) { w.statefulSets.Items[0].Status.ReadyReplicas-- }, true},
		"a pod starts":                     {func(w *workloadsOf) { w.pods.Items[0].Status = corev1.PodStatus{Phase: corev1.PodPending} }, true},
		"a pod ends":                       {func(w *workloadsOf) { w.pods.Items[0].DeletionTimestamp = &metav1.Time{} }, true},
		"a Job works":                      {func(w *workloadsOf) { w.jobs.Items = []batchv1.Job{{Status: batchv1.JobStatus{Active: 1}}} }, true},
		"a Job is done":                    {func(w *workloadsOf) { w.jobs.Items = []batchv1.Job{{Status: batchv1.JobStatus{Succeeded: 1}}} }, false},
		"a pod of nobody has failed": {func(w *workloadsOf) {
			w.pods.Items = append(w.pods.Items, corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}})
		}, false},
		"no node has room for a pod": {func(w *workloadsOf) {
			w.pods.Items = append(w.pods.Items, corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
			}}})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := settled()
			test.change(w)
			if w.moves() != test.moves {
				t.Errorf("it moves: %v", w.moves())
			}
		})
	}
}
