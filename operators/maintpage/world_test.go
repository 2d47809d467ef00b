package maintpage_test

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/maintpage"
	"github.com/operator-lab/operator-lab/operators/maintpage/v1alpha1"
)

// newPage is the sample in the stage's namespace, not created yet.
func (s *stage) newPage() *v1alpha1.MaintPage {
	s.t.Helper()
	page, err := maintpage.Sample()
	if err != nil {
		s.t.Fatal(err)
	}
	page.Namespace = s.namespace
	return page
}

// page creates the sample.
func (s *stage) page() *v1alpha1.MaintPage {
	s.t.Helper()
	page := s.newPage()
	s.create(page)
	return page
}

// toggle asks for a page.
func (s *stage) toggle(page *v1alpha1.MaintPage, maintenance bool) {
	s.t.Helper()
	s.change(page, func() { page.Spec.MaintPageConfig.MaintPageToggle = maintenance })
}

func (s *stage) pod(page string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: page + "-maintpage-pod"}}
}

func (s *stage) deployment(app string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: app}}
}

func (s *stage) service(app string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: app}}
}

// setPod plays the kubelet: the Pod of a maintenance page is Ready, or is not.
func (s *stage) setPod(page string, ready bool) {
	s.t.Helper()
	pod := s.pod(page)
	s.eventually("there is "+pod.Name, func() bool { return s.exists(pod) })
	status := metav1.ConditionFalse
	if ready {
		status = metav1.ConditionTrue
	}
	s.changeStatus(pod, func() {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionStatus(status), LastTransitionTime: metav1.Now(),
		}}
	})
}

// rollOut plays the Deployment controller and the kubelet: the one pod of an application is available.
func (s *stage) rollOut(app string) {
	s.t.Helper()
	s.setDeployment(app, 1)
}

func (s *stage) setDeployment(app string, available int32) {
	s.t.Helper()
	d := s.deployment(app)
	s.eventually("there is Deployment "+app, func() bool { return s.exists(d) })
	s.changeStatus(d, func() {
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1,
			ReadyReplicas: available, AvailableReplicas: available, UnavailableReplicas: 1 - available,
		}
	})
}

// settle makes all that a MaintPage has Ready, and waits until the operator is done with it.
func (s *stage) settle(page *v1alpha1.MaintPage, variant maintpage.Variant) {
	s.t.Helper()
	s.setPod(page.Name, true)
	s.rollOut(page.Spec.AppConfig.AppName)
	want := v1alpha1.NotPublished
	if page.Spec.MaintPageConfig.MaintPageToggle {
		want = v1alpha1.Published
	}
	s.eventually("the page asked for is served", func() bool {
		s.read(page)
		done := variant == maintpage.Classic || s.reason(page) == served(page) && page.Status.ObservedGeneration == page.Generation
		return done && page.Status.MaintPublishStatus == want
	})
}

// served is the reason of a MaintPage whose page is served.
func served(page *v1alpha1.MaintPage) string {
	if page.Spec.MaintPageConfig.MaintPageToggle {
		return v1alpha1.ReasonMaintenanceServed
	}
	return v1alpha1.ReasonProductionServed
}

// reason is why a MaintPage as last read is Ready or is not.
func (s *stage) reason(page *v1alpha1.MaintPage) string {
	if ready := meta.FindStatusCondition(page.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// becomes waits for the reason of a MaintPage at its latest generation.
func (s *stage) becomes(page *v1alpha1.MaintPage, reason string) {
	s.t.Helper()
	s.eventually("the MaintPage becomes "+reason, func() bool {
		s.read(page)
		return s.reason(page) == reason && page.Status.ObservedGeneration == page.Generation
	})
}

// selected tells whether the Service of the sample's application sends requests to its pods, and whether
// it does to those of a maintenance page.
func (s *stage) selected(page string) (production, maintenance bool) {
	s.t.Helper()
	service, deployment, pod := s.service("httpd"), s.deployment("httpd"), s.pod(page)
	s.read(service)
	s.read(deployment)
	s.read(pod)
	return selects(service, deployment.Spec.Template.Labels), selects(service, pod.Labels)
}

// selects tells whether a Service sends requests to pods with some labels.
func selects(service *corev1.Service, labels map[string]string) bool {
	for key, value := range service.Spec.Selector {
		if labels[key] != value {
			return false
		}
	}
	return len(service.Spec.Selector) > 0
}

// image is that of the application.
func (s *stage) image(app string) string {
	s.t.Helper()
	deployment := s.deployment(app)
	s.read(deployment)
	return deployment.Spec.Template.Spec.Containers[0].Image
}

func (s *stage) setImage(app, image string) {
	s.t.Helper()
	deployment := s.deployment(app)
	s.change(deployment, func() { deployment.Spec.Template.Spec.Containers[0].Image = image })
}

// events counts the events of a reason.
func (s *stage) events(reason string) int {
	s.t.Helper()
	var list eventsv1.EventList
	if err := s.List(s.t.Context(), &list, client.InNamespace(s.namespace)); err != nil {
		s.t.Fatal(err)
	}
	n := 0
	for _, event := range list.Items {
		if event.Reason == reason {
			n++
		}
	}
	return n
}

// retry tries until there is no conflict.
func (s *stage) retry(try func() error) {
	s.t.Helper()
	s.eventually("there is no conflict", func() bool {
		err := try()
		if err != nil && !apierrors.IsConflict(err) {
			s.t.Fatalf("change: %v", err)
		}
		return err == nil
	})
}

// othersHadTheirTurn has the operator follow somebody else's wishes and put back somebody else's image,
// which takes an event of each kind that both variants watch: what it has not done by then about something
// that happened before, it is not going to do.
func (s *stage) othersHadTheirTurn(variant maintpage.Variant) {
	s.t.Helper()
	s.others++
	name := fmt.Sprintf("other-%d", s.others)
	other := s.newPage()
	other.Name, other.Spec.AppConfig.AppName = name, name+"-app"
	s.create(other)
	s.settle(other, variant)
	s.setImage(other.Spec.AppConfig.AppName, "somebody/else:1")
	s.eventually("the image is back", func() bool {
		return s.image(other.Spec.AppConfig.AppName) == other.Spec.AppConfig.AppImage
	})
}

// comesTrue tells whether something comes true. Hardened has to bring it about, however long it takes;
// classic may leave it while it does the like for others.
func (s *stage) comesTrue(variant maintpage.Variant, what string, is func() bool) error {
	s.t.Helper()
	if variant == maintpage.Hardened {
		s.eventually(what, is)
		return nil
	}
	s.othersHadTheirTurn(variant)
	if !is() {
		return errors.New("it did not happen: " + what)
	}
	return nil
}
