package project

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/sandbox"
)

// kustomization returns the file of a directory that makes it a kustomization.
func kustomization(dir string) (file string, found bool) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if file = filepath.Join(dir, name); fileExists(file) {
			return file, true
		}
	}
	return "", false
}

// render builds a kustomization.
func (r manifestReader) render(dir string) ([]*unstructured.Unstructured, error) {
	k := krusty.MakeKustomizer(&krusty.Options{LoadRestrictions: types.LoadRestrictionsNone, PluginConfig: types.DisabledPluginConfig()})
	rendered, err := k.Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		return nil, &sandbox.Problem{
			Err:  fmt.Errorf("%s cannot be rendered: %s", r.below(dir), strings.ReplaceAll(text, r.home+"/", "")),
			Hint: "generate what is missing ('make manifests'), or name others: --manifests FILE",
		}
	}
	var all []*unstructured.Unstructured
	for _, resource := range rendered.Resources() {
		raw, err := resource.MarshalJSON()
		if err != nil {
			return nil, err
		}
		objects, err := decodeObjects(bytes.NewReader(raw))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.below(dir), err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// userFiles reads the files that the user wrote below a directory, and names them as they are named there.
type userFiles struct{ home string }

// below returns a path relative to the directory, with slashes, if it is inside.
func (u userFiles) below(file string) string {
	rel, err := filepath.Rel(u.home, file)
	if err != nil || !filepath.IsLocal(rel) {
		return file
	}
	return filepath.ToSlash(rel)
}

// file is a file of manifests.
type file struct {
	name    string
	objects []*unstructured.Unstructured
	wrong   error
	again   func() file // reads it once more; nil if it is wrong
}

// manifestReader reads manifests that the user wrote.
type manifestReader struct {
	userFiles
	// name is the project's, and that of a chart's release. values are files of values for charts.
	name   string
	values []string
}

// reader returns the reader of the project's manifests.
func (p *Project) reader() manifestReader {
	return manifestReader{userFiles: p.files(), name: p.Name, values: p.options.Values}
}

// read reads files and directories. What a bundle of OLM installs is made.
func (r manifestReader) read(paths []string) ([]*unstructured.Unstructured, error) {
	all, err := r.objects(paths)
	if err != nil {
		return nil, err
	}
	return r.expandBundle(all)
}

// ReadManifests reads files and directories as a project's are read, without choosing among the objects.
func ReadManifests(paths []string) ([]*unstructured.Unstructured, error) {
	home, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return manifestReader{userFiles: userFiles{home}}.read(paths)
}

// objects reads files and directories. A directory that is a kustomization or a Helm chart is rendered; of a bundle of
// OLM and of others the YAML and JSON files are read, without those in directories below.
func (r manifestReader) objects(paths []string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, name := range paths {
		info, err := os.Stat(name)
		if err != nil {
			return nil, &sandbox.Problem{Err: fmt.Errorf("%s: no such file or directory", name), Hint: "manifests are files or directories of YAML or JSON"}
		}
		dir := name
		if !info.IsDir() {
			dir = filepath.Dir(name)
		}
		if own, found := kustomization(dir); found && (info.IsDir() || filepath.Base(own) == filepath.Base(name)) {
			objects, err := r.render(dir)
			if err != nil {
				return nil, err
			}
			all = append(all, objects...)
			continue
		}
		if info.IsDir() && isChart(name) {
			objects, err := r.renderChart(name)
			if err != nil {
				return nil, err
			}
			all = append(all, objects...)
			continue
		}
		if info.IsDir() && isBundle(name) {
			if name, err = r.bundleDir(name); err != nil {
				return nil, err
			}
		}
		files := []file{r.file(name)}
		if info.IsDir() {
			files = r.dir(name)
		}
		for _, f := range files {
			if f.wrong != nil {
				return nil, &sandbox.Problem{Err: f.wrong, Hint: "'kubectl apply --dry-run=client -f " + name + "' says the same"}
			}
			all = append(all, f.objects...)
		}
		if info.IsDir() && len(files) == 0 {
			return nil, &sandbox.Problem{Err: fmt.Errorf("%s has no YAML or JSON files", name), Hint: "name the directory that has them: those below it are not read"}
		}
	}
	return all, nil
}

// dir reads the YAML and JSON files of a directory, sorted by name.
func (u userFiles) dir(dir string) []file {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return []file{{name: dir, wrong: err}}
	}
	var files []file
	for _, e := range entries {
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) || slices.Contains(konfig.RecognizedKustomizationFileNames(), e.Name()) {
			continue
		}
		if name := filepath.Join(dir, e.Name()); fileExists(name) {
			files = append(files, u.file(name))
		}
	}
	return files
}

