package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/storage"
)

// claimOf asks for a volume of the default class.
func claimOf(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func createClaim(t *testing.T, c kubernetes.Interface, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	if _, err := c.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitBound waits until a claim is bound, and returns the directory of its volume.
func awaitBound(t *testing.T, lab *sandbox.Sandbox, c kubernetes.Interface, name string) (dir string) {
	t.Helper()
	sandboxtest.Eventually(t, name+" to be bound", func(ctx context.Context) error {
		claim, err := c.CoreV1().PersistentVolumeClaims("default").Get(ctx, name, metav1.GetOptions{})
		if err == nil && claim.Status.Phase != corev1.ClaimBound {
			err = fmt.Errorf("it is %s", claim.Status.Phase)
		}
		if err == nil {
			dir = filepath.Join(lab.Dir(), "volumes", claim.Spec.VolumeName)
		}
		return err
	})
	return dir
}

func awaitNoDirectory(t *testing.T, dir string) {
	t.Helper()
	sandboxtest.Eventually(t, dir+" to be gone", func(context.Context) error {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// shellPod runs a script of the shell with a volume at /data.
func shellPod(name, script string, source corev1.VolumeSource) *corev1.Pod {
	pod := podOf(name)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: source}}
	pod.Spec.Containers[0] = corev1.Container{
		Name: "main", Image: "busybox", Command: []string{"sh", "-c", script},
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
	}
	return pod
}

func fromClaim(name string) corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
}

// said is what a pod has written when it has ended well.
func said(t *testing.T, c kubernetes.Interface, pod *corev1.Pod) string {
	t.Helper()
	createPod(t, c, pod)
	awaitPod(t, c, pod.Name, "to have ended", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	log, err := c.CoreV1().Pods("default").GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(log))
}

// awaitEvent waits until something is said of an object.
func awaitEvent(t *testing.T, c kubernetes.Interface, object, reason, message string) {
	t.Helper()
	sandboxtest.Eventually(t, reason+" of "+object, func(ctx context.Context) error {
		events, err := c.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + object})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == reason && strings.Contains(e.Message, message) {
				return nil
			}
		}
		return fmt.Errorf("the events are %+v", events.Items)
	})
}

