package maintpage_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/maintpage"
	"github.com/operator-lab/operator-lab/operators/maintpage/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestMaintenanceStays: a maintenance page that stops being Ready is not replaced by the application,
// which nobody asked for; the status says what is the case.
func TestMaintenanceStays(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, maintpage.Hardened)
	page := env.run(maintpage.Hardened)
	env.toggle(page, true)
	env.settle(page, maintpage.Hardened)
	env.setPod("example", false)
	env.becomes(page, v1alpha1.ReasonPageNotReady)
	env.wantStatus(page, v1alpha1.NotPublished, metav1.ConditionFalse, metav1.ConditionTrue)
	if env.production() {
		t.Error("requests go to the application")
	}
	env.settle(page, maintpage.Hardened)
}

// TestInterferenceWhileWaiting turns the Service elsewhere, then deletes it, while it waits for the
// maintenance page: each time it goes back to the application.
func TestInterferenceWhileWaiting(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, maintpage.Hardened)
	page := env.run(maintpage.Hardened)
	env.setPod("example", false)
	env.toggle(page, true)
	env.becomes(page, v1alpha1.ReasonWaitingForPage)
	service := env.service("httpd")
	env.MustUpdate(service, func() { service.Spec.Selector = map[string]string{"app": "nobody"} })
	sandboxtest.Eventually(env.t, "the Service is turned back", env.production)
	env.MustDelete(service)
	sandboxtest.Eventually(env.t, "the Service is back", func() bool { return env.Exists(service) })
	if !env.production() {
		t.Errorf("it selects %v, where no page is Ready", service.Spec.Selector)
	}
	env.settle(page, maintpage.Hardened)
}

// TestImageNotThere tells in the status why there is no page.
func TestImageNotThere(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, maintpage.Hardened)
	page := env.run(maintpage.Hardened)
	env.setPod("example", false)
	pod := env.pod("example")
	env.changeStatus(pod, func() {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "maintpage", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
		}}
	})
	env.toggle(page, true)
	want := "Requests still go to the production page: Pod example-maintpage-pod is not Ready: ImagePullBackOff"
	sandboxtest.Eventually(env.t, "the status says so", func() bool {
		env.MustGet(page)
		ready := meta.FindStatusCondition(page.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Message == want
	})
}

// TestTakeover has hardened go on where classic was stopped, in both positions of the Service: it is only
// ever turned to pods that are Ready.
func TestTakeover(t *testing.T) {
	t.Parallel()
	for name, toggle := range map[string]bool{"production": false, "maintenance": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newTestEnv(t, maintpage.Hardened)
			stop := env.operate(maintpage.Options{Variant: maintpage.Classic})
			page := env.page()
			env.toggle(page, toggle)
			env.settle(page, maintpage.Classic)
			stop()
			old := env.pod("example")
			env.MustGet(old)

			env.operate(maintpage.Options{})
			env.becomes(page, v1alpha1.ReasonPageNotReady)
			service := env.service("httpd")
			env.MustGet(service)
			if len(service.Spec.Selector) != 1 {
				t.Errorf("the Service was turned to %v, before anything was Ready", service.Spec.Selector)
			}
			// Its Pod has no probe, which cannot be added.
			pod := env.pod("example")
			sandboxtest.Eventually(env.t, "there is another Pod", func() bool { return env.Exists(pod) && pod.UID != old.UID })
			env.settle(page, maintpage.Hardened)
			env.MustGet(service)
			if len(service.Spec.Selector) != 2 {
				t.Errorf("the Service selects by %v, want two labels", service.Spec.Selector)
			}
		})
	}
}

// TestPodOfAWebhook has a Pod that is labelled as ours and cannot be made what it should be: it is not
// replaced again and again.
func TestPodOfAWebhook(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, maintpage.Hardened)
	stop := env.operate(maintpage.Options{})
	page := env.page()
	env.settle(page, maintpage.Hardened)
	stop()
	pod := env.pod("example")
	env.MustGet(pod)
	env.MustDelete(pod)
	changed := env.pod("example")
	changed.Labels, changed.OwnerReferences = pod.Labels, pod.OwnerReferences
	changed.Spec.Containers = []corev1.Container{{Name: "maintpage", Image: pod.Spec.Containers[0].Image}}
	env.MustCreate(changed)

	env.operate(maintpage.Options{})
	env.becomes(page, v1alpha1.ReasonRejected)
	env.MustGet(pod)
	if pod.UID != changed.UID {
		t.Error("the Pod was replaced")
	}
}

