package applets

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/hostpath"

	"github.com/operator-lab/operator-lab/sandbox/storage"
)

// binderResync is the interval at which all claims and volumes are checked again: a claim that is older than its volume
// waits up to this long. Upstream takes 15 s.
const binderResync = 2 * time.Second

// startVolumeBinder starts upstream's controller that binds claims to volumes, with our volume plugins instead of
// upstream's: upstream's plugin for hostPath would remove files of this machine that a volume names.
func startVolumeBinder(ctx context.Context, config *rest.Config, volumes storage.Volumes) error {
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "persistent-volume-binder"))
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	binder, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient: client, SyncPeriod: binderResync, EnableDynamicProvisioning: true,
		VolumePlugins:  []volume.VolumePlugin{provisioner{VolumePlugin: hostPathPlugin(), volumes: volumes}},
		VolumeInformer: core.PersistentVolumes(), ClaimInformer: core.PersistentVolumeClaims(),
		ClassInformer: factory.Storage().V1().StorageClasses(), PodInformer: core.Pods(), NodeInformer: core.Nodes(),
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	go binder.Run(ctx) // it first waits for its caches
	return nil
}

// hostPathPlugin is upstream's.
func hostPathPlugin() volume.VolumePlugin {
	return hostpath.ProbeVolumePlugins(volume.VolumeConfig{})[0]
}

// provisioner makes and removes the sandbox's volumes, and no others.
type provisioner struct {
	volume.VolumePlugin
	volumes storage.Volumes
}

var (
	_ volume.ProvisionableVolumePlugin = provisioner{}
	_ volume.DeletableVolumePlugin     = provisioner{}
)

// GetPluginName implements [volume.VolumePlugin].
func (provisioner) GetPluginName() string { return storage.Provisioner }

// CanSupport implements [volume.VolumePlugin].
func (p provisioner) CanSupport(spec *volume.Spec) bool {
	if spec.PersistentVolume == nil {
		return false
	}
	_, is := p.volumes.Of(spec.PersistentVolume)
	return is
}

// NewProvisioner implements [volume.ProvisionableVolumePlugin].
func (p provisioner) NewProvisioner(_ klog.Logger, o volume.VolumeOptions) (volume.Provisioner, error) {
	for name := range o.Parameters {
		return nil, fmt.Errorf("%s has no parameters: %q is one", storage.Provisioner, name)
	}
	return provision{p.volumes, o}, nil
}

// NewDeleter implements [volume.DeletableVolumePlugin].
func (p provisioner) NewDeleter(_ klog.Logger, spec *volume.Spec) (volume.Deleter, error) {
	return &deleter{volumes: p.volumes, pv: spec.PersistentVolume}, nil
}

type provision struct {
	volumes storage.Volumes
	options volume.VolumeOptions
}

// Provision implements [volume.Provisioner].
func (p provision) Provision(*corev1.Node, []corev1.TopologySelectorTerm) (*corev1.PersistentVolume, error) {
	return p.volumes.Make(p.options.PVName, p.options.PVC, p.options.PersistentVolumeReclaimPolicy)
}

type deleter struct {
	volume.MetricsNil
	volumes storage.Volumes
	pv      *corev1.PersistentVolume
}

// GetPath implements [volume.Volume].
func (d *deleter) GetPath() string {
	dir, _ := d.volumes.Of(d.pv)
	return dir
}

// Delete implements [volume.Deleter].
func (d *deleter) Delete() error { return d.volumes.Remove(d.pv) }
