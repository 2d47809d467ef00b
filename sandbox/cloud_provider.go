package sandbox

import (
	"context"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"

	"github.com/operator-lab/operator-lab/sandbox/network"
)

// cloudProvider gives every new node its address and range of pod addresses, and removes nodes of an earlier run that had
// more of them.
type cloudProvider struct {
	client kubernetes.Interface
	nodes  int
	fake   int // nodes that only answer; they come with their addresses
	plan   network.Plan
	// failed is called with the name of a node for which something could not be done.
	failed func(node string, err error)
}

// start makes it work until ctx ends.
func (c *cloudProvider) start(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(c.client, 0)
	tend := func(o any) {
		n := o.(*corev1.Node)
		// An update that lost a race against another one is followed by an event of that one.
		if err := c.tend(ctx, n); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			c.failed(n.Name, err)
		}
	}
	if _, err := factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tend, UpdateFunc: func(_, o any) { tend(o) },
	}); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	return nil
}

func (c *cloudProvider) tend(ctx context.Context, n *corev1.Node) error {
	index, most := nodeIndex(n.Name), c.nodes
	if fake := numberOf(n.Name, fakePrefix); fake > 0 {
		index, most = fake, c.fake
	}
	if index == 0 || n.Labels[SimulatedLabel] == "" {
		return nil // somebody else's
	}
	if index > most {
		return c.client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(n.UID))})
	}
	if !slices.ContainsFunc(n.Spec.Taints, isUninitialized) {
		return nil
	}
	status := map[string]any{"status": map[string]any{"addresses": []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: c.plan.NodeIP(index)}, {Type: corev1.NodeHostName, Address: n.Name},
	}}}
	if err := c.patch(ctx, n.Name, status, "status"); err != nil {
		return err
	}
	podCIDR := c.plan.PodCIDR(index)
	spec := map[string]any{"podCIDR": podCIDR, "podCIDRs": []string{podCIDR}}
	if err := c.patch(ctx, n.Name, map[string]any{"spec": spec}); err != nil {
		return err
	}
	return c.removeTaint(ctx, n.Name)
}

// isUninitialized reports whether a taint says that the node waits for its cloud provider.
func isUninitialized(t corev1.Taint) bool {
	return t.Key == "node.cloudprovider.kubernetes.io/uninitialized"
}

// removeTaint removes the taint of an uninitialized node. Other controllers add and remove taints at the same time.
func (c *cloudProvider) removeTaint(ctx context.Context, name string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		n, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, isUninitialized)
		_, err = c.client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		return err
	})
}

func (c *cloudProvider) patch(ctx context.Context, name string, change any, subresources ...string) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, subresources...)
	return err
}
