package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3afero"
	"github.com/spf13/afero"
)

// store is a small S3 server in place of MinIO: buckets are directories, and objects are files in them. It supports
// buckets, objects, lists and multipart uploads, and checks signatures. It has no console, users or policies.
type store struct{ scripts *foreground }

const (
	storeCommand = "minio"
	storePort    = 9000
	// Other data is in a directory beside the buckets, where MinIO has its own.
	storeMetadata   = ".minio.sys/operator-lab"
	storeIncomplete = ".minio.sys/incomplete"
	// storeBuckets is the library's name for the directory of its buckets.
	storeBuckets = "buckets"
)

// File implements [Program].
func (store) File(string) (string, bool) { return "", false }

// commands let a script make buckets first, which are directories: mkdir -p /data/backups && minio server /data.
func (s store) commands(c *Container) Commands { return storeTool{s, c} }

// Start implements [Program].
func (s store) Start(c *Container) (Running, error) {
	argv := slices.Concat(c.Command, c.Args)
	if len(c.Command) == 0 { // they are arguments of the entrypoint
		argv = slices.Insert(argv, 0, storeCommand)
	}
	if isStoreCommand(argv[0]) {
		return begin(func(t *task) int { return s.serve(t, c, argv[1:], environment(c, nil), c.Stdout, c.Stderr) }), nil
	}
	if r := shell(c, c.Command); r != nil {
		return script{r, s.scripts, c.ID}, nil
	}
	return nil, &exec.Error{Name: argv[0], Err: exec.ErrNotFound}
}

func isStoreCommand(name string) bool {
	return path.Base(name) == storeCommand && slices.Contains([]string{".", "/bin", "/usr/bin", "/opt/bin", "/usr/local/bin"}, path.Dir(name))
}

// storeTool runs the server as a command of a script.
type storeTool struct {
	store     store
	container *Container
}

// Has implements [Commands].
func (storeTool) Has(name string) bool { return name == storeCommand }

// Run implements [Commands].
func (s storeTool) Run(ctx context.Context, argv, environ []string, _ string, _ io.Reader, stdout, stderr io.Writer) int {
	env := &variables{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		env.set(name, value)
	}
	t := begin(func(t *task) int { return s.store.serve(t, s.container, argv[1:], env, stdout, stderr) })
	defer s.store.scripts.begin(s.container.ID, t)()
	stop := context.AfterFunc(ctx, t.kill)
	defer stop()
	<-t.done
	return t.code
}

// storeSettings are the options of the server.
type storeSettings struct {
	dir            string
	port           int
	user, password string
	buckets        []string
}

// readStore reads 'server DIR', its flags, and variables.
func readStore(args []string, env *variables) (storeSettings, error) {
	s := storeSettings{
		port:     storePort,
		user:     cmp.Or(env.get("MINIO_ROOT_USER"), env.get("MINIO_ACCESS_KEY"), "minioadmin"),
		password: cmp.Or(env.get("MINIO_ROOT_PASSWORD"), env.get("MINIO_SECRET_KEY"), "minioadmin"),
	}
	if len(s.user) < 3 || len(s.password) < 8 {
		return s, errors.New("invalid credentials: MINIO_ROOT_USER needs 3 characters, and MINIO_ROOT_PASSWORD 8")
	}
	for _, bucket := range strings.FieldsFunc(env.get("MINIO_DEFAULT_BUCKETS"), func(r rune) bool { return r == ',' || r == ' ' }) {
		name, _, _ := strings.Cut(bucket, ":") // and a policy
		if err := gofakes3.ValidateBucketName(name); err != nil {
			return s, fmt.Errorf("MINIO_DEFAULT_BUCKETS: the name %q: %w", name, err)
		}
		s.buckets = append(s.buckets, name)
	}
	var words []string
	for i := 0; i < len(args); i++ {
		name, value, assigned := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !strings.HasPrefix(args[i], "-") {
			words = append(words, args[i])
			continue
		}
		if !assigned && i+1 < len(args) && slices.Contains([]string{"address", "console-address", "certs-dir", "S"}, name) {
			i++
			value = args[i]
		}
		if name == "address" {
			_, port, err := net.SplitHostPort(value)
			if err != nil {
				return s, fmt.Errorf("--address %s: %w", value, err)
			}
			if s.port, err = strconv.Atoi(port); err != nil {
				return s, fmt.Errorf("--address %s: this is no port", value)
			}
		}
	}
	if len(words) < 2 || words[0] != "server" {
		return s, errors.New("usage: minio server [--address :9000] DIR")
	}
	s.dir = words[1]
	return s, nil
}

