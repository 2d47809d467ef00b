package kit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Sub returns the files below a directory of an embedded file system. It panics if dir is no valid path, which a
// constant never is.
func Sub(files fs.FS, dir string) fs.FS {
	sub, err := fs.Sub(files, dir)
	if err != nil {
		panic(err)
	}
	return sub
}

// CRDs reads the custom resource definitions of a variant of an operator: the files of crds/<variant>, sorted by name.
func CRDs(manifests fs.FS, variant string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	dir := path.Join("crds", variant)
	files, err := fs.ReadDir(manifests, dir)
	if err != nil {
		return nil, fmt.Errorf("find the CRDs of variant %q: %w", variant, err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		crd, err := Decode[apiextensionsv1.CustomResourceDefinition](manifests, path.Join(dir, file.Name()))
		if err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// Decode reads a manifest with one object. A field that T does not have is an error.
func Decode[T any](manifests fs.FS, name string) (*T, error) {
	data, err := fs.ReadFile(manifests, name)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	object := new(T)
	if err := yaml.UnmarshalStrict(data, object); err != nil {
		return nil, fmt.Errorf("decode manifest %s: %w", name, err)
	}
	return object, nil
}

// Objects decodes the objects of the YAML files in a directory, without subdirectories.
func Objects(manifests fs.FS, dir string) ([]*unstructured.Unstructured, error) {
	files, err := fs.ReadDir(manifests, dir)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		if file.IsDir() || path.Ext(file.Name()) != ".yaml" {
			continue
		}
		name := path.Join(dir, file.Name())
		data, err := fs.ReadFile(manifests, name)
		if err != nil {
			return nil, err
		}
		more, err := decodeAll(data)
		if err != nil {
			return nil, fmt.Errorf("decode manifest %s: %w", name, err)
		}
		all = append(all, more...)
	}
	return all, nil
}

// decodeAll decodes the documents of a YAML file. Empty ones are left out.
func decodeAll(data []byte) (all []*unstructured.Unstructured, err error) {
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := documents.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}
