package sandbox

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// renewPods has the pods that ran or were starting, and whose containers are never started again, be ones that have yet to start. For the
// kubelet, which finds no container of them, they would have failed: that is right after a power cut, and wrong after an
// undo. It has to be called before the kubelets run.
func (s *Sandbox) renewPods(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.admin)
	if err != nil {
		return err
	}
	if err := s.awaitReady(ctx, client); err != nil {
		return err
	}
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.restartPolicy=Never,spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"})
	if err != nil {
		return fmt.Errorf("list the pods whose containers are never started again: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: pod.Status.QOSClass}
		_, err := client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("have the pod %s/%s begin anew: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// awaitReady returns when the API server has all that it serves.
func (s *Sandbox) awaitReady(ctx context.Context, client kubernetes.Interface) error {
	for {
		var code int
		client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
		if code == http.StatusOK {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return s.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
