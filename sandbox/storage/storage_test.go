package storage_test

import (
	"os"
	"path"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/sandbox/storage"
)

func claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteMany},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("3Gi")}},
	}}
}

func TestVolumeComesAndGoes(t *testing.T) {
	volumes := storage.Volumes(filepath.Join(t.TempDir(), "volumes"))
	pv, err := volumes.Make("pvc-1", claim(), corev1.PersistentVolumeReclaimRetain)
	if err != nil {
		t.Fatal(err)
	}
	size := pv.Spec.Capacity[corev1.ResourceStorage]
	if size.String() != "3Gi" || len(pv.Spec.AccessModes) != 2 || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("the volume is %+v", pv.Spec)
	}
	dir, is := volumes.Of(pv)
	info, err := os.Stat(dir)
	if !is || err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
		t.Fatalf("its directory is %s: %v (%v)", dir, info, err)
	}
	// Directories that a program made inaccessible to itself are removed too.
	locked := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(locked, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{locked, filepath.Dir(locked)} {
		if err := os.Chmod(name, 0); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := volumes.Make("pvc-1", claim(), corev1.PersistentVolumeReclaimRetain); err != nil || again.Name != pv.Name {
		t.Errorf("made once more it is %v (%v)", again, err)
	}
	for range 2 { // the second finds nothing
		if err := volumes.Remove(pv); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is there: %v", err)
	}
}

func TestNotMade(t *testing.T) {
	dir := t.TempDir()
	block, selects := claim(), claim()
	block.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	selects.Spec.Selector = &metav1.LabelSelector{}
	for name, c := range map[string]*corev1.PersistentVolumeClaim{"block": block, "selects": selects, "../up": claim(), "": claim(), ".": claim()} {
		if pv, err := storage.Volumes(dir).Make(name, c, corev1.PersistentVolumeReclaimDelete); err == nil {
			t.Errorf("%q is made: %+v", name, pv)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("there are %v (%v)", files, err)
	}
}

// TestRemovesNothingElse uses volumes of somebody who wants other directories to be removed.
func TestRemovesNothingElse(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine")
	if err := os.MkdirAll(mine, 0o700); err != nil {
		t.Fatal(err)
	}
	volumes := storage.Volumes(filepath.Join(dir, "volumes"))
	for name, at := range map[string]string{
		"a": mine, "mine": mine, "..": path.Join(storage.MountPoint, ".."), "../mine": storage.MountPoint + "/../mine",
		"b": storage.MountPoint, "": storage.MountPoint, "c": storage.MountPoint + "/../../../.." + mine,
	} {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pv.Spec.HostPath = &corev1.HostPathVolumeSource{Path: at}
		if err := volumes.Remove(pv); err == nil {
			t.Errorf("%q at %s is said to be removed", name, at)
		}
	}
	if err := volumes.Remove(&corev1.PersistentVolume{}); err == nil {
		t.Error("a volume without a path is said to be removed")
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
}

// FuzzOf checks that no name or path of a volume leads out of the directory of volumes.
func FuzzOf(f *testing.F) {
	for _, name := range []string{"pvc-1", "..", "../..", "a/../..", "", ".", "/", "a\x00b", `..\..`} {
		f.Add(name, path.Join(storage.MountPoint, name))
		f.Add(name, storage.MountPoint+"/"+name)
	}
	f.Fuzz(func(t *testing.T, name, at string) {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pv.Spec.HostPath = &corev1.HostPathVolumeSource{Path: at}
		dir, is := storage.Volumes("/volumes").Of(pv)
		if is && (filepath.Dir(dir) != "/volumes" || filepath.Clean(dir) != dir) {
			t.Errorf("%q at %q is %q", name, at, dir)
		}
	})
}
