package images_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/operator-lab/operator-lab/sandbox/images"
)

// serveStore starts a server of S3 in a container with a volume at /data.
func serveStore(t *testing.T, data string, env ...string) (at string, r images.Running) {
	t.Helper()
	c, _ := catalogue(t, "")
	in, log := container(t, "quay.io/minio/minio:RELEASE.2026-01-01")
	in.Args = []string{"server", "/data", "--console-address", ":9001"}
	in.Env = env
	in.Mounts = []images.Mount{{ContainerPath: "/data", HostPath: data}}
	r = start(t, c, in)
	log.Await(t, "simulated by a small server of S3")
	network := in.Network.(*loopback)
	network.mu.Lock()
	defer network.mu.Unlock()
	return network.ports[9000], r
}

func s3Client(t *testing.T, at, user, password string) *minio.Client {
	t.Helper()
	client, err := minio.New(at, &minio.Options{
		Creds: credentials.NewStaticV4(user, password, ""), Region: "us-east-1", MaxRetries: 1,
		Transport: &http.Transport{Proxy: nil, DialContext: (&net.Dialer{}).DialContext},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func content(t *testing.T, client *minio.Client, bucket, name string) []byte {
	t.Helper()
	object, err := client.GetObject(t.Context(), bucket, name, minio.GetObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = object.Close() }()
	data, err := io.ReadAll(object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAStoreKeepsObjectsOnItsVolume(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	at, r := serveStore(t, data, "MINIO_DEFAULT_BUCKETS=given,public:download")
	client := s3Client(t, at, "minioadmin", "minioadmin")
	if err := client.MakeBucket(t.Context(), "backups", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 21<<20) // in several parts
	_, _ = rand.Read(large)
	objects := map[string][]byte{
		"etcd/example_v1_2026-11-20-19:24:00": []byte("a snapshot"), "etcd/a b+c&d=ü": []byte("odd"), "empty": {}, "large": large,
	}
	for name, want := range objects {
		if _, err := client.PutObject(t.Context(), "backups", name, bytes.NewReader(want), int64(len(want)),
			minio.PutObjectOptions{PartSize: 6 << 20}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := content(t, client, "backups", name); !bytes.Equal(got, want) {
			t.Errorf("%s: it gives back %d bytes, not the %d it was given", name, len(got), len(want))
		}
	}
	list := func() (names []string) {
		for o := range client.ListObjects(t.Context(), "backups", minio.ListObjectsOptions{Prefix: "etcd/", Recursive: true}) {
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			names = append(names, o.Key)
		}
		return names
	}
	if got, want := list(), []string{"etcd/a b+c&d=ü", "etcd/example_v1_2026-11-20-19:24:00"}; !slices.Equal(got, want) {
		t.Errorf("it lists %q, not %q", got, want)
	}
	buckets, err := client.ListBuckets(t.Context())
	if err != nil || len(buckets) != 3 {
		t.Errorf("buckets: %v %v", buckets, err)
	}

	// It dies, and another container has the same volume.
	r.Signal(syscall.SIGKILL)
	if code := exit(t, r); code != 137 {
		t.Errorf("it exits with %d", code)
	}
	at, r = serveStore(t, data)
	client = s3Client(t, at, "minioadmin", "minioadmin")
	for name, want := range objects {
		if got := content(t, client, "backups", name); !bytes.Equal(got, want) {
			t.Errorf("%s: it is not what it was", name)
		}
	}
	if err := client.RemoveObject(t.Context(), "backups", "etcd/a b+c&d=ü", minio.RemoveObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := list(); len(got) != 1 {
		t.Errorf("it lists %q", got)
	}
	_, err = client.StatObject(t.Context(), "backups", "nobody", minio.StatObjectOptions{})
	if minio.ToErrorResponse(err).Code != "NoSuchKey" {
		t.Errorf("an object that is not there: %v", err)
	}
	r.Signal(syscall.SIGTERM)
	if code := exit(t, r); code != 0 {
		t.Errorf("it exits with %d", code)
	}
}

func TestAStoreChecksSignatures(t *testing.T) {
	t.Parallel()
	at, _ := serveStore(t, t.TempDir(), "MINIO_ROOT_USER=etcd", "MINIO_ROOT_PASSWORD=not-guessed", "MINIO_DEFAULT_BUCKETS=backups")
	good := s3Client(t, at, "etcd", "not-guessed")
	put := func(c *minio.Client) error {
		_, err := c.PutObject(t.Context(), "backups", "x", strings.NewReader("hello"), 5, minio.PutObjectOptions{})
		return err
	}
	if err := put(good); err != nil {
		t.Fatal(err)
	}
	for want, client := range map[string]*minio.Client{
		"SignatureDoesNotMatch": s3Client(t, at, "etcd", "guessed-wrong"),
		"InvalidAccessKeyId":    s3Client(t, at, "minioadmin", "minioadmin"),
	} {
		if got := minio.ToErrorResponse(put(client)).Code; got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	for what, status := range map[string]int{
		"/backups/x": http.StatusForbidden, "/minio/health/live": http.StatusOK, "/minio/health/ready": http.StatusOK,
	} {
		if got, _ := get(t, "http://"+at+what); got != status {
			t.Errorf("%s: %d, not %d", what, got, status)
		}
	}
	link, err := good.PresignedGetObject(t.Context(), "backups", "x", time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	if status, text := get(t, link.String()); status != http.StatusOK || text != "hello" {
		t.Errorf("a signed link: %d %q", status, text)
	}
	link.Path = "/backups/y"
	if status, _ := get(t, link.String()); status != http.StatusForbidden {
		t.Errorf("a link that is signed for something else: %d", status)
	}
}

// get asks without a signature.
func get(t *testing.T, url string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: &http.Transport{}}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data)
}

// failing is a body that breaks off.
type failing struct{ io.Reader }

func (f failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrClosedPipe
	}
	return n, err
}

func TestAnUploadThatBreaksOffChangesNothing(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	at, _ := serveStore(t, data, "MINIO_DEFAULT_BUCKETS=backups")
	client := s3Client(t, at, "minioadmin", "minioadmin")
	if _, err := client.PutObject(t.Context(), "backups", "x", strings.NewReader("before"), 6, minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := client.PutObject(ctx, "backups", "x", failing{strings.NewReader("half")}, 9, minio.PutObjectOptions{}); err == nil {
		t.Error("half of an object was taken for all of it")
	}
	if got := string(content(t, client, "backups", "x")); got != "before" {
		t.Errorf("it is %q now", got)
	}
	entries, err := os.ReadDir(filepath.Join(data, "backups"))
	if err != nil || len(entries) != 1 {
		t.Errorf("in the bucket are %v %v", entries, err)
	}
}

func TestAStoreSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "")
	for want, change := range map[string]func(*images.Container){
		"usage: minio server":                   func(in *images.Container) { in.Args = []string{"help"} },
		"MINIO_ROOT_PASSWORD 8":                 func(in *images.Container) { in.Env = []string{"MINIO_ROOT_PASSWORD=short"} },
		`MINIO_DEFAULT_BUCKETS: the name "A_B"`: func(in *images.Container) { in.Env = []string{"MINIO_DEFAULT_BUCKETS=A_B"} },
		"--address x:y: this is no port":        func(in *images.Container) { in.Args = []string{"server", "--address=x:y", "/data"} },
		"cannot keep its data in /file: ": func(in *images.Container) {
			in.Args = []string{"server", "/file"}
			in.Mounts = []images.Mount{{ContainerPath: "/file", HostPath: os.Args[0]}}
		},
	} {
		in, log := container(t, "minio/minio")
		in.Args = []string{"server", "/data"}
		change(in)
		if code := exit(t, start(t, c, in)); code != 1 || !strings.Contains(log.String(), want) {
			t.Errorf("it exits with %d, want %q:\n%s", code, want, log)
		}
	}
}
