package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestCordonedNodeComesBack starts a node again, and its sandbox, that was cordoned; and without nodes it is gone.
func TestCordonedNodeComesBack(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	const name = "cordoned"
	t.Cleanup(func() { _ = sandbox.Remove(stateDir, name) })
	lab := start(t, sandbox.Options{Name: name, Nodes: 1})
	c := clientset(t, lab)
	if _, err := c.CoreV1().Nodes().Patch(t.Context(), "node-1", types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := lab.Nodes().Restart("node-1"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), sandboxtest.Patience)
	defer cancel()
	if err := lab.Nodes().Await(ctx); err != nil {
		t.Fatal(err)
	}
	if err := lab.Stop(); err != nil {
		t.Fatal(err)
	}
	lab = start(t, sandbox.Options{Name: name, Nodes: 1})
	n, err := clientset(t, lab).CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
	if err != nil || !n.Spec.Unschedulable {
		t.Errorf("the node is %+v (%v)", n.Spec, err)
	}
	if err := lab.Stop(); err != nil {
		t.Fatal(err)
	}
	c = clientset(t, start(t, sandbox.Options{Name: name}))
	sandboxtest.Eventually(t, "the node to be gone", func(ctx context.Context) error {
		if _, err := c.CoreV1().Nodes().Get(ctx, "node-1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// TestVolumes mounts what would be this machine's files on a real node, and a part of a volume that is not there yet.
func TestVolumes(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "mine")
	if err := os.WriteFile(secret, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	lab := start(t, sandbox.Options{Nodes: 1})
	c := clientset(t, lab)
	pod := podOf("volumes")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: filepath.Dir(secret)}}},
		{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	main := &pod.Spec.Containers[0]
	main.Image, main.Ports = "busybox", nil
	main.Command = []string{"sh", "-c", "ls /host; rm -f /host/mine; echo yours > /host/yours; echo deep > /data/file; cat /whole/a/b/file"}
	main.VolumeMounts = []corev1.VolumeMount{
		{Name: "host", MountPath: "/host"}, {Name: "data", MountPath: "/data", SubPath: "a/b"}, {Name: "data", MountPath: "/whole"},
	}
	createPod(t, c, pod)
	awaitPod(t, c, "volumes", "to have ended", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	said, err := c.CoreV1().Pods("default").GetLogs("volumes", &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil || strings.TrimSpace(string(said)) != "deep" {
		t.Errorf("it says %q (%v)", said, err)
	}
	files, err := os.ReadDir(filepath.Dir(secret))
	if err != nil || len(files) != 1 || files[0].Name() != "mine" {
		t.Errorf("the person's files are %v (%v)", files, err)
	}
}

// TestHostNetwork has two pods ask for the same port of their node.
func TestHostNetwork(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	lab := start(t, sandbox.Options{Nodes: 1})
	c := clientset(t, lab)
	one, two := pagePod("one", nil), pagePod("two", nil)
	for _, pod := range []*corev1.Pod{one, two} {
		pod.Spec.HostNetwork = true
		pod.Spec.Containers[0].ReadinessProbe = nil
	}
	createPod(t, c, one)
	awaitPod(t, c, "one", "to be ready", isReady)
	createPod(t, c, two)
	awaitPod(t, c, "two", "to fail", waitingFor("CrashLoopBackOff"))
	said, err := c.CoreV1().Pods("default").GetLogs("two", &corev1.PodLogOptions{Previous: true}).DoRaw(t.Context())
	if err != nil || !strings.Contains(string(said), "address already in use") {
		t.Errorf("it says %q (%v)", said, err)
	}
	conn, err := lab.DialContext(t.Context(), "tcp", "172.18.0.2:8080")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}
