package maintpage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/maintpage"
	"github.com/operator-lab/operator-lab/operators/maintpage/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestObjects looks at the three objects of the sample, which the article shows.
func TestObjects(t *testing.T) {
	t.Parallel()
	for _, variant := range maintpage.Variants() {
		t.Run(string(variant), func(t *testing.T) {
			t.Parallel()
			env := newTestEnv(t, variant)
			page := env.run(variant)
			pod, deployment, service := env.pod("example"), env.deployment("httpd"), env.service("httpd")
			for _, obj := range []client.Object{pod, deployment, service} {
				env.MustGet(obj)
				if !metav1.IsControlledBy(obj, page) {
					t.Errorf("%T %s has another owner: %v", obj, obj.GetName(), obj.GetOwnerReferences())
				}
			}
			env.wantContainer(pod.Spec.Containers, "maintpage", "quay.io/daein/maintpage:latest")
			env.wantContainer(deployment.Spec.Template.Spec.Containers, "httpd", "quay.io/daein/prodpage:latest")
			if pod.Labels["app"] != "example" || deployment.Spec.Template.Labels["app"] != "httpd" {
				t.Errorf("other labels: %v and %v", pod.Labels, deployment.Spec.Template.Labels)
			}
			if diff := cmp.Diff(map[string]string{"app": "httpd"}, deployment.Spec.Selector.MatchLabels); diff != "" {
				t.Errorf("the Deployment has another selector (-want +got):\n%s", diff)
			}
			if *deployment.Spec.Replicas != 1 {
				t.Errorf("%d replicas, want 1", *deployment.Spec.Replicas)
			}
			ports := []corev1.ServicePort{{Name: "8080-tcp", Protocol: "TCP", Port: 8080, TargetPort: intstr.FromInt32(8080)}}
			if diff := cmp.Diff(ports, service.Spec.Ports); diff != "" {
				t.Errorf("the Service has other ports (-want +got):\n%s", diff)
			}
			if service.Spec.Selector["app"] != "httpd" || service.Spec.Type != corev1.ServiceTypeClusterIP {
				t.Errorf("not the Service of the article: %+v", service.Spec)
			}
		})
	}
}

func (env *testEnv) wantContainer(containers []corev1.Container, name, image string) {
	env.t.Helper()
	if len(containers) != 1 || containers[0].Name != name || containers[0].Image != image {
		env.t.Errorf("containers are %+v, want %s of %s", containers, name, image)
	}
}

// TestClassicMakesOneObjectPerPass counts the writes of classic's first passes and of a toggle.
func TestClassicMakesOneObjectPerPass(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, maintpage.Classic)
	env.operate(maintpage.Options{Variant: maintpage.Classic})
	page := env.page()
	sandboxtest.Eventually(env.t, "the status is written", func() bool {
		env.MustGet(page)
		return page.Status.MaintPublishStatus == v1alpha1.NotPublished
	})
	for _, write := range []string{"POST pods Created", "POST deployments Created", "POST services Created"} {
		if n := env.writes.Count(write); n != 1 {
			t.Errorf("%d times %s, want 1", n, write)
		}
	}
	if n := env.writes.Count("PUT services/httpd"); n != 0 {
		t.Errorf("the Service was turned %d times, which it need not be", n)
	}
	env.toggle(page, true)
	sandboxtest.Eventually(env.t, "it is published", func() bool {
		env.MustGet(page)
		return page.Status.MaintPublishStatus == v1alpha1.Published
	})
	if production, maintenance := env.selected("example"); production || !maintenance {
		t.Errorf("the Service has the application: %v, and the maintenance page: %v", production, maintenance)
	}
	env.toggle(page, false)
	sandboxtest.Eventually(env.t, "it is not published", func() bool {
		env.MustGet(page)
		return page.Status.MaintPublishStatus == v1alpha1.NotPublished
	})
	if !env.production() {
		t.Error("the Service is not turned back")
	}
}

