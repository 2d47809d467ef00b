package kit

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// controllerUID is the name of the index.
const controllerUID = "controllerUID"

// IndexByController indexes kinds in the cache of a manager by the UID of their controller, for ControlledBy. By UID, so
// that no later owner of the same name inherits them.
func IndexByController(mgr ctrl.Manager, kinds ...client.Object) error {
	for _, kind := range kinds {
		// The index is only registered here, with a cache that has a context of its own.
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), kind, controllerUID, uidOfController); err != nil {
			return fmt.Errorf("index %T by controller: %w", kind, err)
		}
	}
	return nil
}

// ControlledBy lists objects of a kind that was given to IndexByController by the UID of their controller.
func ControlledBy(uid types.UID) client.ListOption {
	return client.MatchingFields{controllerUID: string(uid)}
}

func uidOfController(obj client.Object) []string {
	if owner := metav1.GetControllerOf(obj); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}
