package sandbox_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// scratchOf is where on this machine a pod's volume of kind emptyDir is, below a sandbox's directory or a checkpoint's.
func scratchOf(dir string, pod *corev1.Pod) string {
	return filepath.Join(dir, "nodes", pod.Spec.NodeName, "pods", string(pod.UID), "volumes", "kubernetes.io~empty-dir", "scratch")
}

func withScratch(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
		Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
	})
	main := &pod.Spec.Containers[0]
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "scratch", MountPath: "/scratch"})
	return pod
}

// keeper is a Deployment of one pod that keeps a word in a volume of its own, and another one in a claimed volume.
func keeper(t *testing.T, c kubernetes.Interface) (pod *corev1.Pod) {
	t.Helper()
	createClaim(t, c, claimOf("data"))
	// What is undone must not be mended by the script.
	script := "[ -f /data/word ] || { echo then > /scratch/word; echo then > /data/word; }; touch /tmp/begun; sleep 3600"
	template := withScratch(shellPod("keeper", script, fromClaim("data")))
	template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	template.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-f", "/tmp/begun"}}}, PeriodSeconds: 1,
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "keeper"}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: template.Labels}
	deployment.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec}
	if _, err := c.AppsV1().Deployments("default").Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, "the pod of the Deployment to be ready", func(ctx context.Context) error {
		pods, err := c.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "program=keeper"})
		if err == nil && (len(pods.Items) != 1 || !isReady(&pods.Items[0])) {
			err = fmt.Errorf("there are %d pods", len(pods.Items))
		}
		if err == nil {
			pod = &pods.Items[0]
		}
		return err
	})
	return pod
}

func word(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "word"))
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(string(b))
}

