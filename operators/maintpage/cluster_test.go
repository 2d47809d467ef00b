package maintpage_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/maintpage"
	"github.com/operator-lab/operator-lab/operators/maintpage/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestRoleSuffices shows both pages, as a user who may do what the role of each variant says and nothing
// else; hardened also repairs, replaces and prunes.
func TestRoleSuffices(t *testing.T) {
	t.Parallel()
	for _, variant := range maintpage.Variants() {
		t.Run(string(variant), func(t *testing.T) {
			t.Parallel()
			env := newTestEnv(t, variant)
			cfg := rest.CopyConfig(env.Config)
			cfg.Impersonate.UserName = env.Name + "-operator"
			env.Allow(maintpage.Manifests(), "rbac/"+string(variant)+"/role.yaml", cfg.Impersonate.UserName)
			sandboxtest.Eventually(env.t, "the role is in force", func() bool { return env.may(cfg.Impersonate.UserName, "create", "pods") })
			env.operateAs(cfg, maintpage.Options{Variant: variant})
			page := env.page()
			env.settle(page, variant)
			env.toggle(page, true)
			env.settle(page, variant)
			if variant == maintpage.Classic {
				return
			}
			env.wantEvents("Switched")
			env.MustUpdate(page, func() { page.Spec.AppConfig.AppName = "web" })
			env.settle(page, variant)
			pod := env.pod(page.Name)
			env.changeStatus(pod, func() { pod.Status.Phase = corev1.PodFailed })
			old := pod.UID
			sandboxtest.Eventually(env.t, "the old name is pruned, the Pod replaced", func() bool {
				return !env.Exists(env.service("httpd")) && !env.Exists(env.deployment("httpd")) && env.Exists(pod) && pod.UID != old
			})
		})
	}
}

// TestArticlesRoleSuffices shows both pages in one namespace, with the Role that the article creates there.
func TestArticlesRoleSuffices(t *testing.T) {
	t.Parallel()
	for _, variant := range maintpage.Variants() {
		t.Run(string(variant), func(t *testing.T) {
			t.Parallel()
			env := newTestEnv(t, variant)
			for _, file := range []string{"service_account", "role", "role_binding", "operator"} {
				for _, obj := range sandboxtest.Objects(t, maintpage.Manifests(), "deploy/"+file+".yaml") {
					obj.SetNamespace(env.Name)
					env.MustCreate(obj)
				}
			}
			cfg := rest.CopyConfig(env.Config)
			cfg.Impersonate.UserName = "system:serviceaccount:" + env.Name + ":maintpage-operator"
			sandboxtest.Eventually(env.t, "the role is in force", func() bool { return env.may(cfg.Impersonate.UserName, "create", "pods") })
			env.operateAs(cfg, maintpage.Options{Variant: variant})
			page := env.page()
			for _, toggle := range []bool{false, true} {
				env.toggle(page, toggle)
				env.settle(page, variant)
			}
			if variant == maintpage.Hardened {
				env.wantEvents("Switched")
			}
		})
	}
}

// may asks the API server what a user may do in the test's namespace.
func (env *testEnv) may(user, verb, resource string) bool {
	env.t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: env.Name, Verb: verb, Resource: resource,
		},
	}}
	env.MustCreate(review)
	return review.Status.Allowed
}

// TestListing asks for what kubectl get prints.
func TestListing(t *testing.T) {
	t.Parallel()
	for variant, want := range map[maintpage.Variant][]string{
		maintpage.Classic:  {"Name Age", "example"},
		maintpage.Hardened: {"Name Toggle Status Ready Reason App Age", "example true Published True MaintenanceServed httpd"},
	} {
		t.Run(string(variant), func(t *testing.T) {
			t.Parallel()
			env := newTestEnv(t, variant)
			page := env.run(variant)
			env.toggle(page, true)
			env.settle(page, variant)
			if diff := cmp.Diff(want, env.Table(v1alpha1.GroupVersion.WithResource("maintpages"))[:2]); diff != "" {
				t.Errorf("kubectl get maintpages prints other rows (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWrongObjectsAreRefused applies what hardened's CRD does not allow, and reads the answer.
func TestWrongObjectsAreRefused(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, maintpage.Hardened)
	for because, spoil := range map[string]func(*v1alpha1.MaintPage){
		"at most 63 characters":               func(p *v1alpha1.MaintPage) { p.Name = strings.Repeat("p", 64) },
		"spec.appconfig.appname":              func(p *v1alpha1.MaintPage) { p.Spec.AppConfig.AppName = "Web.Server" },
		"spec.appconfig.appimage":             func(p *v1alpha1.MaintPage) { p.Spec.AppConfig.AppImage = "" },
		"spec.maintpageconfig.maintpageimage": func(p *v1alpha1.MaintPage) { p.Spec.MaintPageConfig.MaintPageImage = "an image" },
	} {
		page := env.newPage()
		spoil(page)
		sandboxtest.WantInvalid(t, env.Create(t.Context(), page), because)
	}
	page := env.unstructured(env.newPage())
	unstructured.RemoveNestedField(page.Object, "spec", "appconfig")
	sandboxtest.WantInvalid(t, env.Create(t.Context(), page), "spec.appconfig")

	page = env.unstructured(env.newPage())
	unstructured.RemoveNestedField(page.Object, "spec", "maintpageconfig", "maintpagetoggle")
	env.MustCreate(page)
	if toggle, set, err := unstructured.NestedBool(page.Object, "spec", "maintpageconfig", "maintpagetoggle"); toggle || !set || err != nil {
		t.Errorf("the toggle left out became %v (set %v, error: %v), want false", toggle, set, err)
	}
}

// unstructured is a MaintPage to which anything can be done.
func (env *testEnv) unstructured(page *v1alpha1.MaintPage) *unstructured.Unstructured {
	env.t.Helper()
	text, err := yaml.Marshal(page)
	if err != nil {
		env.t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &u.Object); err != nil {
		env.t.Fatal(err)
	}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.MaintPageKind))
	return u
}

// TestManifestsAreAccepted shows every manifest to a real API server, which checks each field.
func TestManifestsAreAccepted(t *testing.T) {
	t.Parallel()
	newTestEnv(t, maintpage.Hardened).WantAccepted(maintpage.Manifests(), "maintpage-operator",
		"rbac", "rbac/hardened", "rbac/classic", "manager", "deploy", "samples")
}
