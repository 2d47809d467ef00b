package maintpage_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/maintpage"
	"github.com/operator-lab/operator-lab/operators/maintpage/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestFindings runs what is known to be wrong with classic against both variants. Each finding returns
// what it has seen go wrong, which has to be something for classic, and nothing for hardened. They run on
// the CRD of the variant; classic on another one where that is named.
func TestFindings(t *testing.T) {
	t.Parallel()
	for _, finding := range []struct {
		name    string
		classic crdSet
		run     func(*testEnv, maintpage.Variant) error
	}{
		{name: "M-01 Service turned elsewhere", run: serviceTurned},
		{name: "M-01 Service deleted", run: serviceDeleted},
		{name: "M-02 page not Ready", run: pageNotReady},
		{name: "M-03 named as the application", run: namedAsTheApplication},
		{name: "M-04 two of one application", run: twoOfOneApplication},
		{name: "M-05 application renamed", run: applicationRenamed},
		{name: "M-06 another page", run: anotherPage},
		{name: "M-07 page has ended", run: pageHasEnded},
		{name: "M-08 scaled to nothing", run: scaledToNothing},
		{name: "M-09 no selector", run: noSelector},
		{name: "M-10 a word for a truth", run: wordForTruth},
		{name: "M-11 moved CRD", run: movedCRD, classic: movedCRDs},
		{name: "M-12 a faster writer", run: fasterWriter},
		{name: "M-13 writes without a change", run: writesWithoutChange},
		{name: "M-14 no name", run: noName},
		{name: "M-15 nothing said", run: nothingSaid},
		{name: "M-16 secrets", run: secrets},
	} {
		for _, variant := range maintpage.Variants() {
			t.Run(finding.name+"/"+string(variant), func(t *testing.T) {
				t.Parallel()
				crds := crdSet(variant)
				if variant == maintpage.Classic && finding.classic != "" {
					crds = finding.classic
				}
				err := finding.run(newTestEnv(t, crds), variant)
				switch {
				case err == nil && variant == maintpage.Classic:
					t.Error("classic did well, the finding is not true")
				case err != nil && variant == maintpage.Hardened:
					t.Error(err)
				case err != nil:
					t.Logf("as expected: %v", err)
				}
			})
		}
	}
}

// run runs an operator and settles the sample.
func (env *testEnv) run(variant maintpage.Variant) *v1alpha1.MaintPage {
	env.t.Helper()
	env.operate(maintpage.Options{Variant: variant})
	page := env.page()
	env.settle(page, variant)
	if variant == maintpage.Classic {
		// It may still have a pass to make because of what it did itself, which would repair by chance.
		env.othersHadTheirTurn(variant)
	}
	return page
}

// production tells whether the Service of the sample sends requests to the application and nowhere else.
func (env *testEnv) production() bool {
	env.t.Helper()
	production, maintenance := env.selected("example")
	return production && !maintenance
}

// serviceTurned: a Service that somebody turns elsewhere is turned back.
func serviceTurned(env *testEnv, variant maintpage.Variant) error {
	env.run(variant)
	service := env.service("httpd")
	env.MustUpdate(service, func() { service.Spec.Selector = map[string]string{"app": "nobody"} })
	return env.comesTrue(variant, "the Service is turned back", env.production)
}

// serviceDeleted: a Service that somebody deletes comes back.
func serviceDeleted(env *testEnv, variant maintpage.Variant) error {
	env.run(variant)
	env.MustDelete(env.service("httpd"))
	return env.comesTrue(variant, "the Service is back", func() bool { return env.Exists(env.service("httpd")) })
}

// pageNotReady: while the maintenance page is not Ready, requests go to the application and nobody says
// otherwise.
func pageNotReady(env *testEnv, variant maintpage.Variant) error {
	page := env.run(variant)
	env.setPod(page.Name, false)
	env.toggle(page, true)
	sandboxtest.Eventually(env.t, "the operator has seen the wish", func() bool {
		env.MustGet(page)
		return page.Status.MaintPublishStatus == v1alpha1.Published || page.Status.ObservedGeneration == page.Generation
	})
	if !env.production() || page.Status.MaintPublishStatus == v1alpha1.Published {
		return fmt.Errorf("the status is %q and the Service is turned, to a pod that is not Ready", page.Status.MaintPublishStatus)
	}
	env.settle(page, variant)
	if env.production() {
		return errors.New("the page is Ready, and not shown")
	}
	return nil
}

// namedAsTheApplication: a MaintPage with the name of its application shows one page at a time.
func namedAsTheApplication(env *testEnv, variant maintpage.Variant) error {
	env.operate(maintpage.Options{Variant: variant})
	page := env.newPage()
	page.Name = page.Spec.AppConfig.AppName
	env.MustCreate(page)
	for _, toggle := range []bool{false, true} {
		env.toggle(page, toggle)
		env.settle(page, variant)
		production, maintenance := env.selected("httpd")
		if production == maintenance || maintenance != toggle {
			return fmt.Errorf("with maintpagetoggle %v the Service has the application: %v, and the maintenance page: %v",
				toggle, production, maintenance)
		}
	}
	return nil
}