// TestRestoreOfNodes undoes what happened to pods, their files and their volumes; once the node is lost meanwhile.
func TestRestoreOfNodes(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	lab := start(t, sandbox.Options{Nodes: 1, Images: imagesFile(t), OnExit: func(e sandbox.Exit) { t.Errorf("somebody is alarmed: %+v", e) }})
	c := clientset(t, lab)
	kept := keeper(t, c)
	volume := awaitBound(t, lab, c, "data")
	createPod(t, c, podOf("stubborn"))
	stays := awaitPod(t, c, "stubborn", "to be ready", isReady)
	point := checkpoint(t, lab, "task")
	pods := c.CoreV1().Pods("default")
	for _, lost := range []bool{false, true} {
		for _, dir := range []string{scratchOf(lab.Dir(), kept), volume} {
			if err := os.WriteFile(filepath.Join(dir, "word"), []byte("spoilt"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		now := int64(0)
		background := metav1.DeletePropagationBackground
		if err := errors.Join(
			c.AppsV1().Deployments("default").Delete(t.Context(), "keeper", metav1.DeleteOptions{PropagationPolicy: &background}),
			c.CoreV1().PersistentVolumeClaims("default").Delete(t.Context(), "data", metav1.DeleteOptions{}),
			pods.Delete(t.Context(), "stubborn", metav1.DeleteOptions{GracePeriodSeconds: &now}),
		); err != nil {
			t.Fatal(err)
		}
		awaitNoDirectory(t, volume)
		later := podOf("stubborn")
		later.Name = "later"
		createPod(t, c, later)
		later = awaitPod(t, c, "later", "to be ready", isReady)
		if lost {
			if err := lab.Nodes().Lose("node-1"); err != nil {
				t.Fatal(err)
			}
		}

		restore(t, lab, point)

		for _, was := range []*corev1.Pod{kept, stays} {
			again := awaitPod(t, c, was.Name, "to run again", func(p *corev1.Pod) bool { return isReady(p) && p.Status.ContainerStatuses[0].RestartCount > 0 })
			if again.UID != was.UID {
				t.Errorf("%s is another pod", was.Name)
			}
		}
		if scratch, data := word(t, scratchOf(lab.Dir(), kept)), word(t, volume); scratch != "then" || data != "then" {
			t.Errorf("the volumes hold %q and %q", scratch, data)
		}
		if _, err := pods.Get(t.Context(), "later", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the pod that was made later: %v", err)
		}
		if _, err := os.Stat(filepath.Join(lab.Dir(), "nodes", "node-1", "pods", string(later.UID))); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("its directory: %v", err)
		}
		if err := exactly(1, processesOfTest(t)); err != nil { // none of the later pod
			t.Error(err)
		}
		awaitBound(t, lab, c, "data")
	}
}

// counts counts in two files: the second one is at most one behind.
func counts(ctx context.Context) int {
	var files [2]*os.File
	for i, name := range []string{"first", "second"} {
		f, err := os.Create(filepath.Join(os.Getenv("LAB_ROOT"), "scratch", name))
		if err != nil {
			return say(err.Error(), 1)
		}
		files[i] = f
	}
	for n := uint64(1); ctx.Err() == nil; n++ {
		for _, f := range files {
			if _, err := f.WriteAt(binary.BigEndian.AppendUint64(nil, n), 0); err != nil {
				return say(err.Error(), 1)
			}
		}
		if n == 1000 {
			fmt.Fprintln(os.Stdout, "counting")
		}
	}
	return 0
}

// TestCheckpointStandsStill copies files that a program writes as fast as it can, and finds them as at one moment. The
// program and its node go on afterwards.
func TestCheckpointStandsStill(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	lab := start(t, sandbox.Options{Nodes: 1, Images: imagesFile(t)})
	c := clientset(t, lab)
	createPod(t, c, withScratch(podOf("counts")))
	pod := awaitPod(t, c, "counts", "to be ready", isReady)
	awaitLog(t, c, "counts", "counting")
	pid := lab.PIDs()["node-1"]
	before := uint64(0)
	for i := range 10 {
		checkpoint(t, lab, "moment")
		dir := scratchOf(filepath.Join(lab.Dir(), "checkpoints", "moment"), pod)
		first, second := number(t, filepath.Join(dir, "first")), number(t, filepath.Join(dir, "second"))
		if first != second && first != second+1 {
			t.Errorf("the files say %d and %d: they are not of one moment", first, second)
		}
		if first <= before {
			t.Errorf("it does not go on: checkpoint %d says %d after %d", i, first, before)
		}
		before = first
		// Before it has to stand still again, it has to have had a processor.
		sandboxtest.Eventually(t, "it to go on", func(context.Context) error {
			if now := number(t, filepath.Join(scratchOf(lab.Dir(), pod), "first")); now <= before {
				return fmt.Errorf("after checkpoint %d it says %d", i, now)
			}
			return nil
		})
	}
	createPod(t, c, podOf("deaf"))
	awaitPod(t, c, "deaf", "to be ready", isReady)
	if now := lab.PIDs()["node-1"]; now != pid {
		t.Errorf("the node was started again: its process is %d, and was %d", now, pid)
	}
}

func number(t *testing.T, file string) uint64 {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil || len(b) != 8 {
		t.Fatalf("%s holds %d bytes (%v)", file, len(b), err)
	}
	return binary.BigEndian.Uint64(b)
}

func awaitLog(t *testing.T, c kubernetes.Interface, pod, line string) {
	t.Helper()
	sandboxtest.Eventually(t, pod+" to say "+line, func(ctx context.Context) error {
		log, err := c.CoreV1().Pods("default").GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
		if err == nil && !strings.Contains(string(log), line) {
			err = fmt.Errorf("it says %q", log)
		}
		return err
	})
}

// TestRestoreOfPodsThatAreNeverRestarted brings back a pod whose containers are not started again after a power cut: it
// runs, with its files, once Restore has returned.
func TestRestoreOfPodsThatAreNeverRestarted(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	lab := start(t, sandbox.Options{Nodes: 1})
	c := clientset(t, lab)
	once := withScratch(shellPod("once", "[ -f /scratch/word ] || echo then > /scratch/word; sleep 3600", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}))
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	createPod(t, c, once)
	was := awaitPod(t, c, "once", "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	sandboxtest.Eventually(t, "its word", func(context.Context) error {
		_, err := os.Stat(filepath.Join(scratchOf(lab.Dir(), was), "word"))
		return err
	})
	point := checkpoint(t, lab, "task")
	pods := c.CoreV1().Pods("default")
	now := int64(0)
	for _, deleted := range []bool{false, true} {
		if deleted {
			if err := pods.Delete(t.Context(), "once", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
				t.Fatal(err)
			}
		}
		restore(t, lab, point)
		again, err := pods.Get(t.Context(), "once", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if again.UID != was.UID || again.Status.Phase != corev1.PodRunning {
			t.Errorf("the pod has the UID %s, and had %s; it is %s", again.UID, was.UID, again.Status.Phase)
		}
		if got := word(t, scratchOf(lab.Dir(), again)); got != "then" {
			t.Errorf("its word is %q", got)
		}
	}
}
