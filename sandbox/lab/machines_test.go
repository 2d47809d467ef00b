package lab_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// pageImage is a bundled image that serves a page on port 8080.
const pageImage = "quay.io/daein/prodpage:v1"

// page creates a pod that serves a page and has a readiness probe.
func (w *fixture) page(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	w.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{
				Name: "page", Image: pageImage, ImagePullPolicy: corev1.PullIfNotPresent,
				ReadinessProbe: &corev1.Probe{
					ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080)}},
					PeriodSeconds: 1, FailureThreshold: 1,
				},
			}},
		},
	}
	for _, c := range change {
		c(pod)
	}
	w.must(w.you.Create(w.Context(), pod))
	return pod
}

// awaitPod waits until a pod satisfies a condition.
func (w *fixture) awaitPod(pod *corev1.Pod, what string, fits func(*corev1.Pod) bool) {
	w.Helper()
	w.eventually(what, func() error {
		err := w.you.Get(w.Context(), client.ObjectKeyFromObject(pod), pod)
		if err == nil && !fits(pod) {
			err = fmt.Errorf("it is %+v", pod.Status)
		}
		return err
	})
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// container returns the status of a pod's only container; empty before there is one.
func container(pod *corev1.Pod) corev1.ContainerStatus {
	if len(pod.Status.ContainerStatuses) == 0 {
		return corev1.ContainerStatus{}
	}
	return pod.Status.ContainerStatuses[0]
}

// died returns the last termination of a pod's container.
func died(pod *corev1.Pod) corev1.ContainerStateTerminated {
	if t := container(pod).LastTerminationState.Terminated; t != nil {
		return *t
	}
	return corev1.ContainerStateTerminated{}
}

func waitsFor(reason, message string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		waiting := container(pod).State.Waiting
		return waiting != nil && waiting.Reason == reason && strings.Contains(waiting.Message, message)
	}
}

func done(s *v1alpha1.FaultStatus) bool {
	return injected(s) && meta.IsStatusConditionTrue(s.Conditions, "Done")
}

// lasting reports whether a fault has a lasting effect now.
func lasting(s *v1alpha1.FaultStatus) bool {
	return injected(s) && !meta.IsStatusConditionTrue(s.Conditions, "Done")
}

// here returns a pod fault for a pod of the test's namespace.
func (w *fixture) here(name string, action v1alpha1.PodAction, change ...func(*v1alpha1.PodFault)) v1alpha1.FaultSpec {
	p := &v1alpha1.PodFault{Action: action, Namespace: w.namespace, Name: name}
	for _, c := range change {
		c(p)
	}
	return v1alpha1.FaultSpec{Pod: p}
}

// release releases a fault and checks that its effect is over afterwards.
func (w *fixture) release(f *v1alpha1.Fault) {
	w.Helper()
	w.must(w.you.Get(w.Context(), client.ObjectKeyFromObject(f), f))
	f.Spec.Released = true
	w.must(w.you.Update(w.Context(), f))
	if f.Status.Phase != v1alpha1.FaultReleased || !meta.IsStatusConditionTrue(f.Status.Conditions, "Done") {
		w.Errorf("released, it is %+v", f.Status)
	}
}

// TestPodKilled checks that the selected containers are killed once, and named, and that others stay alive.
func TestPodKilled(t *testing.T) {
	w := open(t)
	pods := []*corev1.Pod{w.page("web-1"), w.page("web-2"), w.page("other")}
	for _, p := range pods {
		w.awaitPod(p, "the pod to be ready", ready)
	}
	f := w.arm("kill", w.here("web-*", v1alpha1.PodKill))
	if want := fmt.Sprintf("killed %[1]s/web-1/page, %[1]s/web-2/page when the fault was made", w.namespace); !done(&f.Status) || f.Status.Message != want {
		t.Errorf("it is %+v; want %q", f.Status, want)
	}
	for _, p := range pods[:2] {
		w.awaitPod(p, "the second run", func(p *corev1.Pod) bool { return ready(p) && container(p).RestartCount == 1 })
		if last := died(p); last.ExitCode != 137 || last.Reason != "Error" {
			t.Errorf("%s ended with %+v", p.Name, last)
		}
	}
	w.must(w.you.Get(t.Context(), client.ObjectKeyFromObject(pods[2]), pods[2]))
	if n := container(pods[2]).RestartCount; n != 0 {
		t.Errorf("the pod that was not chosen was restarted %d times", n)
	}
	w.arm("oom", w.here("", v1alpha1.PodOOMKill, func(p *v1alpha1.PodFault) { p.Selector, p.Container = map[string]string{"app": "other"}, "page" }))
	w.awaitPod(pods[2], "the second run", func(p *corev1.Pod) bool { return ready(p) && container(p).RestartCount == 1 })
	if last := died(pods[2]); last.ExitCode != 137 || last.Reason != "OOMKilled" {
		t.Errorf("it ended with %+v", last)
	}
}

