// Package catalog describes operators to the Operator Lifecycle Manager (OLM). Each of the bundled ones has a
// ClusterServiceVersion for each of its variants, and a catalog has them all. Everything comes from the manifests that
// the operators have anyway.
package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/kit"
)

// releases are the versions of each operator, the oldest first: its variants. An operator may lack one.
var releases = []struct{ variant, version string }{{"classic", "0.1.0"}, {"hardened", "1.0.0"}}

// Channels of a package: in [Stable] a version replaces the one before it, and can be reached from any older one; the channel
// [Published] has the first version only.
const (
	Stable    = "stable"
	Published = "published"
)

// Write writes a file-based catalog of operators as JSON, one package for each that runs as a Deployment. Its bundles have
// their manifests in them, so that no image has to be pulled.
func Write(w io.Writer, ops []operators.Operator) error {
	var all declcfg.DeclarativeConfig
	for _, op := range ops {
		if err := add(&all, op); err != nil {
			return fmt.Errorf("describe the operator %s to OLM: %w", op.Name, err)
		}
	}
	return declcfg.WriteJSON(all, w)
}

// add adds the package of an operator, its channels and its bundles to a catalog.
func add(all *declcfg.DeclarativeConfig, op operators.Operator) error {
	stable := declcfg.Channel{Schema: declcfg.SchemaChannel, Name: Stable, Package: op.Name}
	for _, r := range releases {
		if !has(op, r.variant) {
			continue
		}
		bundle, err := bundleOf(op, r.variant)
		if errors.Is(err, errNoWorkload) {
			continue
		}
		if err != nil {
			return err
		}
		entry := declcfg.ChannelEntry{Name: bundle.Name}
		if n := len(stable.Entries); n > 0 {
			entry.Replaces, entry.SkipRange = stable.Entries[n-1].Name, "<"+r.version
		}
		stable.Entries = append(stable.Entries, entry)
		all.Bundles = append(all.Bundles, bundle)
	}
	if len(stable.Entries) == 0 {
		return nil
	}
	published := declcfg.Channel{Schema: declcfg.SchemaChannel, Name: Published, Package: op.Name, Entries: stable.Entries[:1]}
	all.Channels = append(all.Channels, published, stable)
	all.Packages = append(all.Packages, declcfg.Package{
		Schema: declcfg.SchemaPackage, Name: op.Name, DefaultChannel: Stable, Description: op.Summary,
	})
	return nil
}

// has says whether an operator has a variant.
func has(op operators.Operator, variant string) bool {
	_, err := fs.Stat(op.Manifests, path.Join("crds", variant))
	return err == nil
}

// bundleOf returns the bundle of a variant: its ClusterServiceVersion and its CRDs.
func bundleOf(op operators.Operator, variant string) (declcfg.Bundle, error) {
	csv, err := CSV(op, variant)
	if err != nil {
		return declcfg.Bundle{}, err
	}
	crds, err := kit.CRDs(op.Manifests, variant)
	if err != nil {
		return declcfg.Bundle{}, err
	}
	objects := []any{csv}
	properties := []property.Property{property.MustBuildPackage(op.Name, csv.Spec.Version.String())}
	for _, crd := range crds {
		objects = append(objects, crd)
		for _, v := range crd.Spec.Versions {
			properties = append(properties, property.MustBuildGVK(crd.Spec.Group, v.Name, crd.Spec.Names.Kind))
		}
	}
	for _, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			return declcfg.Bundle{}, err
		}
		properties = append(properties, property.MustBuildBundleObject(text))
	}
	return declcfg.Bundle{Schema: declcfg.SchemaBundle, Name: csv.Name, Package: op.Name, Properties: properties}, nil
}

// versionOf returns the version of a variant.
func versionOf(variant string) (semver.Version, error) {
	for _, r := range releases {
		if r.variant == variant {
			return semver.Parse(r.version)
		}
	}
	return semver.Version{}, fmt.Errorf("the variant %q has no version", variant)
}

// descriptionOf returns what the schema of a version says about the kind.
func descriptionOf(v apiextensionsv1.CustomResourceDefinitionVersion) string {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return ""
	}
	return v.Schema.OpenAPIV3Schema.Description
}

// owned describes the kinds of an operator, one for each version that is served.
func owned(crds []*apiextensionsv1.CustomResourceDefinition) (all []v1alpha1.CRDDescription) {
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			if v.Served {
				all = append(all, v1alpha1.CRDDescription{
					Name: crd.Name, Version: v.Name, Kind: crd.Spec.Names.Kind, DisplayName: crd.Spec.Names.Kind,
					Description: descriptionOf(v),
				})
			}
		}
	}
	return all
}
