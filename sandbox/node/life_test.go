package node_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/node"
)

func TestLife(t *testing.T) {
	m := newMachine(t)
	id, pod := m.create(t, "waits")
	if s := m.status(t, id); s.State != runtimeapi.ContainerState_CONTAINER_CREATED || s.StartedAt != 0 {
		t.Errorf("created: %v", s)
	}
	if err := m.StartContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if s := m.status(t, id); s.State != runtimeapi.ContainerState_CONTAINER_RUNNING || s.StartedAt == 0 || s.FinishedAt != 0 {
		t.Errorf("started: %v", s)
	}
	if err := m.StartContainer(t.Context(), id); err == nil {
		t.Error("it was started twice")
	}
	if err := m.StopContainer(t.Context(), id, 30); err != nil {
		t.Fatal(err)
	}
	s := m.status(t, id)
	if s.State != runtimeapi.ContainerState_CONTAINER_EXITED || s.ExitCode != 143 || s.Reason != node.ReasonError || s.FinishedAt < s.StartedAt {
		t.Errorf("stopped: %v", s)
	}
	if !strings.HasPrefix(s.ImageRef, "docker.io/library/waits@sha256:") || s.Image.Image != "docker.io/library/waits:latest" {
		t.Errorf("image %q, %q", s.Image.Image, s.ImageRef)
	}
	if err := m.RemovePodSandbox(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if _, err := m.ContainerStatus(t.Context(), id, false); err == nil {
		t.Error("a container of a removed pod is there")
	}
	if _, err := os.Stat(s.LogPath); err != nil {
		t.Errorf("the log, which is the kubelet's, is gone: %v", err)
	}
}

func TestHowContainersEnd(t *testing.T) {
	m := newMachine(t)
	m.images["completes"] = images.Image{Program: image(func(*task) int { return 0 })}
	m.images["fails"] = images.Image{Program: image(func(t *task) int {
		_, _ = fmt.Fprint(t.Stderr, "no end of line")
		return 7
	})}
	for name, want := range map[string]struct {
		code   int32
		reason string
	}{"completes": {0, node.ReasonCompleted}, "fails": {7, node.ReasonError}} {
		id, _ := m.start(t, name)
		if s := m.awaitExit(t, id); s.ExitCode != want.code || s.Reason != want.reason {
			t.Errorf("%s: %v", name, s)
		}
		if name == "fails" {
			if got := m.log(t, id); !slices.Equal(got, []string{"stderr F no end of line"}) {
				t.Errorf("log %q", got)
			}
		}
	}
}

func TestAnImageWithoutTheCommand(t *testing.T) {
	m := newMachine(t)
	m.images["empty"] = images.Image{Program: image(nil)}
	id, _ := m.create(t, "empty")
	err := m.StartContainer(t.Context(), id)
	want := `unable to start container process: error during container init: exec: "nothing": executable file not found in $PATH: unknown`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v", err)
	}
	if s := m.status(t, id); s.ExitCode != 128 || s.Reason != "StartError" || !strings.Contains(s.Message, want) {
		t.Errorf("status %v", s)
	}
}

func TestAttempts(t *testing.T) {
	m := newMachine(t)
	m.images["says"] = images.Image{Program: image(func(t *task) int {
		_, _ = fmt.Fprintln(t.Stdout, "attempt of", t.Container.Pod)
		return 1
	})}
	pod, config := m.pod(t, "again")
	var ids []string
	for attempt := range 2 {
		id := m.createIn(t, pod, config, "says", func(c *runtimeapi.ContainerConfig) {
			c.Metadata.Attempt, c.LogPath = uint32(attempt), fmt.Sprintf("main/%d.log", attempt)
		})
		if err := m.StartContainer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		m.awaitExit(t, id)
		ids = append(ids, id)
	}
	for _, id := range ids { // also of the container before: kubectl logs -p
		if got := m.log(t, id); !slices.Equal(got, []string{"stdout F attempt of again"}) {
			t.Errorf("log %q", got)
		}
	}
	list, err := m.ListContainers(t.Context(), &runtimeapi.ContainerFilter{PodSandboxId: pod})
	if err != nil || len(list) != 2 || list[0].Id != ids[1] {
		t.Errorf("list %v, %v", list, err)
	}
}

