package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the types.
var GroupVersion = schema.GroupVersion{Group: "operator-lab.dev", Version: "v1alpha1"}

// OperatorMetrics is the subresource of an operator that serves its metrics in the text format of Prometheus.
const OperatorMetrics = "operators/metrics"

// AddToScheme makes the types known to a scheme, as clients need it.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Operator{}, &OperatorList{},
		&Loop{}, &LoopList{},
		&Fault{}, &FaultList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
