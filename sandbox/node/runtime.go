// Package node is the container runtime of a simulated node. The kubelet, which is the real one, calls it as it calls
// containerd (CRI), but in the same process. Its containers are programs; see package program.
//
// It looks like containerd to the user: states, reasons, exit codes, logs in the CRI format, the words of its errors.
// Whatever is specific to the lab is marked as such.
package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/network"
)

// Catalogue finds the programs of images.
type Catalogue interface {
	// Lookup is asked each time an image is pulled, and each time a container of it is created.
	Lookup(image string) (images.Image, error)
}

// Options of [New].
type Options struct {
	// Name of the node.
	Name string
	// Network is the node's part of the pod network.
	Network *network.Node
	// Catalogue of images.
	Catalogue Catalogue
	// APIServer is the API server's URL on this machine, for programs that use it; optional.
	APIServer string
	// Lab is a file with the socket of the lab that is told of operators in pods; optional. See [images.Container].
	Lab string
	// Dir is the runtime's own directory. The scratch directories of containers are below it.
	Dir string
	// KillPatience is the time for a container to end after SIGKILL, before it is given up. Default: 5 s.
	KillPatience time.Duration
	// LogLimit is the maximum size in bytes of a container's log between two rotations. Default: 16 MiB.
	LogLimit int64
	// Version of the lab, for those who ask for the runtime's.
	Version string
}

const (
	killPatience = 5 * time.Second
	logLimit     = 16 << 20
)

// Name is the name of the runtime in container IDs (operator-lab://…) and in the node's status.
const Name = "operator-lab"

// Runtime is a node's container runtime, for its kubelet.
type Runtime struct {
	absent
	register

	options  Options
	images   *imageService
	streams  *streams
	troubles troubles

	// closed tells everything that waits.
	closed    chan struct{}
	closeOnce sync.Once
}

var (
	_ internalapi.RuntimeService      = (*Runtime)(nil)
	_ internalapi.ImageManagerService = (*imageService)(nil)
)

// New starts a runtime: its streaming server listens on 127.0.0.1. Close it with [Runtime.Close].
func New(o Options) (*Runtime, error) {
	if o.KillPatience == 0 {
		o.KillPatience = killPatience
	}
	if o.LogLimit == 0 {
		o.LogLimit = logLimit
	}
	if o.Version == "" {
		o.Version = "0.0.0"
	}
	r := &Runtime{
		register: register{pods: map[string]*pod{}, containers: map[string]*container{}},
		options:  o,
		closed:   make(chan struct{}),
	}
	r.images = newImageService(r)
	// Files of an earlier runtime belong to containers that no longer exist.
	if err := os.RemoveAll(r.scratch()); err != nil {
		return nil, fmt.Errorf("clear the directory of the containers: %w", err)
	}
	if err := os.MkdirAll(r.scratch(), 0o700); err != nil {
		return nil, err
	}
	streams, err := serveStreams(r)
	if err != nil {
		return nil, fmt.Errorf("serve exec, attach and port-forward: %w", err)
	}
	r.streams = streams
	return r, nil
}

func (r *Runtime) scratch() string { return filepath.Join(r.options.Dir, "containers") }

// Images returns the image service of the runtime.
func (r *Runtime) Images() internalapi.ImageManagerService { return r.images }

// Close kills all containers and returns when they have ended, or are given up. It belongs to the RuntimeService, too.
func (r *Runtime) Close(ctx context.Context) error {
	r.closeOnce.Do(func() { close(r.closed) })
	err := r.streams.stop()
	var pods []string
	r.mu.Lock()
	for id := range r.pods {
		pods = append(pods, id)
	}
	r.mu.Unlock()
	errs := make([]error, len(pods))
	var all sync.WaitGroup
	for i, id := range pods {
		all.Go(func() { errs[i] = r.RemovePodSandbox(ctx, id) })
	}
	all.Wait()
	return errors.Join(append(errs, err)...)
}

// Version returns the runtime's name and version.
func (r *Runtime) Version(context.Context, string) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{
		Version: "0.1.0", RuntimeName: Name, RuntimeVersion: r.options.Version, RuntimeApiVersion: "v1",
	}, nil
}

// Status reports that runtime and network are ready, as they are for as long as the process lives.
func (r *Runtime) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{
		Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
			{Type: runtimeapi.RuntimeReady, Status: true},
			{Type: runtimeapi.NetworkReady, Status: true},
		}},
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{{Name: ""}},
	}, nil
}
