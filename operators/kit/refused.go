package kit

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Refused tells what only a person can mend, to be said in the status, from an error that another try may mend. What is
// forbidden is both: a quota may have room again without anybody's doing. An object that cannot be made because its
// namespace is about to go is neither.
func Refused(ctx context.Context, err error) (why string, retry error) {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return "", nil
	case apierrors.IsInvalid(err):
		log.FromContext(ctx).Error(err, "The spec leads to an object that is not valid")
		return err.Error(), nil
	case apierrors.IsForbidden(err):
		return err.Error(), err
	}
	return "", err
}