// TestKillWaitsForAPod checks that a fault waits for a pod that is created later.
func TestKillWaitsForAPod(t *testing.T) {
	w := open(t)
	f := w.arm("kill", w.here("late", v1alpha1.PodKill))
	if f.Status.Phase != v1alpha1.FaultArmed || !strings.Contains(f.Status.Message, "it waits for one") {
		t.Errorf("it is %+v", f.Status)
	}
	p := w.page("late")
	w.awaitFault(f, "the kill", done)
	w.awaitPod(p, "the second run", func(p *corev1.Pod) bool { return ready(p) && container(p).RestartCount == 1 })
}

// TestPodUnready checks that the pod is alive but not ready while the fault lasts.
func TestPodUnready(t *testing.T) {
	sandboxtest.Long(t)
	w := open(t)
	p := w.page("web")
	w.awaitPod(p, "the pod to be ready", ready)
	f := w.arm("unready", w.here("web", v1alpha1.PodUnready))
	if !lasting(&f.Status) {
		t.Errorf("it is %+v", f.Status)
	}
	w.awaitPod(p, "the pod not to be ready", func(p *corev1.Pod) bool { return !ready(p) })
	w.release(f)
	w.awaitPod(p, "the pod to be ready again", ready)
	if n := container(p).RestartCount; n != 0 {
		t.Errorf("it was restarted %d times", n)
	}
	second := w.here("web", v1alpha1.PodUnready, func(p *v1alpha1.PodFault) { p.For = &metav1.Duration{Duration: 2 * time.Second} })
	f = w.arm("for", second)
	w.awaitPod(p, "the pod not to be ready", func(p *corev1.Pod) bool { return !ready(p) })
	w.awaitFault(f, "the time to be over", done)
	w.awaitPod(p, "the pod to be ready again", ready)
}

// TestPodCrash checks that containers end when they start, until the fault is deleted.
func TestPodCrash(t *testing.T) {
	w := open(t)
	f := w.arm("crash", w.here("", v1alpha1.PodCrash, func(p *v1alpha1.PodFault) { p.ExitCode = new(int32(3)) }))
	p := w.page("web")
	w.awaitPod(p, "the crash loop", waitsFor("CrashLoopBackOff", "back-off"))
	if last := died(p); last.ExitCode != 3 || last.Reason != "Error" {
		t.Errorf("it ended with %+v", last)
	}
	w.must(w.you.Delete(t.Context(), f))
	w.awaitPod(w.page("next"), "a pod to be ready", ready) // the other pod would wait for its back-off
}

// TestPodStartsLate checks that the pod becomes ready only after the fault is released.
func TestPodStartsLate(t *testing.T) {
	w := open(t)
	f := w.arm("late", w.here("", v1alpha1.PodStartLate, func(p *v1alpha1.PodFault) { p.After = &metav1.Duration{Duration: time.Hour} }))
	p := w.page("web")
	w.awaitPod(p, "the container to run", func(p *corev1.Pod) bool { return container(p).State.Running != nil })
	w.eventually("a probe to fail", func() error {
		var events corev1.EventList
		if err := w.you.List(t.Context(), &events, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "Unhealthy" && strings.Contains(e.Message, "connection refused") {
				return nil
			}
		}
		return fmt.Errorf("there are %d events", len(events.Items))
	})
	w.release(f)
	w.awaitPod(p, "the pod to be ready", ready)
	if n := container(p).RestartCount; n != 0 {
		t.Errorf("it was restarted %d times", n)
	}
}

