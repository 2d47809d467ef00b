package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	amazon        = "https://s3.amazonaws.com"
	defaultRegion = "us-east-1"

	// tries of a request. The library's ten with growing pauses would use up a backup's time for a server that is not
	// there; the operator tries again anyway.
	tries = 3
)

// S3 is a bucket.
type S3 struct {
	client *minio.Client
	bucket string
}

var _ Store = (*S3)(nil)

// S3Options say where a bucket is, and who asks.
type S3Options struct {
	// Bucket is its name.
	Bucket string
	// Endpoint is the URL of the server. The default is Amazon's.
	Endpoint string
	// ForcePathStyle puts the bucket into the path of URLs instead of the host name.
	ForcePathStyle bool
	// Credentials of who asks. Without them requests are anonymous.
	Credentials Credentials
	// Dial connects to the server. The default is net/http's way, with the proxy that the environment names.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// NewS3 returns a bucket. It asks nothing of the server yet.
func NewS3(o S3Options) (*S3, error) {
	endpoint := o.Endpoint
	if endpoint == "" {
		endpoint = amazon
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("the endpoint %q of S3 is no URL: %w", endpoint, err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("the endpoint %q of S3 is no URL such as https://host:9000", endpoint)
	}
	region := o.Credentials.Region
	if region == "" {
		region = defaultRegion
	}
	lookup := minio.BucketLookupAuto
	if o.ForcePathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds:        credentials.NewStaticV4(o.Credentials.AccessKeyID, o.Credentials.SecretAccessKey, o.Credentials.SessionToken),
		Secure:       u.Scheme == "https",
		Region:       region,
		BucketLookup: lookup,
		Transport:    Transport(o.Dial),
		MaxRetries:   tries,
	})
	if err != nil {
		return nil, fmt.Errorf("set up S3 at %s: %w", endpoint, err)
	}
	return &S3{client: client, bucket: o.Bucket}, nil
}

// Transport returns one that connects by dial. nil: net/http's way, with the proxy that the environment names.
func Transport(dial func(context.Context, string) (net.Conn, error)) http.RoundTripper {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		MaxIdleConns:          4,
		IdleConnTimeout:       10 * time.Second,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		DisableCompression:    true, // a backup that is stored compressed is not to be unpacked on the way
	}
	if dial != nil {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, address) }
	}
	return t
}

// Put stores an object.
func (s *S3) Put(ctx context.Context, name string, content io.Reader, size int64) error {
	_, err := s.client.PutObject(ctx, s.bucket, name, content, size, minio.PutObjectOptions{ContentType: "application/octet-stream"})
	return s.explain("store", name, err)
}

// Get opens an object.
func (s *S3) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	object, err := s.client.GetObject(ctx, s.bucket, name, minio.GetObjectOptions{})
	if err != nil {
		return nil, s.explain("read", name, err)
	}
	if _, err := object.Stat(); err != nil { // GetObject asks for nothing before the first use
		return nil, errors.Join(s.explain("read", name, err), object.Close())
	}
	return object, nil
}

// List returns the objects whose names begin with a prefix.
func (s *S3) List(ctx context.Context, prefix string) ([]Object, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the goroutine behind the channel when we leave early
	var objects []Object
	for object := range s.client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if object.Err != nil {
			return nil, s.explain("list", prefix, object.Err)
		}
		objects = append(objects, Object{Name: object.Key, Size: object.Size})
	}
	return objects, nil
}

// Delete deletes an object.
func (s *S3) Delete(ctx context.Context, name string) error {
	err := s.client.RemoveObject(ctx, s.bucket, name, minio.RemoveObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil
	}
	return s.explain("delete", name, err)
}

// PresignGet returns a URL by which anybody can read an object for a while.
func (s *S3) PresignGet(ctx context.Context, name string, valid time.Duration) (string, error) {
	u, err := s.client.PresignedGetObject(ctx, s.bucket, name, valid, nil)
	if err != nil {
		return "", s.explain("sign a URL of", name, err)
	}
	return u.String(), nil
}

// Location is <bucket>/<name>.
func (s *S3) Location(name string) string { return s.bucket + "/" + name }

// explain says what was tried, and what is missing as an fs.ErrNotExist.
func (s *S3) explain(verb, name string, err error) error {
	if err == nil {
		return nil
	}
	switch minio.ToErrorResponse(err).Code {
	case minio.NoSuchBucket:
		return fmt.Errorf("%s %s: there is no bucket %q: %w", verb, s.Location(name), s.bucket, errors.Join(fs.ErrNotExist, err))
	case minio.NoSuchKey:
		return fmt.Errorf("%s %s: there is no such object: %w", verb, s.Location(name), fs.ErrNotExist)
	}
	return fmt.Errorf("%s %s: %w", verb, s.Location(name), err)
}

// SplitPath splits <bucket>/<name>.
func SplitPath(path string) (bucket, name string, err error) {
	bucket, name, ok := strings.Cut(path, "/")
	if !ok || bucket == "" || name == "" {
		return "", "", fmt.Errorf("the path %q in S3 is not <bucket>/<name>", path)
	}
	return bucket, name, nil
}