// TestClaimsWithoutNodes are bound all the same, and what cannot be had is said.
func TestClaimsWithoutNodes(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	lab := start(t, sandbox.Options{})
	c := clientset(t, lab)
	createClaim(t, c, claimOf("plain"))
	dir := awaitBound(t, lab, c, "plain")
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its directory is %v (%v)", info, err)
	}
	block := claimOf("block")
	block.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	createClaim(t, c, block)
	awaitEvent(t, c, "block", "ProvisioningFailed", "volumeMode Block")

	// A class of somebody's own, for one of which the volume stays.
	retain := corev1.PersistentVolumeReclaimRetain
	for _, class := range []*storagev1.StorageClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "keep"}, Provisioner: storage.Provisioner, ReclaimPolicy: &retain},
		{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: storage.Provisioner, Parameters: map[string]string{"type": "ssd"}},
	} {
		if _, err := c.StorageV1().StorageClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	fast, keep := claimOf("fast"), claimOf("keep")
	fast.Spec.StorageClassName, keep.Spec.StorageClassName = new("fast"), new("keep")
	createClaim(t, c, fast)
	awaitEvent(t, c, "fast", "ProvisioningFailed", `"type"`)
	createClaim(t, c, keep)
	kept := awaitBound(t, lab, c, "keep")
	for _, name := range []string{"plain", "keep"} {
		if err := c.CoreV1().PersistentVolumeClaims("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	awaitNoDirectory(t, dir)
	sandboxtest.Eventually(t, "the kept volume to be released", func(ctx context.Context) error {
		pv, err := c.CoreV1().PersistentVolumes().Get(ctx, filepath.Base(kept), metav1.GetOptions{})
		if err == nil && pv.Status.Phase != corev1.VolumeReleased {
			err = fmt.Errorf("it is %s", pv.Status.Phase)
		}
		return err
	})
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	// The controller that binds is one of a program that may be killed.
	if err := lab.Kill("kube-controller-manager"); err != nil {
		t.Fatal(err)
	}
	createClaim(t, c, claimOf("later"))
	awaitBound(t, lab, c, "later")
}

// TestClaimsKeepData writes on one node and reads on another, and deletes the claim while it is used.
func TestClaimsKeepData(t *testing.T) {
	t.Parallel()
	lab := start(t, sandbox.Options{Nodes: 2})
	c := clientset(t, lab)
	createClaim(t, c, claimOf("data"))
	dir := awaitBound(t, lab, c, "data")
	writer := shellPod("writer", "mkdir -p /data/deep; echo kept > /data/deep/file", fromClaim("data"))
	writer.Spec.NodeName = "node-1"
	if out := said(t, c, writer); out != "" {
		t.Errorf("the writer says %q", out)
	}
	reader := shellPod("reader", "cat /data/file; echo no > /data/file", fromClaim("data"))
	reader.Spec.NodeName = "node-2"
	mount := &reader.Spec.Containers[0].VolumeMounts[0]
	mount.SubPath, mount.ReadOnly = "deep", true
	reader.Spec.Containers[0].Command[2] = "cat /data/file; echo no > /data/file || echo refused"
	if out := said(t, c, reader); !strings.HasPrefix(out, "kept\n") || !strings.HasSuffix(out, "refused") {
		t.Errorf("the reader says %q", out)
	}

	user := shellPod("user", "sleep 1000", fromClaim("data"))
	createPod(t, c, user)
	awaitPod(t, c, "user", "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	claims := c.CoreV1().PersistentVolumeClaims("default")
	if err := claims.Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	createClaim(t, c, claimOf("after")) // whoever takes claims away has seen the other before this one
	awaitBound(t, lab, c, "after")
	if claim, err := claims.Get(t.Context(), "data", metav1.GetOptions{}); err != nil || claim.DeletionTimestamp == nil {
		t.Errorf("the claim in use is %+v (%v)", claim, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "deep", "file")); string(b) != "kept\n" {
		t.Errorf("the file in use has %q (%v)", b, err)
	}
	for _, name := range []string{"writer", "reader", "user"} { // also one that has ended holds its claim
		if err := c.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	awaitNoDirectory(t, dir)
	sandboxtest.Eventually(t, "its volume to be gone", func(ctx context.Context) error {
		if _, err := c.CoreV1().PersistentVolumes().Get(ctx, filepath.Base(dir), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// TestStatefulSetKeepsData loses the node of a member, gives it back, and stops and starts all of it.
func TestStatefulSetKeepsData(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	const name = "stateful"
	t.Cleanup(func() { _ = sandbox.Remove(stateDir, name) })
	lab := start(t, sandbox.Options{Name: name, Nodes: 2})
	c := clientset(t, lab)
	if _, err := c.AppsV1().StatefulSets("default").Create(t.Context(), members(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	lives := func(pod string, atLeast int) (node string, uid types.UID) {
		t.Helper()
		dir := awaitBound(t, lab, c, "data-"+pod)
		p := awaitPod(t, c, pod, "to run", func(p *corev1.Pod) bool {
			b, err := os.ReadFile(filepath.Join(dir, "lives"))
			return err == nil && strings.Count(string(b), pod) >= atLeast && isReady(p)
		})
		return p.Spec.NodeName, p.UID
	}
	lives("db-0", 1)
	lost, uid := lives("db-1", 1)
	if err := lab.Nodes().Lose(lost); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, c, "db-1", "to be given up", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	// As somebody does who knows that the node is off.
	if err := c.CoreV1().Pods("default").Delete(t.Context(), "db-1", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	node, again := lives("db-1", 2)
	if node == lost || again == uid {
		t.Errorf("it lives on %s again", node)
	}
	if err := lab.Nodes().Return(lost); err != nil {
		t.Fatal(err)
	}
	// One that nobody gave up for good starts again when its node is there again.
	if err := lab.Nodes().Lose(node); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, c, "db-1", "to be given up once more", func(p *corev1.Pod) bool { return p.UID == again && p.DeletionTimestamp != nil })
	if err := lab.Nodes().Return(node); err != nil {
		t.Fatal(err)
	}
	lives("db-1", 3)
	lives("db-0", 1)
	if err := lab.Stop(); err != nil {
		t.Fatal(err)
	}
	lab = start(t, sandbox.Options{Name: name, Nodes: 2})
	c = clientset(t, lab)
	lives("db-1", 4)
	lives("db-0", 2)
	if err := lab.Stop(); err != nil {
		t.Fatal(err)
	}
	lab = start(t, sandbox.Options{Name: name, Fresh: true})
	if files, err := os.ReadDir(filepath.Join(lab.Dir(), "volumes")); len(files) > 0 {
		t.Errorf("of what was before there are %v (%v)", files, err)
	}
}

// members are two pods that each note in their volumes that they were started.
func members() *appsv1.StatefulSet {
	labels := map[string]string{"app": "db"}
	pod := shellPod("db", "hostname >> /data/lives; sleep 1000", corev1.VolumeSource{})
	pod.Spec.RestartPolicy, pod.Spec.Volumes = corev1.RestartPolicyAlways, nil
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(2)), PodManagementPolicy: appsv1.ParallelPodManagement, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*claimOf("data")},
		},
	}
}

// TestEphemeralVolume belongs to its pod, and nothing of it is left with an ephemeral sandbox.
func TestEphemeralVolume(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	lab := start(t, sandbox.Options{Nodes: 1})
	c := clientset(t, lab)
	source := corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimOf("").Spec},
	}}
	if out := said(t, c, shellPod("scratch", "echo here > /data/file; cat /data/file", source)); out != "here" {
		t.Errorf("it says %q", out)
	}
	dir := awaitBound(t, lab, c, "scratch-data")
	if err := c.CoreV1().Pods("default").Delete(t.Context(), "scratch", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitNoDirectory(t, dir)
	createClaim(t, c, claimOf("left"))
	awaitBound(t, lab, c, "left")
	if err := lab.Stop(); err != nil {
		t.Fatal(err)
	}
	awaitNoDirectory(t, lab.Dir())
}

// TestForeignVolumes are volumes that people write themselves: they begin in a directory of the node, and neither reading nor
// deleting one does anything to this machine's files.
func TestForeignVolumes(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	mine := filepath.Join(t.TempDir(), "tmp", "mine") // upstream's controller removes volumes whose paths have /tmp/ in them
	if err := os.MkdirAll(mine, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(mine, "file"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	lab := start(t, sandbox.Options{Nodes: 1, Images: imagesFile(t)})
	c := clientset(t, lab)
	for name, at := range map[string]corev1.PersistentVolumeSource{
		"plain":   {HostPath: &corev1.HostPathVolumeSource{Path: mine}},
		"local":   {Local: &corev1.LocalVolumeSource{Path: mine}},
		"poses":   {HostPath: &corev1.HostPathVolumeSource{Path: mine}},
		"another": {HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(storage.MountPoint, "plain")}},
	} {
		createVolume(t, c, name, at)
	}
	for _, name := range []string{"plain", "local", "poses", "another"} {
		pod := shellPod(name, "ls /data; echo "+name+" > /data/"+name, fromClaim(name))
		// Three are the same directory of the node.
		want := map[string]string{"local": "plain", "poses": "local\nplain"}[name]
		if out := said(t, c, pod); out != want {
			t.Errorf("%s: in the volume there is %q", name, out)
		}
		if err := c.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := c.CoreV1().PersistentVolumeClaims("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		sandboxtest.Eventually(t, name+" not to be removed", func(ctx context.Context) error {
			pv, err := c.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
			if err == nil && pv.Status.Phase != corev1.VolumeFailed {
				err = fmt.Errorf("it is %s", pv.Status.Phase)
			}
			return err
		})
	}
	files, err := os.ReadDir(mine)
	if err != nil || len(files) != 1 || files[0].Name() != "file" {
		t.Errorf("the person's files are %v (%v)", files, err)
	}
	refusesLinks(t, c, mine)
}

// createVolume writes a volume that is to be removed after its claim, as if the sandbox had made it.
func createVolume(t *testing.T, c kubernetes.Interface, name string, source corev1.PersistentVolumeSource) {
	t.Helper()
	claim := claimOf(name)
	claim.Spec.StorageClassName, claim.Spec.VolumeName = new(storage.ClassName), name
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete, StorageClassName: storage.ClassName,
		AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests, PersistentVolumeSource: source,
		ClaimRef: &corev1.ObjectReference{Namespace: "default", Name: name},
	}}
	if name == "poses" {
		pv.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": storage.Provisioner}
	}
	if source.Local != nil {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"node-1"}}},
		}}}}
	}
	if _, err := c.CoreV1().PersistentVolumes().Create(t.Context(), pv, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	createClaim(t, c, claim)
}

