package maintpage

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operator-lab/operator-lab/operators/maintpage/v1alpha1"
)

// TestNextSelector goes through what the Service may be turned to.
func TestNextSelector(t *testing.T) {
	page := &v1alpha1.MaintPage{ObjectMeta: metav1.ObjectMeta{Name: "example", UID: "uid"}}
	page.Spec.AppConfig.AppName = "httpd"
	prod, maint := selectorOf(page, production), selectorOf(page, maintenance)
	rubbish := map[string]string{"app": "nobody"}
	classics := map[string]string{"app": "httpd"}
	for name, test := range map[string]struct {
		toggle, podReady, appReady, waiting bool
		now, want                           map[string]string
	}{
		"the first time":                            {now: nil, want: prod},
		"the first time, to maintenance":            {toggle: true, now: nil, want: maint},
		"at the page that is asked for":             {now: prod, want: prod},
		"waits for the page":                        {toggle: true, appReady: true, now: prod, want: prod},
		"turns to the page":                         {toggle: true, podReady: true, now: prod, want: maint},
		"stays though the page is not Ready":        {toggle: true, appReady: true, now: maint, want: maint},
		"waits for the application":                 {podReady: true, now: maint, want: maint},
		"turns to the application":                  {appReady: true, now: maint, want: prod},
		"turned elsewhere":                          {appReady: true, now: rubbish, want: prod},
		"turned elsewhere, and nothing is Ready":    {now: rubbish, want: prod},
		"turned elsewhere while waiting":            {toggle: true, appReady: true, waiting: true, now: rubbish, want: prod},
		"turned elsewhere, the page has come":       {toggle: true, podReady: true, waiting: true, now: rubbish, want: maint},
		"turned elsewhere while in maintenance":     {toggle: true, appReady: true, now: rubbish, want: maint},
		"classic's, not rolled out again":           {podReady: true, now: classics, want: classics},
		"classic's, rolled out":                     {appReady: true, now: classics, want: prod},
		"classic's, on the way to the maintenance":  {toggle: true, appReady: true, now: classics, want: classics},
		"classic's, the maintenance page has come ": {toggle: true, podReady: true, now: classics, want: maint},
	} {
		page.Spec.MaintPageConfig.MaintPageToggle = test.toggle
		p := &pass{page: page}
		own := metav1.ObjectMeta{UID: "child", OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(page, v1alpha1.GroupVersion.WithKind(v1alpha1.MaintPageKind)),
		}}
		if test.now != nil {
			p.service.ObjectMeta, p.service.Spec.Selector = own, test.now
		}
		p.pod.ObjectMeta, p.deployment.ObjectMeta = own, own
		if test.podReady {
			p.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		if test.appReady {
			p.deployment.Status.AvailableReplicas = 1
		}
		if test.waiting {
			p.known.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonWaitingForPage}}
		}
		if got := p.nextSelector(); !maps.Equal(got, test.want) {
			t.Errorf("%s: turned to %v, want %v", name, got, test.want)
		}
	}
}

func TestPodReady(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		spoil func(*corev1.Pod)
		want  bool
	}{
		"Ready":                       {func(*corev1.Pod) {}, true},
		"not Ready":                   {func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, false},
		"nothing known":               {func(p *corev1.Pod) { p.Status.Conditions = nil }, false},
		"on its way out":              {func(p *corev1.Pod) { p.DeletionTimestamp = &now }, false},
		"Ready with an earlier image": {func(p *corev1.Pod) { p.Status.ObservedGeneration = 1 }, false},
		"Ready with this image":       {func(p *corev1.Pod) { p.Status.ObservedGeneration = 2 }, true},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		test.spoil(pod)
		if got := podReady(pod); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestPullPolicy checks that an application of another image is pulled as one that was made with it, as verify found: an image of
// a tag may be there already, latest may be another one by now.
func TestPullPolicy(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"httpd":                                    corev1.PullAlways,
		"httpd:latest":                             corev1.PullAlways,
		"httpd:2.4":                                corev1.PullIfNotPresent,
		"quay.io/daein/prodpage":                   corev1.PullAlways,
		"registry.example.com:5000/a/httpd":        corev1.PullAlways,
		"registry.example.com:5000/a/httpd:2":      corev1.PullIfNotPresent,
		"httpd@sha256:0123456789abcdef":            corev1.PullIfNotPresent,
		"registry.example.com:5000/httpd@sha256:0": corev1.PullIfNotPresent,
	} {
		page := &v1alpha1.MaintPage{}
		page.Spec.AppConfig = v1alpha1.AppConfig{AppName: "httpd", AppImage: image}
		containers, _, _ := unstructured.NestedSlice(wantedDeployment(page).Object, "spec", "template", "spec", "containers")
		if got := containers[0].(map[string]any)["imagePullPolicy"]; got != string(want) {
			t.Errorf("%s: %v, want %s", image, got, want)
		}
	}
}
