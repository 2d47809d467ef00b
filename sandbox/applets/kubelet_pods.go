package applets

import (
	"context"
	"net"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/kubelet"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/config"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"

	"github.com/operator-lab/operator-lab/sandbox/node"
)

// feedPods gives the kubelet the pods that are bound to its node, as upstream's own source does, but with their network
// probes and hooks turned into commands: the kubelet would connect to the pod's address itself, which is nobody's on
// this machine; the runtime connects through the pod network. The objects in the API stay as they are.
func feedPods(ctx context.Context, client kubernetes.Interface, f nodeFlags, d *kubelet.Dependencies) {
	d.PodConfig = kubeletconfig.NewPodConfig(d.Recorder, d.PodStartupLatencyTracker)
	// The channel's element is of a type that is not exported: it is made by reflection.
	updates := reflect.ValueOf(d.PodConfig.Channel(ctx, kubetypes.ApiserverSource))
	send := func(objects []any) {
		pods := make([]*corev1.Pod, len(objects))
		for i, o := range objects {
			pods[i] = asHere(o.(*corev1.Pod))
		}
		update := reflect.New(updates.Type().Elem()).Elem()
		update.FieldByName("Pods").Set(reflect.ValueOf(pods))
		updates.Send(update)
	}
	lw := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", corev1.NamespaceAll, fields.OneTermEqualSelector("spec.nodeName", f.name()))
	go cache.NewReflectorWithOptions(lw, &corev1.Pod{}, cache.NewUndeltaStore(send, cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{}).RunWithContext(ctx)
}

// asHere is a pod as it can be run here: without what only a machine of its own could give it.
func asHere(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			for kind, probe := range map[string]*corev1.Probe{
				"readiness": c.ReadinessProbe, "liveness": c.LivenessProbe, "startup": c.StartupProbe,
			} {
				if probe != nil {
					probeBecomesCommand(c, kind, &probe.ProbeHandler)
				}
			}
			if c.Lifecycle != nil {
				hookBecomesCommand(c, c.Lifecycle.PostStart)
				hookBecomesCommand(c, c.Lifecycle.PreStop)
			}
		}
	}
	return p
}

// probeBecomesCommand turns a probe into a command of the runtime's. One that is a command already becomes one of
// another: so the runtime knows what it is for.
func probeBecomesCommand(c *corev1.Container, kind string, h *corev1.ProbeHandler) {
	var args []string
	switch {
	case h.HTTPGet != nil:
		args = httpArgs(c, h.HTTPGet)
	case h.TCPSocket != nil:
		args = []string{"tcp", h.TCPSocket.Host, portOf(c, h.TCPSocket.Port)}
	case h.GRPC != nil:
		args = []string{"grpc", "", strconv.Itoa(int(h.GRPC.Port))}
		if h.GRPC.Service != nil {
			args = append(args, *h.GRPC.Service)
		}
	case h.Exec != nil:
		h.Exec = &corev1.ExecAction{Command: append([]string{node.ProbeCommand, kind, "exec"}, h.Exec.Command...)}
		return
	default:
		return
	}
	// The kubelet replaces $(NAME) in commands, but not in what this was.
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "$", "$$")
	}
	*h = corev1.ProbeHandler{Exec: command(kind, args)}
}

// hookBecomesCommand does the same with a hook that is not a command.
func hookBecomesCommand(c *corev1.Container, h *corev1.LifecycleHandler) {
	if h != nil && h.HTTPGet != nil {
		*h = corev1.LifecycleHandler{Exec: command("hook", httpArgs(c, h.HTTPGet))}
	}
}

// command is one of the runtime's.
func command(kind string, args []string) *corev1.ExecAction {
	return &corev1.ExecAction{Command: append([]string{node.ProbeCommand, kind}, args...)}
}

func httpArgs(c *corev1.Container, get *corev1.HTTPGetAction) []string {
	scheme := strings.ToLower(string(get.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	path := get.Path
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	args := []string{scheme, get.Host, portOf(c, get.Port), path}
	for _, h := range get.HTTPHeaders {
		args = append(args, h.Name+"="+h.Value)
	}
	return args
}

// portOf is a port's number; a name that the container does not have stays as it is, and the probe says so.
func portOf(c *corev1.Container, port intstr.IntOrString) string {
	if port.Type == intstr.String {
		for _, p := range c.Ports {
			if p.Name == port.StrVal {
				return strconv.Itoa(int(p.ContainerPort))
			}
		}
		if _, err := net.LookupPort("tcp", port.StrVal); err != nil {
			return port.StrVal
		}
	}
	return port.String()
}
