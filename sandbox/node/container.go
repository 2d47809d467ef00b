package node

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/node/rootfs"
)

// container is one attempt of a container of a pod.
type container struct {
	id      string
	pod     *pod
	config  *runtimeapi.ContainerConfig
	image   *image
	program images.Program
	given   *images.Container
	files   *rootfs.View
	created time.Time

	log            *logFile
	stdout, stderr *lines
	attached       *attachedClients
	stdin          *stdin // nil unless asked for

	// done is closed when the container has ended.
	done chan struct{}

	mu                sync.Mutex
	state             runtimeapi.ContainerState
	started, finished time.Time
	running           images.Running // nil before its program begins, and when it never does
	// override replaces how the program ended; nil: the program's own exit code counts.
	override *ending
	ended    ending
	// ordered is closed by the first order to end which came before the program began.
	ordered   chan struct{}
	orderedTo syscall.Signal
	// interrupt ends the foreground command of the container's shell; nil if none runs.
	interrupt context.CancelFunc
}

// ending describes how a container ended.
type ending struct {
	code            int
	reason, message string
}

func (c *container) name() string { return c.config.GetMetadata().GetName() }

func (c *container) hostname() string { return c.pod.name }

func (c *container) now() runtimeapi.ContainerState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// CreateContainer prepares a container: its directory and its log.
func (r *Runtime) CreateContainer(
	_ context.Context, podID string, config *runtimeapi.ContainerConfig, podConfig *runtimeapi.PodSandboxConfig,
) (string, error) {
	p, err := r.pod(podID)
	if err != nil {
		return "", status.Errorf(codes.Unknown, "failed to find sandbox id %q: %v", podID, err)
	}
	named := config.GetImage().GetImage()
	pulled := r.images.known(named)
	if pulled == nil {
		return "", status.Errorf(codes.Unknown, "failed to resolve image %q: not found", named)
	}
	found, err := r.options.Catalogue.Lookup(pulled.name)
	if err != nil {
		return "", status.Errorf(codes.Unknown, "failed to resolve image %q: %v", named, err)
	}
	c := &container{
		id: newID(), pod: p, config: config, image: pulled, program: found.Program, created: time.Now(),
		attached: &attachedClients{}, state: runtimeapi.ContainerState_CONTAINER_CREATED,
		done: make(chan struct{}), ordered: make(chan struct{}),
	}
	if err := r.prepare(c, podConfig); err != nil {
		return "", status.Errorf(codes.Unknown, "failed to create container %q: %v", c.name(), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isClosed() {
		c.close()
		_ = os.RemoveAll(c.given.Dir) // else the next runtime removes it
		return "", errClosed
	}
	r.containers[c.id] = c
	return c.id, nil
}

func (r *Runtime) prepare(c *container, podConfig *runtimeapi.PodSandboxConfig) error {
	dir := filepath.Join(r.scratch(), c.id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	log, err := openLog(filepath.Join(podConfig.GetLogDirectory(), c.config.GetLogPath()), r.options.LogLimit)
	if err != nil {
		_ = os.Remove(dir)
		return err
	}
	c.log = log
	c.stdout = &lines{log: log, stream: "stdout", attached: c.attached}
	c.stderr = &lines{log: log, stream: "stderr", attached: c.attached}
	c.given = r.give(c, dir)
	if c.config.GetStdin() {
		c.stdin = newStdin()
		c.given.Stdin = c.stdin
	}
	c.files = rootfs.New(rootfs.Options{
		Scratch:  dir,
		ReadOnly: c.config.GetLinux().GetSecurityContext().GetReadonlyRootfs(),
		Mounts:   mounts(c.given.Mounts),
		File:     c.imageFile,
	})
	return nil
}

// give returns the program's view of the container.
func (r *Runtime) give(c *container, dir string) *images.Container {
	metadata := c.pod.config.GetMetadata()
	given := &images.Container{
		ID: c.id, Pod: metadata.GetName(), Namespace: metadata.GetNamespace(), UID: metadata.GetUid(), Name: c.name(),
		Node: r.options.Name, Image: c.config.GetImage().GetUserSpecifiedImage(), IP: c.pod.ip,
		Command: c.config.GetCommand(), Args: c.config.GetArgs(), WorkingDir: c.config.GetWorkingDir(), Dir: dir,
		Stdout: c.stdout, Stderr: c.stderr, Network: c.pod.network,
		Shell: shellOf{r, c}, APIServer: r.options.APIServer, Lab: r.options.Lab,
	}
	if given.Image == "" {
		given.Image = c.image.name
	}
	if c.config.GetTty() { // a terminal has only one stream
		given.Stderr = c.stdout
	}
	given.Env = environment(c.config.GetEnvs(), c.hostname())
	for _, m := range c.config.GetMounts() {
		given.Mounts = append(given.Mounts, images.Mount{
			ContainerPath: m.GetContainerPath(), HostPath: m.GetHostPath(), ReadOnly: m.GetReadonly(),
		})
	}
	given.Ports = ports(c.config.GetAnnotations())
	return given
}

// environment returns the default variables and those of the pod. A later value of the same name overrides an earlier
// one.
func environment(envs []*runtimeapi.KeyValue, hostname string) []string {
	env := []string{"PATH=" + searchPath, "HOSTNAME=" + hostname}
	for _, e := range envs {
		key := e.GetKey() + "="
		env = slices.DeleteFunc(env, func(has string) bool { return len(has) >= len(key) && has[:len(key)] == key })
		env = append(env, key+string(e.GetValue()))
	}
	return env
}

const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func mounts(list []images.Mount) []rootfs.Mount {
	var all []rootfs.Mount
	for _, m := range list {
		all = append(all, rootfs.Mount{Path: m.ContainerPath, Host: m.HostPath, ReadOnly: m.ReadOnly})
	}
	return all
}

// ports returns the ports that the pod declares, which the kubelet writes in an annotation.
func ports(annotations map[string]string) []int {
	var declared []struct{ ContainerPort int }
	if json.Unmarshal([]byte(annotations["io.kubernetes.container.ports"]), &declared) != nil {
		return nil
	}
	var all []int
	for _, p := range declared {
		all = append(all, p.ContainerPort)
	}
	return all
}

// ContainerStatus returns the status of a container, from which the kubelet makes the pod's status.
func (r *Runtime) ContainerStatus(
	_ context.Context, id string, _ bool,
) (*runtimeapi.ContainerStatusResponse, error) {
	c, err := r.container(id)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{
		Id: c.id, Metadata: c.config.GetMetadata(), State: c.state,
		CreatedAt: c.created.UnixNano(), StartedAt: nanoseconds(c.started), FinishedAt: nanoseconds(c.finished),
		ExitCode: int32(c.ended.code), Reason: c.ended.reason, Message: c.ended.message,
		Image:    &runtimeapi.ImageSpec{Image: c.image.name, UserSpecifiedImage: c.given.Image},
		ImageRef: c.image.digest, ImageId: c.image.id,
		Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(), Mounts: c.config.GetMounts(),
		LogPath: c.log.path, StopSignal: c.config.GetStopSignal(),
	}}, nil
}

func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// ListContainers lists the containers that a filter chooses, the newest first.
func (r *Runtime) ListContainers(
	_ context.Context, filter *runtimeapi.ContainerFilter,
) ([]*runtimeapi.Container, error) {
	var list []*runtimeapi.Container
	for _, c := range r.allContainers() {
		state := c.now()
		if !matchesID(filter.GetId(), c.id) || !matchesID(filter.GetPodSandboxId(), c.pod.id) ||
			filter.GetState() != nil && filter.GetState().GetState() != state ||
			!hasLabels(c.config.GetLabels(), filter.GetLabelSelector()) {
			continue
		}
		list = append(list, &runtimeapi.Container{
			Id: c.id, PodSandboxId: c.pod.id, Metadata: c.config.GetMetadata(), Image: c.config.GetImage(),
			ImageRef: c.image.digest, ImageId: c.image.id, State: state, CreatedAt: c.created.UnixNano(),
			Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		})
	}
	slices.SortFunc(list, func(a, b *runtimeapi.Container) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return list, nil
}

// RemoveContainer removes a container with its directory, and kills it first if it runs. The log belongs to the kubelet.
func (r *Runtime) RemoveContainer(ctx context.Context, id string) error {
	c, err := r.container(id)
	if err != nil {
		return nil //nolint:nilerr // what is not there has been removed
	}
	if err := r.StopContainer(ctx, id, 0); err != nil {
		return err
	}
	c.close()
	r.mu.Lock()
	delete(r.containers, id)
	r.mu.Unlock()
	return os.RemoveAll(c.given.Dir)
}

// ReopenContainerLog continues the log in a new file, after the kubelet has renamed the old one.
func (r *Runtime) ReopenContainerLog(_ context.Context, id string) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	if c.now() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return status.Error(codes.Unknown, "container is not running")
	}
	if err := c.log.reopen(); err != nil {
		return status.Errorf(codes.Unknown, "failed to reopen container log file: %v", err)
	}
	return nil
}