func TestAProgramThatIgnoresSIGTERM(t *testing.T) {
	m := newMachine(t)
	m.images["stubborn"] = images.Image{Program: image(func(t *task) int {
		for s := range t.signals {
			_, _ = fmt.Fprintln(t.Stdout, s)
			if s == syscall.SIGKILL {
				return 137
			}
		}
		return 0
	})}
	id, _ := m.start(t, "stubborn")
	if err := m.StopContainer(t.Context(), id, 1); err != nil {
		t.Fatal(err)
	}
	if s := m.status(t, id); s.ExitCode != 137 {
		t.Errorf("status %v", s)
	}
	if got := m.log(t, id); !slices.Equal(got, []string{"stdout F terminated", "stdout F killed"}) {
		t.Errorf("log %q", got)
	}
}

func TestTheStopSignalOfThePod(t *testing.T) {
	m := newMachine(t)
	id, _ := m.start(t, "waits", func(c *runtimeapi.ContainerConfig) { c.StopSignal = runtimeapi.Signal_SIGUSR1 })
	if err := m.StopContainer(t.Context(), id, 60); err != nil {
		t.Fatal(err)
	}
	if s := m.status(t, id); s.ExitCode != 128+int32(syscall.SIGUSR1) {
		t.Errorf("status %v", s)
	}
}

func TestAProgramThatNeverEnds(t *testing.T) {
	m := newMachine(t, func(o *node.Options) { o.KillPatience = 20 * time.Millisecond })
	end := make(chan struct{})
	defer close(end)
	m.images["immortal"] = images.Image{Program: image(func(*task) int { <-end; return 0 })}
	id, _ := m.start(t, "immortal")
	if err := m.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	if s := m.status(t, id); s.State != runtimeapi.ContainerState_CONTAINER_EXITED || s.ExitCode != 137 {
		t.Errorf("status %v", s)
	}
	if got := m.log(t, id); len(got) != 1 || !strings.Contains(got[0], "did not end within 20ms after SIGKILL") {
		t.Errorf("log %q", got)
	}
}

func TestWhatAProgramIsGiven(t *testing.T) {
	var given images.Container
	m := newMachine(t, func(o *node.Options) {
		o.APIServer = "https://127.0.0.1:6443"
	})
	m.images["looks"] = images.Image{Program: image(func(t *task) int {
		given = *t.Container
		return 0
	})}
	id, pod := m.start(t, "looks", func(c *runtimeapi.ContainerConfig) {
		c.Command, c.Args, c.WorkingDir = []string{"serve"}, []string{"--fast"}, "/srv"
		c.Envs = []*runtimeapi.KeyValue{{Key: "A", Value: []byte("1")}, {Key: "HOSTNAME", Value: []byte("mine")}, {Key: "A", Value: []byte("2")}}
		c.Mounts = []*runtimeapi.Mount{{ContainerPath: "/data", HostPath: "/tmp/x", Readonly: true}}
		c.Annotations = map[string]string{"io.kubernetes.container.ports": `[{"containerPort":8080},{"containerPort":9090}]`}
	})
	m.awaitExit(t, id)
	if given.Pod != "pod-looks" || given.Namespace != "shop" || given.Name != "main" || given.Node != "node-1" || given.Image != "looks" ||
		given.IP != m.ip(t, pod) || given.UID != "uid-pod-looks" || given.APIServer == "" {
		t.Errorf("given %+v", given)
	}
	if !slices.Equal(given.Ports, []int{8080, 9090}) || given.Mounts[0] != (images.Mount{ContainerPath: "/data", HostPath: "/tmp/x", ReadOnly: true}) {
		t.Errorf("ports %v, mounts %v", given.Ports, given.Mounts)
	}
	if got := given.Env[1:]; !slices.Equal(got, []string{"HOSTNAME=mine", "A=2"}) {
		t.Errorf("environment %q", got)
	}
	if given.Stdin != nil {
		t.Error("it was given something to read")
	}
	if !given.Shell.Has("sh") || given.Shell.Has("bash") {
		t.Error("the shell does not say what it has")
	}
}

func TestAddresses(t *testing.T) {
	m := newMachine(t)
	m.images["page"] = images.Image{Program: page("hello\n")}
	id, pod := m.start(t, "page")
	eventually(t, "it listens", func() error {
		_, err := m.sh(t, id, "nc -z localhost 8080")
		return err
	})
	ip := m.ip(t, pod)
	if !strings.HasPrefix(ip, "10.244.1.") {
		t.Errorf("address %q", ip)
	}
	other, _ := m.start(t, "waits")
	if out, err := m.sh(t, other, "curl -s http://"+ip+":8080"); err != nil || out != "hello\n" {
		t.Errorf("from another pod: %q, %v", out, err)
	}
	if err := m.StopPodSandbox(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if out, err := m.sh(t, other, "curl -s http://"+ip+":8080"); err == nil {
		t.Errorf("a stopped pod answers %q", out)
	}
	s, err := m.PodSandboxStatus(t.Context(), pod, false)
	if err != nil || s.Status.State != runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
		t.Errorf("stopped: %v, %v", s, err)
	}
}

