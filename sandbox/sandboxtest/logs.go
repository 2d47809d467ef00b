package sandboxtest

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// LogJournal logs the last events of a journal if the test fails.
func LogJournal(tb testing.TB, journal *trace.Journal) {
	tb.Helper()
	const last = 60
	tb.Cleanup(func() {
		if !tb.Failed() {
			return
		}
		events := journal.Since(0)
		for _, e := range events[max(0, len(events)-last):] {
			tb.Logf("%4d %-8s #%-3d %s %s %s %s %s %s", e.Seq, e.Kind, e.Reconcile, e.Actor, e.Verb, e.Object, e.Reason, e.Message, e.Error)
		}
	})
}

// LogPods logs the states of a namespace's pods, and the ends of their logs, if the test fails.
func LogPods(tb testing.TB, config *rest.Config, namespace string) {
	tb.Helper()
	tb.Cleanup(func() {
		if !tb.Failed() {
			return
		}
		ctx := context.WithoutCancel(tb.Context())
		clients, err := kubernetes.NewForConfig(config)
		if err != nil {
			return
		}
		pods, err := clients.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		lines := int64(12)
		for _, pod := range pods.Items {
			tb.Logf("Pod %s on %s is %s, deleted %v: %+v %+v", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.DeletionTimestamp,
				pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
			for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
				o := &corev1.PodLogOptions{Container: c.Name, TailLines: &lines}
				if end, err := clients.CoreV1().Pods(namespace).GetLogs(pod.Name, o).DoRaw(ctx); err == nil {
					tb.Logf("the log of %s in %s ends with\n%s", c.Name, pod.Name, end)
				}
			}
		}
	})
}
