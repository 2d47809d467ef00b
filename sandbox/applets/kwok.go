package applets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/cli"
	"sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	pod "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwokclient "sigs.k8s.io/kwok/pkg/utils/client"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/guard"
	"github.com/operator-lab/operator-lab/sandbox/network"
)

const (
	// kwokAnnotation is the annotation by which KWOK's own tools know their nodes.
	kwokAnnotation = "kwok.x-k8s.io/node"
	// kwokWorkers is how many pods, and how many nodes, are answered for at once.
	kwokWorkers = 4
	// kwokPods is how many pods fit on a node, as on one with a kubelet of the lab.
	kwokPods = 250
)

// kwok runs upstream's KWOK on nodes that it makes: nothing runs there, and the pods that are given to them are Ready at
// once, by the stages that come with KWOK.
func kwok() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return cli.Run(kwokCommand(ctx))
}

func kwokCommand(ctx context.Context) *cobra.Command {
	var path string
	var nodes int
	cmd := &cobra.Command{
		Use:           "kwok",
		Short:         "Nodes that only answer, by KWOK",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(*cobra.Command, []string) error { return runKwok(ctx, path, nodes) },
	}
	cmd.Flags().StringVar(&path, "kubeconfig", "", "kubeconfig of somebody who may do everything")
	cmd.Flags().IntVar(&nodes, "nodes", 0, "how many nodes there are")
	return cmd
}

func runKwok(ctx context.Context, kubeconfig string, nodes int) error {
	set, err := kwokclient.NewClientset("", kubeconfig)
	if err != nil {
		return err
	}
	config, err := set.ToRESTConfig()
	if err != nil {
		return err
	}
	awaitAPIServer(ctx, config)
	controller, err := newKwok(set, config)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "kwok"))
	if err != nil {
		return err
	}
	if err := controller.Start(ctx); err != nil {
		return err
	}
	errs := make([]error, nodes)
	workqueue.ParallelizeUntil(ctx, kwokWorkers, nodes, func(i int) { errs[i] = makeNode(ctx, client, i+1) })
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i := range nodes {
		if err := awaitNode(ctx, config, sandbox.FakeNodeName(i+1)); err != nil {
			return err
		}
	}
	guard.Ready()
	<-ctx.Done()
	return nil
}

// newKwok returns KWOK's controller. It renews no leases: kube-controller-manager is told to do without for an hour.
func newKwok(set kwokclient.Clientset, config *rest.Config) (*controllers.Controller, error) {
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, text := range []string{
		fast.DefaultNodeInit, heartbeat.DefaultNodeHeartbeatWithLease, pod.DefaultPodReady, pod.DefaultPodComplete, pod.DefaultPodDelete,
	} {
		var published v1alpha1.Stage
		if err := yaml.UnmarshalStrict([]byte(text), &published); err != nil {
			return nil, fmt.Errorf("read a stage of KWOK: %w", err)
		}
		stage, err := internalversion.ConvertToInternalStage(&published)
		if err != nil {
			return nil, fmt.Errorf("read a stage of KWOK: %w", err)
		}
		stages[stage.Spec.ResourceRef] = append(stages[stage.Spec.ResourceRef], stage)
	}
	dynamic, err := set.ToDynamicClient()
	if err != nil {
		return nil, err
	}
	mapper, err := set.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	plain, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return controllers.NewController(controllers.Config{
		DynamicClient: dynamic, RESTClient: plain, RESTMapper: mapper, TypedClient: typed,
		ImpersonatingDynamicClient: set.ToImpersonatingDynamicClient(), ImpersonatingTypedClient: set.ToImpersonatingTypedClient(),
		ManageNodesWithAnnotationSelector: kwokAnnotation + "=fake",
		CIDR:                              network.FakePodCIDR,
		PodPlayStageParallelism:           kwokWorkers, NodePlayStageParallelism: kwokWorkers, PodsOnNodeSyncParallelism: kwokWorkers,
		LocalStages: stages,
		FuncMap:     gotpl.FuncMap{"NodeConditions": kwokConditions},
	})
}

// kwokConditions returns the conditions of a node, for KWOK's stages. Those that come with KWOK have a kubelet's words.
func kwokConditions() any {
	const nobody = "KWOK answers for this node: it has no kubelet, and no program runs on it"
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) any {
		return map[string]any{"type": kind, "status": status, "reason": "OnlyAnswers", "message": nobody}
	}
	return []any{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse), condition(corev1.NodeDiskPressure, corev1.ConditionFalse),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse), condition(corev1.NodeReady, corev1.ConditionTrue),
	}
}

// makeNode makes a node, unless it is there.
func makeNode(ctx context.Context, client kubernetes.Interface, index int) error {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(computerCores, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(computerMemory), resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(kwokPods, resource.DecimalSI),
	}
	name := sandbox.FakeNodeName(index)
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{kwokAnnotation: "fake"},
			Labels: map[string]string{sandbox.SimulatedLabel: "only-answers", corev1.LabelHostname: name, corev1.LabelOSStable: "linux"},
		},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: maps.Clone(capacity),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: network.FakeNodeIP(index)}, {Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				OSImage: "operator-lab (a node that only answers)", KubeletVersion: "kwok", Architecture: runtime.GOARCH,
				KernelVersion: "none", ContainerRuntimeVersion: "none",
			},
		},
	}
	_, err := client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
