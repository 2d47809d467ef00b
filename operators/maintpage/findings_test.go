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
)

// TestFindings runs what is known to be wrong with classic against both variants. Each finding returns
// what it has seen go wrong, which has to be something for classic, and nothing for hardened. They run on
// the CRD of the variant; classic on another one where that is named.
func TestFindings(t *testing.T) {
	t.Parallel()
	for _, finding := range []struct {
		name    string
		classic crdSet
		run     func(*stage, maintpage.Variant) error
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
				err := finding.run(newStage(t, crds), variant)
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
func (s *stage) run(variant maintpage.Variant) *v1alpha1.MaintPage {
	s.t.Helper()
	s.operate(maintpage.Options{Variant: variant})
	page := s.page()
	s.settle(page, variant)
	if variant == maintpage.Classic {
		// It may still have a pass to make because of what it did itself, which would repair by chance.
		s.othersHadTheirTurn(variant)
	}
	return page
}

// production tells whether the Service of the sample sends requests to the application and nowhere else.
func (s *stage) production() bool {
	s.t.Helper()
	production, maintenance := s.selected("example")
	return production && !maintenance
}

// serviceTurned: a Service that somebody turns elsewhere is turned back.
func serviceTurned(s *stage, variant maintpage.Variant) error {
	s.run(variant)
	service := s.service("httpd")
	s.change(service, func() { service.Spec.Selector = map[string]string{"app": "nobody"} })
	return s.comesTrue(variant, "the Service is turned back", s.production)
}

// serviceDeleted: a Service that somebody deletes comes back.
func serviceDeleted(s *stage, variant maintpage.Variant) error {
	s.run(variant)
	s.delete(s.service("httpd"))
	return s.comesTrue(variant, "the Service is back", func() bool { return s.exists(s.service("httpd")) })
}

// pageNotReady: while the maintenance page is not Ready, requests go to the application and nobody says
// otherwise.
func pageNotReady(s *stage, variant maintpage.Variant) error {
	page := s.run(variant)
	s.setPod(page.Name, false)
	s.toggle(page, true)
	s.eventually("the operator has seen the wish", func() bool {
		s.read(page)
		return page.Status.MaintPublishStatus == v1alpha1.Published || page.Status.ObservedGeneration == page.Generation
	})
	if !s.production() || page.Status.MaintPublishStatus == v1alpha1.Published {
		return fmt.Errorf("the status is %q and the Service is turned, to a pod that is not Ready", page.Status.MaintPublishStatus)
	}
	s.settle(page, variant)
	if s.production() {
		return errors.New("the page is Ready, and not shown")
	}
	return nil
}

// namedAsTheApplication: a MaintPage with the name of its application shows one page at a time.
func namedAsTheApplication(s *stage, variant maintpage.Variant) error {
	s.operate(maintpage.Options{Variant: variant})
	page := s.newPage()
	page.Name = page.Spec.AppConfig.AppName
	s.create(page)
	for _, toggle := range []bool{false, true} {
		s.toggle(page, toggle)
		s.settle(page, variant)
		production, maintenance := s.selected("httpd")
		if production == maintenance || maintenance != toggle {
			return fmt.Errorf("with maintpagetoggle %v the Service has the application: %v, and the maintenance page: %v",
				toggle, production, maintenance)
		}
	}
	return nil
}

// twoOfOneApplication: a second MaintPage leaves alone what belongs to the first.
func twoOfOneApplication(s *stage, variant maintpage.Variant) error {
	first := s.run(variant)
	deployment := s.deployment("httpd")
	s.read(deployment)
	before := deployment.Generation

	second := s.newPage()
	second.Name = "second"
	second.Spec.AppConfig.AppImage = "example.com/second:1"
	second.Spec.MaintPageConfig.MaintPageToggle = true
	s.create(second)
	s.eventually("the second had its turn", func() bool {
		s.read(second)
		return second.Status.MaintPublishStatus != "" && s.exists(s.pod(second.Name))
	})
	if variant == maintpage.Classic {
		s.eventually("the image went to and fro", func() bool {
			s.read(deployment)
			return deployment.Generation >= before+2 && s.image("httpd") == first.Spec.AppConfig.AppImage
		})
	}
	s.read(deployment)
	s.read(second)
	if !s.production() || deployment.Generation != before || second.Status.MaintPublishStatus == v1alpha1.Published {
		return fmt.Errorf("the image went to and fro in %d changes, the second says %q, and the Service has the application of the first: %v",
			deployment.Generation-before, second.Status.MaintPublishStatus, s.production())
	}
	s.becomes(second, v1alpha1.ReasonConflict)
	return nil
}

// applicationRenamed: nothing is left of the old name.
func applicationRenamed(s *stage, variant maintpage.Variant) error {
	page := s.run(variant)
	s.change(page, func() { page.Spec.AppConfig.AppName = "web" })
	s.settle(page, variant)
	return s.comesTrue(variant, "the old Deployment and Service are gone", func() bool {
		return !s.exists(s.deployment("httpd")) && !s.exists(s.service("httpd"))
	})
}

// anotherPage: with another image there is another page.
func anotherPage(s *stage, variant maintpage.Variant) error {
	page := s.run(variant)
	s.change(page, func() { page.Spec.MaintPageConfig.MaintPageImage = "example.com/maintpage:2" })
	return s.comesTrue(variant, "the Pod has the new image", func() bool {
		pod := s.pod(page.Name)
		return s.exists(pod) && pod.Spec.Containers[0].Image == "example.com/maintpage:2"
	})
}

// pageHasEnded: a Pod that failed, or was evicted, is replaced.
func pageHasEnded(s *stage, variant maintpage.Variant) error {
	page := s.run(variant)
	pod := s.pod(page.Name)
	s.changeStatus(pod, func() { pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted" })
	old := pod.UID
	return s.comesTrue(variant, "there is another Pod", func() bool { return s.exists(pod) && pod.UID != old })
}

// scaledToNothing: an application that somebody scales to nothing comes back.
func scaledToNothing(s *stage, variant maintpage.Variant) error {
	s.run(variant)
	deployment := s.deployment("httpd")
	s.change(deployment, func() { deployment.Spec.Replicas = new(int32(0)) })
	return s.comesTrue(variant, "there is a replica", func() bool {
		s.read(deployment)
		return *deployment.Spec.Replicas == 1
	})
}

// noSelector: a Service without a selector gets one.
func noSelector(s *stage, variant maintpage.Variant) error {
	o := maintpage.Options{Variant: variant}
	lines := captureLog(&o)
	s.operate(o)
	page := s.page()
	s.settle(page, variant)
	remove := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/selector"}]`))
	if err := s.Patch(s.t.Context(), s.service("httpd"), remove); err != nil {
		s.t.Fatal(err)
	}
	s.toggle(page, true)
	panics := 0
	s.eventually("the page is published, or tried in vain", func() bool {
		s.read(page)
		panics = lines.number("[recovered]")
		return page.Status.MaintPublishStatus == v1alpha1.Published || panics >= 3
	})
	if panics > 0 {
		return fmt.Errorf("%d passes panicked: %s", panics, lines.first("[recovered]"))
	}
	return nil
}

// wordForTruth: a MaintPage that says "true" where true belongs stops nobody but itself.
func wordForTruth(s *stage, variant maintpage.Variant) error {
	page := s.run(variant)
	poison := s.unstructured(s.newPage())
	poison.SetName("poison")
	if err := unstructured.SetNestedField(poison.Object, "true", "spec", "maintpageconfig", "maintpagetoggle"); err != nil {
		s.t.Fatal(err)
	}
	before := s.watchErrors.Load()
	err := s.Create(s.t.Context(), poison)
	if apierrors.IsInvalid(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	// A list fails only once the watch has met the object.
	s.eventually("lists fail", func() bool { return s.watchErrors.Load() > before })
	s.toggle(page, true)
	before = s.watchErrors.Load()
	s.eventually("the wish is followed, or lists fail", func() bool {
		s.read(page)
		return page.Status.MaintPublishStatus == v1alpha1.Published || s.watchErrors.Load() >= before+2
	})
	if page.Status.MaintPublishStatus != v1alpha1.Published {
		return errors.New("the object was stored, every list of MaintPages fails since, and the wish of another one is not seen")
	}
	return nil
}

// movedCRD: the CRD, now of apiextensions.k8s.io/v1, keeps what a MaintPage says.
func movedCRD(s *stage, variant maintpage.Variant) error {
	s.operate(maintpage.Options{Variant: variant})
	page := s.page()
	if page.Spec.AppConfig.AppName == "httpd" {
		s.settle(page, variant)
		return nil
	}
	s.eventually("the Pod is refused", func() bool { return s.traffic.number("POST pods Unprocessable") >= 3 })
	return errors.New("the spec was dropped, and three times a Pod without an image was refused")
}

// fasterWriter: somebody who writes to the MaintPage all the time does not keep the image from being put back.
func fasterWriter(s *stage, variant maintpage.Variant) error {
	page := s.run(variant)
	writes := 0
	s.traffic.beforeEach(func(write string) {
		if write != "PUT maintpages/example/status" && write != "PATCH maintpages/example/status" {
			return
		}
		writes++
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"writes":"%d"}}}`, writes)
		err := s.Patch(s.t.Context(), s.newPage(), client.RawPatch(types.MergePatchType, patch))
		if err != nil && s.t.Context().Err() == nil { // the operator outlives the test by a moment
			s.t.Errorf("write to the MaintPage: %v", err)
		}
	})
	s.setImage("httpd", "quay.io/daein/prodpage:notfound")
	back := false
	s.eventually("the image is back, or tried in vain", func() bool {
		back = s.image("httpd") == page.Spec.AppConfig.AppImage
		return back || s.traffic.number("maintpages/example/status Conflict") >= 3
	})
	if !back {
		return errors.New("three times the status was in conflict, and the image is not put back")
	}
	return nil
}

// writesWithoutChange: an event that changes nothing about what is wanted makes no writes.
func writesWithoutChange(s *stage, variant maintpage.Variant) error {
	page := s.newPage()
	page.Spec.MaintPageConfig.MaintPageToggle = true
	s.create(page)
	s.operate(maintpage.Options{Variant: variant})
	s.settle(page, variant)
	s.othersHadTheirTurn(variant)
	about := func() int {
		return s.traffic.number("services/httpd ") + s.traffic.number("maintpages/example/status ") +
			s.traffic.number("pods/example-maintpage-pod ") + s.traffic.number("deployments/httpd ")
	}
	before := about()
	deployment := s.deployment("httpd")
	s.change(deployment, func() { deployment.Annotations = map[string]string{"looked": "at"} })
	s.othersHadTheirTurn(variant)
	if n := about() - before; n > 0 {
		return fmt.Errorf("an annotation of the Deployment made %d writes: %v", n, s.traffic.all())
	}
	return nil
}

// noName: an application without a name is refused.
func noName(s *stage, variant maintpage.Variant) error {
	s.operate(maintpage.Options{Variant: variant})
	page := s.newPage()
	page.Spec.AppConfig.AppName = ""
	if err := s.Create(s.t.Context(), page); err != nil {
		if !apierrors.IsInvalid(err) {
			return fmt.Errorf("refused for another reason: %w", err)
		}
		return nil
	}
	s.eventually("the Deployment is refused", func() bool { return s.traffic.number("POST deployments Unprocessable") >= 3 })
	return errors.New("three times a Deployment without a name was refused")
}

// nothingSaid: what happened can be seen in conditions and events, and of which generation they are.
func nothingSaid(s *stage, variant maintpage.Variant) error {
	page := s.run(variant)
	s.toggle(page, true)
	s.settle(page, variant)
	if variant == maintpage.Hardened {
		s.wantEvents(v1alpha1.ReasonMaintenanceServed, "Switched")
	} else {
		s.othersHadTheirTurn(variant)
	}
	if s.reason(page) == "" || page.Status.ObservedGeneration != page.Generation || s.events("Switched") == 0 {
		return fmt.Errorf("%d conditions, observed generation %d of %d, %d events of the switch",
			len(page.Status.Conditions), page.Status.ObservedGeneration, page.Generation, s.events("Switched"))
	}
	return nil
}

// secrets: the operator may not read Secrets, nor ConfigMaps or claims.
func secrets(s *stage, variant maintpage.Variant) error {
	user := s.namespace + "-operator"
	s.allow(variant, user)
	var allowed []string
	for _, resource := range []string{"secrets", "configmaps", "persistentvolumeclaims"} {
		if s.may(user, "get", resource) {
			allowed = append(allowed, resource)
		}
	}
	if !s.may(user, "get", "pods") || slices.Contains(allowed, "pods") {
		s.t.Error("the role does not even allow what is needed: the question was wrong")
	}
	if len(allowed) > 0 {
		return fmt.Errorf("it may read %v, and never does", allowed)
	}
	return nil
}
