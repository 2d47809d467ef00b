package sandboxtest

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects reads the objects of a manifest.
func Objects(tb testing.TB, files fs.FS, name string) (all []*unstructured.Unstructured) {
	tb.Helper()
	f, err := files.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	for decoder := yaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		o := &unstructured.Unstructured{}
		switch err := decoder.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			tb.Fatalf("%s: %v", name, err)
		case o.Object != nil:
			all = append(all, o)
		}
	}
}

// Allow gives a user what the ClusterRoles of a manifest allow; what its Roles allow if it has no ClusterRole.
func (n *Namespace) Allow(files fs.FS, name, user string) {
	n.tb.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	for _, o := range Objects(n.tb, files, name) {
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, role, true); err != nil {
			n.tb.Fatalf("%s: %v", name, err)
		}
		rules[role.Kind] = append(rules[role.Kind], role.Rules...)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: n.Name + "-" + path.Base(path.Dir(name))}, Rules: rules["ClusterRole"]}
	if role.Rules == nil {
		role.Rules = rules["Role"]
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := n.Create(n.tb.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			n.tb.Fatalf("create: %v", err)
		}
	}
}

// WantAccepted fails the test if the API server refuses an object of a manifest in one of the directories, or a field of
// it. Nothing is stored but the namespace home. What is in deploy and samples belongs into the test's namespace.
func (n *Namespace) WantAccepted(files fs.FS, home string, dirs ...string) {
	n.tb.Helper()
	err := n.Create(n.tb.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		n.tb.Fatal(err)
	}
	strict := client.WithFieldValidation(client.NewDryRunClient(n.Client), metav1.FieldValidationStrict)
	for _, dir := range dirs {
		names, err := fs.Glob(files, dir+"/*.yaml")
		if err != nil || len(names) == 0 {
			n.tb.Fatalf("no files in %s (error: %v)", dir, err)
		}
		for _, name := range names {
			for _, o := range Objects(n.tb, files, name) {
				if dir == "deploy" || dir == "samples" {
					o.SetNamespace(n.Name)
				}
				if err := strict.Create(n.tb.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
					n.tb.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

// WantInvalid fails the test if an API server did not refuse an object as invalid with a text.
func WantInvalid(tb testing.TB, err error, text string) {
	tb.Helper()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), text) {
		tb.Errorf("got %v, want it refused with %q", err, text)
	}
}

// Table returns header and rows of the objects of a resource, as 'kubectl get' prints them, but without the last column,
// which is the age. There is one space between columns.
func (n *Namespace) Table(resource schema.GroupVersionResource) []string {
	n.tb.Helper()
	clients, err := kubernetes.NewForConfig(n.Config)
	if err != nil {
		n.tb.Fatal(err)
	}
	data, err := clients.RESTClient().Get().AbsPath("/apis", resource.Group, resource.Version, "namespaces", n.Name, resource.Resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(n.tb.Context())
	if err != nil {
		n.tb.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(data, &table); err != nil {
		n.tb.Fatal(err)
	}
	var header []string
	for _, column := range table.ColumnDefinitions {
		header = append(header, column.Name)
	}
	rows := []string{strings.Join(header, " ")}
	for _, row := range table.Rows {
		text, err := json.Marshal(row.Cells[:len(row.Cells)-1])
		if err != nil {
			n.tb.Fatal(err)
		}
		rows = append(rows, strings.NewReplacer(`"`, "", "[", "", "]", "", ",", " ").Replace(string(text)))
	}
	return rows
}

// Events counts the events of a reason. The scheme has to know those of events.k8s.io.
func (n *Namespace) Events(reason string) (count int) {
	n.tb.Helper()
	var list eventsv1.EventList
	if err := n.List(n.tb.Context(), &list, client.InNamespace(n.Name)); err != nil {
		n.tb.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Reason == reason {
			count++
		}
	}
	return count
}