// file reads a file of manifests.
func (u userFiles) file(name string) file {
	if !fileExists(name) { // a pipe or a device could be read for ever
		return file{name: u.below(name), wrong: fmt.Errorf("%s is not a regular file", u.below(name))}
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return file{name: u.below(name), wrong: err}
	}
	objects, err := decodeObjects(bytes.NewReader(raw))
	if err != nil {
		err = fmt.Errorf("%s: %w", u.below(name), err)
	}
	return file{name: u.below(name), objects: objects, wrong: err, again: func() file { return u.file(name) }}
}

// decodeObjects reads YAML or JSON documents. Lists are taken apart.
func decodeObjects(r io.Reader) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	d := utilyaml.NewYAMLOrJSONDecoder(r, 4096)
	for n := 1; ; n++ {
		var raw runtime.RawExtension
		if err := d.Decode(&raw); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			text, _, _ := strings.Cut(err.Error(), "\n")
			return nil, fmt.Errorf("document %d: %s", n, text)
		}
		if raw.Raw = bytes.TrimSpace(raw.Raw); len(raw.Raw) == 0 || bytes.Equal(raw.Raw, []byte("null")) {
			continue
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw.Raw); err != nil {
			return nil, fmt.Errorf("document %d is no Kubernetes object: %s", n, shortReason(err, o))
		}
		objects := []*unstructured.Unstructured{o}
		if o.IsList() {
			list, err := o.ToList()
			if err != nil {
				return nil, fmt.Errorf("document %d: %w", n, err)
			}
			objects = objects[:0]
			for i := range list.Items {
				objects = append(objects, &list.Items[i])
			}
		}
		for _, o := range objects {
			if o.GetKind() == "" || o.GetAPIVersion() == "" {
				return nil, fmt.Errorf("document %d is no Kubernetes object: it needs apiVersion and kind", n)
			}
		}
		all = append(all, objects...)
	}
}

// shortReason says why a document is no object, without the document itself.
func shortReason(err error, o *unstructured.Unstructured) string {
	if runtime.IsMissingKind(err) || o.GetKind() == "" {
		return "it needs apiVersion and kind"
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// samples returns the files of samples at a path: a file, the resources of a kustomization in their order, or the
// files of a directory.
func (u userFiles) samples(name string) []file {
	info, err := os.Stat(name)
	if err != nil {
		return []file{{name: u.below(name), wrong: fmt.Errorf("%s: no such file or directory", u.below(name))}}
	}
	if !info.IsDir() {
		return []file{u.file(name)}
	}
	own, found := kustomization(name)
	if !found {
		return u.dir(name)
	}
	var k struct{ Resources []string }
	raw, err := os.ReadFile(own)
	if err == nil {
		err = yaml.Unmarshal(raw, &k)
	}
	if err != nil {
		return []file{{name: u.below(own), wrong: fmt.Errorf("%s: %w", u.below(own), err)}}
	}
	var files []file
	for _, r := range k.Resources {
		at := filepath.Join(name, r)
		if within(at, name) { // a directory that has itself for a resource
			continue
		}
		files = append(files, u.samples(at)...)
	}
	return files
}

// ReadSamples reads files of objects to try an operator with, at a path that the user names: a file, the resources of a
// kustomization in their order, or the files of a directory.
func ReadSamples(name string) ([]Sample, error) {
	var samples []Sample
	for _, f := range (userFiles{}).samples(name) {
		if f.wrong != nil {
			return nil, &sandbox.Problem{Err: f.wrong, Hint: "samples are files or directories of YAML or JSON"}
		}
		samples = append(samples, Sample{File: f.name, Objects: f.objects, again: f.again})
	}
	return samples, nil
}
