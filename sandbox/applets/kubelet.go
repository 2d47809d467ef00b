package applets

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cloudproviderapi "k8s.io/cloud-provider/api"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/version"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/guard"
	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/network"
	"github.com/operator-lab/operator-lab/sandbox/node"
)

// nodeFlags identify the node of a kubelet, and the directories and addresses of its sandbox.
type nodeFlags struct {
	index     int
	kubeconf  string
	dir       string // what the node keeps
	volumes   string // what the sandbox keeps for claims
	sockets   string // of the pod network
	loopback  int    // see [network.Plan]
	cert, key string // the kubelet's own, for its API
	clientCA  string // CA of the clients that may use its API
	images    string // the user's images file; may be empty
	troubles  string // file with the faults that the sandbox sets
	lab       string // file with the socket of the lab, while there is one
	binary    string // what containers of bundled images run
	apiServer string // its URL on this machine
}

// name of the node.
func (f nodeFlags) name() string { return sandbox.NodeName(f.index) }

func (f nodeFlags) plan() network.Plan { return network.Plan{Dir: f.sockets, Loopback: f.loopback} }

// nodeProgram is a simulated node: upstream's kubelet over the runtime of the package node.
func nodeProgram() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	syscall.Umask(0o077) // the kubelet makes its files for everybody to read
	var f nodeFlags
	cmd := &cobra.Command{
		Use:          "kubelet",
		Short:        "A node of a sandbox: Kubernetes' kubelet over a runtime of programs",
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			verflag.PrintAndExitIfRequested()
			return runNode(ctx, f)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.index, "index", 1, "number of the node, from 1")
	flags.StringVar(&f.kubeconf, "kubeconfig", "", "credentials of the node")
	flags.StringVar(&f.dir, "root-dir", "", "directory of the node")
	flags.StringVar(&f.volumes, "volumes", "", "directory of the sandbox's volumes")
	flags.StringVar(&f.sockets, "sockets", "", "directory of the pod network's sockets")
	flags.IntVar(&f.loopback, "loopback", 0, "second byte of the loopback addresses that stand for the cluster's")
	flags.StringVar(&f.cert, "tls-cert-file", "", "certificate of the kubelet's API")
	flags.StringVar(&f.key, "tls-private-key-file", "", "its key")
	flags.StringVar(&f.clientCA, "client-ca-file", "", "authority of the certificates of its clients")
	flags.StringVar(&f.images, "images", "", "file that says what images are")
	flags.StringVar(&f.troubles, "troubles", "", "file that says what goes wrong")
	flags.StringVar(&f.lab, "lab", "", "file with the socket of the lab that sees operators in pods")
	flags.StringVar(&f.binary, "binary", "", "the operator-lab binary")
	flags.StringVar(&f.apiServer, "api-server", "", "URL of the API server")
	return cli.Run(cmd)
}

func runNode(ctx context.Context, f nodeFlags) error {
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconf)
	if err != nil {
		return err
	}
	config.QPS = -1
	awaitAPIServer(ctx, config)
	part, err := network.OpenNode(f.plan(), f.index)
	if err != nil {
		return err
	}
	defer func() { _ = part.Close() }()
	// A file that became wrong since the sandbox was started must not keep a node from coming back.
	images, err := images.NewCatalogue(f.binary, f.images)
	if images == nil {
		return err
	}
	defer images.Close()
	sayWrong(ctx, err)
	go watchImages(ctx, images)
	runtime, err := node.New(node.Options{
		Name: f.name(), Network: part, Catalogue: images, APIServer: f.apiServer, Lab: f.lab,
		Dir: filepath.Join(f.dir, "runtime"), Version: version.Get().GitVersion,
	})
	if err != nil {
		return err
	}
	defer func() { _ = runtime.Close(context.WithoutCancel(ctx)) }()
	orders, err := node.OrdersOf(f.sockets, f.index, f.troubles).Serve(runtime)
	if err != nil {
		return err
	}
	defer func() { _ = orders.Close() }()
	if err := startKubelet(ctx, f, part, config, runtime); err != nil {
		return err
	}
	if err := awaitNode(ctx, config, f.name()); err != nil {
		return err
	}
	guard.Ready()
	<-ctx.Done()
	return nil
}

// imagesPeriod is the interval at which the images file is checked.
const imagesPeriod = time.Second

// watchImages reports each new error in the images file in the node's log.
func watchImages(ctx context.Context, images *images.Catalogue) {
	for ctx.Err() == nil {
		sayWrong(ctx, images.Err())
		select {
		case <-ctx.Done():
		case <-time.After(imagesPeriod):
		}
	}
}

func sayWrong(ctx context.Context, err error) {
	if err != nil {
		klog.FromContext(ctx).Error(err, "The images file is not in order: what it said before holds")
	}
}

// startKubelet starts upstream's kubelet in this process. It cannot be stopped but with the process.
func startKubelet(ctx context.Context, f nodeFlags, part *network.Node, config *rest.Config, runtime *node.Runtime) error {
	host, port, err := kubeletAddress(f.plan(), f.index)
	if err != nil {
		return err
	}
	if _, err := part.Serve(part.IP(), port, net.JoinHostPort(host, strconv.Itoa(port))); err != nil {
		return err
	}
	server, err := kubeletServer(f, host, port)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "kubelet"))
	if err != nil {
		return err
	}
	deps, err := dependencies(ctx, f, server, client, runtime)
	if err != nil {
		return err
	}
	return app.RunKubelet(ctx, server, deps)
}