// twoOfOneApplication: a second MaintPage leaves alone what belongs to the first.
func twoOfOneApplication(env *testEnv, variant maintpage.Variant) error {
	first := env.run(variant)
	deployment := env.deployment("httpd")
	env.MustGet(deployment)
	before := deployment.Generation

	second := env.newPage()
	second.Name = "second"
	second.Spec.AppConfig.AppImage = "example.com/second:1"
	second.Spec.MaintPageConfig.MaintPageToggle = true
	env.MustCreate(second)
	sandboxtest.Eventually(env.t, "the second had its turn", func() bool {
		env.MustGet(second)
		return second.Status.MaintPublishStatus != "" && env.Exists(env.pod(second.Name))
	})
	if variant == maintpage.Classic {
		sandboxtest.Eventually(env.t, "the image went to and fro", func() bool {
			env.MustGet(deployment)
			return deployment.Generation >= before+2 && env.image("httpd") == first.Spec.AppConfig.AppImage
		})
	}
	env.MustGet(deployment)
	env.MustGet(second)
	if !env.production() || deployment.Generation != before || second.Status.MaintPublishStatus == v1alpha1.Published {
		return fmt.Errorf("the image went to and fro in %d changes, the second says %q, and the Service has the application of the first: %v",
			deployment.Generation-before, second.Status.MaintPublishStatus, env.production())
	}
	env.becomes(second, v1alpha1.ReasonConflict)
	return nil
}

// applicationRenamed: nothing is left of the old name.
func applicationRenamed(env *testEnv, variant maintpage.Variant) error {
	page := env.run(variant)
	env.MustUpdate(page, func() { page.Spec.AppConfig.AppName = "web" })
	env.settle(page, variant)
	return env.comesTrue(variant, "the old Deployment and Service are gone", func() bool {
		return !env.Exists(env.deployment("httpd")) && !env.Exists(env.service("httpd"))
	})
}

// anotherPage: with another image there is another page.
func anotherPage(env *testEnv, variant maintpage.Variant) error {
	page := env.run(variant)
	env.MustUpdate(page, func() { page.Spec.MaintPageConfig.MaintPageImage = "example.com/maintpage:2" })
	return env.comesTrue(variant, "the Pod has the new image", func() bool {
		pod := env.pod(page.Name)
		return env.Exists(pod) && pod.Spec.Containers[0].Image == "example.com/maintpage:2"
	})
}