// refusesLinks has a pod link a directory of this machine into its volumes, and others mount the link.
func refusesLinks(t *testing.T, c kubernetes.Interface, mine string) {
	t.Helper()
	createClaim(t, c, claimOf("linked"))
	links := shellPod("links", "", fromClaim("linked"))
	links.Spec.Volumes = append(links.Spec.Volumes, corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv"}}})
	main := &links.Spec.Containers[0]
	main.Image, main.Command, main.Env = "test/links", nil, []corev1.EnvVar{{Name: "LINK_TO", Value: mine}}
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "host", MountPath: "/host"})
	if out := said(t, c, links); out != "linked" {
		t.Fatalf("the links are not made: %s", out)
	}
	host := shellPod("by-host", "cat /data/file", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv/link"}})
	part := shellPod("by-part", "cat /data/file", fromClaim("linked"))
	part.Spec.Containers[0].VolumeMounts[0].SubPath = "link"
	within := shellPod("within", "cat /data/link/file", fromClaim("linked"))
	for _, pod := range []*corev1.Pod{host, part, within} {
		createPod(t, c, pod)
	}
	awaitEvent(t, c, "by-host", "FailedMount", "escapes")
	awaitPod(t, c, "by-part", "to be refused its mount", waitingFor("CreateContainerConfigError"))
	awaitPod(t, c, "within", "to fail", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
}
