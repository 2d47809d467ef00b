package project

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Shipped is what a project is shipped with, for those who install it.
type Shipped struct {
	// Sources are the directories and files that it is from, relative to the project's root.
	Sources []string
	// Bundle is the directory of a bundle of OLM that is there already. Objects and Samples are then empty.
	Bundle string
	// Objects are the manifests; a ClusterServiceVersion may be among them.
	Objects []*unstructured.Unstructured
	// Samples are objects of the operator's own kinds.
	Samples []*unstructured.Unstructured
}

// Shipped finds what the project is shipped with: what Options.Manifests name, else the bundle in the directory bundle,
// else the kustomization config/manifests, which operator-sdk makes bundles of, else config/default.
func (p *Project) Shipped() (*Shipped, error) {
	paths := p.options.Manifests
	if len(paths) == 0 {
		for _, name := range []string{"bundle", "config/manifests", "config/default"} {
			dir, found := p.directory(name)
			if _, rendered := kustomization(dir); found && (rendered || isBundle(dir)) {
				paths = []string{dir}
				break
			}
		}
	}
	if len(paths) == 0 {
		return nil, problem("name others: --manifests FILE", "%s has neither a bundle nor config/manifests nor config/default", p.Root)
	}
	s := &Shipped{}
	for _, name := range paths {
		s.Sources = append(s.Sources, p.below(absolute(name)))
	}
	if len(paths) == 1 && isBundle(paths[0]) {
		s.Bundle = paths[0]
		return s, nil
	}
	var err error
	if s.Objects, err = p.reader().objects(paths); err != nil {
		return nil, err
	}
	for _, name := range p.samplePaths() {
		for _, f := range p.files().samples(absolute(name)) {
			if f.wrong != nil {
				return nil, problem("samples are files or directories of YAML or JSON", "%w", f.wrong)
			}
			s.Samples = append(s.Samples, f.objects...)
		}
	}
	return s, nil
}
