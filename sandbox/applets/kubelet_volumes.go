package applets

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/downwardapi"
	"k8s.io/kubernetes/pkg/volume/emptydir"
	"k8s.io/kubernetes/pkg/volume/projected"
	"k8s.io/kubernetes/pkg/volume/secret"
	"k8s.io/kubernetes/pkg/volume/util/subpath"

	"github.com/operator-lab/operator-lab/sandbox/storage"
)

func volumePlugins(f nodeFlags) []volume.VolumePlugin {
	plugins := []volume.VolumePlugin{hostVolumes{
		VolumePlugin: hostPathPlugin(), host: filepath.Join(f.dir, "host"), volumes: storage.Volumes(f.volumes),
	}}
	for _, probed := range [][]volume.VolumePlugin{
		emptydir.ProbeVolumePlugins(), secret.ProbeVolumePlugins(),
		configmap.ProbeVolumePlugins(), downwardapi.ProbeVolumePlugins(), projected.ProbeVolumePlugins(),
	} {
		plugins = append(plugins, probed...)
	}
	return plugins
}

// hostVolumes provides volumes that name a path of the node: hostPath volumes of pods and of persistent volumes, and
// local ones. The path is resolved in a directory for the node, because the real machine is not the node and its files
// belong to the user. The sandbox's own volumes have a directory of their own.
type hostVolumes struct {
	volume.VolumePlugin // upstream's for hostPath
	host                string
	volumes             storage.Volumes
}

// CanSupport implements [volume.VolumePlugin].
func (h hostVolumes) CanSupport(spec *volume.Spec) bool {
	return isLocal(spec) || h.VolumePlugin.CanSupport(spec)
}

func isLocal(spec *volume.Spec) bool {
	return spec.PersistentVolume != nil && spec.PersistentVolume.Spec.Local != nil
}

// GetVolumeName implements [volume.VolumePlugin].
func (h hostVolumes) GetVolumeName(spec *volume.Spec) (string, error) {
	if isLocal(spec) {
		return spec.PersistentVolume.Spec.Local.Path, nil
	}
	return h.VolumePlugin.GetVolumeName(spec)
}

// NewMounter implements [volume.VolumePlugin].
func (h hostVolumes) NewMounter(spec *volume.Spec, pod *corev1.Pod) (volume.Mounter, error) {
	source, err := h.here(spec)
	if err != nil {
		return nil, err
	}
	here := volume.NewSpecFromVolume(&corev1.Volume{Name: spec.Name(), VolumeSource: corev1.VolumeSource{HostPath: source}})
	here.ReadOnly = spec.ReadOnly
	return h.VolumePlugin.NewMounter(here, pod)
}

// here returns the path of a volume on this machine.
func (h hostVolumes) here(spec *volume.Spec) (*corev1.HostPathVolumeSource, error) {
	if pv := spec.PersistentVolume; pv != nil {
		if dir, is := h.volumes.Of(pv); is {
			kind := corev1.HostPathDirectory
			return &corev1.HostPathVolumeSource{Path: dir, Type: &kind}, nil
		}
		if pv.Spec.Local != nil { // nobody can log in to the node to make the directory
			return h.onNode(corev1.HostPathVolumeSource{Path: pv.Spec.Local.Path})
		}
		return h.onNode(*pv.Spec.HostPath)
	}
	return h.onNode(*spec.Volume.HostPath)
}

// onNode has a path begin in the directory of the node. It is made where a container runtime would make it.
func (h hostVolumes) onNode(source corev1.HostPathVolumeSource) (*corev1.HostPathVolumeSource, error) {
	if err := os.MkdirAll(h.host, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(h.host) // out of which no link leads that a pod has made
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	name, err := filepath.Rel("/", filepath.Clean("/"+source.Path))
	if err != nil {
		return nil, err
	}
	_, err = root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // mounting reports the error
		if source.Type == nil || *source.Type == corev1.HostPathUnset || *source.Type == corev1.HostPathDirectoryOrCreate {
			err = root.MkdirAll(name, 0o700)
		}
	}
	if err != nil {
		return nil, err
	}
	source.Path = filepath.Join(h.host, name)
	return &source, nil
}

// subPaths are parts of volumes. Upstream's mounts them, so that nobody can change what they are; here they are paths.
type subPaths struct{ *subpath.FakeSubpath }

// SafeMakeDir implements [subpath.Interface].
func (subPaths) SafeMakeDir(dir, base string, mode os.FileMode) error {
	root, err := os.OpenRoot(base) // out of which no link leads
	if err != nil {
		return err
	}
	return errors.Join(root.MkdirAll(dir, mode.Perm()), root.Close())
}

// PrepareSafeSubpath implements [subpath.Interface].
func (subPaths) PrepareSafeSubpath(of subpath.Subpath) (path string, cleanUp func(), err error) {
	root, err := os.OpenRoot(of.VolumePath) // as above
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = root.Close() }()
	name, err := filepath.Rel(of.VolumePath, of.Path)
	if err == nil {
		_, err = root.Stat(name)
	}
	if err != nil {
		return "", nil, err
	}
	return of.Path, nil, nil
}
