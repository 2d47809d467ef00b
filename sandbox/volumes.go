package sandbox

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/operator-lab/operator-lab/sandbox/storage"
)

// installStorage makes the storage class for claims that name none. An existing one is left as it is.
func (p *plane) installStorage(ctx context.Context) error {
	config, err := p.config("admin")
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.StorageV1().StorageClasses().Create(ctx, storage.Class(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the storage class %s: %w", storage.ClassName, err)
	}
	return nil
}
