package maintpage_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/maintpage"
	"github.com/operator-lab/operator-lab/operators/maintpage/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// newPage is the sample in the test's namespace, not created yet.
func (env *testEnv) newPage() *v1alpha1.MaintPage {
	env.t.Helper()
	page, err := maintpage.Sample()
	if err != nil {
		env.t.Fatal(err)
	}
	page.Namespace = env.Name
	return page
}

// page creates the sample.
func (env *testEnv) page() *v1alpha1.MaintPage {
	env.t.Helper()
	page := env.newPage()
	env.MustCreate(page)
	return page
}

// toggle asks for a page.
func (env *testEnv) toggle(page *v1alpha1.MaintPage, maintenance bool) {
	env.t.Helper()
	env.MustUpdate(page, func() { page.Spec.MaintPageConfig.MaintPageToggle = maintenance })
}

func (env *testEnv) pod(page string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: page + "-maintpage-pod"}}
}

func (env *testEnv) deployment(app string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: app}}
}

func (env *testEnv) service(app string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: app}}
}

// setPod plays the kubelet: the Pod of a maintenance page is Ready, or is not.
func (env *testEnv) setPod(page string, ready bool) {
	env.t.Helper()
	pod := env.pod(page)
	sandboxtest.Eventually(env.t, "there is "+pod.Name, func() bool { return env.Exists(pod) })
	status := metav1.ConditionFalse
	if ready {
		status = metav1.ConditionTrue
	}
	env.changeStatus(pod, func() {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionStatus(status), LastTransitionTime: metav1.Now(),
		}}
	})
}

// rollOut plays the Deployment controller and the kubelet: the one pod of an application is available.
func (env *testEnv) rollOut(app string) {
	env.t.Helper()
	env.setDeployment(app, 1)
}

func (env *testEnv) setDeployment(app string, available int32) {
	env.t.Helper()
	d := env.deployment(app)
	sandboxtest.Eventually(env.t, "there is Deployment "+app, func() bool { return env.Exists(d) })
	env.changeStatus(d, func() {
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1,
			ReadyReplicas: available, AvailableReplicas: available, UnavailableReplicas: 1 - available,
		}
	})
}

// settle makes all that a MaintPage has Ready, and waits until the operator is done with it.
func (env *testEnv) settle(page *v1alpha1.MaintPage, variant maintpage.Variant) {
	env.t.Helper()
	env.setPod(page.Name, true)
	env.rollOut(page.Spec.AppConfig.AppName)
	want := v1alpha1.NotPublished
	if page.Spec.MaintPageConfig.MaintPageToggle {
		want = v1alpha1.Published
	}
	sandboxtest.Eventually(env.t, "the page asked for is served", func() bool {
		env.MustGet(page)
		done := variant == maintpage.Classic || env.reason(page) == served(page) && page.Status.ObservedGeneration == page.Generation
		return done && page.Status.MaintPublishStatus == want
	})
}

// run runs an operator and settles the sample.
func (env *testEnv) run(variant maintpage.Variant) *v1alpha1.MaintPage {
	env.t.Helper()
	env.operate(maintpage.Options{Variant: variant})
	page := env.page()
	env.settle(page, variant)
	return page
}

// served is the reason of a MaintPage whose page is served.
func served(page *v1alpha1.MaintPage) string {
	if page.Spec.MaintPageConfig.MaintPageToggle {
		return v1alpha1.ReasonMaintenanceServed
	}
	return v1alpha1.ReasonProductionServed
}

// reason is why a MaintPage as last read is Ready or is not.
func (env *testEnv) reason(page *v1alpha1.MaintPage) string {
	if ready := meta.FindStatusCondition(page.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// becomes waits for the reason of a MaintPage at its latest generation.
func (env *testEnv) becomes(page *v1alpha1.MaintPage, reason string) {
	env.t.Helper()
	sandboxtest.Eventually(env.t, "the MaintPage becomes "+reason, func() bool {
		env.MustGet(page)
		return env.reason(page) == reason && page.Status.ObservedGeneration == page.Generation
	})
}

// selected tells whether the Service of the sample's application sends requests to its pods, and whether
// it does to those of a maintenance page.
func (env *testEnv) selected(page string) (production, maintenance bool) {
	env.t.Helper()
	service, deployment, pod := env.service("httpd"), env.deployment("httpd"), env.pod(page)
	env.MustGet(service)
	env.MustGet(deployment)
	env.MustGet(pod)
	return selects(service, deployment.Spec.Template.Labels), selects(service, pod.Labels)
}

// production tells whether the Service of the sample sends requests to the application and nowhere else.
func (env *testEnv) production() bool {
	env.t.Helper()
	production, maintenance := env.selected("example")
	return production && !maintenance
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
func (env *testEnv) image(app string) string {
	env.t.Helper()
	deployment := env.deployment(app)
	env.MustGet(deployment)
	return deployment.Spec.Template.Spec.Containers[0].Image
}

func (env *testEnv) setImage(app, image string) {
	env.t.Helper()
	deployment := env.deployment(app)
	env.MustUpdate(deployment, func() { deployment.Spec.Template.Spec.Containers[0].Image = image })
}

// othersHadTheirTurn has the operator follow somebody else's wishes and put back somebody else's image,
// which takes an event of each kind that it watches: what it has not done by then about something
// that happened before, it is not going to do.
func (env *testEnv) othersHadTheirTurn() {
	env.t.Helper()
	env.others++
	name := fmt.Sprintf("other-%d", env.others)
	other := env.newPage()
	other.Name, other.Spec.AppConfig.AppName = name, name+"-app"
	env.MustCreate(other)
	env.settle(other, maintpage.Hardened)
	env.setImage(other.Spec.AppConfig.AppName, "somebody/else:1")
	sandboxtest.Eventually(env.t, "the image is back", func() bool {
		return env.image(other.Spec.AppConfig.AppName) == other.Spec.AppConfig.AppImage
	})
}
