// Package v1alpha1 is the lab's own API, operator-lab.dev/v1alpha1: the operators that are loaded, the reconcile loops
// that were seen, and the faults that are to happen.
//
// An aggregated API server of the lab serves it from memory. It is not made of CRDs, because to look at a loop must
// write nothing into the cluster that is looked at.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=dev.operator-lab.v1alpha1
// +groupName=operator-lab.dev
package v1alpha1

// Deep copies and names in OpenAPI, and in labapi/openapi the schemas that 'kubectl explain' shows. The versions are
// those of go.mod.
//go:generate go run k8s.io/code-generator/cmd/deepcopy-gen@v0.36.3 --output-file zz_generated.deepcopy.go .
//go:generate go run k8s.io/kube-openapi/cmd/openapi-gen@v0.0.0-20260317180543-43fb72c5454a --output-dir ../../labapi/openapi --output-pkg github.com/operator-lab/operator-lab/sandbox/labapi/openapi --output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go --report-filename /dev/null .
