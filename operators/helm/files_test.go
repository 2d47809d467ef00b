package helm_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/operators/helm"
)

func filesOf(t *testing.T, chart map[string]string) (map[string][]byte, error) {
	t.Helper()
	kind, err := helm.ParseKind("example.com/v1alpha1", "Gizmo")
	if err != nil {
		t.Fatal(err)
	}
	return helm.Files(helm.Project{Name: "gizmo-operator", Kind: kind, Chart: write(t, chart)})
}

func TestFiles(t *testing.T) {
	files, err := filesOf(t, with(map[string]string{
		"templates/role.yaml": "{{ if .Values.size }}apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: x\n---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: x\n{{ end }}",
	}))
	if err != nil {
		t.Fatal(err)
	}
	for file, says := range map[string][]string{
		"watches.yaml":          {"chart: helm-charts/gizmo\n", "kind: Gizmo\n"},
		"README.md":             {"at most 53 characters"},
		"config/rbac/role.yaml": {"- configmaps\n  - secrets\n", "- ingresses\n", "- roles\n  verbs:\n  - bind\n  - create\n  - delete\n  - escalate\n", "- gizmos/finalizers\n"},
		"config/samples/gizmo.yaml": {
			"apiVersion: example.com/v1alpha1\nkind: Gizmo\nmetadata:\n  name: gizmo-sample\nspec:\n  # how many\n  size: 1\n  colours:\n    # the first\n    - red\n",
		},
		"config/crd/bases/example.com_gizmos.yaml": {"spec:\n            description: The chart's values", "x-kubernetes-preserve-unknown-fields: true"},
		"config/default/deployment.yaml":           {"kind: Namespace", "serviceAccountName: gizmo-operator"},
		"helm-charts/gizmo/templates/gizmo.yaml":   {"{{ .Release.Name }}"},
		"helm-charts/gizmo/Chart.yaml":             {"name: gizmo"},
	} {
		for _, text := range says {
			if !strings.Contains(string(files[file]), text) {
				t.Errorf("%s does not say %q:\n%s", file, text, files[file])
			}
		}
	}
	if t.Failed() {
		t.Log(slices.Sorted(maps.Keys(files)))
	}
}

func TestSampleWithoutValues(t *testing.T) {
	for values, want := range map[string]string{
		"":                         "spec: {}\n",
		"# nothing yet\n":          "spec: {}\n",
		"--- # a document\na: 1\n": "spec:\n  a: 1\n",
	} {
		files, err := filesOf(t, with(map[string]string{
			"values.yaml": values, "templates/gizmo.yaml": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\n",
		}))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(files["config/samples/gizmo.yaml"]); !strings.HasSuffix(got, want) {
			t.Errorf("of %q came %s", values, got)
		}
	}
}

// TestBadCharts checks that one line says what is wrong with a chart.
func TestBadCharts(t *testing.T) {
	for says, chart := range map[string]map[string]string{
		"cannot be loaded":       {"values.yaml": "a: 1\n"},
		"cannot be rendered":     with(map[string]string{"templates/gizmo.yaml": "{{ .Values.size.of }}"}),
		"is no YAML":             with(map[string]string{"templates/gizmo.yaml": "kind: [\n"}),
		"needs Kubernetes":       with(map[string]string{"Chart.yaml": "apiVersion: v2\nname: gizmo\nversion: 0.1.0\nkubeVersion: '>=9.0.0'\n"}),
		"renders no object":      with(map[string]string{"templates/gizmo.yaml": "{{ if .Values.size }}{{ end }}"}),
		"size":                   with(map[string]string{"values.schema.json": `{"properties":{"size":{"type":"string"}}}`}),
		"values.schema.json":     with(map[string]string{"values.schema.json": `{`}),
		"chart.metadata.version": with(map[string]string{"Chart.yaml": "apiVersion: v2\nname: gizmo\n"}),
	} {
		if _, err := filesOf(t, chart); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is %v, which does not say %q", err, says)
		}
	}
}

func TestParseKind(t *testing.T) {
	for _, c := range [][2]string{
		{"v1", "Gizmo"},
		{"example.com", "Gizmo"},
		{"example.com/v1/x", "Gizmo"},
		{"example.com/1", "Gizmo"},
		{"example/v1", "Gizmo"},
		{"Example.com/v1", "Gizmo"},
		{"example.com/v1", "gizmo"},
		{"example.com/v1", ""},
		{"example.com/v1", "Giz mo"},
		{"", "Gizmo"},
	} {
		if kind, err := helm.ParseKind(c[0], c[1]); err == nil {
			t.Errorf("%q and %q are taken for %v", c[0], c[1], kind)
		}
	}
	if kind, err := helm.ParseKind("apache.org/v1alpha1", "Tomcat"); err != nil || kind.String() != "apache.org/v1alpha1, Kind=Tomcat" {
		t.Errorf("%v: %v", kind, err)
	}
}