// TestAnotherImageWhileReady asks for the maintenance page, of another image, while the old one is Ready: requests stay
// where they are until the new one is.
func TestAnotherImageWhileReady(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, maintpage.Hardened)
	env.operate(maintpage.Options{})
	page := env.page()
	env.settle(page, maintpage.Hardened)
	old := env.pod("example")
	env.MustGet(old)
	env.MustUpdate(page, func() {
		page.Spec.MaintPageConfig.MaintPageToggle = true
		page.Spec.MaintPageConfig.MaintPageImage = "example.com/maintpage:2"
	})
	env.becomes(page, v1alpha1.ReasonWaitingForPage)
	pod := env.pod("example")
	sandboxtest.Eventually(env.t, "there is another Pod", func() bool { return env.Exists(pod) && pod.UID != old.UID })
	env.MustGet(page)
	if !env.production() || page.Status.MaintPublishStatus == v1alpha1.Published {
		t.Errorf("the status is %q, and the Service has the application: %v", page.Status.MaintPublishStatus, env.production())
	}
	if pod.Spec.Containers[0].Image != "example.com/maintpage:2" {
		t.Errorf("it is of %s", pod.Spec.Containers[0].Image)
	}
	env.setPod("example", true)
	env.becomes(page, v1alpha1.ReasonMaintenanceServed)
}

// TestForeignObjects finds each of the names taken, leaves what has it alone, and goes on when it is gone.
func TestForeignObjects(t *testing.T) {
	t.Parallel()
	container := []corev1.Container{{Name: "else", Image: "somebody/else:1"}}
	for name, foreign := range map[string]func(*testEnv) client.Object{
		"Pod": func(env *testEnv) client.Object {
			pod := env.pod("example")
			pod.Spec.Containers = container
			return pod
		},
		"Deployment": func(env *testEnv) client.Object {
			d := env.deployment("httpd")
			labels := map[string]string{"app": "else"}
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			d.Spec.Template.Labels, d.Spec.Template.Spec.Containers = labels, container
			return d
		},
		"Service": func(env *testEnv) client.Object {
			service := env.service("httpd")
			service.Spec.Selector = map[string]string{"app": "else"}
			service.Spec.Ports = []corev1.ServicePort{{Port: 1}}
			return service
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newTestEnv(t, maintpage.Hardened)
			obj := foreign(env)
			env.MustCreate(obj)
			version := obj.GetResourceVersion()
			env.operate(maintpage.Options{})
			page := env.page()
			env.becomes(page, v1alpha1.ReasonConflict)
			env.wantStatus(page, v1alpha1.NotPublished, metav1.ConditionFalse, metav1.ConditionFalse)
			env.wantEvents(v1alpha1.ReasonConflict)
			env.MustGet(obj)
			if obj.GetResourceVersion() != version {
				t.Errorf("it was changed: %+v", obj)
			}
			if name == "Deployment" && env.Exists(env.service("httpd")) {
				t.Error("there is a Service for an application that is not ours")
			}
			env.MustDelete(obj)
			env.settle(page, maintpage.Hardened)
		})
	}
}

// TestSameNameAgain deletes a MaintPage and makes another of the same name while the objects of the first
// are still there, as they are until the garbage collector has come by.
func TestSameNameAgain(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, maintpage.Hardened)
	first := env.run(maintpage.Hardened)
	env.MustDelete(first)
	second := env.page()
	env.becomes(second, v1alpha1.ReasonConflict)
	for _, kind := range []client.Object{&corev1.Pod{}, &appsv1.Deployment{}} {
		if err := env.DeleteAllOf(t.Context(), kind, client.InNamespace(env.Name)); err != nil {
			t.Fatal(err)
		}
	}
	env.MustDelete(env.service("httpd"))
	env.settle(second, maintpage.Hardened)
}

