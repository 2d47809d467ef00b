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
)

// TestRoleSuffices shows both pages, as a user who may do what the role of each variant says and nothing
// else; hardened also repairs, replaces and prunes.
func TestRoleSuffices(t *testing.T) {
	t.Parallel()
	for _, variant := range maintpage.Variants() {
		t.Run(string(variant), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, crdSet(variant))
			cfg := rest.CopyConfig(s.config)
			cfg.Impersonate.UserName = s.namespace + "-operator"
			s.allow(variant, cfg.Impersonate.UserName)
			s.operateAs(cfg, maintpage.Options{Variant: variant})
			page := s.page()
			s.settle(page, variant)
			s.toggle(page, true)
			s.settle(page, variant)
			if variant == maintpage.Classic {
				return
			}
			s.wantEvents("Switched")
			s.change(page, func() { page.Spec.AppConfig.AppName = "web" })
			s.settle(page, variant)
			pod := s.pod(page.Name)
			s.changeStatus(pod, func() { pod.Status.Phase = corev1.PodFailed })
			old := pod.UID
			s.eventually("the old name is pruned, the Pod replaced", func() bool {
				return !s.exists(s.service("httpd")) && !s.exists(s.deployment("httpd")) && s.exists(pod) && pod.UID != old
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
			s := newStage(t, crdSet(variant))
			for _, file := range []string{"service_account", "role", "role_binding", "operator"} {
				for _, doc := range s.manifest("deploy/" + file + ".yaml") {
					obj := &unstructured.Unstructured{Object: doc}
					obj.SetNamespace(s.namespace)
					s.create(obj)
				}
			}
			cfg := rest.CopyConfig(s.config)
			cfg.Impersonate.UserName = "system:serviceaccount:" + s.namespace + ":maintpage-operator"
			s.eventually("the role is in force", func() bool { return s.may(cfg.Impersonate.UserName, "create", "pods") })
			s.operateAs(cfg, maintpage.Options{Variant: variant})
			page := s.page()
			for _, toggle := range []bool{false, true} {
				s.toggle(page, toggle)
				s.settle(page, variant)
			}
			if variant == maintpage.Hardened {
				s.wantEvents("Switched")
			}
		})
	}
}

// allow binds the cluster role of a variant to a user.
func (s *stage) allow(variant maintpage.Variant, user string) {
	s.t.Helper()
	role := &rbacv1.ClusterRole{}
	for _, doc := range s.manifest("rbac/" + string(variant) + "/role.yaml") {
		if doc["kind"] != "ClusterRole" {
			continue
		}
		text, err := yaml.Marshal(doc)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, role); err != nil {
			s.t.Fatal(err)
		}
	}
	role.Name = user
	s.create(role)
	s.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	s.eventually("the role is in force", func() bool { return s.may(user, "create", "pods") })
}

// manifest returns the objects of a file.
func (s *stage) manifest(name string) []map[string]any {
	s.t.Helper()
	data, err := fs.ReadFile(maintpage.Manifests(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return documents(s.t, data)
}

// may asks the API server what a user may do in the stage's namespace.
func (s *stage) may(user, verb, resource string) bool {
	s.t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: s.namespace, Verb: verb, Resource: resource,
		},
	}}
	s.create(review)
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
			s := newStage(t, crdSet(variant))
			page := s.run(variant)
			s.toggle(page, true)
			s.settle(page, variant)
			if diff := cmp.Diff(want, s.table("maintpages")[:2]); diff != "" {
				t.Errorf("kubectl get maintpages prints other rows (-want +got):\n%s", diff)
			}
		})
	}
}

// table returns header and rows as the API server prints them, without the age.
func (s *stage) table(resource string) []string {
	s.t.Helper()
	clients, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	data, err := clients.RESTClient().Get().
		AbsPath("/apis", v1alpha1.Group, v1alpha1.Version, "namespaces", s.namespace, resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		DoRaw(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(data, &table); err != nil {
		s.t.Fatal(err)
	}
	var header []string
	for _, column := range table.ColumnDefinitions {
		header = append(header, column.Name)
	}
	rows := []string{strings.Join(header, " ")}
	for _, row := range table.Rows {
		text, err := json.Marshal(row.Cells[:len(row.Cells)-1])
		if err != nil {
			s.t.Fatal(err)
		}
		rows = append(rows, strings.NewReplacer(`"`, "", "[", "", "]", "", ",", " ").Replace(string(text)))
	}
	return rows
}

// TestWrongObjectsAreRefused applies what hardened's CRD does not allow, and reads the answer.
func TestWrongObjectsAreRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	for because, spoil := range map[string]func(*v1alpha1.MaintPage){
		"at most 63 characters":               func(p *v1alpha1.MaintPage) { p.Name = strings.Repeat("p", 64) },
		"spec.appconfig.appname":              func(p *v1alpha1.MaintPage) { p.Spec.AppConfig.AppName = "Web.Server" },
		"spec.appconfig.appimage":             func(p *v1alpha1.MaintPage) { p.Spec.AppConfig.AppImage = "" },
		"spec.maintpageconfig.maintpageimage": func(p *v1alpha1.MaintPage) { p.Spec.MaintPageConfig.MaintPageImage = "an image" },
	} {
		page := s.newPage()
		spoil(page)
		s.wantRefused(s.Create(t.Context(), page), because)
	}
	page := s.unstructured(s.newPage())
	unstructured.RemoveNestedField(page.Object, "spec", "appconfig")
	s.wantRefused(s.Create(t.Context(), page), "spec.appconfig")

	page = s.unstructured(s.newPage())
	unstructured.RemoveNestedField(page.Object, "spec", "maintpageconfig", "maintpagetoggle")
	s.create(page)
	if toggle, set, err := unstructured.NestedBool(page.Object, "spec", "maintpageconfig", "maintpagetoggle"); toggle || !set || err != nil {
		t.Errorf("the toggle left out became %v (set %v, error: %v), want false", toggle, set, err)
	}
}

func (s *stage) wantRefused(err error, because string) {
	s.t.Helper()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), because) {
		s.t.Errorf("got %v, want it refused with %q", err, because)
	}
}

// unstructured is a MaintPage to which anything can be done.
func (s *stage) unstructured(page *v1alpha1.MaintPage) *unstructured.Unstructured {
	s.t.Helper()
	text, err := yaml.Marshal(page)
	if err != nil {
		s.t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &u.Object); err != nil {
		s.t.Fatal(err)
	}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.MaintPageKind))
	return u
}

// TestManifestsAreAccepted shows every manifest to a real API server, which checks each field.
func TestManifestsAreAccepted(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "maintpage-operator"}}
	if err := s.Create(t.Context(), home); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	strict := client.WithFieldValidation(client.NewDryRunClient(s.Client), metav1.FieldValidationStrict)
	for _, dir := range []string{"rbac", "rbac/hardened", "rbac/classic", "manager", "deploy", "samples"} {
		files, err := fs.Glob(maintpage.Manifests(), dir+"/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s (error: %v)", dir, err)
		}
		for _, file := range files {
			for _, doc := range s.manifest(file) {
				obj := &unstructured.Unstructured{Object: doc}
				if dir == "deploy" || dir == "samples" {
					obj.SetNamespace(s.namespace)
				}
				if err := strict.Create(t.Context(), obj); err != nil && !apierrors.IsAlreadyExists(err) {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	}
}
