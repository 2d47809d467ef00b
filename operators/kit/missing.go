package kit

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// CreateMissing creates obj, or, if there is one of that name, reads it into obj, whoever it belongs to: what classic
// operators did. [Writer.Ensure] is for others.
func CreateMissing(ctx context.Context, c client.Client, obj client.Object) (created bool, err error) {
	err = c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if err == nil {
		return false, nil
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("get %s %s: %w", Kind(obj), obj.GetName(), err)
	}
	log.FromContext(ctx).Info("Creating", "object", Kind(obj)+" "+obj.GetName())
	if err := c.Create(ctx, obj); err != nil {
		return false, fmt.Errorf("create %s %s: %w", Kind(obj), obj.GetName(), err)
	}
	return true, nil
}
