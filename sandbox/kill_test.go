package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestKill kills a program more often than one may die by itself, each while it is starting again, and two at once.
func TestKill(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	var mu sync.Mutex
	var exits []sandbox.Exit
	lab := start(t, sandbox.Options{OnExit: func(e sandbox.Exit) {
		mu.Lock()
		defer mu.Unlock()
		exits = append(exits, e)
	}})
	client := clientset(t, lab)
	for _, program := range sandbox.Programs() {
		times := 2
		if program == "kube-scheduler" {
			times = 7 // which takes the least time
		}
		for range times {
			if err := lab.Kill(program); err != nil {
				t.Fatal(err)
			}
		}
		usable(t, lab, client, program)
	}
	var both sync.WaitGroup
	for _, program := range []string{"etcd", "kube-apiserver"} {
		both.Go(func() {
			if err := lab.Kill(program); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	usable(t, lab, client, "both")
	mu.Lock()
	defer mu.Unlock()
	for _, program := range sandbox.Programs() {
		if !slices.ContainsFunc(exits, func(e sandbox.Exit) bool { return e.Program == program && e.Restarted }) {
			t.Errorf("nobody was told of the death of %s", program)
		}
	}
	if i := slices.IndexFunc(exits, func(e sandbox.Exit) bool { return !e.Restarted }); i >= 0 {
		t.Errorf("the sandbox gave up: %+v", exits[i])
	}
}

// usable waits until a sandbox can be written to, and has not given up.
func usable(t *testing.T, lab *sandbox.Sandbox, client kubernetes.Interface, name string) {
	t.Helper()
	sandboxtest.Eventually(t, "the sandbox to be usable after "+name+" was killed", func(ctx context.Context) error {
		select {
		case <-lab.Done():
			t.Fatalf("the sandbox gave up after %s was killed: %v", name, lab.Err())
		default:
		}
		for _, program := range sandbox.Programs() {
			if lab.PIDs()[program] == 0 {
				return fmt.Errorf("%s does not run", program)
			}
		}
		_, err := client.CoreV1().ConfigMaps("default").Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "after-"}}, metav1.CreateOptions{})
		return err
	})
}

func TestKillNobody(t *testing.T) {
	sandboxtest.Long(t)
	t.Parallel()
	lab := start(t, sandbox.Options{})
	err := lab.Kill("kubelet")
	var problem *sandbox.Problem
	if !errors.As(err, &problem) || !strings.Contains(problem.Hint, "kube-scheduler") {
		t.Errorf("kill a program that is none: %v", err)
	}
	if err := lab.Kill("olm-operator"); err == nil || !strings.Contains(err.Error(), "--olm") {
		t.Errorf("kill a program of OLM, which does not run: %v", err)
	}
	if err := lab.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, program := range sandbox.Programs() {
		if err := lab.Kill(program); err != nil {
			t.Errorf("kill %s, which is stopped: %v", program, err)
		}
	}
	select {
	case <-lab.Done():
		t.Errorf("a sandbox that was stopped has failed: %v", lab.Err())
	default:
	}
}
