package labapi

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
)

// Backend is the lab behind the API. It is safe for concurrent use, and never calls the server. What it returns is the
// server's to keep.
//
// Its reading methods return at once: requests wait for them. An error of its writing methods is what the client gets;
// one of k8s.io/apimachinery/pkg/api/errors is passed on as it is, another one is an internal error.
type Backend interface {
	OperatorBackend
	FaultBackend

	// Loops are all that were seen. A name and an operator in the spec are needed; one without a namespace is served
	// in the namespace default.
	Loops() []v1alpha1.Loop
	// Changed returns a channel that is closed at the next change of anything that the other methods return. It is
	// asked for before they are read.
	Changed() <-chan struct{}
}

// OperatorBackend runs operators.
type OperatorBackend interface {
	// Operators are all that are loaded, with metadata.generation counting the changes of the spec. Where the
	// generation is 0 the server counts.
	Operators() []v1alpha1.Operator
	// ValidateOperator says what is wrong with a spec, below the path spec.
	ValidateOperator(name string, spec v1alpha1.OperatorSpec) field.ErrorList
	// ApplyOperator loads an operator or changes how it runs. It returns when that is accepted: Operators tells of
	// it from then on.
	ApplyOperator(name string, spec v1alpha1.OperatorSpec) error
	// DeleteOperator stops and unloads an operator: Operators does not tell of it from then on.
	DeleteOperator(name string) error
}

// FaultBackend carries out faults.
type FaultBackend interface {
	// ValidateFault says what is wrong with a spec, below the path spec. Reserved fields are not set in it.
	ValidateFault(spec v1alpha1.FaultSpec) field.ErrorList
	// ArmFault arms a fault.
	ArmFault(name string, spec v1alpha1.FaultSpec) error
	// ReleaseFault lets go what the fault holds, and disarms it; its status can still be asked for.
	ReleaseFault(name string) error
	// DisarmFault does the same and forgets the fault.
	DisarmFault(name string) error
	// FaultStatus is how far a fault is. One that the backend does not know is gone.
	FaultStatus(name string) (status v1alpha1.FaultStatus, known bool)
}
