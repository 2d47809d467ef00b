package project

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// bundleFile makes a directory an OLM bundle: it says in which directory the manifests are.
var bundleFile = filepath.Join("metadata", "annotations.yaml")

// bundleManifests is that annotation.
const bundleManifests = "operators.operatorframework.io.bundle.manifests.v1"

func isBundle(dir string) bool { return fileExists(filepath.Join(dir, bundleFile)) }

// bundleDir returns the directory with the manifests of a bundle.
func (r manifestReader) bundleDir(dir string) (string, error) {
	file := filepath.Join(dir, bundleFile)
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var says struct{ Annotations map[string]string }
	if err := yaml.Unmarshal(raw, &says); err != nil {
		return "", problem("'operator-sdk bundle validate' says the same", "%s: %w", r.below(file), err)
	}
	below := filepath.FromSlash(cmp.Or(says.Annotations[bundleManifests], "manifests/"))
	if !filepath.IsLocal(below) {
		return "", problem("it is a directory of the bundle", "%s: the manifests cannot be in %q", r.below(file), below)
	}
	return filepath.Join(dir, below), nil
}

// clusterServiceVersion is the part of OLM's kind of that name that says how an operator is installed.
type clusterServiceVersion struct {
	Spec struct {
		InstallModes []struct {
			Type      string
			Supported bool
		}
		Install struct {
			Spec struct {
				Deployments []struct {
					Name  string
					Label map[string]string
					Spec  appsv1.DeploymentSpec
				}
				Permissions, ClusterPermissions []permission
			}
		}
		WebhookDefinitions []map[string]any
	}
}

type permission struct {
	ServiceAccountName string
	Rules              []rbacv1.PolicyRule
}

// expandBundle replaces the ClusterServiceVersions among objects by what OLM makes of them, in the namespace of the project:
// Deployments, ServiceAccounts, their permissions and the configurations of webhooks.
func (r manifestReader) expandBundle(all []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, o := range all {
		if gvk := o.GroupVersionKind(); gvk.Group != "operators.coreos.com" || gvk.Kind != "ClusterServiceVersion" {
			out = append(out, o)
			continue
		}
		var csv clusterServiceVersion
		raw, err := o.MarshalJSON()
		if err == nil {
			err = json.Unmarshal(raw, &csv)
		}
		if err != nil {
			return nil, problem("'operator-sdk bundle validate' says the same", "ClusterServiceVersion %s: %w", o.GetName(), err)
		}
		b := &bundle{name: o.GetName(), namespace: cmp.Or(o.GetAnnotations()["operatorframework.io/suggested-namespace"], r.name+"-system"), csv: csv}
		more, err := b.expand()
		if err != nil {
			return nil, fmt.Errorf("ClusterServiceVersion %s: %w", o.GetName(), err)
		}
		out = append(out, more...)
	}
	return out, nil
}

// bundle is a ClusterServiceVersion that is installed.
type bundle struct {
	name, namespace string
	csv             clusterServiceVersion
	objects         []*unstructured.Unstructured
}

func (b *bundle) expand() ([]*unstructured.Unstructured, error) {
	install := b.csv.Spec.Install.Spec
	everywhere := false
	for _, mode := range b.csv.Spec.InstallModes {
		everywhere = everywhere || mode.Type == "AllNamespaces" && mode.Supported
	}
	accounts := map[string]bool{}
	for i, given := range slices.Concat(install.Permissions, install.ClusterPermissions) {
		accounts[given.ServiceAccountName] = true
		name := fmt.Sprintf("%s-%d", b.name, i)
		// What an operator for all namespaces may do in its own, OLM lets it do in all.
		if err := b.grant(name, given, everywhere || i >= len(install.Permissions)); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		b.add("v1", "ServiceAccount", name, b.namespace, nil)
	}
	for _, d := range install.Deployments {
		// OLM says so which namespaces are meant: none is all.
		if d.Spec.Template.Annotations == nil {
			d.Spec.Template.Annotations = map[string]string{}
		}
		d.Spec.Template.Annotations["olm.targetNamespaces"] = ""
		if !everywhere {
			d.Spec.Template.Annotations["olm.targetNamespaces"] = b.namespace
		}
		spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&d.Spec)
		if err != nil {
			return nil, err
		}
		b.add("apps/v1", "Deployment", d.Name, b.namespace, map[string]any{"spec": spec}).SetLabels(d.Label)
	}
	for _, w := range b.csv.Spec.WebhookDefinitions {
		b.webhook(w)
	}
	return b.objects, nil
}

func (b *bundle) add(apiVersion, kind, name, namespace string, rest map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	maps.Copy(o.Object, rest)
	o.SetName(name)
	o.SetNamespace(namespace)
	b.objects = append(b.objects, o)
	return o
}

// grant gives a ServiceAccount permissions.
func (b *bundle) grant(name string, given permission, everywhere bool) error {
	const group = "rbac.authorization.k8s.io"
	role, binding, namespace := "Role", "RoleBinding", b.namespace
	if everywhere {
		role, binding, namespace = "ClusterRole", "ClusterRoleBinding", ""
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rbacv1.ClusterRole{Rules: given.Rules})
	if err != nil {
		return err
	}
	b.add(group+"/v1", role, name, namespace, map[string]any{"rules": raw["rules"]})
	b.add(group+"/v1", binding, name, namespace, map[string]any{
		"roleRef":  map[string]any{"apiGroup": group, "kind": role, "name": name},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": given.ServiceAccountName, "namespace": b.namespace}},
	})
	return nil
}

// webhook adds the configuration of an admission webhook. CRDs say themselves that they have one for conversions.
func (b *bundle) webhook(definition map[string]any) {
	kind := map[any]string{
		"ValidatingAdmissionWebhook": "ValidatingWebhookConfiguration", "MutatingAdmissionWebhook": "MutatingWebhookConfiguration",
	}[definition["type"]]
	name, _ := definition["generateName"].(string)
	if kind == "" || name == "" {
		return
	}
	webhook := map[string]any{"name": name}
	for _, key := range []string{"admissionReviewVersions", "failurePolicy", "matchPolicy", "objectSelector", "reinvocationPolicy", "rules", "sideEffects", "timeoutSeconds"} {
		if value, given := definition[key]; given {
			webhook[key] = value
		}
	}
	service := map[string]any{"name": b.name, "namespace": b.namespace}
	if path, given := definition["webhookPath"]; given {
		service["path"] = path
	}
	webhook["clientConfig"] = map[string]any{"service": service}
	b.add("admissionregistration.k8s.io/v1", kind, name, "", map[string]any{"webhooks": []any{webhook}})
}
