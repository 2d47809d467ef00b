package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/node"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// runs starts a pod on a node, and waits until its container runs.
func runs(t *testing.T, client kubernetes.Interface, name, on string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Name: "wait", Image: "registry.k8s.io/pause:3.10"}}},
	}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, name+" to run", func(ctx context.Context) error {
		p, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err == nil && p.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("it is %+v", p.Status)
		}
		return err
	})
}

// TestLostNode: it stays off until it is given its power back, whoever else wants what of it, and the sandbox can be stopped.
func TestLostNode(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	lab := start(t, sandbox.Options{Nodes: 2})
	client := clientset(t, lab)
	runs(t, client, "first", "node-1")
	runs(t, client, "second", "node-2")
	pid := lab.PIDs()["node-1"]
	for range 2 { // once more is not twice as lost
		if err := lab.Nodes().Lose("node-1"); err != nil {
			t.Fatal(err)
		}
	}
	sandboxtest.Eventually(t, "nothing to be left of its process", func(context.Context) error {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("process %d is there: %w", pid, err)
		}
		return nil
	})
	recorded := func(want func(pid int) bool) {
		t.Helper()
		sandboxtest.Eventually(t, "the record to have the node as it is", func(context.Context) error {
			record, err := sandbox.Lookup(stateDir, lab.Name())
			if err == nil && !want(record.Children["node-1"]) {
				err = fmt.Errorf("it has %v", record.Children)
			}
			return err
		})
	}
	recorded(func(now int) bool { return now == 0 })
	if err := errors.Join(lab.Nodes().Restart("node-1"), lab.Kill("node-1"), lab.Nodes().Await(t.Context())); err != nil {
		t.Error(err)
	}
	// What is said meanwhile holds for it, too; those that are up do it at once.
	if err := lab.Nodes().SetTroubles([]node.Trouble{{Crash: true, CrashCode: 7}}); err != nil {
		t.Fatal(err)
	}
	killed, err := lab.Nodes().KillContainers(node.Match{Namespace: "default"}, node.ReasonOOMKilled)
	if err != nil || strings.Join(killed, " ") != "default/second/wait" {
		t.Errorf("killed were %v, %v", killed, err)
	}
	if err := lab.Nodes().Return("node-1"); err != nil {
		t.Fatal(err)
	}
	if err := lab.Nodes().Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	recorded(func(now int) bool { return now == lab.PIDs()["node-1"] && now != 0 && now != pid })
	sandboxtest.Eventually(t, "the first pod to crash", func(ctx context.Context) error {
		p, err := client.CoreV1().Pods("default").Get(ctx, "first", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range p.Status.ContainerStatuses {
			for _, s := range []corev1.ContainerState{c.State, c.LastTerminationState} {
				if s.Terminated != nil && s.Terminated.ExitCode == 7 {
					return nil
				}
			}
		}
		return fmt.Errorf("it is %+v", p.Status)
	})
	if err := lab.Nodes().Lose("node-2"); err != nil {
		t.Fatal(err)
	}
	if err := lab.Stop(); err != nil {
		t.Errorf("stop with a lost node: %v", err)
	}
	if err := lab.Nodes().Lose("node-1"); err != nil {
		t.Errorf("lose a node that is stopped: %v", err)
	}
}

func TestLoseNobody(t *testing.T) {
	lab := shared.Get(t)
	var problem *sandbox.Problem
	for _, name := range []string{"node-1", "etcd", ""} {
		if err := lab.Nodes().Lose(name); !errors.As(err, &problem) || !strings.Contains(problem.Hint, "it has none") {
			t.Errorf("lose %q, which is none: %v", name, err)
		}
	}
	if err := errors.Join(lab.Nodes().SetTroubles(nil), lab.Nodes().Await(t.Context())); err != nil {
		t.Error(err)
	}
}
