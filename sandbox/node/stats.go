package node

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/usage"
)

// What a container uses is measured if it consists of processes of this machine. Other containers are functions of the
// process of their node, which are not measured one by one: the statistics do not name them.

func (c *container) attributes() *runtimeapi.ContainerAttributes {
	return &runtimeapi.ContainerAttributes{
		Id: c.id, Metadata: c.config.GetMetadata(), Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
	}
}

// usage returns what the container has used; false: that is not known.
func (c *container) usage(processes *usage.Processes) (*runtimeapi.ContainerStats, bool) {
	c.mu.Lock()
	program := c.running
	c.mu.Unlock()
	if program == nil || c.now() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil, false
	}
	group, own := images.ProcessesOf(program)
	if !own {
		return nil, false
	}
	used, found := processes.OfGroup(group)
	if !found {
		return nil, false
	}
	now := time.Now().UnixNano()
	memory := &runtimeapi.UInt64Value{Value: used.Resident}
	return &runtimeapi.ContainerStats{
		Attributes: c.attributes(),
		Cpu:        &runtimeapi.CpuUsage{Timestamp: now, UsageCoreNanoSeconds: &runtimeapi.UInt64Value{Value: uint64(used.CPU)}},
		Memory:     &runtimeapi.MemoryUsage{Timestamp: now, WorkingSetBytes: memory, RssBytes: memory},
	}, true
}

// ContainerStats returns what a container has used.
func (r *Runtime) ContainerStats(_ context.Context, id string) (*runtimeapi.ContainerStats, error) {
	c, err := r.container(id)
	if err != nil {
		return nil, err
	}
	processes, err := usage.Look()
	if err == nil {
		if stats, known := c.usage(processes); known {
			return stats, nil
		}
	}
	return &runtimeapi.ContainerStats{Attributes: c.attributes()}, nil
}

// ListContainerStats returns what the running containers have used of which that is known.
func (r *Runtime) ListContainerStats(
	_ context.Context, filter *runtimeapi.ContainerStatsFilter,
) ([]*runtimeapi.ContainerStats, error) {
	processes, err := usage.Look()
	if err != nil {
		return nil, nil //nolint:nilerr // nothing is known
	}
	var list []*runtimeapi.ContainerStats
	for _, c := range r.allContainers() {
		if !matchesID(filter.GetId(), c.id) || !matchesID(filter.GetPodSandboxId(), c.pod.id) ||
			!hasLabels(c.config.GetLabels(), filter.GetLabelSelector()) {
			continue
		}
		if stats, known := c.usage(processes); known {
			list = append(list, stats)
		}
	}
	return list, nil
}

func (p *pod) attributes() *runtimeapi.PodSandboxAttributes {
	return &runtimeapi.PodSandboxAttributes{
		Id: p.id, Metadata: p.config.GetMetadata(), Labels: p.config.GetLabels(), Annotations: p.config.GetAnnotations(),
	}
}

// PodSandboxStats names the pod and its containers.
func (r *Runtime) PodSandboxStats(ctx context.Context, id string) (*runtimeapi.PodSandboxStats, error) {
	p, err := r.pod(id)
	if err != nil {
		return nil, err
	}
	containers, err := r.ListContainerStats(ctx, &runtimeapi.ContainerStatsFilter{PodSandboxId: id})
	if err != nil {
		return nil, err
	}
	return &runtimeapi.PodSandboxStats{
		Attributes: p.attributes(),
		Linux: &runtimeapi.LinuxPodSandboxStats{
			Process:    &runtimeapi.ProcessUsage{Timestamp: time.Now().UnixNano()},
			Containers: containers,
		},
	}, nil
}

// ListPodSandboxStats names the pods that are ready.
func (r *Runtime) ListPodSandboxStats(
	ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter,
) ([]*runtimeapi.PodSandboxStats, error) {
	var list []*runtimeapi.PodSandboxStats
	for _, p := range r.allPods() {
		if !matchesID(filter.GetId(), p.id) || !hasLabels(p.config.GetLabels(), filter.GetLabelSelector()) ||
			p.state() != runtimeapi.PodSandboxState_SANDBOX_READY {
			continue
		}
		if stats, err := r.PodSandboxStats(ctx, p.id); err == nil {
			list = append(list, stats)
		}
	}
	return list, nil
}
