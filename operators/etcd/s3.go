package etcd

import (
	"context"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd/store"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// s3Store is the bucket of an S3Source, and the key that its path has there.
type s3Store struct {
	*store.S3
	key string
}

// newS3 reaches the bucket of a source, as who its Secret in the namespace says. The methods of the store take keys
// within the bucket.
func newS3(ctx context.Context, source *v1beta2.S3Source, reader client.Reader, namespace string, dial func(ctx context.Context, address string) (net.Conn, error)) (*s3Store, error) {
	bucket, key, err := store.SplitPath(source.Path)
	if err != nil {
		return nil, err
	}
	var who store.Credentials
	if source.AWSSecret != "" {
		secret := &corev1.Secret{}
		if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: source.AWSSecret}, secret); err != nil {
			return nil, fmt.Errorf("get the Secret with the credentials of S3: %w", err)
		}
		who, err = store.ParseCredentials(secret.Data[store.CredentialsFile], secret.Data[store.ConfigFile])
		if err != nil {
			return nil, fmt.Errorf("the Secret %s: %w", source.AWSSecret, err)
		}
	}
	bucketStore, err := store.NewS3(store.S3Options{
		Bucket: bucket, Endpoint: source.Endpoint, ForcePathStyle: source.ForcePathStyle, Credentials: who, Dial: dial,
	})
	if err != nil {
		return nil, err
	}
	return &s3Store{S3: bucketStore, key: key}, nil
}