// TestImage checks that an image that was pulled before is pulled again, and that this fails or is slow while the fault
// lasts.
func TestImage(t *testing.T) {
	w := open(t)
	w.awaitPod(w.page("before"), "the pod to be ready", ready)
	image := func(i v1alpha1.ImageFault) v1alpha1.FaultSpec {
		i.Namespace = w.namespace
		return v1alpha1.FaultSpec{Image: &i}
	}
	f := w.arm("error", image(v1alpha1.ImageFault{Name: "quay.io/daein/prodpage", Error: "unauthorized"}))
	p := w.page("refused")
	w.awaitPod(p, "the pull to fail", func(p *corev1.Pod) bool {
		return waitsFor("ErrImagePull", "unauthorized")(p) || waitsFor("ImagePullBackOff", "unauthorized")(p)
	})
	other := w.page("other", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "quay.io/daein/maintpage:v1" })
	w.awaitPod(other, "a pod of another image to be ready", ready)
	w.release(f)
	w.must(w.you.Delete(t.Context(), p)) // the kubelet would wait for ten seconds before it tries again
	w.awaitPod(w.page("again"), "a pod to be ready", ready)

	f = w.arm("gone", image(v1alpha1.ImageFault{Name: "**"}))
	p = w.page("gone")
	w.awaitPod(p, "the pull to fail", func(p *corev1.Pod) bool {
		return waitsFor("ErrImagePull", "not found")(p) || waitsFor("ImagePullBackOff", "not found")(p)
	})
	w.release(f)

	f = w.arm("slow", image(v1alpha1.ImageFault{Name: "quay.io/*/prodpage:v*", Delay: metav1.Duration{Duration: time.Hour}}))
	p = w.page("slow")
	w.awaitPod(p, "the pull to begin", waitsFor("ContainerCreating", ""))
	w.must(w.you.Get(t.Context(), client.ObjectKeyFromObject(f), f))
	if !lasting(&f.Status) {
		t.Errorf("it is %+v", f.Status)
	}
	w.release(f)
	w.awaitPod(p, "the pod to be ready", ready)
}

// firstNodeReady returns the Ready condition of the first node.
func (w *fixture) firstNodeReady() corev1.ConditionStatus {
	w.Helper()
	var n corev1.Node
	w.must(w.you.Get(w.Context(), client.ObjectKey{Name: "node-1"}, &n))
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}

// TestNodeLost checks that Kubernetes notices a lost node and moves its pods, and that the node comes back when the
// fault is released, while another lost node stays lost.
func TestNodeLost(t *testing.T) {
	sandboxtest.Long(t)
	w := open(t)
	on := func(node string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeName = node }
	}
	first, second := w.page("first", on("node-1")), w.page("second", on("node-2"))
	w.awaitPod(first, "the pod to be ready", ready)
	w.awaitPod(second, "the pod to be ready", ready)
	f := w.arm("lost", v1alpha1.FaultSpec{Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeLost, Name: "node-1"}})
	if want := "took the power of node-1 away when the fault was made"; !lasting(&f.Status) || f.Status.Message != want {
		t.Errorf("it is %+v; want %q", f.Status, want)
	}
	too := w.arm("too", v1alpha1.FaultSpec{Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeLost, Name: "node-*1"}})
	// Nothing tells Kubernetes directly.
	w.eventually("the node to be missed", func() error {
		return unless(w.firstNodeReady() == corev1.ConditionUnknown, string(w.firstNodeReady()))
	})
	w.eventually("the pod to be evicted", func() error {
		err := w.you.Get(t.Context(), client.ObjectKeyFromObject(first), first)
		return unless(apierrors.IsNotFound(err) || err == nil && first.DeletionTimestamp != nil, fmt.Sprint(err, first.Status))
	})
	w.release(f)
	if s := w.firstNodeReady(); s != corev1.ConditionUnknown {
		t.Errorf("it is back although another fault has it lost: %s", s)
	}
	w.must(w.you.Delete(t.Context(), too))
	w.eventually("the node to be back", func() error {
		return unless(w.firstNodeReady() == corev1.ConditionTrue, string(w.firstNodeReady()))
	})
	w.eventually("the pod to be gone", func() error {
		err := w.you.Get(t.Context(), client.ObjectKeyFromObject(first), first)
		return unless(apierrors.IsNotFound(err), fmt.Sprint(err))
	})
	w.must(w.you.Get(t.Context(), client.ObjectKeyFromObject(second), second))
	if !ready(second) || container(second).RestartCount != 0 {
		t.Errorf("the other node's pod is %+v", second.Status)
	}
}

