package store_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/operator-lab/operator-lab/operators/etcd/store"
)

// newS3 returns the bucket "bucket" of a server of the test's own, which is reached by the name s3.example.
func newS3(t *testing.T) *store.S3 {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(server.Close)
	s3, err := store.NewS3(store.S3Options{
		Bucket: "bucket", Endpoint: "http://s3.example:9000", ForcePathStyle: true,
		Credentials: store.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"},
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			if address != "s3.example:9000" {
				t.Errorf("dials %s", address)
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s3
}

func newDir(t *testing.T) *store.Dir {
	t.Helper()
	dir, err := store.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}

func TestStores(t *testing.T) {
	for name, s := range map[string]store.Store{"S3": newS3(t), "directory": newDir(t)} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			put := func(name, content string) {
				t.Helper()
				if err := s.Put(ctx, name, strings.NewReader(content), int64(len(content))); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Get(ctx, "x/a"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("what is not there: %v", err)
			}
			if err := s.Delete(ctx, "x/a"); err != nil {
				t.Errorf("delete what is not there: %v", err)
			}
			if objects, err := s.List(ctx, "x/"); err != nil || len(objects) != 0 {
				t.Errorf("there are %v, %v", objects, err)
			}
			put("x/a", "first")
			put("x/a", "second one")
			put("x/ab", "b")
			put("x/c", "other")
			content, err := s.Get(ctx, "x/a")
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(content); err != nil || string(got) != "second one" {
				t.Errorf("got %q, %v", got, err)
			}
			if err := content.Close(); err != nil {
				t.Error(err)
			}
			objects, err := s.List(ctx, "x/a")
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(objects, func(a, b store.Object) int { return strings.Compare(a.Name, b.Name) })
			if want := []store.Object{{Name: "x/a", Size: 10}, {Name: "x/ab", Size: 1}}; !slices.Equal(objects, want) {
				t.Errorf("got %v, want %v", objects, want)
			}
			if err := s.Delete(ctx, "x/a"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Get(ctx, "x/a"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("what was deleted: %v", err)
			}
		})
	}
}

func TestPresignedURL(t *testing.T) {
	s3 := newS3(t)
	if err := s3.Put(t.Context(), "k", strings.NewReader("v"), 1); err != nil {
		t.Fatal(err)
	}
	u, err := s3.PresignGet(t.Context(), "k", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(u, "http://s3.example:9000/bucket/k?") || !strings.Contains(u, "X-Amz-Signature=") {
		t.Errorf("the URL is %s", u)
	}
}

// What ends early leaves nothing that could be taken for a backup, and what was there before stays.
func TestDirectoryNeverHasHalfAFile(t *testing.T) {
	root := t.TempDir()
	dir, err := store.NewDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Put(t.Context(), "a", strings.NewReader("whole"), 5); err != nil {
		t.Fatal(err)
	}
	if err := dir.Put(t.Context(), "a", strings.NewReader("ha"), 5); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half a file: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(root, "a"))
	if err != nil || string(data) != "whole" {
		t.Errorf("there is %q, %v", data, err)
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 1 {
		t.Errorf("there are %v, %v", entries, err)
	}
}

func TestDirectoryKeepsToItself(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	dir, err := store.NewDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link/secret", "../" + filepath.Base(outside) + "/secret"} {
		if _, err := dir.Get(t.Context(), name); err == nil {
			t.Errorf("%s can be read", name)
		}
		if err := dir.Put(t.Context(), name, strings.NewReader("x"), 1); err == nil {
			t.Errorf("%s can be written", name)
		}
		if err := dir.Delete(t.Context(), name); err == nil {
			t.Errorf("%s can be deleted", name)
		}
	}
	if data, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(data) != "s" {
		t.Errorf("the secret is %q, %v", data, err)
	}
}

func TestBadBuckets(t *testing.T) {
	for _, endpoint := range []string{"here", "ftp://here", "http://", "http://here/folder", "http://he re", "::"} {
		if _, err := store.NewS3(store.S3Options{Bucket: "b", Endpoint: endpoint}); err == nil {
			t.Errorf("%q is taken for a URL of S3", endpoint)
		}
	}
	for _, path := range []string{"", "b", "/k", "b/"} {
		if _, _, err := store.SplitPath(path); err == nil {
			t.Errorf("%q is taken for a bucket and a key", path)
		}
	}
	if bucket, key, err := store.SplitPath("b/k/l"); err != nil || bucket != "b" || key != "k/l" {
		t.Errorf("got %s, %s, %v", bucket, key, err)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	s3, err := store.NewS3(store.S3Options{Bucket: "bucket", Endpoint: server.URL, ForcePathStyle: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s3.Put(t.Context(), "k", strings.NewReader("v"), 1); err == nil {
		t.Error("what is no S3 took an object")
	}
}