// kubeletPort is the port of kubelets.
const kubeletPort = 10250

// kubeletAddress returns the address on this machine at which the kubelet serves its API.
func kubeletAddress(plan network.Plan, index int) (host string, port int, err error) {
	host, port = "127.0.0.1", 0
	if mapped, ok := plan.Host(plan.NodeIP(index)); ok {
		host, port = mapped, kubeletPort
	}
	// The kubelet does not report which port the system chose, so it is chosen here.
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) { // by a kubelet of this machine's own, at all addresses
		listener, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return "", 0, fmt.Errorf("open the kubelet's port: %w", err)
	}
	return host, listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// The kubelet's clocks that differ from upstream's, so that people need not wait for what takes minutes in a data centre.
const (
	statusPeriod   = 5 * time.Second
	leaseSeconds   = 4
	syncPeriod     = 2 * time.Second  // how late a status says CrashLoopBackOff, and a volume has a ConfigMap's new data
	longestBackOff = 10 * time.Second // between starts of a container that crashes: upstream's first one
)

// kubeletServer configures a kubelet that needs no privilege: no cgroups, no mounts, no eviction by the machine's load.
func kubeletServer(f nodeFlags, host string, port int) (*options.KubeletServer, error) {
	flags := options.NewKubeletFlags()
	flags.RootDirectory, flags.CertDirectory = f.dir, filepath.Join(f.dir, "pki")
	flags.HostnameOverride = f.name()
	flags.CloudProvider = "external" // whose part the sandbox plays: an address that is not loopback
	flags.MinimumGCAge = metav1.Duration{Duration: time.Minute}
	flags.MaxContainerCount, flags.MaxPerPodContainerCount = 200, 2
	flags.NodeLabels = map[string]string{sandbox.SimulatedLabel: "true"}
	c, err := options.NewKubeletConfiguration()
	if err != nil {
		return nil, err
	}
	c.EnableServer, c.Address, c.Port, c.ReadOnlyPort = true, host, int32(port), 0
	c.TLSCertFile, c.TLSPrivateKeyFile = f.cert, f.key
	c.Authentication.X509.ClientCAFile = f.clientCA
	c.Authentication.Anonymous.Enabled = false
	c.Authentication.Webhook.Enabled = true
	c.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeWebhook
	c.EnableDebuggingHandlers = true // logs, exec, attach, port-forward
	c.NodeStatusUpdateFrequency.Duration = statusPeriod
	c.NodeStatusReportFrequency.Duration = time.Minute
	c.NodeLeaseDurationSeconds = leaseSeconds
	c.SyncFrequency.Duration = syncPeriod
	c.CrashLoopBackOff.MaxContainerRestartPeriod = &metav1.Duration{Duration: longestBackOff}
	c.MaxPods = 250
	c.SerializeImagePulls = false
	c.RegistryPullQPS = 0 // no limit
	c.ClusterDNS, c.ClusterDomain = []string{network.DNSServerIP}, network.ClusterDomain
	c.ResolverConfig = "" // the network resolves; the machine's file need not exist
	c.PodLogsDir = filepath.Join(f.dir, "logs")
	c.RegisterNode = true
	c.CgroupsPerQOS, c.CgroupRoot, c.EnforceNodeAllocatable = false, "", nil
	c.EnableControllerAttachDetach = false
	c.FailSwapOn = false
	c.EvictionHard, c.ImageGCHighThresholdPercent = nil, 100
	c.LocalStorageCapacityIsolation = false
	c.MakeIPTablesUtilChains = false
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return nil, err
	}
	c.MaxOpenFiles = int64(files.Max) // the hard limit
	return &options.KubeletServer{KubeletFlags: *flags, KubeletConfiguration: *c}, nil
}

// dependencies returns the parts of the machine that the kubelet uses.
func dependencies(ctx context.Context, f nodeFlags, s *options.KubeletServer, client kubernetes.Interface, runtime *node.Runtime) (*kubelet.Dependencies, error) {
	tls, err := app.InitializeTLS(ctx, &s.KubeletFlags, &s.KubeletConfiguration)
	if err != nil {
		return nil, err
	}
	auth, run, err := app.BuildAuth(types.NodeName(f.name()), client, s.KubeletConfiguration)
	if err != nil {
		return nil, err
	}
	run(ctx.Done())
	d := machine(f)
	d.Auth, d.TLSOptions = auth, tls
	d.KubeClient, d.HeartbeatClient = client, client
	d.RemoteRuntimeService, d.RemoteImageService = runtime, runtime.Images()
	d.Options = append(d.Options, func(k *kubelet.Kubelet) {
		if err := lookOften(k); err != nil {
			klog.FromContext(ctx).Error(err, "Looking once a second, as upstream does")
		}
	})
	swapRecorder(ctx, d, client, f.name())
	feedPods(ctx, client, f, d)
	return d, nil
}

// awaitNode returns when the node can be given pods.
func awaitNode(ctx context.Context, config *rest.Config, name string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		found, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err == nil && usable(found) {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	return ctx.Err()
}

// starting lists the taints of a node that is not ready yet. Other taints, such as that of a cordoned node, are set on
// purpose.
var starting = []string{cloudproviderapi.TaintExternalCloudProvider, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable}

func usable(n *corev1.Node) bool {
	if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return slices.Contains(starting, t.Key) }) {
		return false
	}
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
