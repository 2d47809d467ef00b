package project

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// stub is a kind of somebody else's operator that many projects read or write. Without it a cache that watches it would
// never be filled.
type stub struct {
	group, version, kind, plural string
	cluster                      bool
}

var stubs = []stub{
	{certManager, "v1", "Certificate", "certificates", false},
	{certManager, "v1", "CertificateRequest", "certificaterequests", false},
	{certManager, "v1", "Issuer", "issuers", false},
	{certManager, "v1", "ClusterIssuer", "clusterissuers", true},
	{"monitoring.coreos.com", "v1", "PodMonitor", "podmonitors", false},
	{"monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules", false},
	{"monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors", false},
}

// addStubs adds a CRD without a schema for each of these kinds that the roles of the manifests name, unless the manifests
// have it.
func (plan *Plan) addStubs(all []*unstructured.Unstructured) {
	for _, s := range stubs {
		name := s.plural + "." + s.group
		has := slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool {
			return isCRD(o) && o.GetName() == name
		})
		if has || !slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool { return grants(o, s.group, s.plural) }) {
			continue
		}
		plan.Objects = append(plan.Objects, s.definition())
		plan.note(StubKind, s.kind, s.group)
	}
}

// grants reports whether an object is a role with a rule for a resource.
func grants(o *unstructured.Unstructured, group, plural string) bool {
	if o.GroupVersionKind().Group != "rbac.authorization.k8s.io" {
		return false
	}
	rules, _ := o.Object["rules"].([]any)
	for _, r := range rules {
		rule, ok := r.(map[string]any)
		if ok && has(rule["apiGroups"], group) && has(rule["resources"], plural) {
			return true
		}
	}
	return false
}

func has(list any, value string) bool {
	values, _ := list.([]any)
	return slices.Contains(values, any(value))
}

// definition returns the CRD.
func (s stub) definition() *unstructured.Unstructured {
	scope := "Namespaced"
	if s.cluster {
		scope = "Cluster"
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": s.plural + "." + s.group},
		"spec": map[string]any{
			"group": s.group, "scope": scope,
			"names": map[string]any{
				"kind": s.kind, "listKind": s.kind + "List", "plural": s.plural, "singular": strings.ToLower(s.kind),
			},
			"versions": []any{map[string]any{
				"name": s.version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
}