// TestEveryWriteFailsOnce fails the first attempt of each kind of write.
func TestEveryWriteFailsOnce(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"Pod":               `"kind":"Pod"`,
		"Deployment":        `"kind":"Deployment"`,
		"Service":           `"kind":"Service"`,
		"status":            v1alpha1.ReasonPageNotReady,
		"last status":       v1alpha1.ReasonMaintenanceServed,
		"turn of a Service": `"selector":{"app":"example","maintpage.example.com/page":"maintenance"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newTestEnv(t, maintpage.Hardened)
			env.writes.FailOnce(text)
			page := env.run(maintpage.Hardened)
			env.toggle(page, true)
			env.settle(page, maintpage.Hardened)
			if !env.writes.Failed() {
				t.Errorf("nothing failed: there was no write with %s", text)
			}
		})
	}
}

// TestRename prunes the old name only when the new one is Ready.
func TestRename(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, maintpage.Hardened)
	page := env.run(maintpage.Hardened)
	env.MustUpdate(page, func() { page.Spec.AppConfig.AppName = "web" })
	env.becomes(page, v1alpha1.ReasonPageNotReady)
	if !env.Exists(env.deployment("httpd")) || !env.Exists(env.service("httpd")) {
		t.Error("the old name is gone before the new one is Ready")
	}
	env.settle(page, maintpage.Hardened)
	sandboxtest.Eventually(env.t, "the old name is gone, the new one there", func() bool {
		return !env.Exists(env.deployment("httpd")) && !env.Exists(env.service("httpd")) && env.Exists(env.service("web"))
	})
	env.wantEvents("Pruned")
}

// TestDriftIsPutBack changes what is ours, and what is somebody else's.
func TestDriftIsPutBack(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, maintpage.Hardened)
	page := env.run(maintpage.Hardened)
	deployment, service, pod := env.deployment("httpd"), env.service("httpd"), env.pod("example")
	env.MustUpdate(deployment, func() {
		deployment.Labels = map[string]string{"team": "blue"}
		deployment.Spec.Template.Spec.Containers[0].ReadinessProbe = nil
	})
	env.MustUpdate(pod, func() { pod.Labels = nil })
	env.MustUpdate(service, func() { service.Spec.Ports[0].Port = 9090 })
	sandboxtest.Eventually(env.t, "all is back", func() bool {
		env.MustGet(deployment)
		env.MustGet(pod)
		env.MustGet(service)
		return deployment.Spec.Template.Spec.Containers[0].ReadinessProbe != nil && pod.Labels["app"] == "example" &&
			len(service.Spec.Ports) == 1 && service.Spec.Ports[0].Port == 8080 &&
			service.Spec.Ports[0].TargetPort == intstr.FromInt32(8080)
	})
	if deployment.Labels["team"] != "blue" {
		t.Errorf("a label of somebody else is gone: %v", deployment.Labels)
	}
	env.settle(page, maintpage.Hardened)
	env.wantEvents("Repaired")
}

// TestOldSpec runs hardened on a MaintPage that its CRD would have refused.
func TestOldSpec(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, maintpage.Classic)
	env.operate(maintpage.Options{})
	page := env.newPage()
	page.Spec.AppConfig.AppImage = ""
	env.MustCreate(page)
	env.becomes(page, v1alpha1.ReasonRejected)
	env.wantStatus(page, v1alpha1.NotPublished, metav1.ConditionFalse, metav1.ConditionFalse)
	env.MustUpdate(page, func() { page.Spec.AppConfig.AppImage = "quay.io/daein/prodpage:latest" })
	env.settle(page, maintpage.Hardened)
}

// TestNotAllowed has the namespace refuse the Pod: the status says why, the application is served all the
// same, and the Pod comes once it is allowed.
func TestNotAllowed(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, maintpage.Hardened)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.Name}}
	env.MustUpdate(namespace, func() { namespace.Labels["pod-security.kubernetes.io/enforce"] = "restricted" })
	// Admission has a watch of its own, too.
	sandboxtest.Eventually(env.t, "a Pod is refused", func() bool {
		pod := env.pod("any")
		pod.Spec.Containers = []corev1.Container{{Name: "any", Image: "somebody/else:1"}}
		return apierrors.IsForbidden(env.Create(t.Context(), pod, client.DryRunAll))
	})
	env.operate(maintpage.Options{})
	page := env.page()
	env.becomes(page, v1alpha1.ReasonRejected)
	ready := meta.FindStatusCondition(page.Status.Conditions, v1alpha1.ConditionReady)
	if !strings.Contains(ready.Message, "PodSecurity") {
		t.Errorf("the status does not say why: %s", ready.Message)
	}
	env.rollOut("httpd")
	if env.Exists(env.pod("example")) || !env.Exists(env.service("httpd")) {
		t.Error("there is a Pod that is not allowed, or no Service because of it")
	}
	env.MustUpdate(namespace, func() { delete(namespace.Labels, "pod-security.kubernetes.io/enforce") })
	env.settle(page, maintpage.Hardened)
}

// TestDeletion holds a deleted MaintPage by a finalizer: nothing is made for it any more.
func TestDeletion(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, maintpage.Hardened)
	page := env.run(maintpage.Hardened)
	env.MustUpdate(page, func() { page.Finalizers = []string{"example.com/wait"} })
	env.MustDelete(page)
	env.othersHadTheirTurn() // the deletion was seen: it must not hear of the Service first
	env.MustDelete(env.service("httpd"))
	env.othersHadTheirTurn()
	if env.Exists(env.service("httpd")) {
		t.Error("a Service was made for a MaintPage that was deleted")
	}
	env.MustUpdate(page, func() { page.Finalizers = nil })
}

// TestTwoOperators runs two at once, as happens for a moment when a leader is lost.
func TestTwoOperators(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, maintpage.Hardened)
	env.operate(maintpage.Options{})
	page := env.run(maintpage.Hardened)
	for _, toggle := range []bool{true, false, true} {
		env.toggle(page, toggle)
		env.settle(page, maintpage.Hardened)
	}
	if env.production() {
		t.Error("requests go to the application")
	}
}
