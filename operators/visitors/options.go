package visitors

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	v1 "github.com/operator-lab/operator-lab/operators/visitors/v1"
)

// ControllerName is the name of the one controller of this operator, in both variants.
const ControllerName = "visitors"

// LeaderElectionID is the name of the lease a manager of this operator should elect its leader by.
const LeaderElectionID = "visitors-operator-lock"

// Variant says which of the two operators runs.
type Variant string

// The variants.
const (
	Hardened Variant = "hardened"
	Classic  Variant = "classic"
)

// Variants returns all variants, the default one first.
func Variants() []Variant {
	return []Variant{Hardened, Classic}
}

// Options set up the operator. The zero value is a hardened operator.
type Options struct {
	// Variant is the operator to run. The default is Hardened.
	Variant Variant

	// Controller is given to the controller as it is. The default is controller-runtime's.
	Controller controller.Options
}

// AddToScheme registers the types of the operator with a scheme. It also needs those of Kubernetes itself there.
func AddToScheme(s *runtime.Scheme) error {
	return v1.AddToScheme(s)
}

// SetupWithManager adds the operator to a manager, whose scheme has to know the types already.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	var err error
	switch o.Variant {
	case Hardened, "":
		err = setupHardened(mgr, o)
	case Classic:
		err = setupClassic(mgr, o)
	default:
		return fmt.Errorf("unknown variant %q, want one of %v", o.Variant, Variants())
	}
	if err != nil {
		return fmt.Errorf("set up the %s controller: %w", ControllerName, err)
	}
	return nil
}
