package sandbox_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// BenchmarkClaims is how long a claim takes from its creation to Bound, and a pod that is created at once with its claim to
// Ready.
func BenchmarkClaims(b *testing.B) {
	_, c := withNodes(b, 1)
	var bound, ready series
	for i := range max(b.N, podsMeasured) {
		claim, pod := claimOf(fmt.Sprint("claim-", i)), pagePod(fmt.Sprint("pod-", i), nil)
		bound.time(func() { createBound(b, c, claim) })
		claim.Name = fmt.Sprint("pod-", i)
		pod.Spec.Containers[0].ReadinessProbe = nil
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: fromClaim(claim.Name)}}
		ready.time(func() {
			_ = must(b, func() (*corev1.PersistentVolumeClaim, error) {
				return c.CoreV1().PersistentVolumeClaims("default").Create(b.Context(), claim, metav1.CreateOptions{})
			})
			createReady(b, c, pod)
		})
		check(b, c.CoreV1().Pods("default").Delete(b.Context(), pod.Name, metav1.DeleteOptions{}))
	}
	report(b, "claim-created-to-bound", bound)
	report(b, "pod-with-claim-to-ready", ready)
}

// createBound creates a claim, and returns when it is bound.
func createBound(b *testing.B, c kubernetes.Interface, claim *corev1.PersistentVolumeClaim) {
	claims := c.CoreV1().PersistentVolumeClaims("default")
	changes := must(b, func() (watch.Interface, error) {
		return claims.Watch(b.Context(), metav1.SingleObject(claim.ObjectMeta))
	})
	defer changes.Stop()
	_ = must(b, func() (*corev1.PersistentVolumeClaim, error) {
		return claims.Create(b.Context(), claim, metav1.CreateOptions{})
	})
	for event := range changes.ResultChan() {
		if now, ok := event.Object.(*corev1.PersistentVolumeClaim); ok && now.Status.Phase == corev1.ClaimBound {
			return
		}
	}
	b.Errorf("claim %s was not bound", claim.Name)
}
