package project_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// from makes a plan for a program with manifests that are written to a directory.
func from(t *testing.T, archive string, o project.Options) (*project.Plan, error) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		write(t, filepath.Join(dir, filepath.FromSlash(f.Name)), f.Data)
	}
	for i, name := range o.Values {
		o.Values[i] = filepath.Join(dir, name)
	}
	o.WorkDir, o.Manifests = t.TempDir(), []string{dir}
	unchanged(t, dir)
	p, err := project.Program("prog", o)
	if err != nil {
		t.Fatal(err)
	}
	return p.Plan(t.Context())
}

const chart = `
-- Chart.yaml --
apiVersion: v2
name: toy
version: 1.0.0
-- values.yaml --
level: info
account: {create: true}
-- mine.yaml --
level: debug
-- crds/toys.yaml --
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: toys.example.com}
-- templates/_helpers.tpl --
{{ define "toy.name" }}{{ .Release.Name }}-manager{{ end }}
-- templates/NOTES.txt --
thank you for {{ .Chart.Name }}
-- templates/all.yaml --
{{ if .Values.account.create }}
apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ include "toy.name" . }}}
{{ end }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ include "toy.name" . }}, namespace: {{ .Release.Namespace }}}
spec:
  template:
    spec:
      serviceAccountName: {{ include "toy.name" . }}
      containers: [{name: manager, args: ["--level={{ .Values.level }}"]}]
-- templates/tests/test.yaml --
apiVersion: v1
kind: Pod
metadata: {name: test, annotations: {helm.sh/hook: test}}
`

func TestChart(t *testing.T) {
	t.Parallel()
	got, err := from(t, chart, project.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "objects", names(got.Objects), []string{"CustomResourceDefinition toys.example.com", "ServiceAccount prog-manager"})
	want(t, "run", [][]string{got.Args, {got.Namespace, got.ServiceAccount}}, [][]string{{"--level=info"}, {"default", "prog-manager"}})
	if len(got.LeftOut) != 2 || got.LeftOut[1].Reason != "it is a hook of Helm's: test" {
		t.Errorf("%+v", got.LeftOut)
	}
	if got, err = from(t, chart, project.Options{Values: []string{"mine.yaml"}}); err != nil || got.Args[0] != "--level=debug" {
		t.Errorf("%v %v", got, err)
	}
	_, err = from(t, chart, project.Options{Values: []string{"none.yaml"}})
	wantProblem(t, err, "--values FILE", "none.yaml")
	_, err = from(t, chart+"-- templates/wrong.yaml --\n{{ .Values.missing.level }}\n", project.Options{})
	wantProblem(t, err, "helm template", "cannot be rendered")
	_, err = from(t, strings.Replace(chart, "version: 1.0.0", "version: 1.0.0\nkubeVersion: '>=9.0.0'", 1), project.Options{})
	wantProblem(t, err, "helm template", "needs Kubernetes >=9.0.0")
	_, err = from(t, chart+"-- templates/wrong.yaml --\na: [\n", project.Options{})
	wantProblem(t, err, "helm template", "templates/wrong.yaml: document 1")
}

const olmBundle = `
-- metadata/annotations.yaml --
annotations:
  operators.operatorframework.io.bundle.manifests.v1: objects/
-- objects/crd.yaml --
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: toys.example.com}
-- objects/csv.yaml --
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: toy.v1, namespace: placeholder}
spec:
  installModes: [{type: AllNamespaces, supported: true}]
  install:
    strategy: deployment
    spec:
      permissions:
      - serviceAccountName: toy
        rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
      clusterPermissions:
      - serviceAccountName: toy
        rules: [{apiGroups: [example.com], resources: [toys], verbs: ["*"]}]
      deployments:
      - name: toy-controller-manager
        label: {app: toy}
        spec:
          selector: {matchLabels: {app: toy}}
          template:
            metadata: {labels: {app: toy}}
            spec:
              serviceAccountName: toy
              containers:
              - name: manager
                args: [--leader-elect]
                env:
                - name: WATCH_NAMESPACE
                  valueFrom: {fieldRef: {fieldPath: "metadata.annotations['olm.targetNamespaces']"}}
  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    generateName: vtoy.example.com
    webhookPath: /validate
    sideEffects: None
    admissionReviewVersions: [v1]
    rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [toys]}]
`

func TestBundle(t *testing.T) {
	t.Parallel()
	got, err := from(t, olmBundle, project.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "objects", names(got.Objects), []string{
		"Namespace prog-system", "CustomResourceDefinition toys.example.com", "ServiceAccount prog-system/toy",
		"ClusterRole toy.v1-0", "ClusterRole toy.v1-1", "ClusterRoleBinding toy.v1-0", "ClusterRoleBinding toy.v1-1",
	})
	want(t, "run", [][]string{got.Args, got.Env, {got.Namespace, got.ServiceAccount}}, [][]string{{"--leader-elect"}, {"WATCH_NAMESPACE="}, {"prog-system", "toy"}})
	want(t, "webhooks", names(project.PointWebhooks(got.Webhooks, 1, nil)), []string{"ValidatingWebhookConfiguration vtoy.example.com"})
	if got.Notes[0].Text(trace.English) != "namespace prog-system is made: the manifests do not have it" {
		t.Errorf("%v", got.Notes)
	}
	_, err = from(t, "-- metadata/annotations.yaml --\nannotations: {operators.operatorframework.io.bundle.manifests.v1: ../..}\n", project.Options{})
	wantProblem(t, err, "a directory of the bundle", "../..")
	_, err = from(t, "-- metadata/annotations.yaml --\nannotations: []\n", project.Options{})
	wantProblem(t, err, "bundle validate", "annotations.yaml")
	_, err = from(t, "-- metadata/annotations.yaml --\n-- manifests/csv.yaml --\napiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: toy}\nspec: 1\n", project.Options{})
	wantProblem(t, err, "bundle validate", "ClusterServiceVersion toy")
}

// TestBadWatches checks that one line says what is wrong with a watches.yaml of Helm charts, or of nothing.
func TestBadWatches(t *testing.T) {
	t.Parallel()
	const entry = "- {group: example.com, version: v1, kind: Toy, chart: toy}\n"
	for text, says := range map[string]string{
		"- {group: [\n":           "watches.yaml cannot be read: ",
		"- {kind: Toy}\n":         "watches.yaml names no chart, role or playbook",
		entry + entry:             "duplicate GVK: example.com/v1, Kind=Toy",
		"- {chart: toy}\n":        "version must not be empty",
		entry + "- {kind: Top}\n": "entry 2 names no chart",
		strings.Replace(entry, "chart: toy", "chart: gone", 1): "gone: no such file or directory",
		"chart: toy\n": "is no list of kinds with charts",
	} {
		dir := t.TempDir()
		for _, f := range txtar.Parse([]byte(chart)).Files {
			write(t, filepath.Join(dir, "toy", filepath.FromSlash(f.Name)), f.Data)
		}
		write(t, filepath.Join(dir, "watches.yaml"), []byte(text))
		_, err := project.Find(t.Context(), project.Options{Dir: dir, WorkDir: t.TempDir()})
		wantProblem(t, err, "chart", says)
	}
}
