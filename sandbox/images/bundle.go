package images

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// OLM unpacks a bundle that is an image in a Job of three images: the first one hands a program, cpb, to the second, which is the
// bundle, so that it copies what is in it, and the third, opm, puts that into a ConfigMap.
const (
	copierFile      = "/bin/cpb"
	annotationsFile = "metadata/annotations.yaml"
	manifestsLabel  = "operators.operatorframework.io.bundle.manifests.v1"
)

// copier is the image with cpb. The file is no program: that of a bundle does its work.
var copier = tools{files: files{copierFile: "# In a bundle of the lab this copies its metadata and its manifests into a directory.\n"}}

// bundle is an image without programs that has the bundle of a directory.
type bundle struct{ dir string }

// IsBundle reports whether the image is a bundle of OLM's.
func (i Image) IsBundle() bool {
	_, is := i.Program.File("/" + annotationsFile)
	return is
}

// File implements [Program].
func (b bundle) File(name string) (string, bool) {
	content, err := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(path.Clean("/"+name))))
	return string(content), err == nil
}

// Start implements [Program]. It only runs cpb, where the pod has it, as OLM's unpack Job does.
func (b bundle) Start(c *Container) (Running, error) {
	argv := slices.Concat(c.Command, c.Args)
	if len(argv) == 0 {
		return nil, fmt.Errorf("%s: no command specified", c.Image)
	}
	if _, err := os.Stat(c.hostPath(argv[0])); err != nil || path.Base(argv[0]) != path.Base(copierFile) {
		return nil, &exec.Error{Name: argv[0], Err: exec.ErrNotFound}
	}
	to := "/bundle"
	if len(argv) > 1 {
		to = argv[1]
	}
	return begin(func(*task) int {
		if err := b.copyTo(c.hostPath(to)); err != nil {
			fmt.Fprintln(c.Stderr, "operator-lab:", err)
			return 1
		}
		fmt.Fprintf(c.Stdout, "operator-lab: copied the bundle in %s to %s\n", b.dir, to)
		return 0
	}), nil
}

// copyTo copies the metadata and the manifests, wherever the metadata says that those are.
func (b bundle) copyTo(dir string) error {
	text, err := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(annotationsFile)))
	if err != nil {
		return err
	}
	metadata := struct{ Annotations map[string]string }{}
	if err := yaml.Unmarshal(text, &metadata); err != nil {
		return fmt.Errorf("%s: %w", annotationsFile, err)
	}
	file, manifests := filepath.Join(dir, filepath.FromSlash(annotationsFile)), filepath.Join(dir, "manifests")
	if err := os.RemoveAll(manifests); err != nil { // of a try before
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	return os.CopyFS(manifests, os.DirFS(filepath.Join(b.dir, filepath.FromSlash(path.Clean("/"+cmp.Or(metadata.Annotations[manifestsLabel], "manifests"))))))
}

// ownProgram is an image of one of the programs that the binary is.
type ownProgram struct {
	guard        *guard.Guard
	binary, name string
}

// File implements [Program].
func (ownProgram) File(string) (string, bool) { return "", false }

// Start implements [Program].
func (p ownProgram) Start(c *Container) (Running, error) {
	args := slices.Concat(c.Command, c.Args)
	if len(args) > 0 && path.Base(args[0]) == p.name {
		args = args[1:]
	}
	fmt.Fprintf(c.Stderr, "operator-lab: %s is the program %s of this binary\n", c.Image, p.name)
	return runOwn(p.guard, p.binary, c, []string{p.name}, args)
}
