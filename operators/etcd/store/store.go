// Package store keeps backups: in a bucket of an S3 server, or below a directory. It knows nothing of Kubernetes; the
// operator gives it what Secrets say, and the agent what is mounted.
package store

import (
	"context"
	"io"
)

// Store is a place for files that have names.
type Store interface {
	// Put stores what there is to read under a name, all of it or nothing. What had the name before is replaced.
	Put(ctx context.Context, name string, content io.Reader, size int64) error
	// Get opens a file. The error is an fs.ErrNotExist if there is none of the name.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List returns the files whose names begin with a prefix, in no order.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Delete deletes a file. It is no error if there is none.
	Delete(ctx context.Context, name string) error
	// Location of a file as people know it.
	Location(name string) string
}

// Object is a file of a store.
type Object struct {
	Name string
	Size int64
}