// TestNodeRestarts checks that the pods of a restarted node start again, and that other troubles continue.
func TestNodeRestarts(t *testing.T) {
	w := open(t)
	p := w.page("web", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" })
	w.awaitPod(p, "the pod to be ready", ready)
	crash := w.arm("crash", w.here("", v1alpha1.PodCrash))
	pid := box.PIDs()["node-2"]
	f := w.arm("restart", v1alpha1.FaultSpec{Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeRestart, Name: "node-2"}})
	if want := "restarted node-2 when the fault was made"; !done(&f.Status) || f.Status.Message != want {
		t.Errorf("it is %+v; want %q", f.Status, want)
	}
	w.awaitPod(p, "the container to crash", func(p *corev1.Pod) bool {
		return died(p).ExitCode == 1 && !ready(p)
	})
	w.must(w.you.Delete(t.Context(), crash))
	next := w.page("next", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" })
	w.awaitPod(next, "a pod to be ready", ready)
	if now := box.PIDs()["node-2"]; now == pid || now == 0 {
		t.Errorf("its pid is %d, and was %d", now, pid)
	}
}

// TestNodeLostAtACall checks that the node is off before the call is sent, and back when the next epoch begins.
func TestNodeLostAtACall(t *testing.T) {
	w := open(t)
	w.load(song())
	match := word(3)
	f := w.arm("lost", v1alpha1.FaultSpec{Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeLost}, Match: match})
	w.sing("hikawa")
	w.sungOnce()
	w.awaitFault(f, "the loss", lasting)
	if want := "took the power of node-1, node-2 away, just before create Zundoko " + w.namespace + "/hikawa-zundoko-003"; !strings.HasPrefix(f.Status.Message, want) {
		t.Errorf("message %q, want %q", f.Status.Message, want)
	}
	w.must(w.lab.Begin(t.Context(), w.lab.NewJournal()))
	w.awaitPod(w.page("web"), "a pod to be ready", ready)
}

// TestRefusedMachineFaults checks that faults which match no node here are refused.
func TestRefusedMachineFaults(t *testing.T) {
	w := open(t)
	w.refused(v1alpha1.FaultSpec{Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeLost, Name: "node-9"}},
		`spec.node.name: Unsupported value: "node-9": supported values: "node-1", "node-2"`)
	w.refused(v1alpha1.FaultSpec{Image: &v1alpha1.ImageFault{Name: "ng inx"}}, `spec.image.name: Invalid value: "ng inx"`)
	w.refused(v1alpha1.FaultSpec{Pod: &v1alpha1.PodFault{Action: "Drown"}}, `spec.pod.action: Unsupported value: "Drown"`)
}

// TestRefusedWithoutMachines checks the refusal without nodes, and without access to nodes.
func TestRefusedWithoutMachines(t *testing.T) {
	for want, machines := range map[string]lab.Machines{
		"the lab did not start this cluster's nodes":         nil,
		"this sandbox has no nodes: start it with --nodes 1": nodeless{box.Nodes()},
	} {
		t.Run(want, func(t *testing.T) {
			w := openWith(t, lab.Options{Cluster: box, Machines: machines})
			w.refused(v1alpha1.FaultSpec{Pod: &v1alpha1.PodFault{Action: v1alpha1.PodKill}}, want)
			w.refused(v1alpha1.FaultSpec{Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeRestart}}, want)
			w.refused(v1alpha1.FaultSpec{Image: &v1alpha1.ImageFault{Name: "nginx"}}, want)
		})
	}
}

// nodeless is a sandbox without nodes.
type nodeless struct{ lab.Machines }

func (nodeless) Names() []string { return nil }

func (w *fixture) refused(spec v1alpha1.FaultSpec, want string) {
	w.Helper()
	err := w.you.Create(w.Context(), &v1alpha1.Fault{ObjectMeta: metav1.ObjectMeta{GenerateName: "refused-"}, Spec: spec})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		w.Errorf("%v, want one that says %q", err, want)
	}
}
