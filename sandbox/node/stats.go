package node

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Programs share the process of their node, so their use of processor and memory is not known: the statistics only name
// the existing pods and containers.

func (c *container) attributes() *runtimeapi.ContainerAttributes {
	return &runtimeapi.ContainerAttributes{
		Id: c.id, Metadata: c.config.GetMetadata(), Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
	}
}

// ContainerStats names the container.
func (r *Runtime) ContainerStats(_ context.Context, id string) (*runtimeapi.ContainerStats, error) {
	c, err := r.container(id)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ContainerStats{Attributes: c.attributes()}, nil
}

// ListContainerStats names the running containers.
func (r *Runtime) ListContainerStats(
	_ context.Context, filter *runtimeapi.ContainerStatsFilter,
) ([]*runtimeapi.ContainerStats, error) {
	var list []*runtimeapi.ContainerStats
	for _, c := range r.allContainers() {
		if matchesID(filter.GetId(), c.id) && matchesID(filter.GetPodSandboxId(), c.pod.id) &&
			hasLabels(c.config.GetLabels(), filter.GetLabelSelector()) &&
			c.now() == runtimeapi.ContainerState_CONTAINER_RUNNING {
			list = append(list, &runtimeapi.ContainerStats{Attributes: c.attributes()})
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

// ListMetricDescriptors lists nothing: there are no metrics.
func (r *Runtime) ListMetricDescriptors(context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return nil, nil
}

// ListPodSandboxMetrics lists nothing: there are no metrics.
func (r *Runtime) ListPodSandboxMetrics(context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return nil, nil
}
