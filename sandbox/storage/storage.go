// Package storage provides the volumes for a sandbox's claims: each volume is a directory of this machine that every
// node can mount, like a directory of a network file system. The requested size is not enforced.
package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// ClassName is the storage class of claims that name none.
	ClassName = "standard"
	// Provisioner is the provisioner of that class.
	Provisioner = "operator-lab.dev/directory"
	// MountPoint is the path of the volumes as seen by nodes. It is only a name: no node has such a directory.
	MountPoint = "/var/lib/operator-lab/volumes"
)

// Class is the storage class that every sandbox has.
func Class() *storagev1.StorageClass {
	reclaim, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: ClassName, Annotations: map[string]string{
			"storageclass.kubernetes.io/is-default-class": "true",
			"kubernetes.io/description":                   "Directories that every node can mount. Their size is not enforced.",
		}},
		Provisioner: Provisioner, ReclaimPolicy: &reclaim, VolumeBindingMode: &binding,
	}
}

// Volumes is the directory that contains a sandbox's volumes.
type Volumes string

// Of returns the directory of a volume; false if the volume is not one of these. The path in the object only decides
// that: the directory is derived from the object's name, which cannot lead elsewhere.
func (v Volumes) Of(pv *corev1.PersistentVolume) (dir string, is bool) {
	if v == "" || pv.Spec.HostPath == nil || !isName(pv.Name) || pv.Spec.HostPath.Path != path.Join(MountPoint, pv.Name) {
		return "", false
	}
	return filepath.Join(string(v), pv.Name), true
}

// isName reports whether a name is a single file name without a directory.
func isName(name string) bool {
	return fs.ValidPath(name) && name != "." && path.Base(name) == name
}

// Make creates a volume for a claim, unless it exists, and returns its object.
func (v Volumes) Make(name string, claim *corev1.PersistentVolumeClaim, reclaim corev1.PersistentVolumeReclaimPolicy) (*corev1.PersistentVolume, error) {
	if err := makeable(claim); err != nil {
		return nil, err
	}
	kind := corev1.HostPathDirectory // a lost directory should be reported, not recreated
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: reclaim,
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: path.Join(MountPoint, name), Type: &kind,
			}},
		},
	}
	dir, is := v.Of(pv)
	if !is {
		return nil, fmt.Errorf("%q cannot be a volume's name", name)
	}
	return pv, os.MkdirAll(dir, 0o700)
}

// makeable returns why no volume can be made for a claim.
func makeable(claim *corev1.PersistentVolumeClaim) error {
	switch {
	case claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == corev1.PersistentVolumeBlock:
		return errors.New("volumes are directories here: there are none of volumeMode Block")
	case claim.Spec.Selector != nil:
		return errors.New("a claim with a selector waits for a volume that somebody makes: none is made for it")
	}
	return nil
}

// Remove removes a volume with its content. It returns nil if the volume is gone already.
func (v Volumes) Remove(pv *corev1.PersistentVolume) error {
	dir, is := v.Of(pv)
	if !is {
		return fmt.Errorf("%s made no such volume: its path is not %s", Provisioner, path.Join(MountPoint, pv.Name))
	}
	return RemoveAll(dir)
}

// RemoveAll removes a directory with its content like [os.RemoveAll], even if a program has made its own directories
// read-only.
func RemoveAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// Errors are reported below: what cannot be opened cannot be removed either.
	_ = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
