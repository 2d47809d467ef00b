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
)

// TestMaintenanceStays: a maintenance page that stops being Ready is not replaced by the application,
// which nobody asked for; the status says what is the case.
func TestMaintenanceStays(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	page := s.run(maintpage.Hardened)
	s.toggle(page, true)
	s.settle(page, maintpage.Hardened)
	s.setPod("example", false)
	s.becomes(page, v1alpha1.ReasonPageNotReady)
	s.wantStatus(page, v1alpha1.NotPublished, metav1.ConditionFalse, metav1.ConditionTrue)
	if s.production() {
		t.Error("requests go to the application")
	}
	s.settle(page, maintpage.Hardened)
}

// TestInterferenceWhileWaiting turns the Service elsewhere, then deletes it, while it waits for the
// maintenance page: each time it goes back to the application.
func TestInterferenceWhileWaiting(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	page := s.run(maintpage.Hardened)
	s.setPod("example", false)
	s.toggle(page, true)
	s.becomes(page, v1alpha1.ReasonWaitingForPage)
	service := s.service("httpd")
	s.change(service, func() { service.Spec.Selector = map[string]string{"app": "nobody"} })
	s.eventually("the Service is turned back", s.production)
	s.delete(service)
	s.eventually("the Service is back", func() bool { return s.exists(service) })
	if !s.production() {
		t.Errorf("it selects %v, where no page is Ready", service.Spec.Selector)
	}
	s.settle(page, maintpage.Hardened)
}

// TestImageNotThere tells in the status why there is no page.
func TestImageNotThere(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	page := s.run(maintpage.Hardened)
	s.setPod("example", false)
	pod := s.pod("example")
	s.changeStatus(pod, func() {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "maintpage", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
		}}
	})
	s.toggle(page, true)
	want := "Requests still go to the production page: Pod example-maintpage-pod is not Ready: ImagePullBackOff"
	s.eventually("the status says so", func() bool {
		s.read(page)
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
			s := newStage(t, hardenedCRDs)
			stop := s.operate(maintpage.Options{Variant: maintpage.Classic})
			page := s.page()
			s.toggle(page, toggle)
			s.settle(page, maintpage.Classic)
			stop()
			old := s.pod("example")
			s.read(old)

			s.operate(maintpage.Options{})
			s.becomes(page, v1alpha1.ReasonPageNotReady)
			service := s.service("httpd")
			s.read(service)
			if len(service.Spec.Selector) != 1 {
				t.Errorf("the Service was turned to %v, before anything was Ready", service.Spec.Selector)
			}
			// Its Pod has no probe, which cannot be added.
			pod := s.pod("example")
			s.eventually("there is another Pod", func() bool { return s.exists(pod) && pod.UID != old.UID })
			s.settle(page, maintpage.Hardened)
			s.read(service)
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
	s := newStage(t, hardenedCRDs)
	stop := s.operate(maintpage.Options{})
	page := s.page()
	s.settle(page, maintpage.Hardened)
	stop()
	pod := s.pod("example")
	s.read(pod)
	s.delete(pod)
	changed := s.pod("example")
	changed.Labels, changed.OwnerReferences = pod.Labels, pod.OwnerReferences
	changed.Spec.Containers = []corev1.Container{{Name: "maintpage", Image: pod.Spec.Containers[0].Image}}
	s.create(changed)

	s.operate(maintpage.Options{})
	s.becomes(page, v1alpha1.ReasonRejected)
	s.read(pod)
	if pod.UID != changed.UID {
		t.Error("the Pod was replaced")
	}
}

// TestAnotherImageWhileReady asks for the maintenance page, of another image, while the old one is Ready: requests stay
// where they are until the new one is.
func TestAnotherImageWhileReady(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	s.operate(maintpage.Options{})
	page := s.page()
	s.settle(page, maintpage.Hardened)
	old := s.pod("example")
	s.read(old)
	s.change(page, func() {
		page.Spec.MaintPageConfig.MaintPageToggle = true
		page.Spec.MaintPageConfig.MaintPageImage = "example.com/maintpage:2"
	})
	s.becomes(page, v1alpha1.ReasonWaitingForPage)
	pod := s.pod("example")
	s.eventually("there is another Pod", func() bool { return s.exists(pod) && pod.UID != old.UID })
	s.read(page)
	if !s.production() || page.Status.MaintPublishStatus == v1alpha1.Published {
		t.Errorf("the status is %q, and the Service has the application: %v", page.Status.MaintPublishStatus, s.production())
	}
	if pod.Spec.Containers[0].Image != "example.com/maintpage:2" {
		t.Errorf("it is of %s", pod.Spec.Containers[0].Image)
	}
	s.setPod("example", true)
	s.becomes(page, v1alpha1.ReasonMaintenanceServed)
}

// TestForeignObjects finds each of the names taken, leaves what has it alone, and goes on when it is gone.
func TestForeignObjects(t *testing.T) {
	t.Parallel()
	container := []corev1.Container{{Name: "else", Image: "somebody/else:1"}}
	for name, foreign := range map[string]func(*stage) client.Object{
		"Pod": func(s *stage) client.Object {
			pod := s.pod("example")
			pod.Spec.Containers = container
			return pod
		},
		"Deployment": func(s *stage) client.Object {
			d := s.deployment("httpd")
			labels := map[string]string{"app": "else"}
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			d.Spec.Template.Labels, d.Spec.Template.Spec.Containers = labels, container
			return d
		},
		"Service": func(s *stage) client.Object {
			service := s.service("httpd")
			service.Spec.Selector = map[string]string{"app": "else"}
			service.Spec.Ports = []corev1.ServicePort{{Port: 1}}
			return service
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, hardenedCRDs)
			obj := foreign(s)
			s.create(obj)
			version := obj.GetResourceVersion()
			s.operate(maintpage.Options{})
			page := s.page()
			s.becomes(page, v1alpha1.ReasonConflict)
			s.wantStatus(page, v1alpha1.NotPublished, metav1.ConditionFalse, metav1.ConditionFalse)
			s.wantEvents(v1alpha1.ReasonConflict)
			s.read(obj)
			if obj.GetResourceVersion() != version {
				t.Errorf("it was changed: %+v", obj)
			}
			if name == "Deployment" && s.exists(s.service("httpd")) {
				t.Error("there is a Service for an application that is not ours")
			}
			s.delete(obj)
			s.settle(page, maintpage.Hardened)
		})
	}
}

