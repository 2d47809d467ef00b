package node

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// absent has the calls of a [Runtime] for what it does not have: limits, metrics, checkpoints and events.
type absent struct{}

// UpdateContainerResources does nothing: there are no cgroups.
func (absent) UpdateContainerResources(context.Context, string, *runtimeapi.ContainerResources) error {
	return nil
}

// CheckpointContainer is not possible.
func (absent) CheckpointContainer(context.Context, *runtimeapi.CheckpointContainerRequest) error {
	return status.Error(codes.Unimplemented, "containers of operator-lab cannot be checkpointed")
}

// GetContainerEvents is not possible: the kubelet asks instead.
func (absent) GetContainerEvents(
	context.Context, chan *runtimeapi.ContainerEventResponse, func(runtimeapi.RuntimeService_GetContainerEventsClient),
) error {
	return status.Error(codes.Unimplemented, "operator-lab has no container events")
}

// UpdatePodSandboxResources does nothing: there are no cgroups.
func (absent) UpdatePodSandboxResources(
	context.Context, *runtimeapi.UpdatePodSandboxResourcesRequest,
) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
}

// ListMetricDescriptors lists nothing: there are no metrics.
func (absent) ListMetricDescriptors(context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return nil, nil
}

// ListPodSandboxMetrics lists nothing: there are no metrics.
func (absent) ListPodSandboxMetrics(context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return nil, nil
}

// UpdateRuntimeConfig does nothing: the pod network assigns pod addresses.
func (absent) UpdateRuntimeConfig(context.Context, *runtimeapi.RuntimeConfig) error { return nil }

// RuntimeConfig returns nothing: there are no cgroups.
func (absent) RuntimeConfig(context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{}, nil
}
