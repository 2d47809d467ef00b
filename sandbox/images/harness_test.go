package images_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest/output"
)

// patience is the time limit for a condition.
const patience = 20 * time.Second

// loopback is a pod network of one pod, with ports of the system's choice.
type loopback struct {
	mu    sync.Mutex
	ports map[int]string
	proxy string
}

func (l *loopback) Listen(port int) (net.Listener, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ports[port] != "" {
		return nil, syscall.EADDRINUSE
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		l.ports[port] = listener.Addr().String()
	}
	return listener, err
}

func (l *loopback) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, _ := strings.Cut(address, ":")
	l.mu.Lock()
	for p, real := range l.ports {
		if fmt.Sprint(p) == port {
			address = real
		}
	}
	l.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (l *loopback) HostAddress(port int) (string, int, error) {
	if port == 6666 {
		return "", 0, syscall.EADDRINUSE
	}
	return "127.0.0.1", 30000 + port, nil
}

func (l *loopback) Proxy() string { return l.proxy }

// commands is a shell with a few commands.
type commands struct{}

func (commands) Has(name string) bool {
	return map[string]bool{"echo": true, "false": true, "sleep": true}[name]
}

func (commands) Run(ctx context.Context, argv []string, _ io.Reader, stdout, _ io.Writer) int {
	switch argv[0] {
	case "echo":
		fmt.Fprintln(stdout, strings.Join(argv[1:], " "))
	case "false":
		return 1
	case "sleep":
		<-ctx.Done()
	}
	return 0
}

// container is one for a test, and its log.
func container(t *testing.T, image string) (*images.Container, *output.Output) {
	t.Helper()
	log := &output.Output{}
	return &images.Container{
		ID: "c1", Pod: "pod-1", Namespace: "ns", Name: "main", Node: "node-1", Image: image, IP: "10.244.1.5",
		Dir: t.TempDir(), Stdout: log, Stderr: log, Shell: commands{},
		Network: &loopback{ports: map[int]string{}, proxy: "http://lab:secret@127.0.0.1:3128"},
	}, log
}

// catalogue is one with an images file of this content.
func catalogue(t *testing.T, content string) (*images.Catalogue, string) {
	t.Helper()
	file := ""
	if content != "" {
		file = filepath.Join(t.TempDir(), "images.yaml")
		write(t, file, content)
	}
	c, err := images.NewCatalogue(os.Args[0], file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, file
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// start starts an image in a container.
func start(t *testing.T, c *images.Catalogue, in *images.Container) images.Running {
	t.Helper()
	r, err := lookup(t, c, in.Image).Program.Start(in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Signal(syscall.SIGKILL)
		exit(t, r)
	})
	return r
}

func lookup(t *testing.T, c *images.Catalogue, image string) images.Image {
	t.Helper()
	i, err := c.Lookup(image)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// exit waits for the end, and returns the exit code.
func exit(t *testing.T, r images.Running) int {
	t.Helper()
	select {
	case <-r.Done():
		return r.Code()
	case <-time.After(patience):
		t.Fatal("it does not end")
		return 0
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not after %s", what, patience)
		}
		<-time.After(2 * time.Millisecond)
	}
}
