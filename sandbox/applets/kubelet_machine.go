package applets

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	cadvisorapi "github.com/google/cadvisor/info/v1"
	cadvisorv2 "github.com/google/cadvisor/info/v2"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/kubelet"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubeletutil "k8s.io/kubernetes/pkg/kubelet/util"
	"k8s.io/kubernetes/pkg/util/oom"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/kubernetes/pkg/volume/util/subpath"
	"k8s.io/mount-utils"

	"github.com/operator-lab/operator-lab/sandbox/usage"
)

// machine returns the machine that the kubelet sees: one without cgroups and mounts.
func machine(f nodeFlags) *kubelet.Dependencies {
	return &kubelet.Dependencies{
		CAdvisorInterface: computer{f.name(), time.Now()}, OSInterface: noSystemDirs{},
		ContainerManager: noCgroups{cm.NewStubContainerManager()}, OOMAdjuster: oom.NewFakeOOMAdjuster(),
		VolumePlugins: volumePlugins(f), Mounter: mount.NewFakeMounter(nil),
		Subpather: subPaths{&subpath.FakeSubpath{}}, HostUtil: noMounts{hostutil.NewHostUtil()},
		PodStartupLatencyTracker:  kubeletutil.NewPodStartupLatencyTracker(),
		NodeStartupLatencyTracker: kubeletutil.NewNodeStartupLatencyTracker(),
	}
}

// swapRecorder makes the kubelet skip its watch for the kernel's out-of-memory messages. That watch opens /dev/kmsg,
// which needs root, unless the recorder of events is a fake one at that moment. Next, the kubelet asks for a tracer,
// and that call puts the real recorder back.
func swapRecorder(ctx context.Context, d *kubelet.Dependencies, client kubernetes.Interface, name string) {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(legacyscheme.Scheme, corev1.EventSource{Component: "kubelet", Host: name})
	d.Recorder = &record.FakeRecorder{}
	d.TracerProvider = &swap{noop.NewTracerProvider(), func() { d.Recorder = recorder }}
	d.EventClient = client.CoreV1()
}

type swap struct {
	trace.TracerProvider
	swap func()
}

// Tracer implements [trace.TracerProvider].
func (s *swap) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	s.swap()
	return s.TracerProvider.Tracer(name, options...)
}

// noSystemDirs keeps the kubelet out of the directories below /var that only root can write. It wants to put links to
// its logs in one of them, for log collectors.
type noSystemDirs struct{ kubecontainer.RealOS }

// MkdirAll implements [kubecontainer.OSInterface].
func (noSystemDirs) MkdirAll(path string, mode os.FileMode) error {
	if strings.HasPrefix(path, "/var/log/") {
		return nil
	}
	return os.MkdirAll(path, mode)
}

// Symlink implements [kubecontainer.OSInterface].
func (noSystemDirs) Symlink(string, string) error { return nil }

// noCgroups is a container manager that reports that there is nothing to limit, instead of an error.
type noCgroups struct{ cm.ContainerManager }

// NewPodContainerManager implements [cm.ContainerManager].
func (n noCgroups) NewPodContainerManager() cm.PodContainerManager {
	return noPodCgroups{n.ContainerManager.NewPodContainerManager()}
}

type noPodCgroups struct{ cm.PodContainerManager }

// GetPodCgroupConfig implements [cm.PodContainerManager].
func (noPodCgroups) GetPodCgroupConfig(*corev1.Pod, corev1.ResourceName) (*cm.ResourceConfig, error) {
	return nil, nil
}

// noMounts does not ask the kernel to share mounts.
type noMounts struct{ hostutil.HostUtils }

// MakeRShared implements [hostutil.HostUtils].
func (noMounts) MakeRShared(string) error { return nil }

// PathExists implements [hostutil.HostUtils], also where upstream's cannot.
func (noMounts) PathExists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// GetMode implements [hostutil.HostUtils], also where upstream's cannot.
func (noMounts) GetMode(path string) (os.FileMode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Mode(), nil
}

// computer returns the data about the machine for the node's status. Its size is made up: pods are programs of one real
// machine, which are not limited. What the node uses is measured: it is what the node's process and all below it use.
type computer struct {
	name  string
	began time.Time
}

const (
	computerCores  = 8
	computerMemory = 16 << 30
)

// Start implements cadvisor's interface.
func (computer) Start() error { return nil }

// ContainerInfoV2 implements cadvisor's interface: of all cgroups there is the root.
func (c computer) ContainerInfoV2(name string, _ cadvisorv2.RequestOptions) (map[string]cadvisorv2.ContainerInfo, error) {
	processes, err := usage.Look()
	if err != nil || name != "/" {
		return map[string]cadvisorv2.ContainerInfo{}, nil //nolint:nilerr // nothing is known
	}
	used, _ := processes.OfTree(os.Getpid())
	now := time.Now()
	stats := &cadvisorv2.ContainerStats{
		Timestamp: now,
		Cpu:       &cadvisorapi.CpuStats{Usage: cadvisorapi.CpuUsage{Total: uint64(used.CPU)}},
		CpuInst:   &cadvisorv2.CpuInstStats{},
		Memory:    &cadvisorapi.MemoryStats{Usage: used.Resident, WorkingSet: used.Resident, RSS: used.Resident},
	}
	stats.CpuInst.Usage.Total = uint64(used.CPU.Seconds() / now.Sub(c.began).Seconds() * 1e9) // since it began
	return map[string]cadvisorv2.ContainerInfo{name: {
		Spec:  cadvisorv2.ContainerSpec{CreationTime: c.began, HasCpu: true, HasMemory: true, Memory: cadvisorv2.MemorySpec{Limit: computerMemory}},
		Stats: []*cadvisorv2.ContainerStats{stats},
	}}, nil
}

// GetRequestedContainersInfo implements cadvisor's interface.
func (computer) GetRequestedContainersInfo(string, cadvisorv2.RequestOptions) (map[string]*cadvisorapi.ContainerInfo, error) {
	return map[string]*cadvisorapi.ContainerInfo{}, nil
}

// MachineInfo implements cadvisor's interface.
func (c computer) MachineInfo() (*cadvisorapi.MachineInfo, error) {
	return &cadvisorapi.MachineInfo{NumCores: computerCores, MemoryCapacity: computerMemory, InstanceID: cadvisorapi.InstanceID(c.name)}, nil
}

// VersionInfo implements cadvisor's interface.
func (computer) VersionInfo() (*cadvisorapi.VersionInfo, error) {
	return &cadvisorapi.VersionInfo{KernelVersion: "simulated", ContainerOsVersion: "operator-lab (simulated node)"}, nil
}

// ImagesFsInfo implements cadvisor's interface.
func (computer) ImagesFsInfo(context.Context) (cadvisorv2.FsInfo, error) {
	return cadvisorv2.FsInfo{}, nil
}

// RootFsInfo implements cadvisor's interface.
func (computer) RootFsInfo() (cadvisorv2.FsInfo, error) { return cadvisorv2.FsInfo{}, nil }

// ContainerFsInfo implements cadvisor's interface.
func (computer) ContainerFsInfo(context.Context) (cadvisorv2.FsInfo, error) {
	return cadvisorv2.FsInfo{}, nil
}

// GetDirFsInfo implements cadvisor's interface.
func (computer) GetDirFsInfo(string) (cadvisorv2.FsInfo, error) { return cadvisorv2.FsInfo{}, nil }