// TestToggle turns the Service to and fro, each time with a page that takes its time to be Ready, and
// counts what it takes.
func TestToggle(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, maintpage.Hardened)
	env.operate(maintpage.Options{})
	page := env.page()
	env.becomes(page, v1alpha1.ReasonPageNotReady)
	env.wantStatus(page, v1alpha1.NotPublished, metav1.ConditionFalse, metav1.ConditionTrue)
	env.rollOut("httpd")
	env.becomes(page, v1alpha1.ReasonProductionServed)
	env.wantStatus(page, v1alpha1.NotPublished, metav1.ConditionTrue, metav1.ConditionFalse)
	env.wantWrites(3 + 2)

	env.toggle(page, true)
	env.becomes(page, v1alpha1.ReasonWaitingForPage)
	env.wantStatus(page, v1alpha1.NotPublished, metav1.ConditionFalse, metav1.ConditionTrue)
	if !env.production() {
		t.Error("the Service was turned to a page that is not Ready")
	}
	env.setPod("example", true)
	env.becomes(page, v1alpha1.ReasonMaintenanceServed)
	env.wantStatus(page, v1alpha1.Published, metav1.ConditionTrue, metav1.ConditionFalse)
	if production, maintenance := env.selected("example"); production || !maintenance {
		t.Errorf("the Service has the application: %v, and the maintenance page: %v", production, maintenance)
	}
	env.wantWrites(3 + 2 + 3)

	env.setDeployment("httpd", 0)
	env.toggle(page, false)
	env.becomes(page, v1alpha1.ReasonWaitingForPage)
	env.wantStatus(page, v1alpha1.Published, metav1.ConditionFalse, metav1.ConditionTrue)
	env.rollOut("httpd")
	env.becomes(page, v1alpha1.ReasonProductionServed)
	env.wantStatus(page, v1alpha1.NotPublished, metav1.ConditionTrue, metav1.ConditionFalse)
	if !env.production() {
		t.Error("the Service is not turned back")
	}
	env.wantWrites(3 + 2 + 3 + 3)

	env.toggle(page, true) // the page is Ready already
	env.becomes(page, v1alpha1.ReasonMaintenanceServed)
	env.wantWrites(3 + 2 + 3 + 3 + 2)
	env.wantEvents("Created", "Switched",
		v1alpha1.ReasonWaitingForPage, v1alpha1.ReasonMaintenanceServed, v1alpha1.ReasonProductionServed)
	if repaired, updated := env.Events("Repaired"), env.Events("Updated"); repaired+updated > 0 {
		t.Errorf("%d events of a repair, %d of an update, want none: nobody changed anything but the toggle", repaired, updated)
	}
}

// wantWrites compares the number of all writes so far. The last one can be seen in the world a moment
// before its caller has counted it. A conflict wrote nothing: it is what comes of a watch that is behind.
func (env *testEnv) wantWrites(want int) {
	env.t.Helper()
	written := func() int { return env.writes.Count("") - env.writes.Count(" Conflict") }
	sandboxtest.Eventually(env.t, "the last write is counted", func() bool { return written() >= want })
	if got := written(); got != want {
		env.t.Errorf("took %d writes, want %d: %v", got, want, env.writes.All())
	}
}

func (env *testEnv) wantStatus(page *v1alpha1.MaintPage, published v1alpha1.PublishStatus, ready, progressing metav1.ConditionStatus) {
	env.t.Helper()
	if page.Status.MaintPublishStatus != published {
		env.t.Errorf("the status is %q, want %q", page.Status.MaintPublishStatus, published)
	}
	for kind, want := range map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: ready, v1alpha1.ConditionProgressing: progressing} {
		got := meta.FindStatusCondition(page.Status.Conditions, kind)
		if got == nil || got.Status != want || got.ObservedGeneration != page.Generation {
			env.t.Errorf("condition %s is %+v, want %s at generation %d", kind, got, want, page.Generation)
		}
	}
}

// wantEvents waits for events of some reasons, which are written on the side.
func (env *testEnv) wantEvents(reasons ...string) {
	env.t.Helper()
	for _, reason := range reasons {
		sandboxtest.Eventually(env.t, "event "+reason, func() bool { return env.Events(reason) > 0 })
	}
}