func TestHostNetwork(t *testing.T) {
	m := newMachine(t)
	m.images["page"] = images.Image{Program: page("of the node\n")}
	pod, config := m.pod(t, "host", func(c *runtimeapi.PodSandboxConfig) {
		c.Hostname = ""
		c.Linux = &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE},
		}}
	})
	id := m.createIn(t, pod, config, "page")
	if err := m.StartContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	other, _ := m.start(t, "waits")
	eventually(t, "it answers at the node's address", func() error {
		if out, err := m.sh(t, other, "curl -s http://"+m.network.IP()+":8080"); err != nil || out != "of the node\n" {
			return fmt.Errorf("%q, %w", out, err)
		}
		return nil
	})
	if out, err := m.sh(t, id, "hostname"); err != nil || out != "node-1\n" {
		t.Errorf("host name %q, %v", out, err)
	}
	if err := m.RemovePodSandbox(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if out, err := m.sh(t, other, "curl -s http://"+m.network.IP()+":8080"); err == nil {
		t.Errorf("a removed pod answers %q", out)
	}
}

func TestLists(t *testing.T) {
	m := newMachine(t)
	running, pod := m.start(t, "waits")
	created, _ := m.create(t, "waits")
	state := func(s runtimeapi.ContainerState) *runtimeapi.ContainerFilter {
		return &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: s}}
	}
	for _, c := range []struct {
		filter *runtimeapi.ContainerFilter
		want   []string
	}{
		{nil, []string{created, running}},
		{state(runtimeapi.ContainerState_CONTAINER_RUNNING), []string{running}},
		{&runtimeapi.ContainerFilter{Id: created[:12]}, []string{created}},
		{&runtimeapi.ContainerFilter{PodSandboxId: pod}, []string{running}},
		{&runtimeapi.ContainerFilter{LabelSelector: map[string]string{"io.kubernetes.container.name": "other"}}, nil},
	} {
		list, err := m.ListContainers(t.Context(), c.filter)
		var got []string
		for _, one := range list {
			got = append(got, one.Id)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, %v; want %v", c.filter, got, err, c.want)
		}
	}
	pods, err := m.ListPodSandbox(t.Context(), &runtimeapi.PodSandboxFilter{State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY}})
	if err != nil || len(pods) != 2 {
		t.Errorf("pods %v, %v", pods, err)
	}
	stats, err := m.ListContainerStats(t.Context(), &runtimeapi.ContainerStatsFilter{})
	if err != nil || len(stats) != 0 { // a function of this process
		t.Errorf("statistics %v, %v", stats, err)
	}
}

// TestCreateWhileClosing checks that a container that comes too late leaves nothing behind.
func TestCreateWhileClosing(t *testing.T) {
	var dir string
	m := newMachine(t, func(o *node.Options) { dir = o.Dir })
	killed, release := make(chan struct{}), make(chan struct{})
	m.images["stubborn"] = images.Image{Program: image(func(t *task) int {
		<-t.signals
		close(killed)
		<-release
		return 137
	})}
	podID, config := m.pod(t, "late")
	if err := m.StartContainer(t.Context(), m.createIn(t, podID, config, "stubborn")); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- m.Close(t.Context()) }()
	<-killed
	if _, err := m.CreateContainer(t.Context(), podID, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "second"}, Image: &runtimeapi.ImageSpec{Image: "stubborn"}, LogPath: "second.log",
	}, config); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("a closing runtime creates containers: %v", err)
	}
	close(release)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "containers")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestClose(t *testing.T) {
	m := newMachine(t)
	var ids []string
	for range 5 {
		id, _ := m.start(t, "waits")
		ids = append(ids, id)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if _, err := m.ContainerStatus(t.Context(), id, false); err == nil {
			t.Error("a container is left")
		}
	}
	if _, err := m.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{}}, ""); err == nil {
		t.Error("a closed runtime runs pods")
	}
	eventually(t, "nothing goes on", func() error {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			if strings.Contains(stack, "sandbox/node.") || strings.Contains(stack, "sandbox/node/shell.") {
				return errors.New(stack)
			}
		}
		return nil
	})
}
