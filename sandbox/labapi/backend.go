package labapi

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
)

// Backend is the lab behind the API. It is safe for concurrent use, and never calls the server. The server may keep
// what it returns.
//
// Reading methods return at once, because requests wait for them. An error of a writing method goes to the client; one
// of k8s.io/apimachinery/pkg/api/errors is passed on as it is, any other becomes an internal error.
type Backend interface {
	OperatorBackend
	FaultBackend

	// Loops returns all loops seen. They must have a name and an operator in the spec; one without a namespace is
	// served in the namespace default.
	Loops() []v1alpha1.Loop
	// Changed returns a channel that is closed at the next change of anything that the other methods return. The server
	// calls it before it reads them.
	Changed() <-chan struct{}
}

// OperatorBackend runs operators.
type OperatorBackend interface {
	// Operators returns all loaded operators, with metadata.generation counting the changes of the spec. If the
	// generation is 0, the server counts.
	Operators() []v1alpha1.Operator
	// ValidateOperator returns the errors of a spec, below the path spec.
	ValidateOperator(name string, spec v1alpha1.OperatorSpec) field.ErrorList
	// ApplyOperator loads an operator or changes its spec. It returns when that is accepted: from then on Operators
	// returns it.
	ApplyOperator(name string, spec v1alpha1.OperatorSpec) error
	// DeleteOperator stops and unloads an operator: from then on Operators does not return it.
	DeleteOperator(name string) error
	// OperatorMetrics returns the metrics of a loaded operator in the text format of Prometheus. It may take two seconds.
	OperatorMetrics(name string) ([]byte, error)
}

// FaultBackend injects faults.
type FaultBackend interface {
	// ValidateFault returns the errors of a spec, below the path spec. Reserved fields are not set in it.
	ValidateFault(spec v1alpha1.FaultSpec) field.ErrorList
	// ArmFault arms a fault.
	ArmFault(name string, spec v1alpha1.FaultSpec) error
	// ReleaseFault ends the fault and lets go what it holds; its status stays.
	ReleaseFault(name string) error
	// DisarmFault does the same and forgets the fault.
	DisarmFault(name string) error
	// FaultStatus returns the status of a fault. The server deletes faults that the backend does not know.
	FaultStatus(name string) (status v1alpha1.FaultStatus, known bool)
}
