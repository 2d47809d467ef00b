package kit

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// SpecChanged lets updates through that changed the spec, and those that brought another object of the same name. The
// latter is how an informer tells of an object that was deleted and made again while it had no watch, as in the second after
// its CRD changed: it lists anew, and finds a new UID. [predicate.GenerationChangedPredicate] alone drops that, since both
// have generation 1, and the new object waits for ever.
func SpecChanged() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() },
	})
}
