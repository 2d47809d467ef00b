package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"

	"github.com/operator-lab/operator-lab/sandbox/network"
	images "github.com/operator-lab/operator-lab/sandbox/program"
)

// MaxNodes is how many simulated nodes a sandbox can have. Each is a process.
const MaxNodes = 32

// NodeName is the name of a node by its number, from 1.
func NodeName(index int) string { return network.NodeName(index) }

// nodeIndex is the number of a node by its name; 0 if it is none of ours.
func nodeIndex(name string) int {
	index, err := strconv.Atoi(strings.TrimPrefix(name, "node-"))
	if err != nil || NodeName(index) != name {
		return 0
	}
	return index
}

func checkNodes(count int) error {
	if count < 0 || count > MaxNodes {
		return &Problem{fmt.Errorf("there cannot be %d nodes", count), fmt.Sprintf("ask for 0 to %d", MaxNodes)}
	}
	return nil
}

// checkImages reports what is wrong with an images file.
func checkImages(binary, file string) error {
	catalogue, err := images.NewCatalogue(binary, file)
	if catalogue != nil {
		catalogue.Close()
	}
	if problem, is := errors.AsType[images.Problem](err); is {
		return &Problem{err, problem.Hint}
	}
	return err
}

// nodePrograms are the kubelets.
func (p *plane) nodePrograms(count int, imagesFile string, plan network.Plan) ([]*program, error) {
	var nodes []*program
	for index := range count {
		one, err := p.nodeProgram(index+1, imagesFile, plan)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, one)
	}
	return nodes, nil
}

func (p *plane) nodeProgram(index int, imagesFile string, plan network.Plan) (*program, error) {
	name := NodeName(index)
	if err := p.pki.ensure(
		subject{file: name, ca: clusterCA, name: "system:node:" + name, groups: []string{"system:nodes"}},
		subject{file: name + "-serving", ca: clusterCA, name: "system:node:" + name, groups: []string{"system:nodes"}, hosts: []string{plan.NodeIP(index), name}},
	); err != nil {
		return nil, err
	}
	config, err := p.config(name)
	if err != nil {
		return nil, err
	}
	kubeconfig := p.pki.path(name + ".kubeconfig")
	if err := writeKubeconfig(kubeconfig, name, config); err != nil {
		return nil, err
	}
	dir, err := shortcut(plan.Dir, p.layout, index)
	if err != nil {
		return nil, err
	}
	c := &command{path: p.program("kubelet"), patience: nodeGrace, args: []string{
		"--index=" + strconv.Itoa(index), "--kubeconfig=" + kubeconfig, "--root-dir=" + dir, "--volumes=" + p.volumes(),
		"--sockets=" + plan.Dir, "--loopback=" + strconv.Itoa(plan.Loopback),
		"--tls-cert-file=" + p.pki.path(name+"-serving.crt"), "--tls-private-key-file=" + p.pki.path(name+"-serving.key"),
		"--client-ca-file=" + p.pki.path(clusterCA+".crt"),
		"--images=" + imagesFile, "--troubles=" + p.troubles(), "--binary=" + p.binary, "--api-server=" + config.Host,
	}}
	return &program{name: name, logFile: p.logFile(name), launch: c.launch, halt: c.halt, orderly: true}, nil
}

// nodeGrace is how long a node may take to end its containers when the sandbox stops.
const nodeGrace = 3 * time.Second

// uninitialized is the taint of a node that waits for its cloud provider.
const uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// tendNodes plays the cloud provider: it gives every new node its address and range of pod addresses, and removes the
// nodes of an earlier run that had more of them. It runs until ctx ends.
func (s *Sandbox) tendNodes(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.admin)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	nodes := factory.Core().V1().Nodes().Informer()
	tend := func(o any) {
		n := o.(*corev1.Node)
		// An update that lost a race against another one is followed by an event of that one.
		if err := s.tendNode(ctx, client, n); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			s.step(n.Name, err.Error())
		}
	}
	if _, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tend, UpdateFunc: func(_, o any) { tend(o) },
	}); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	return nil
}

func (s *Sandbox) tendNode(ctx context.Context, client kubernetes.Interface, n *corev1.Node) error {
	index := nodeIndex(n.Name)
	if index == 0 || n.Labels[SimulatedLabel] == "" {
		return nil // somebody else's
	}
	if index > s.options.Nodes {
		return client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(n.UID))})
	}
	if !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == uninitialized }) {
		return nil
	}
	status := map[string]any{"status": map[string]any{"addresses": []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: s.plan.NodeIP(index)}, {Type: corev1.NodeHostName, Address: n.Name},
	}}}
	if err := patchNode(ctx, client, n.Name, status, "status"); err != nil {
		return err
	}
	podCIDR := s.plan.PodCIDR(index)
	spec := map[string]any{"podCIDR": podCIDR, "podCIDRs": []string{podCIDR}}
	if err := patchNode(ctx, client, n.Name, map[string]any{"spec": spec}); err != nil {
		return err
	}
	return s.initialized(ctx, client, n.Name)
}

// initialized takes the taint off, among those that other controllers put on and take off at the same time.
func (s *Sandbox) initialized(ctx context.Context, client kubernetes.Interface, name string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == uninitialized })
		_, err = client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		return err
	})
}

// SimulatedLabel is on every node of a sandbox.
const SimulatedLabel = "operator-lab.dev/simulated"

func patchNode(ctx context.Context, client kubernetes.Interface, name string, change any, subresources ...string) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, subresources...)
	return err
}