// TestSameNameAgain deletes a MaintPage and makes another of the same name while the objects of the first
// are still there, as they are until the garbage collector has come by.
func TestSameNameAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	first := s.run(maintpage.Hardened)
	s.delete(first)
	second := s.page()
	s.becomes(second, v1alpha1.ReasonConflict)
	for _, kind := range []client.Object{&corev1.Pod{}, &appsv1.Deployment{}} {
		if err := s.DeleteAllOf(t.Context(), kind, client.InNamespace(s.namespace)); err != nil {
			t.Fatal(err)
		}
	}
	s.delete(s.service("httpd"))
	s.settle(second, maintpage.Hardened)
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
			s := newStage(t, hardenedCRDs)
			s.traffic.failOnce(text)
			page := s.run(maintpage.Hardened)
			s.toggle(page, true)
			s.settle(page, maintpage.Hardened)
			if !s.traffic.failed() {
				t.Errorf("nothing failed: there was no write with %s", text)
			}
		})
	}
}

// TestRename prunes the old name only when the new one is Ready.
func TestRename(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	page := s.run(maintpage.Hardened)
	s.change(page, func() { page.Spec.AppConfig.AppName = "web" })
	s.becomes(page, v1alpha1.ReasonPageNotReady)
	if !s.exists(s.deployment("httpd")) || !s.exists(s.service("httpd")) {
		t.Error("the old name is gone before the new one is Ready")
	}
	s.settle(page, maintpage.Hardened)
	s.eventually("the old name is gone, the new one there", func() bool {
		return !s.exists(s.deployment("httpd")) && !s.exists(s.service("httpd")) && s.exists(s.service("web"))
	})
	s.wantEvents("Pruned")
}

