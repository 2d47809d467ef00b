package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/operator-lab/operator-lab/operators/etcd/report"
)

// patience is how long something may take that has to happen. It only matters in tests that fail.
const patience = time.Minute

// agent runs the command as a pod does, and returns what it left for the kubelet.
func agent(t *testing.T, args ...string) (report.Result, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "termination-log")
	var log bytes.Buffer
	cmd := Command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetErr(&log)
	cmd.SetOut(&log)
	cmd.SetArgs(append(args, "--result="+file))
	err := cmd.ExecuteContext(t.Context())
	data, readErr := os.ReadFile(file)
	if readErr != nil {
		t.Fatalf("agent %q left no result: %v\n%s", args, readErr, log.Bytes())
	}
	if len(data) > report.MaxLength {
		t.Errorf("the result has %d bytes, of which a kubelet keeps %d", len(data), report.MaxLength)
	}
	var result report.Result
	if err := json.Unmarshal(data, &result); err != nil {
		t.Fatalf("the result is no JSON: %v\n%s", err, data)
	}
	if (err != nil) != (result.Error != "") {
		t.Errorf("the exit and the result differ: %v, %+v", err, result)
	}
	return result, err
}

// done runs the command, which has to succeed.
func done(t *testing.T, args ...string) report.Result {
	t.Helper()
	result, err := agent(t, args...)
	if err != nil {
		t.Fatalf("agent %q: %v", args, err)
	}
	return result
}

// refused runs the command, which has to fail for a reason.
func refused(t *testing.T, reason string, args ...string) report.Result {
	t.Helper()
	result, err := agent(t, args...)
	if err == nil {
		t.Fatalf("agent %q did what it should not have: %+v", args, result)
	}
	if result.Reason != reason {
		t.Errorf("agent %q failed because of %s, want %s: %v", args, result.Reason, reason, err)
	}
	if result.Location != "" || result.SHA256 != "" || result.Revision != 0 {
		t.Errorf("a result with an error tells of a backup: %+v", result)
	}
	return result
}

// server is a member of etcd in this process.
type server struct {
	*embed.Etcd
	stop   func()
	url    string // for clients
	client *clientv3.Client
}

// freeURL is one that nobody listens at. The address is another one each time, so that nobody is there soon, either;
// where the system has only one loopback address the port has to do.
func freeURL(t *testing.T) url.URL {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 128+rand.IntN(64), rand.IntN(256), 1+rand.IntN(250)))
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return url.URL{Scheme: "http", Host: l.Addr().String()}
}

// cluster starts as many members, each with a client.
func cluster(t *testing.T, size int) []*server {
	t.Helper()
	var configs []*embed.Config
	var all string
	for i := range size {
		config := memberConfig(t, fmt.Sprintf("m%d", i), t.TempDir())
		all += fmt.Sprintf(",%s=%s", config.Name, config.AdvertisePeerUrls[0].String())
		configs = append(configs, config)
	}
	var servers []*server
	for _, config := range configs {
		config.InitialCluster = all[1:]
		servers = append(servers, start(t, config))
	}
	for _, s := range servers {
		s.ready(t)
	}
	return servers
}

func start(t *testing.T, config *embed.Config) *server {
	t.Helper()
	e, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(e.Close)
	t.Cleanup(stop)
	return &server{Etcd: e, stop: stop, url: config.AdvertiseClientUrls[0].String()}
}

func memberConfig(t *testing.T, name, dir string) *embed.Config {
	t.Helper()
	config := embed.NewConfig()
	config.Name, config.Dir = name, dir
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	client, peer := freeURL(t), freeURL(t)
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = name + "=" + peer.String()
	config.UnsafeNoFsync = true
	return config
}

func (s *server) ready(t *testing.T) {
	t.Helper()
	select {
	case <-s.Server.ReadyNotify():
	case <-time.After(patience):
		t.Fatalf("%s is not ready", s.url)
	}
	var err error
	s.client, err = clientv3.New(clientv3.Config{Endpoints: []string{s.url}, DialTimeout: patience, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.client.Close() })
}

// put writes the key k.
func (s *server) put(t *testing.T, value string) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := s.client.Put(ctx, "k", value)
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.Revision
}

// get reads the key k.
func (s *server) get(t *testing.T) (value string, revision int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := s.client.Get(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Kvs) == 0 {
		return "", r.Header.Revision
	}
	return string(r.Kvs[0].Value), r.Header.Revision
}

// fakeS3 is a server with one bucket, "backups", that only lets in who signs requests. It returns the flags for a path.
func fakeS3(t *testing.T) (url, credentials string) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("backups"); err != nil {
		t.Fatal(err)
	}
	fake := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !bytes.Contains([]byte(r.Header.Get("Authorization")), []byte("Credential=RIGHT/")) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code><Message>Access Denied.</Message></Error>`)
			return
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, keysOf(t, "RIGHT")
}

func keysOf(t *testing.T, who string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "credentials"), []byte("[default]\naws_access_key_id = "+who+"\naws_secret_access_key = secret\n"))
	write(t, filepath.Join(dir, "config"), []byte("[default]\nregion = eu-central-1\n"))
	return dir
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