// pageHasEnded: a Pod that failed, or was evicted, is replaced.
func pageHasEnded(env *testEnv, variant maintpage.Variant) error {
	page := env.run(variant)
	pod := env.pod(page.Name)
	env.changeStatus(pod, func() { pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted" })
	old := pod.UID
	return env.comesTrue(variant, "there is another Pod", func() bool { return env.Exists(pod) && pod.UID != old })
}

// scaledToNothing: an application that somebody scales to nothing comes back.
func scaledToNothing(env *testEnv, variant maintpage.Variant) error {
	env.run(variant)
	deployment := env.deployment("httpd")
	env.MustUpdate(deployment, func() { deployment.Spec.Replicas = new(int32(0)) })
	return env.comesTrue(variant, "there is a replica", func() bool {
		env.MustGet(deployment)
		return *deployment.Spec.Replicas == 1
	})
}

// noSelector: a Service without a selector gets one.
func noSelector(env *testEnv, variant maintpage.Variant) error {
	o := maintpage.Options{Variant: variant}
	lines := captureLog(&o)
	env.operate(o)
	page := env.page()
	env.settle(page, variant)
	remove := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/selector"}]`))
	if err := env.Patch(env.t.Context(), env.service("httpd"), remove); err != nil {
		env.t.Fatal(err)
	}
	env.toggle(page, true)
	panics := 0
	sandboxtest.Eventually(env.t, "the page is published, or tried in vain", func() bool {
		env.MustGet(page)
		panics = lines.number("[recovered]")
		return page.Status.MaintPublishStatus == v1alpha1.Published || panics >= 3
	})
	if panics > 0 {
		return fmt.Errorf("%d passes panicked: %s", panics, lines.first("[recovered]"))
	}
	return nil
}

// wordForTruth: a MaintPage that says "true" where true belongs stops nobody but itself.
func wordForTruth(env *testEnv, variant maintpage.Variant) error {
	page := env.run(variant)
	poison := env.unstructured(env.newPage())
	poison.SetName("poison")
	if err := unstructured.SetNestedField(poison.Object, "true", "spec", "maintpageconfig", "maintpagetoggle"); err != nil {
		env.t.Fatal(err)
	}
	before := env.watchErrors.Load()
	err := env.Create(env.t.Context(), poison)
	if apierrors.IsInvalid(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	// A list fails only once the watch has met the object.
	sandboxtest.Eventually(env.t, "lists fail", func() bool { return env.watchErrors.Load() > before })
	env.toggle(page, true)
	before = env.watchErrors.Load()
	sandboxtest.Eventually(env.t, "the wish is followed, or lists fail", func() bool {
		env.MustGet(page)
		return page.Status.MaintPublishStatus == v1alpha1.Published || env.watchErrors.Load() >= before+2
	})
	if page.Status.MaintPublishStatus != v1alpha1.Published {
		return errors.New("the object was stored, every list of MaintPages fails since, and the wish of another one is not seen")
	}
	return nil
}

// movedCRD: the CRD, now of apiextensions.k8s.io/v1, keeps what a MaintPage says.
func movedCRD(env *testEnv, variant maintpage.Variant) error {
	env.operate(maintpage.Options{Variant: variant})
	page := env.page()
	if page.Spec.AppConfig.AppName == "httpd" {
		env.settle(page, variant)
		return nil
	}
	sandboxtest.Eventually(env.t, "the Pod is refused", func() bool { return env.writes.Count("POST pods Unprocessable") >= 3 })
	return errors.New("the spec was dropped, and three times a Pod without an image was refused")
}

// fasterWriter: somebody who writes to the MaintPage all the time does not keep the image from being put back.
func fasterWriter(env *testEnv, variant maintpage.Variant) error {
	page := env.run(variant)
	writes := 0
	env.writes.BeforeEach(func(write string) {
		if write != "PUT maintpages/example/status" && write != "PATCH maintpages/example/status" {
			return
		}
		writes++
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"writes":"%d"}}}`, writes)
		err := env.Patch(env.t.Context(), env.newPage(), client.RawPatch(types.MergePatchType, patch))
		if err != nil && env.t.Context().Err() == nil { // the operator outlives the test by a moment
			env.t.Errorf("write to the MaintPage: %v", err)
		}
	})
	env.setImage("httpd", "quay.io/daein/prodpage:notfound")
	back := false
	sandboxtest.Eventually(env.t, "the image is back, or tried in vain", func() bool {
		back = env.image("httpd") == page.Spec.AppConfig.AppImage
		return back || env.writes.Count("maintpages/example/status Conflict") >= 3
	})
	if !back {
		return errors.New("three times the status was in conflict, and the image is not put back")
	}
	return nil
}

// writesWithoutChange: an event that changes nothing about what is wanted makes no writes.
func writesWithoutChange(env *testEnv, variant maintpage.Variant) error {
	page := env.newPage()
	page.Spec.MaintPageConfig.MaintPageToggle = true
	env.MustCreate(page)
	env.operate(maintpage.Options{Variant: variant})
	env.settle(page, variant)
	env.othersHadTheirTurn(variant)
	about := func() int {
		return env.writes.Count("services/httpd ") + env.writes.Count("maintpages/example/status ") +
			env.writes.Count("pods/example-maintpage-pod ") + env.writes.Count("deployments/httpd ")
	}
	before := about()
	deployment := env.deployment("httpd")
	env.MustUpdate(deployment, func() { deployment.Annotations = map[string]string{"looked": "at"} })
	env.othersHadTheirTurn(variant)
	if n := about() - before; n > 0 {
		return fmt.Errorf("an annotation of the Deployment made %d writes: %v", n, env.writes.All())
	}
	return nil
}

// noName: an application without a name is refused.
func noName(env *testEnv, variant maintpage.Variant) error {
	env.operate(maintpage.Options{Variant: variant})
	page := env.newPage()
	page.Spec.AppConfig.AppName = ""
	if err := env.Create(env.t.Context(), page); err != nil {
		if !apierrors.IsInvalid(err) {
			return fmt.Errorf("refused for another reason: %w", err)
		}
		return nil
	}
	sandboxtest.Eventually(env.t, "the Deployment is refused", func() bool { return env.writes.Count("POST deployments Unprocessable") >= 3 })
	return errors.New("three times a Deployment without a name was refused")
}

// nothingSaid: what happened can be seen in conditions and events, and of which generation they are.
func nothingSaid(env *testEnv, variant maintpage.Variant) error {
	page := env.run(variant)
	env.toggle(page, true)
	env.settle(page, variant)
	if variant == maintpage.Hardened {
		env.wantEvents(v1alpha1.ReasonMaintenanceServed, "Switched")
	} else {
		env.othersHadTheirTurn(variant)
	}
	if env.reason(page) == "" || page.Status.ObservedGeneration != page.Generation || env.events("Switched") == 0 {
		return fmt.Errorf("%d conditions, observed generation %d of %d, %d events of the switch",
			len(page.Status.Conditions), page.Status.ObservedGeneration, page.Generation, env.events("Switched"))
	}
	return nil
}

// secrets: the operator may not read Secrets, nor ConfigMaps or claims.
func secrets(env *testEnv, variant maintpage.Variant) error {
	user := env.Name + "-operator"
	env.allow(variant, user)
	var allowed []string
	for _, resource := range []string{"secrets", "configmaps", "persistentvolumeclaims"} {
		if env.may(user, "get", resource) {
			allowed = append(allowed, resource)
		}
	}
	if !env.may(user, "get", "pods") || slices.Contains(allowed, "pods") {
		env.t.Error("the role does not even allow what is needed: the question was wrong")
	}
	if len(allowed) > 0 {
		return fmt.Errorf("it may read %v, and never does", allowed)
	}
	return nil
}
