package images_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/images"
)

// TestUnpackingABundle runs the containers of OLM's unpack Job but for opm, whose command is shown. The script olm has it all.
func TestUnpackingABundle(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs(filepath.Join("testdata", "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	c, _ := catalogue(t, "images: [{name: app-bundle, bundle: "+dir+"}]")
	util, unpacked := t.TempDir(), t.TempDir()
	in, log := container(t, "app-bundle")
	in.Mounts = []images.Mount{{ContainerPath: "/util", HostPath: util}, {ContainerPath: "/bundle", HostPath: unpacked}}
	program := lookup(t, c, "app-bundle").Program
	if !lookup(t, c, "app-bundle").IsBundle() || lookup(t, c, "nginx").IsBundle() || lookup(t, c, "unknown").IsBundle() {
		t.Error("what is a bundle is not told from what is none")
	}
	for _, argv := range [][]string{nil, {"sh"}, {"/util/cpb", "/bundle"}} { // nobody has brought cpb yet
		in.Command = argv
		if _, err := program.Start(in); err == nil {
			t.Errorf("it runs %q", argv)
		}
	}
	copier, has := lookup(t, c, "quay.io/operator-framework/olm:latest").Program.File("/bin/cpb")
	if !has {
		t.Fatal("there is no cpb")
	}
	write(t, filepath.Join(util, "cpb"), copier)
	for range 2 { // the second time is a try after a failure
		if code := exit(t, start(t, c, in)); code != 0 {
			t.Fatalf("it exits with %d: %s", code, log)
		}
	}
	for _, name := range []string{"metadata/annotations.yaml", "manifests/csv.yaml"} {
		want, has := program.File("/" + name)
		if got, err := os.ReadFile(filepath.Join(unpacked, name)); err != nil || string(got) != want || !has {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
	in.Command = []string{"/util/cpb", "/bundle/metadata/annotations.yaml"} // no directory
	if code := exit(t, start(t, c, in)); code != 1 {
		t.Errorf("it exits with %d", code)
	}

	in, log = container(t, "quay.io/operator-framework/opm:latest")
	in.Command = []string{"opm", "alpha", "bundle", "extract", "-m", "/bundle/", "-n", "ns", "-c", "app", "-z"}
	in.Mounts = []images.Mount{{ContainerPath: "/bundle", HostPath: unpacked}}
	start(t, c, in)
	log.Await(t, "args: opm alpha bundle extract -m "+unpacked+" -n ns -c app -z\n")
	log.Await(t, "env: KUBECONFIG="+in.Dir+"/")
}

// TestABundleThatNamesNoFolder: its manifests are those of the folder that has the name by convention, and nothing beside it.
func TestABundleThatNamesNoFolder(t *testing.T) {
	t.Parallel()
	dir, unpacked := t.TempDir(), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "bundle"))); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "metadata", "annotations.yaml"), "annotations: {operators.operatorframework.io.bundle.package.v1: app}\n")
	c, _ := catalogue(t, "images: [{name: app-bundle, bundle: "+dir+"}]")
	in, log := container(t, "app-bundle")
	in.Command, in.Mounts = []string{"/util/cpb", "/bundle"}, []images.Mount{
		{ContainerPath: "/util", HostPath: t.TempDir()}, {ContainerPath: "/bundle", HostPath: unpacked},
	}
	copier, _ := lookup(t, c, "quay.io/operator-framework/olm:latest").Program.File("/bin/cpb")
	write(t, filepath.Join(in.Mounts[0].HostPath, "cpb"), copier)
	if code := exit(t, start(t, c, in)); code != 0 {
		t.Fatalf("it exits with %d: %s", code, log)
	}
	for name, wanted := range map[string]bool{"manifests/csv.yaml": true, "manifests/manifests": false, "manifests/metadata": false} {
		if _, err := os.Stat(filepath.Join(unpacked, name)); (err == nil) != wanted {
			t.Errorf("%s: %v, wanted: %t", name, err, wanted)
		}
	}
}
