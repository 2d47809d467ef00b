package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// membersIn are the members of etcd that run in pods of a sandbox: processes that are called so and have their data there.
func membersIn(dir string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		b, err := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && bytes.HasPrefix(b, []byte("etcd\x00")) && bytes.Contains(b, []byte(dir)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestNothingIsLeftOfMembers kills a lab in which a member of etcd and a script with another one run.
func TestNothingIsLeftOfMembers(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	lab := launch(t, "up", "--name", "members")
	t.Cleanup(func() { _ = sandbox.Remove(stateDir, "members") })
	var record *sandbox.Record
	sandboxtest.Eventually(t, "the sandbox", func(context.Context) (err error) {
		if record, err = sandbox.Lookup(stateDir, "members"); err == nil && !record.Ready {
			err = errors.New(lab.said.String())
		}
		return err
	})
	access, err := record.Open()
	if err != nil {
		t.Fatal(err)
	}
	c := kubernetes.NewForConfigOrDie(access.Config())
	for name, command := range map[string][]string{
		"member": {"etcd", "--data-dir=/data"}, "script": {"/bin/sh", "-c", "etcd --data-dir=/data; echo it has ended"},
	} {
		pod := podOf(name)
		pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Command = "quay.io/coreos/etcd:v3.2.13", command
		pod.Spec.Containers[0].Ports = nil
		pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"etcdctl", "endpoint", "health"}},
		}}
		createPod(t, c, pod)
	}
	awaitPod(t, c, "member", "to be ready", isReady)
	awaitPod(t, c, "script", "to be ready", isReady)
	if err := exactly(2, membersIn(record.Dir)); err != nil {
		t.Fatal(err)
	}
	lab.kill()
	sandboxtest.Eventually(t, "all members to be gone", func(context.Context) error { return exactly(0, membersIn(record.Dir)) })
}