// TestDriftIsPutBack changes what is ours, and what is somebody else's.
func TestDriftIsPutBack(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	page := s.run(maintpage.Hardened)
	deployment, service, pod := s.deployment("httpd"), s.service("httpd"), s.pod("example")
	s.change(deployment, func() {
		deployment.Labels = map[string]string{"team": "blue"}
		deployment.Spec.Template.Spec.Containers[0].ReadinessProbe = nil
	})
	s.change(pod, func() { pod.Labels = nil })
	s.change(service, func() { service.Spec.Ports[0].Port = 9090 })
	s.eventually("all is back", func() bool {
		s.read(deployment)
		s.read(pod)
		s.read(service)
		return deployment.Spec.Template.Spec.Containers[0].ReadinessProbe != nil && pod.Labels["app"] == "example" &&
			len(service.Spec.Ports) == 1 && service.Spec.Ports[0].Port == 8080 &&
			service.Spec.Ports[0].TargetPort == intstr.FromInt32(8080)
	})
	if deployment.Labels["team"] != "blue" {
		t.Errorf("a label of somebody else is gone: %v", deployment.Labels)
	}
	s.settle(page, maintpage.Hardened)
	s.wantEvents("Repaired")
}

// TestOldSpec runs hardened on a MaintPage that its CRD would have refused.
func TestOldSpec(t *testing.T) {
	t.Parallel()
	s := newStage(t, classicCRDs)
	s.operate(maintpage.Options{})
	page := s.newPage()
	page.Spec.AppConfig.AppImage = ""
	s.create(page)
	s.becomes(page, v1alpha1.ReasonRejected)
	s.wantStatus(page, v1alpha1.NotPublished, metav1.ConditionFalse, metav1.ConditionFalse)
	s.change(page, func() { page.Spec.AppConfig.AppImage = "quay.io/daein/prodpage:latest" })
	s.settle(page, maintpage.Hardened)
}

// TestNotAllowed has the namespace refuse the Pod: the status says why, the application is served all the
// same, and the Pod comes once it is allowed.
func TestNotAllowed(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	s.change(namespace, func() { namespace.Labels["pod-security.kubernetes.io/enforce"] = "restricted" })
	// Admission has a watch of its own, too.
	s.eventually("a Pod is refused", func() bool {
		pod := s.pod("any")
		pod.Spec.Containers = []corev1.Container{{Name: "any", Image: "somebody/else:1"}}
		return apierrors.IsForbidden(s.Create(t.Context(), pod, client.DryRunAll))
	})
	s.operate(maintpage.Options{})
	page := s.page()
	s.becomes(page, v1alpha1.ReasonRejected)
	ready := meta.FindStatusCondition(page.Status.Conditions, v1alpha1.ConditionReady)
	if !strings.Contains(ready.Message, "PodSecurity") {
		t.Errorf("the status does not say why: %s", ready.Message)
	}
	s.rollOut("httpd")
	if s.exists(s.pod("example")) || !s.exists(s.service("httpd")) {
		t.Error("there is a Pod that is not allowed, or no Service because of it")
	}
	s.change(namespace, func() { delete(namespace.Labels, "pod-security.kubernetes.io/enforce") })
	s.settle(page, maintpage.Hardened)
}

// TestDeletion holds a deleted MaintPage by a finalizer: nothing is made for it any more.
func TestDeletion(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	page := s.run(maintpage.Hardened)
	s.change(page, func() { page.Finalizers = []string{"example.com/wait"} })
	s.delete(page)
	s.othersHadTheirTurn(maintpage.Hardened) // the deletion was seen: it must not hear of the Service first
	s.delete(s.service("httpd"))
	s.othersHadTheirTurn(maintpage.Hardened)
	if s.exists(s.service("httpd")) {
		t.Error("a Service was made for a MaintPage that was deleted")
	}
	s.change(page, func() { page.Finalizers = nil })
}

// TestTwoOperators runs two at once, as happens for a moment when a leader is lost.
func TestTwoOperators(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	s.operate(maintpage.Options{})
	page := s.run(maintpage.Hardened)
	for _, toggle := range []bool{true, false, true} {
		s.toggle(page, toggle)
		s.settle(page, maintpage.Hardened)
	}
	if s.production() {
		t.Error("requests go to the application")
	}
}
