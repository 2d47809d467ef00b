package catalog

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/kit"
)

// CSV returns the ClusterServiceVersion of a variant of an operator. Its Deployment is the one of the manifests; its
// ServiceAccount is that of the manifests too, and may do what their roles say. The operator watches the namespaces
// that its OperatorGroup targets.
func CSV(op operators.Operator, variant string) (*v1alpha1.ClusterServiceVersion, error) {
	v, err := versionOf(variant)
	if err != nil {
		return nil, err
	}
	crds, err := kit.CRDs(op.Manifests, variant)
	if err != nil {
		return nil, err
	}
	kinds, err := described(op, crds)
	if err != nil {
		return nil, err
	}
	deployment, err := deploymentOf(op, variant)
	if err != nil {
		return nil, err
	}
	strategy := v1alpha1.StrategyDetailsDeployment{DeploymentSpecs: []v1alpha1.StrategyDeploymentSpec{deployment}}
	account := deployment.Spec.Template.Spec.ServiceAccountName
	if strategy.Permissions, err = permissions(op, variant, "Role", account); err != nil {
		return nil, err
	}
	if strategy.ClusterPermissions, err = permissions(op, variant, "ClusterRole", account); err != nil {
		return nil, err
	}
	examples, err := samples(op, crds)
	if err != nil {
		return nil, err
	}
	return &v1alpha1.ClusterServiceVersion{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.ClusterServiceVersionKind},
		ObjectMeta: metav1.ObjectMeta{
			Name:        op.Name + ".v" + v.String(),
			Annotations: map[string]string{"alm-examples": examples, "description": op.Summary},
		},
		Spec: v1alpha1.ClusterServiceVersionSpec{
			DisplayName:               op.Name,
			Description:               op.Summary + " From: " + op.Source,
			Provider:                  v1alpha1.AppLink{Name: "operator-lab"},
			Version:                   version.OperatorVersion{Version: v},
			MinKubeVersion:            minKubeVersion,
			CustomResourceDefinitions: v1alpha1.CustomResourceDefinitions{Owned: kinds},
			InstallModes: []v1alpha1.InstallMode{
				{Type: v1alpha1.InstallModeTypeOwnNamespace, Supported: true},
				{Type: v1alpha1.InstallModeTypeSingleNamespace, Supported: true},
				{Type: v1alpha1.InstallModeTypeMultiNamespace}, // WATCH_NAMESPACE is one namespace, or empty
				{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true},
			},
			InstallStrategy: v1alpha1.NamedInstallStrategy{
				StrategyName: v1alpha1.InstallStrategyNameDeployment, StrategySpec: strategy,
			},
		},
	}, nil
}

// described returns the kinds of an operator as its manifests describe them to people: with names, and with the fields that a form or
// a list is to show.
func described(op operators.Operator, crds []*apiextensionsv1.CustomResourceDefinition) ([]v1alpha1.CRDDescription, error) {
	kinds := owned(crds)
	bases, err := kit.Objects(op.Manifests, "manifests")
	if errors.Is(err, fs.ErrNotExist) {
		return kinds, nil
	}
	if err != nil {
		return nil, err
	}
	for _, u := range bases {
		base, err := into[v1alpha1.ClusterServiceVersion](u)
		if err != nil {
			return nil, err
		}
		for _, d := range base.Spec.CustomResourceDefinitions.Owned {
			i := slices.IndexFunc(kinds, func(k v1alpha1.CRDDescription) bool { return k.Name == d.Name && k.Version == d.Version })
			if i < 0 {
				return nil, fmt.Errorf("the manifests describe %s %s, which is no kind of the operator", d.Name, d.Version)
			}
			k := &kinds[i]
			k.DisplayName, k.Description = cmp.Or(d.DisplayName, k.DisplayName), cmp.Or(k.Description, d.Description)
			k.SpecDescriptors, k.StatusDescriptors = d.SpecDescriptors, d.StatusDescriptors
		}
	}
	return kinds, nil
}

