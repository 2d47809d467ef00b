package sandbox

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// renewPods resets the status of pods that ran or were starting and whose containers are never restarted, so that they
// start again. The kubelet, which finds no container of them, would mark them as failed: right after a power cut, wrong
// after an undo. It must be called before the kubelets run. It returns the pods that ran.
func (c *Checkpoints) renewPods(ctx context.Context) (ran []types.NamespacedName, err error) {
	client, err := kubernetes.NewForConfig(c.box.admin)
	if err != nil {
		return nil, err
	}
	if err := c.awaitReady(ctx, client); err != nil {
		return nil, err
	}
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.restartPolicy=Never,spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"})
	if err != nil {
		return nil, fmt.Errorf("list the pods whose containers are never started again: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase == corev1.PodRunning {
			ran = append(ran, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: pod.Status.QOSClass}
		_, err := client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("have the pod %s/%s begin anew: %w", pod.Namespace, pod.Name, err)
		}
	}
	return ran, nil
}

// podPatience limits the wait for pods to run again after an undo. A pod that does not is no error: it may itself wait
// for something.
const podPatience = 20 * time.Second

// awaitRunning returns when the pods run again. Before that their state is not restored: a power cut, for example,
// would find nothing that could fail.
func (c *Checkpoints) awaitRunning(ctx context.Context, pods []types.NamespacedName) error {
	client, err := kubernetes.NewForConfig(c.box.admin)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, podPatience)
	defer cancel()
	for _, key := range pods {
		for limited.Err() == nil {
			pod, err := client.CoreV1().Pods(key.Namespace).Get(limited, key.Name, metav1.GetOptions{})
			if err == nil && pod.Status.Phase != corev1.PodPending || apierrors.IsNotFound(err) {
				break
			}
			select {
			case <-limited.Done():
			case <-c.box.done:
				return c.box.Err()
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return ctx.Err()
}

// awaitReady returns when the API server is ready.
func (c *Checkpoints) awaitReady(ctx context.Context, client kubernetes.Interface) error {
	for {
		var code int
		client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
		if code == http.StatusOK {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.box.done:
			return c.box.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
