package catalog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/catalog"
)

// deployed is what a project with webhooks is deployed with.
const deployed = `
{apiVersion: v1, kind: Namespace, metadata: {name: toy-system}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: toy, namespace: toy-system}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: toy, namespace: toy-system}
spec:
  selector: {matchLabels: {app: toy}}
  template:
    metadata: {labels: {app: toy}}
    spec:
      serviceAccountName: toy
      volumes: [{name: cert, secret: {secretName: made}}, {name: own, secret: {secretName: own}}]
      containers:
      - {name: manager, image: "toy:v1", volumeMounts: [{name: cert, mountPath: /cert}, {name: own, mountPath: /own}]}
---
{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: cert}, spec: {secretName: made}}
---
{apiVersion: v1, kind: Service, metadata: {name: hook}, spec: {selector: {app: toy}, ports: [{port: 443, targetPort: 9443}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: metrics, namespace: toy-system}, spec: {selector: {app: toy}, ports: [{port: 8443}]}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: toy}
webhooks:
- name: vtoy.example.com
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: hook, namespace: toy-system, path: /validate}}
  rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [toys]}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: toys.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Toy, listKind: ToyList, plural: toys, singular: toy}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: hook, namespace: toy-system, path: /convert}}}}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: manager}, rules: [{apiGroups: [example.com], resources: [toys], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: viewer}, rules: [{apiGroups: [example.com], resources: [toys], verbs: [list]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: leader}, rules: [{apiGroups: [""], resources: [events], verbs: [create]}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager}
roleRef: {kind: ClusterRole, name: manager}
subjects: [{kind: ServiceAccount, name: toy, namespace: toy-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leader}
roleRef: {kind: Role, name: leader}
subjects: [{kind: ServiceAccount, name: toy, namespace: toy-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: admin}
roleRef: {kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: toy, namespace: toy-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: person}
roleRef: {kind: ClusterRole, name: viewer}
subjects: [{kind: User, name: jane}]
---
{apiVersion: example.com/v1, kind: Toy, metadata: {name: bear}}
`

// objectsOf returns the objects of deployed.
func objectsOf(t *testing.T) (all []*unstructured.Unstructured) {
	t.Helper()
	for doc := range strings.SplitSeq(deployed, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	return all
}

// bundleIn writes a bundle, and returns its directory and what is left out.
func bundleIn(t *testing.T, s catalog.Source) (dir string, leftOut []catalog.LeftOut) {
	t.Helper()
	files, leftOut, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, leftOut
}

func TestBundle(t *testing.T) {
	t.Parallel()
	dir, leftOut := bundleIn(t, catalog.Source{Default: "toy", Objects: objectsOf(t)})
	checked := catalog.Check(dir)
	if checked.CSV == nil || len(checked.Wrong) > 0 {
		t.Fatalf("upstream's validators say: %q", checked.Wrong)
	}
	spec := checked.CSV.Spec
	install := spec.InstallStrategy.StrategySpec
	if got := install.ClusterPermissions; len(got) != 1 || got[0].ServiceAccountName != "toy" || len(got[0].Rules) != 1 || got[0].Rules[0].Verbs[0] != "get" {
		t.Errorf("in the cluster it may %v", got)
	}
	if got := install.Permissions; len(got) != 1 || got[0].Rules[0].Resources[0] != "events" {
		t.Errorf("in its namespace it may %v", got)
	}
	pod := install.DeploymentSpecs[0].Spec.Template.Spec
	if len(pod.Volumes) != 1 || pod.Volumes[0].Name != "own" || len(pod.Containers[0].VolumeMounts) != 1 {
		t.Errorf("its volumes are %v, mounted as %v", pod.Volumes, pod.Containers[0].VolumeMounts)
	}
	if got := spec.WebhookDefinitions; len(got) != 2 || got[0].Type != v1alpha1.ValidatingAdmissionWebhook || got[0].DeploymentName != "toy" ||
		got[0].ContainerPort != 443 || got[0].TargetPort.IntValue() != 9443 || *got[0].WebhookPath != "/validate" || got[1].ConversionCRDs[0] != "toys.example.com" {
		t.Errorf("its webhooks are %+v", got)
	}
	if got := checked.CSV.Annotations; !strings.Contains(got["alm-examples"], `"bear"`) || got["operatorframework.io/suggested-namespace"] != "toy-system" {
		t.Errorf("its annotations are %v", got)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"example.com_toys.yaml", "metrics_service.yaml", "toy.clusterserviceversion.yaml", "viewer_clusterrole.yaml"}; !slices.Equal(names, want) {
		t.Errorf("its manifests are %v, want %v", names, want)
	}
	var gone []string
	for _, l := range leftOut {
		if l.Reason == "" {
			t.Errorf("%s %s is left out for no reason", l.Kind, l.Name)
		}
		gone = append(gone, l.Kind+" "+l.Name)
	}
	slices.Sort(gone)
	if want := []string{"Certificate cert", "ClusterRoleBinding admin", "Namespace toy-system", "RoleBinding person", "Service hook"}; !slices.Equal(gone, want) {
		t.Errorf("left out are %v, want %v", gone, want)
	}
}

// TestCatalogOfABundle has the catalog of a bundle read as opm does.
func TestCatalogOfABundle(t *testing.T) {
	t.Parallel()
	dir, _ := bundleIn(t, catalog.Source{Package: "tin", Version: "2.0.0", Channels: []string{"stable", "fast"}, Objects: objectsOf(t)})
	served, err := catalog.Of(dir, "quay.io/you/tin-bundle:v2.0.0")
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := declcfg.WriteJSON(*served, &text); err != nil {
		t.Fatal(err)
	}
	if _, err := validate(t, text.String()); err != nil {
		t.Error(err)
	}
	if got := served.Packages[0]; got.Name != "tin" || got.DefaultChannel != "stable" || len(served.Channels) != 2 || served.Bundles[0].Name != "tin.v2.0.0" {
		t.Errorf("the catalog has %+v, %+v", got, served.Channels)
	}
	if _, err := catalog.Of(t.TempDir(), ""); err == nil {
		t.Error("a directory with nothing in it is taken for a bundle")
	}
}

func TestWhatNoBundleCanBeMadeOf(t *testing.T) {
	t.Parallel()
	if _, _, err := (catalog.Source{Default: "toy", Objects: objectsOf(t)[:2]}).Files(); err == nil || !strings.Contains(err.Error(), "no Deployment") {
		t.Errorf("without a Deployment: %v", err)
	}
	if _, _, err := (catalog.Source{Default: "toy", Version: "1", Objects: objectsOf(t)}).Files(); err == nil || !strings.Contains(err.Error(), "no semantic version") {
		t.Errorf("version 1: %v", err)
	}
	if got := catalog.Check(t.TempDir()); got.CSV != nil || len(got.Wrong) == 0 {
		t.Errorf("an empty directory is checked as %+v", got)
	}
	dir, _ := bundleIn(t, catalog.Source{Default: "toy", Objects: objectsOf(t)})
	if err := os.Remove(filepath.Join(dir, "manifests", "example.com_toys.yaml")); err != nil {
		t.Fatal(err)
	}
	if got := catalog.Check(dir); len(got.Wrong) == 0 {
		t.Error("a kind that is owned and has no CRD is not called wrong")
	}
}
