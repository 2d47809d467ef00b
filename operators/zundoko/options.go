package zundoko

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
)

// ControllerName is the name of the one controller of this operator, in both variants.
const ControllerName = "hikawa"

// LeaderElectionID is the name of the lease a manager of this operator should elect its leader by.
const LeaderElectionID = "zundoko-operator"

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

// Options set up the operator. The zero value is a hardened operator that sings random words.
type Options struct {
	// Variant is the operator to run. The default is Hardened.
	Variant Variant

	// Seed makes random words repeatable: the same seed gives a Hikawa of the same namespace and name
	// the same song. The default is 0: hardened then draws each song from the UID of its Hikawa,
	// classic from the clock.
	Seed int64

	// Song lists the words to say in place of random ones; it starts again at its end. The default is
	// empty: random words.
	Song []v1beta1.Word

	// Clock tells the time, and classic sleeps by it. The default is the real one.
	Clock clock.Clock

	// Controller is given to the controller as it is. The default is controller-runtime's.
	Controller controller.Options
}

// AddToScheme registers the types of the operator with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	return v1beta1.AddToScheme(s)
}

// SetupWithManager adds the operator to a manager, whose scheme has to know the types already.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	for i, word := range o.Song {
		if word != v1beta1.Zun && word != v1beta1.Doko {
			return fmt.Errorf("word %d of the song is %q, want %s or %s", i+1, word, v1beta1.Zun, v1beta1.Doko)
		}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
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
