package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/network"
	"github.com/operator-lab/operator-lab/sandbox/node"
)

// patience is the time limit for a condition on a busy machine.
const patience = 60 * time.Second

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func() error) {
	t.Helper()
	deadline := time.After(patience)
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s: %v", what, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// task is a container's program at work: the function, which ends when it likes; signals are for it to heed.
type task struct {
	*images.Container
	signals chan syscall.Signal
	done    chan struct{}
	code    int
	// life ends with SIGKILL.
	life context.Context //nolint:containedctx // it is that of one program
	kill context.CancelFunc
}

func (t *task) Signal(s syscall.Signal) {
	if s == syscall.SIGKILL {
		t.kill()
	}
	select {
	case t.signals <- s:
	case <-t.done:
	}
}

func (t *task) Done() <-chan struct{} { return t.done }

func (t *task) Code() int { return t.code }

// untilSignal waits for a signal that ends the program.
func (t *task) untilSignal() int { return 128 + int(<-t.signals) }

// image is a program that a function stands for.
type image func(t *task) int

// errStart is the error of an image without the command.
var errStart = &exec.Error{Name: "nothing", Err: exec.ErrNotFound}

func (i image) Start(c *images.Container) (images.Running, error) {
	if i == nil {
		return nil, errStart
	}
	t := &task{Container: c, signals: make(chan syscall.Signal, 10), done: make(chan struct{})}
	t.life, t.kill = context.WithCancel(context.Background()) //nolint:forbidigo // no caller lives as long
	go func() {
		defer t.kill()
		defer close(t.done)
		t.code = i(t)
	}()
	return t, nil
}

func (image) File(path string) (string, bool) { return "of the image\n", path == "/srv/page" }

// catalogue is a test's catalogue.
type catalogue map[string]images.Image

func (i catalogue) Lookup(name string) (images.Image, error) {
	if strings.Contains(name, " ") {
		return images.Image{}, errors.New("invalid reference format")
	}
	short := strings.TrimSuffix(strings.TrimPrefix(name, "docker.io/library/"), ":latest")
	found, ok := i[short]
	if !ok {
		found.Pull.Error = "not found"
	}
	found.Name = "docker.io/library/" + short
	if !strings.Contains(short, ":") {
		found.Name += ":latest"
	}
	return found, nil
}

func waits(t *task) int { return t.untilSignal() }

// machine is a node with its runtime.
type machine struct {
	*node.Runtime
	network *network.Node
	logs    string
	images  catalogue
}

func newMachine(t *testing.T, change ...func(*node.Options)) *machine {
	t.Helper()
	sockets, err := os.MkdirTemp("", "node") //nolint:usetesting // its paths are too long for a socket in some places
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	if err := os.Chmod(sockets, 0o700); err != nil {
		t.Fatal(err)
	}
	part, err := network.OpenNode(network.Plan{Dir: sockets}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = part.Close() })
	m := &machine{network: part, logs: t.TempDir(), images: catalogue{"waits": {Program: image(waits)}}}
	o := node.Options{Name: "node-1", Network: part, Catalogue: m.images, Dir: t.TempDir()}
	for _, c := range change {
		c(&o)
	}
	if m.Runtime, err = node.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return m
}

// pod runs a pod sandbox.
func (m *machine) pod(t *testing.T, name string, change ...func(*runtimeapi.PodSandboxConfig)) (string, *runtimeapi.PodSandboxConfig) {
	t.Helper()
	config := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "shop", Uid: "uid-" + name},
		Hostname:     name,
		LogDirectory: filepath.Join(m.logs, name),
		Labels:       map[string]string{"app": name},
		DnsConfig:    &runtimeapi.DNSConfig{Servers: []string{"10.96.0.10"}, Searches: []string{"shop.svc.cluster.local"}},
	}
	for _, c := range change {
		c(config)
	}
	id, err := m.RunPodSandbox(t.Context(), config, "")
	if err != nil {
		t.Fatal(err)
	}
	return id, config
}

// create pulls the image and creates a container in a pod of its own.
func (m *machine) create(t *testing.T, imageName string, change ...func(*runtimeapi.ContainerConfig)) (id, podID string) {
	t.Helper()
	podID, config := m.pod(t, "pod-"+strings.ReplaceAll(imageName, ":", "-"))
	return m.createIn(t, podID, config, imageName, change...), podID
}

func (m *machine) createIn(t *testing.T, podID string, config *runtimeapi.PodSandboxConfig, imageName string, change ...func(*runtimeapi.ContainerConfig)) string {
	t.Helper()
	ref, err := m.Images().PullImage(t.Context(), &runtimeapi.ImageSpec{Image: imageName}, nil, config)
	if err != nil {
		t.Fatal(err)
	}
	c := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "main"},
		Image:    &runtimeapi.ImageSpec{Image: ref, UserSpecifiedImage: imageName},
		LogPath:  "main/0.log",
		Labels:   map[string]string{"io.kubernetes.container.name": "main"},
	}
	for _, f := range change {
		f(c)
	}
	id, err := m.CreateContainer(t.Context(), podID, c, config)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// start creates and starts a container.
func (m *machine) start(t *testing.T, imageName string, change ...func(*runtimeapi.ContainerConfig)) (id, podID string) {
	t.Helper()
	id, podID = m.create(t, imageName, change...)
	if err := m.StartContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id, podID
}

func (m *machine) status(t *testing.T, id string) *runtimeapi.ContainerStatus {
	t.Helper()
	s, err := m.ContainerStatus(t.Context(), id, false)
	if err != nil {
		t.Fatal(err)
	}
	return s.Status
}

// awaitExit waits until a container has ended.
func (m *machine) awaitExit(t *testing.T, id string) *runtimeapi.ContainerStatus {
	t.Helper()
	var s *runtimeapi.ContainerStatus
	eventually(t, "the container ends", func() error {
		if s = m.status(t, id); s.State != runtimeapi.ContainerState_CONTAINER_EXITED {
			return fmt.Errorf("it is %v", s.State)
		}
		return nil
	})
	return s
}

// ip of a pod.
func (m *machine) ip(t *testing.T, pod string) string {
	t.Helper()
	s, err := m.PodSandboxStatus(t.Context(), pod, false)
	if err != nil {
		t.Fatal(err)
	}
	return s.Status.Network.Ip
}

// log returns the log of a container, without the times.
func (m *machine) log(t *testing.T, id string) []string {
	t.Helper()
	content, err := os.ReadFile(m.status(t, id).LogPath)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(content)) {
		at, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if _, err := time.Parse(time.RFC3339Nano, at); err != nil || !ok {
			t.Fatalf("%q is no line of a log: %v", line, err)
		}
		lines = append(lines, rest)
	}
	return lines
}

// sh runs a script in a container.
func (m *machine) sh(t *testing.T, id, script string) (string, error) {
	t.Helper()
	out, errs, err := m.ExecSync(t.Context(), id, []string{"sh", "-c", script}, 0)
	return string(out) + string(errs), err
}

// page serves a text on port 8080 of its pod.
func page(text string) image {
	return serves(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

// serves serves on port 8080 of its pod.
func serves(handler http.HandlerFunc) image {
	return func(t *task) int {
		l, err := t.Network.Listen(8080)
		if err != nil {
			_, _ = fmt.Fprintln(t.Stderr, err)
			return 1
		}
		server := &http.Server{Handler: handler}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = server.Serve(l)
		}()
		_, _ = fmt.Fprintln(t.Stdout, "listening")
		code := t.untilSignal()
		_ = server.Close()
		<-served
		return code
	}
}