// serve serves until a signal ends it.
func (store) serve(t *task, c *Container, args []string, env *variables, stdout, stderr io.Writer) int {
	settings, err := readStore(args, env)
	if err != nil {
		fmt.Fprintf(stderr, "operator-lab: %v\n", err)
		return 1
	}
	handler, err := settings.handler(c)
	if err != nil {
		fmt.Fprintf(stderr, "operator-lab: %s cannot keep its data in %s: %v\n", c.Image, settings.dir, err)
		return 1
	}
	listener, err := c.Network.Listen(settings.port)
	if err != nil {
		fmt.Fprintf(stderr, "operator-lab: %s cannot listen on port %d: %v\n", c.Image, settings.port, err)
		return 1
	}
	fmt.Fprintf(stdout, "operator-lab: %s is simulated by a small server of S3, without MinIO's console and policies: "+
		"http://%s, user %s, data in %s\n", c.Image, net.JoinHostPort(c.IP, strconv.Itoa(settings.port)), settings.user, settings.dir)
	return serveHTTP(t, c, listener, handler)
}

// handler answers requests of S3 from a directory.
func (s storeSettings) handler(c *Container) (http.Handler, error) {
	data := c.hostPath(s.dir)
	if err := os.RemoveAll(filepath.Join(data, filepath.FromSlash(storeIncomplete))); err != nil {
		return nil, err
	}
	for _, dir := range append([]string{storeMetadata, storeIncomplete}, s.buckets...) {
		if err := os.MkdirAll(filepath.Join(data, filepath.FromSlash(dir)), 0o700); err != nil {
			return nil, err
		}
	}
	// The library keeps all its buckets in a directory whose name it chooses, and temporary files beside it.
	base := filepath.Join(c.Dir, ".s3")
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, err
	}
	if err := os.Symlink(data, filepath.Join(base, storeBuckets)); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	metadata := afero.NewBasePathFs(afero.NewOsFs(), filepath.Join(data, filepath.FromSlash(storeMetadata)))
	backend, err := s3afero.MultiBucket(wholeFiles{afero.NewBasePathFs(afero.NewOsFs(), base)}, s3afero.MultiWithMetaFs(metadata))
	if err != nil {
		return nil, err
	}
	buckets := gofakes3.New(backend).Server()
	mux := http.NewServeMux()
	mux.HandleFunc("/minio/health/{kind}", func(http.ResponseWriter, *http.Request) {}) // for probes: 200
	mux.Handle("/", signed{user: s.user, password: s.password, next: received{spool: c.Dir, next: buckets}})
	return mux, nil
}

// wholeFiles is a file system in which a file that is being written appears when it is complete, as objects of S3 do.
type wholeFiles struct{ afero.Fs }

// Create implements [afero.Fs].
func (w wholeFiles) Create(name string) (afero.File, error) {
	f, err := afero.TempFile(w.Fs, path.Join(storeBuckets, storeIncomplete), "put-")
	if err != nil {
		return nil, err
	}
	return &wholeFile{File: f, fs: w.Fs, temporary: path.Join(storeBuckets, storeIncomplete, filepath.Base(f.Name())), name: name}, nil
}

// wholeFile is a file that is being written.
type wholeFile struct {
	afero.File
	fs              afero.Fs
	temporary, name string
	failed, closed  bool
}

// Write implements [io.Writer].
func (f *wholeFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.failed = f.failed || err != nil
	return n, err
}

// Close implements [io.Closer].
func (f *wholeFile) Close() error {
	if f.closed {
		return os.ErrClosed
	}
	f.closed = true
	if err := f.File.Close(); err != nil || f.failed {
		return errors.Join(err, f.fs.Remove(f.temporary))
	}
	return f.fs.Rename(f.temporary, f.name)
}
