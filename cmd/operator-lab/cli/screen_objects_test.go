package cli

import (
	"reflect"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/kit"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestObjectOf checks that what the person deletes is known by its UID: by it the screen finds what it was, and what replaces it.
func TestObjectOf(t *testing.T) {
	ref := trace.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "n", Name: "a", UID: "u"}
	o := objectOf(ref)
	if got := (trace.Ref{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID())}); got != ref {
		t.Errorf("%+v of %+v", got, ref)
	}
}

// TestFields reads the fields of a kind's spec out of its schema.
func TestFields(t *testing.T) {
	op, _ := operators.Find("maintpage")
	crds, err := kit.CRDs(op.Manifests, "hardened")
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := screenObjects{fake.NewClientBuilder().WithScheme(scheme).WithObjects(crds[0]).Build()}
	all, err := objects.Fields(t.Context(), crds[0].Name, "v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]tui.Field{}
	for _, f := range all {
		if f.About == "" {
			t.Errorf("%s is not described", f.Path)
		}
		f.About = ""
		got[f.Path] = f
	}
	for _, want := range []tui.Field{
		{Path: "appconfig", Type: "object", Required: true},
		{Path: "appconfig.appname", Type: "string", Required: true},
		{Path: "maintpageconfig.maintpagetoggle", Type: "boolean", Default: "false"},
	} {
		if !reflect.DeepEqual(got[want.Path], want) {
			t.Errorf("%s is %+v, want %+v", want.Path, got[want.Path], want)
		}
	}
	op, _ = operators.Find("tomcat")
	if crds, err = kit.CRDs(op.Manifests, "hardened"); err != nil {
		t.Fatal(err)
	}
	spec := crds[0].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	if all := fieldsOf(&spec, "", true); !slices.ContainsFunc(all, func(f tui.Field) bool {
		return f.Path == "service.type" && slices.Equal(f.Options, []string{"ClusterIP", "NodePort", "LoadBalancer"})
	}) {
		t.Errorf("the values of service.type are not among %+v", all)
	}
	if all, err := objects.Fields(t.Context(), "none.example.com", "v1"); !apierrors.IsNotFound(err) {
		t.Errorf("of no kind it has %v, %v", all, err)
	}
}
