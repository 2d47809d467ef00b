// Package openapi has the OpenAPI schemas of the lab's API types, and of the types that they are made of. Those of the lab
// are generated; see the package v1alpha1.
package openapi

import (
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Definitions returns the schemas of the lab's API types, beside those of a package of Kubernetes that has the common
// types, such as ObjectMeta.
func Definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := apiextensions.GetOpenAPIDefinitions(ref)
	for name, definition := range GetOpenAPIDefinitions(func(name string) spec.Ref { return ref(modelName(name)) }) {
		for i, dependency := range definition.Dependencies {
			definition.Dependencies[i] = modelName(dependency)
		}
		all[name] = definition
	}
	return all
}

// modelName returns the name of a type in OpenAPI. The generator uses the Go name for types that it has not generated.
func modelName(name string) string {
	if strings.Contains(name, "/") {
		return util.ToRESTFriendlyName(name)
	}
	return name
}
