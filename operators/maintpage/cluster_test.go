package maintpage_test

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
			env.allow(variant, cfg.Impersonate.UserName)
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
				for _, doc := range env.manifest("deploy/" + file + ".yaml") {
					obj := &unstructured.Unstructured{Object: doc}
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

// allow binds the cluster role of a variant to a user.
func (env *testEnv) allow(variant maintpage.Variant, user string) {
	env.t.Helper()
	role := &rbacv1.ClusterRole{}
	for _, doc := range env.manifest("rbac/" + string(variant) + "/role.yaml") {
		if doc["kind"] != "ClusterRole" {
			continue
		}
		text, err := yaml.Marshal(doc)
		if err != nil {
			env.t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, role); err != nil {
			env.t.Fatal(err)
		}
	}
	role.Name = user
	env.MustCreate(role)
	env.MustCreate(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	sandboxtest.Eventually(env.t, "the role is in force", func() bool { return env.may(user, "create", "pods") })
}

// manifest returns the objects of a file.
func (env *testEnv) manifest(name string) []map[string]any {
	env.t.Helper()
	data, err := fs.ReadFile(maintpage.Manifests(), name)
	if err != nil {
		env.t.Fatal(err)
	}
	return documents(env.t, data)
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
			if diff := cmp.Diff(want, env.table("maintpages")[:2]); diff != "" {
				t.Errorf("kubectl get maintpages prints other rows (-want +got):\n%s", diff)
			}
		})
	}
}

// table returns header and rows as the API server prints them, without the age.
func (env *testEnv) table(resource string) []string {
	env.t.Helper()
	clients, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		env.t.Fatal(err)
	}
	data, err := clients.RESTClient().Get().
		AbsPath("/apis", v1alpha1.Group, v1alpha1.Version, "namespaces", env.Name, resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		DoRaw(env.t.Context())
	if err != nil {
		env.t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(data, &table); err != nil {
		env.t.Fatal(err)
	}
	var header []string
	for _, column := range table.ColumnDefinitions {
		header = append(header, column.Name)
	}
	rows := []string{strings.Join(header, " ")}
	for _, row := range table.Rows {
		text, err := json.Marshal(row.Cells[:len(row.Cells)-1])
		if err != nil {
			env.t.Fatal(err)
		}
		rows = append(rows, strings.NewReplacer(`"`, "", "[", "", "]", "", ",", " ").Replace(string(text)))
	}
	return rows
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
		env.wantRefused(env.Create(t.Context(), page), because)
	}
	page := env.unstructured(env.newPage())
	unstructured.RemoveNestedField(page.Object, "spec", "appconfig")
	env.wantRefused(env.Create(t.Context(), page), "spec.appconfig")

	page = env.unstructured(env.newPage())
	unstructured.RemoveNestedField(page.Object, "spec", "maintpageconfig", "maintpagetoggle")
	env.MustCreate(page)
	if toggle, set, err := unstructured.NestedBool(page.Object, "spec", "maintpageconfig", "maintpagetoggle"); toggle || !set || err != nil {
		t.Errorf("the toggle left out became %v (set %v, error: %v), want false", toggle, set, err)
	}
}

func (env *testEnv) wantRefused(err error, because string) {
	env.t.Helper()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), because) {
		env.t.Errorf("got %v, want it refused with %q", err, because)
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
	env := newTestEnv(t, maintpage.Hardened)
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "maintpage-operator"}}
	if err := env.Create(t.Context(), home); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	strict := client.WithFieldValidation(client.NewDryRunClient(env.Client), metav1.FieldValidationStrict)
	for _, dir := range []string{"rbac", "rbac/hardened", "rbac/classic", "manager", "deploy", "samples"} {
		files, err := fs.Glob(maintpage.Manifests(), dir+"/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s (error: %v)", dir, err)
		}
		for _, file := range files {
			for _, doc := range env.manifest(file) {
				obj := &unstructured.Unstructured{Object: doc}
				if dir == "deploy" || dir == "samples" {
					obj.SetNamespace(env.Name)
				}
				if err := strict.Create(t.Context(), obj); err != nil && !apierrors.IsAlreadyExists(err) {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	}
}