// minKubeVersion is the first Kubernetes that has all that the CRDs use: rules in CEL.
const minKubeVersion = "1.29.0"

// deploymentOf returns the workload in the manifests as the Deployment that OLM makes, which it names after the operator.
func deploymentOf(op operators.Operator, variant string) (d v1alpha1.StrategyDeploymentSpec, err error) {
	objects, err := kit.Objects(op.Manifests, "manager")
	if err != nil {
		return d, err
	}
	for _, o := range objects {
		if o.GetKind() != "Deployment" && o.GetKind() != "StatefulSet" {
			continue
		}
		var workload struct {
			Spec appsv1.DeploymentSpec `json:"spec"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &workload); err != nil {
			return d, err
		}
		// The rest of what a StatefulSet has is not of a Deployment.
		spec := appsv1.DeploymentSpec{
			Replicas: workload.Spec.Replicas, Selector: workload.Spec.Selector, Template: workload.Spec.Template,
		}
		adapt(&spec.Template.Spec, op, variant)
		return v1alpha1.StrategyDeploymentSpec{Name: op.Name + "-operator", Spec: spec}, nil
	}
	return d, errNoWorkload
}

var errNoWorkload = errors.New("its manifests have no Deployment or StatefulSet")

// targets is where OLM writes which namespaces a pod is to watch.
const targets = "metadata.annotations['olm.targetNamespaces']"

// adapt has the pods run a variant, as a ServiceAccount that is called like no other operator's in the namespace, and has them
// watch the namespaces that OLM writes into an annotation.
func adapt(pod *corev1.PodSpec, op operators.Operator, variant string) {
	pod.ServiceAccountName = op.Name + "-operator"
	for i := range pod.Containers {
		c := &pod.Containers[i]
		if variant == "classic" { // as published: the image alone says it, and no leader was elected
			c.Args = slices.DeleteFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, "--variant=") || arg == "--leader-elect" })
			c.Image = strings.TrimSuffix(c.Image, ":hardened")
		}
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "WATCH_NAMESPACE" })
		c.Env = append(c.Env, corev1.EnvVar{Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: targets},
		}})
	}
}

// permissions returns what the roles of a kind allow. None are allowed nothing.
func permissions(op operators.Operator, variant, kind, account string) ([]v1alpha1.StrategyDeploymentPermissions, error) {
	objects, err := kit.Objects(op.Manifests, path.Join("rbac", variant))
	if err != nil {
		return nil, err
	}
	var rules []rbacv1.PolicyRule
	for _, o := range objects {
		if o.GetKind() != kind {
			continue
		}
		var role struct {
			Rules []rbacv1.PolicyRule `json:"rules"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			return nil, err
		}
		rules = append(rules, role.Rules...)
	}
	if len(rules) == 0 {
		return nil, nil
	}
	return []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: account, Rules: rules}}, nil
}

// samples returns the samples of an operator as the annotation alm-examples has them.
func samples(op operators.Operator, crds []*apiextensionsv1.CustomResourceDefinition) (string, error) {
	objects, err := kit.Objects(op.Manifests, "samples")
	if err != nil {
		return "", err
	}
	return examples(objects, crds)
}

// examples returns those of the objects that are of the operator's own kinds as the annotation alm-examples has them: a JSON
// array.
func examples(objects []*unstructured.Unstructured, crds []*apiextensionsv1.CustomResourceDefinition) (string, error) {
	own := []*unstructured.Unstructured{}
	for _, o := range objects {
		if ofKinds(o, crds) {
			own = append(own, o)
		}
	}
	text, err := json.MarshalIndent(own, "", "  ")
	return string(text), err
}

// ofKinds says whether an object is of a kind that one of the CRDs defines.
func ofKinds(o *unstructured.Unstructured, crds []*apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return crd.Spec.Group == o.GroupVersionKind().Group && crd.Spec.Names.Kind == o.GetKind()
	})
}
