package visitors_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/helm"
	"github.com/operator-lab/operator-lab/operators/kit"
	"github.com/operator-lab/operator-lab/operators/visitors"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// chartKind is the kind whose objects are releases of the chart.
var chartKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "VisitorsSite"}

var update = flag.Bool("update", false, "write the definition that is made of the chart")

const chartDir = "config/helm"

// chartCRD is the definition beside the chart.
func chartCRD() (*apiextensionsv1.CustomResourceDefinition, error) {
	return kit.Decode[apiextensionsv1.CustomResourceDefinition](visitors.Manifests(), "helm/crd.yaml")
}

// TestChartCRD compares the definition beside the chart with what is made of the chart.
func TestChartCRD(t *testing.T) {
	made, err := helm.Files(helm.Project{Name: "visitors-helm", Kind: chartKind, Chart: chartDir + "/chart"})
	if err != nil {
		t.Fatal(err)
	}
	want := made["config/crd/bases/example.com_visitorssites.yaml"]
	file := filepath.Join(chartDir, "crd.yaml")
	if *update {
		if err := os.WriteFile(file, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	has, err := os.ReadFile(file)
	if diff := cmp.Diff(string(want), string(has)); diff != "" || err != nil {
		t.Errorf("it is not what is made of the chart (run with -update): %v %s", err, diff)
	}
}

// TestClassicAndHelmMakeTheSame: a VisitorsApp of classic and a release of the chart have the same children, but for their
// names and the numbers of node ports. Classic says that images run of which there is no pod.
func TestClassicAndHelmMakeTheSame(t *testing.T) {
	t.Parallel()
	env := operate(t, visitors.Classic)
	app := env.site()
	env.rollOut("mysql")
	sandboxtest.Eventually(t, "the status has both images", func() bool {
		env.MustGet(app)
		return app.Status.BackendImage != "" && app.Status.FrontendImage != ""
	})
	classic := children(t, env.Namespace)

	all, err := helm.Load(chartDir+"/"+helm.WatchesFile, nil)
	if err != nil || all[0].GroupVersionKind != chartKind {
		t.Fatalf("the charts are %+v: %v", all, err)
	}
	releases := sandboxtest.NewNamespace(t, env.Config, clientgoscheme.Scheme)
	releases.Run(releases.Config, ctrl.Options{}, func(mgr ctrl.Manager) error {
		return helm.SetupWithManager(mgr, all, helm.Options{MaxConcurrentReconciles: 1})
	})
	site := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"backend":  map[string]any{"size": int64(2), "nodePort": int64(0)},
		"frontend": map[string]any{"title": "A title", "nodePort": int64(0)},
	}}}
	site.SetGroupVersionKind(chartKind)
	site.SetNamespace(releases.Name)
	site.SetName("ex")
	releases.MustCreate(site)
	sandboxtest.Eventually(t, "the release has as many objects", func() bool { return len(children(t, releases)) == len(classic) })
	if diff := cmp.Diff(classic, children(t, releases)); diff != "" || len(classic) != 7 {
		t.Errorf("of %d objects the release has others than the VisitorsApp: %s", len(classic), diff)
	}
}

// children describes what a site consists of, by kind and tier.
func children(t *testing.T, in *sandboxtest.Namespace) map[string]string {
	t.Helper()
	var secrets corev1.SecretList
	var deployments appsv1.DeploymentList
	var services corev1.ServiceList
	for _, list := range []client.ObjectList{&secrets, &deployments, &services} {
		if err := in.List(t.Context(), list, client.InNamespace(in.Name)); err != nil {
			t.Fatal(err)
		}
	}
	of := map[string]string{}
	add := func(kind string, obj client.Object, text string) {
		for _, tier := range []string{"mysql", "backend", "frontend"} {
			if strings.Contains(obj.GetName(), tier) {
				of[kind+" "+tier] += text
			}
		}
	}
	for i := range secrets.Items {
		if s := &secrets.Items[i]; s.Type == corev1.SecretTypeOpaque { // and not Helm's record of the release
			add("Secret", s, fmt.Sprintf("%q", s.Data))
		}
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		c := d.Spec.Template.Spec.Containers[0]
		text := fmt.Sprintf("%d × %s %s at %d:", *d.Spec.Replicas, c.Name, c.Image, c.Ports[0].ContainerPort)
		for _, v := range c.Env {
			if text += " " + v.Name; v.ValueFrom != nil {
				text += " from " + v.ValueFrom.SecretKeyRef.Key
			}
		}
		add("Deployment", d, text)
	}
	for i := range services.Items {
		s := &services.Items[i]
		port := s.Spec.Ports[0]
		add("Service", s, fmt.Sprintf("%s %d to %s, headless %t, selects %s", s.Spec.Type, port.Port, port.TargetPort.String(),
			s.Spec.ClusterIP == corev1.ClusterIPNone, s.Spec.Selector["tier"]))
	}
	return of
}
