package node

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/network"
)

// pod is a pod sandbox: an address, and what its containers have in common. It knows no process of its own.
type pod struct {
	id      string
	config  *runtimeapi.PodSandboxConfig
	created time.Time
	ip      string
	// hostNetwork is set if ip is the node's.
	hostNetwork bool
	network     images.Network
	// node it is on.
	node *network.Node
	// name is its host's: its own, or the node's.
	name string
	// release gives the address back.
	release func()

	mu      sync.Mutex
	stopped bool
}

// newID is like containerd's.
func newID() string {
	var id [32]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

func notFound(what, id string) error {
	return status.Errorf(codes.NotFound, "an error occurred when try to find %s %q: not found", what, id)
}

// RunPodSandbox gives a pod its address.
func (r *Runtime) RunPodSandbox(_ context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	id := newID()
	if handler != "" {
		return "", status.Errorf(codes.Unknown,
			"failed to get sandbox runtime: no runtime for %q is configured", handler)
	}
	p := &pod{
		id: id, config: config, created: time.Now(),
		node: r.options.Network, name: config.GetHostname(),
	}
	if p.name == "" { // hostNetwork
		p.name = r.options.Name
	}
	namespaces := config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	p.hostNetwork = namespaces.GetNetwork() == runtimeapi.NamespaceMode_NODE
	if p.hostNetwork {
		p.ip = r.options.Network.IP()
		own := newHostNetwork(r.options.Network, config.GetMetadata().GetNamespace())
		p.network, p.release = own, own.close
	} else {
		ip, err := r.options.Network.Add()
		if err != nil {
			return "", status.Errorf(codes.Unknown, "failed to setup network for sandbox %q: %v", id, err)
		}
		p.ip = ip
		p.network = r.options.Network.Pod(ip).In(config.GetMetadata().GetNamespace())
		p.release = func() { r.options.Network.Remove(ip) }
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isClosed() {
		p.release()
		return "", errClosed
	}
	r.pods[id] = p
	return id, nil
}

var errClosed = status.Error(codes.Unavailable, "the container runtime of this node has ended")

func (r *Runtime) isClosed() bool {
	select {
	case <-r.closed:
		return true
	default:
		return false
	}
}

// StopPodSandbox kills what still runs in a pod, and releases its address.
func (r *Runtime) StopPodSandbox(ctx context.Context, id string) error {
	p, err := r.pod(id)
	if err != nil {
		return nil // a missing pod has stopped already
	}
	if err := each(r.containersOf(id), func(c string) error { return r.StopContainer(ctx, c, 0) }); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped {
		p.stopped = true
		p.release()
	}
	return nil
}

// RemovePodSandbox removes a pod and its containers.
func (r *Runtime) RemovePodSandbox(ctx context.Context, id string) error {
	if err := r.StopPodSandbox(ctx, id); err != nil {
		return err
	}
	if err := each(r.containersOf(id), func(c string) error { return r.RemoveContainer(ctx, c) }); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, id)
	return nil
}

// each calls do for all containers at once, because each may take its time to end.
func each(ids []string, do func(id string) error) error {
	errs := make([]error, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() { errs[i] = do(id) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (p *pod) state() runtimeapi.PodSandboxState {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	}
	return runtimeapi.PodSandboxState_SANDBOX_READY
}

// PodSandboxStatus returns the status of a pod, from which the kubelet takes its addresses.
func (r *Runtime) PodSandboxStatus(_ context.Context, id string, _ bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	p, err := r.pod(id)
	if err != nil {
		return nil, err
	}
	network := &runtimeapi.PodSandboxNetworkStatus{}
	if !p.hostNetwork { // otherwise the kubelet knows it
		network.Ip = p.ip
	}
	namespaces := p.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	if namespaces == nil {
		namespaces = &runtimeapi.NamespaceOption{}
	}
	return &runtimeapi.PodSandboxStatusResponse{
		Status: &runtimeapi.PodSandboxStatus{
			Id: p.id, Metadata: p.config.GetMetadata(), State: p.state(), CreatedAt: p.created.UnixNano(),
			Network: network, Labels: p.config.GetLabels(), Annotations: p.config.GetAnnotations(),
			Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: namespaces}},
		},
		Timestamp: time.Now().UnixNano(),
	}, nil
}

// ListPodSandbox lists the pods that a filter chooses, the newest first.
func (r *Runtime) ListPodSandbox(
	_ context.Context, filter *runtimeapi.PodSandboxFilter,
) ([]*runtimeapi.PodSandbox, error) {
	var list []*runtimeapi.PodSandbox
	for _, p := range r.allPods() {
		state := p.state()
		if !matchesID(filter.GetId(), p.id) || filter.GetState() != nil && filter.GetState().GetState() != state ||
			!hasLabels(p.config.GetLabels(), filter.GetLabelSelector()) {
			continue
		}
		list = append(list, &runtimeapi.PodSandbox{
			Id: p.id, Metadata: p.config.GetMetadata(), State: state, CreatedAt: p.created.UnixNano(),
			Labels: p.config.GetLabels(), Annotations: p.config.GetAnnotations(),
		})
	}
	return list, nil
}

// matchesID reports whether the ID begins with the filter.
func matchesID(filter, id string) bool { return strings.HasPrefix(id, filter) }

func hasLabels(labels, selector map[string]string) bool {
	for k, v := range selector {
		if has, ok := labels[k]; !ok || has != v {
			return false
		}
	}
	return true
}
