package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	validationerrors "github.com/operator-framework/api/pkg/validation/errors"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/pkg/image"
	"github.com/operator-framework/operator-registry/pkg/lib/bundle"
	"github.com/operator-framework/operator-registry/pkg/registry"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Source is what a bundle is made of.
type Source struct {
	// Package is the name of the package. Default: that of the ClusterServiceVersion among Objects, else Default, which
	// must not be empty.
	Package, Default string
	// Channels are those that the bundle is in; the first one is the default channel. Default: alpha.
	Channels []string
	// Version is the version of the bundle. Default: that of the ClusterServiceVersion among Objects, else 0.0.1.
	Version string
	// Objects are the manifests that the operator is deployed with. A ClusterServiceVersion among them is what is begun with:
	// what people have written into it stays.
	Objects []*unstructured.Unstructured
	// Samples are objects of the operator's own kinds.
	Samples []*unstructured.Unstructured
}

// LeftOut is an object that is not in the bundle, and why. The reason has no full stop.
type LeftOut struct{ Kind, Name, Reason string }

// SuggestedNamespace is the annotation of a ClusterServiceVersion with the namespace that its operator is usually in.
const SuggestedNamespace = "operatorframework.io/suggested-namespace"

// firstVersion is the version of a bundle for which nobody says one.
const firstVersion = "0.0.1"

// Why objects are not in a bundle.
const (
	chosenByUser   = "who installs it chooses the namespace"
	servedByOLM    = "OLM makes the Service of webhooks, and their certificates"
	notOfBundles   = "OLM does not take this kind from a bundle"
	foreignRole    = "its role is not among the manifests: name the rules in one of your own"
	foreignSubject = "it is for somebody else than the operator, in a namespace that who installs it chooses"
)

// builder fills in a ClusterServiceVersion and collects what else belongs into the bundle.
type builder struct {
	Source
	csv         *v1alpha1.ClusterServiceVersion
	crds        []*apiextensionsv1.CustomResourceDefinition
	deployments []*appsv1.Deployment
	// others are in the bundle as they are, without their namespace.
	others  []*unstructured.Unstructured
	leftOut []LeftOut
	// taken are objects that are not in the bundle as they are, and why; empty: what they say is in the ClusterServiceVersion.
	taken map[*unstructured.Unstructured]string
}

// Files returns the files of a registry+v1 bundle by their paths in it, and what of the objects is not in them.
func (s Source) Files() (files map[string][]byte, leftOut []LeftOut, err error) {
	b := &builder{Source: s, csv: &v1alpha1.ClusterServiceVersion{}, taken: map[*unstructured.Unstructured]string{}}
	for _, step := range []func() error{b.read, b.name, b.install, b.webhooks, b.describe} {
		if err := step(); err != nil {
			return nil, nil, err
		}
	}
	b.rest()
	files, err = b.files()
	return files, b.leftOut, err
}

// into reads an object as a type.
func into[T any](u *unstructured.Unstructured) (*T, error) {
	o := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return nil, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return o, nil
}

// read finds the ClusterServiceVersion to begin with, the kinds and the Deployments.
func (b *builder) read() error {
	for _, u := range b.Objects {
		var err error
		switch u.GetKind() {
		case v1alpha1.ClusterServiceVersionKind:
			b.csv, err = into[v1alpha1.ClusterServiceVersion](u)
			b.taken[u] = ""
		case bundle.CRDKind:
			var crd *apiextensionsv1.CustomResourceDefinition
			crd, err = into[apiextensionsv1.CustomResourceDefinition](u)
			b.crds = append(b.crds, crd)
		case "Deployment":
			var d *appsv1.Deployment
			d, err = into[appsv1.Deployment](u)
			b.deployments = append(b.deployments, d)
			b.taken[u] = ""
		}
		if err != nil {
			return err
		}
	}
	if len(b.deployments) == 0 && len(b.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs) == 0 {
		return errors.New("the manifests have no Deployment, and OLM installs operators as Deployments")
	}
	return nil
}

// name gives the ClusterServiceVersion its name and version.
func (b *builder) name() error {
	csv := b.csv
	csv.APIVersion, csv.Kind = v1alpha1.SchemeGroupVersion.String(), v1alpha1.ClusterServiceVersionKind
	csv.Namespace = ""
	had, _, _ := strings.Cut(csv.Name, ".v")
	b.Package = cmp.Or(b.Package, had, b.Default)
	if b.Version == "" && !csv.Spec.Version.EQ(semver.Version{}) { // 0.0.0 is what a base has before its first release
		b.Version = csv.Spec.Version.String()
	}
	v, err := semver.Parse(cmp.Or(b.Version, firstVersion))
	if err != nil {
		return fmt.Errorf("the version %q is no semantic version: %w", b.Version, err)
	}
	csv.Spec.Version = version.OperatorVersion{Version: v}
	csv.Name = b.Package + ".v" + v.String()
	csv.Spec.DisplayName = cmp.Or(csv.Spec.DisplayName, b.Package)
	if len(b.Channels) == 0 {
		b.Channels = []string{"alpha"}
	}
	return nil
}

// install fills in the Deployments, what their ServiceAccounts may do, and which namespaces may be watched.
func (b *builder) install() error {
	if len(b.deployments) == 0 {
		return nil // the ClusterServiceVersion has its own
	}
	spec := v1alpha1.StrategyDetailsDeployment{}
	var accounts []string
	for _, d := range b.deployments {
		spec.DeploymentSpecs = append(spec.DeploymentSpecs, v1alpha1.StrategyDeploymentSpec{Name: d.Name, Spec: b.withoutCertificates(d.Spec), Label: d.Labels})
		account := cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")
		if slices.Contains(accounts, account) {
			continue
		}
		accounts = append(accounts, account)
		inNamespace, everywhere, err := b.rules(account)
		if err != nil {
			return err
		}
		for _, given := range []struct {
			to    *[]v1alpha1.StrategyDeploymentPermissions
			rules []rbacv1.PolicyRule
		}{{&spec.Permissions, inNamespace}, {&spec.ClusterPermissions, everywhere}} {
			if len(given.rules) > 0 {
				*given.to = append(*given.to, v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account, Rules: given.rules})
			}
		}
	}
	b.csv.Spec.InstallStrategy = v1alpha1.NamedInstallStrategy{StrategyName: v1alpha1.InstallStrategyNameDeployment, StrategySpec: spec}
	if len(b.csv.Spec.InstallModes) == 0 {
		b.csv.Spec.InstallModes = installModes(spec.DeploymentSpecs)
	}
	return nil
}

// installModes returns which namespaces the operator can be told to watch: by the variable WATCH_NAMESPACE, which can be
// taken from what OLM says or be the operator's own namespace; without it the operator watches all.
func installModes(deployments []v1alpha1.StrategyDeploymentSpec) []v1alpha1.InstallMode {
	own, one, all := false, false, true
	for _, d := range deployments {
		for _, c := range d.Spec.Template.Spec.Containers {
			for _, e := range c.Env {
				if e.Name != "WATCH_NAMESPACE" || e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
					continue
				}
				own = true
				one = e.ValueFrom.FieldRef.FieldPath == targets
				all = one
			}
		}
	}
	return []v1alpha1.InstallMode{
		{Type: v1alpha1.InstallModeTypeOwnNamespace, Supported: own},
		{Type: v1alpha1.InstallModeTypeSingleNamespace, Supported: one},
		{Type: v1alpha1.InstallModeTypeMultiNamespace},
		{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: all},
	}
}

// rules returns what a ServiceAccount may do in its namespace and everywhere. The roles and bindings that say so are not in
// the bundle.
func (b *builder) rules(account string) (inNamespace, everywhere []rbacv1.PolicyRule, err error) {
	for _, u := range b.Objects {
		kind := u.GetKind()
		if kind == bundle.ServiceAccountKind && u.GetName() == account {
			b.taken[u] = ""
		}
		if kind != bundle.RoleBindingKind && kind != bundle.ClusterRoleBindingKind {
			continue
		}
		binding, err := into[rbacv1.ClusterRoleBinding](u) // a RoleBinding has the same fields
		if err != nil {
			return nil, nil, err
		}
		if !slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Kind == rbacv1.ServiceAccountKind && s.Name == account }) {
			continue
		}
		role := b.find(binding.RoleRef.Kind, binding.RoleRef.Name)
		if role == nil {
			b.taken[u] = foreignRole
			continue
		}
		r, err := into[rbacv1.ClusterRole](role)
		if err != nil {
			return nil, nil, err
		}
		b.taken[u], b.taken[role] = "", ""
		if kind == bundle.RoleBindingKind {
			inNamespace = append(inNamespace, r.Rules...)
		} else {
			everywhere = append(everywhere, r.Rules...)
		}
	}
	return inNamespace, everywhere, nil
}

func (b *builder) find(kind, name string) *unstructured.Unstructured {
	i := slices.IndexFunc(b.Objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == kind && u.GetName() == name })
	if i < 0 {
		return nil
	}
	return b.Objects[i]
}

// withoutCertificates returns a Deployment's spec without the volumes of Secrets that cert-manager would make: OLM mounts
// certificates of its own at controller-runtime's usual place.
func (b *builder) withoutCertificates(spec appsv1.DeploymentSpec) appsv1.DeploymentSpec {
	pod := &spec.Template.Spec
	var gone []string
	pod.Volumes = slices.DeleteFunc(slices.Clone(pod.Volumes), func(v corev1.Volume) bool {
		made := v.Secret != nil && slices.ContainsFunc(b.Objects, func(u *unstructured.Unstructured) bool {
			name, _, err := unstructured.NestedString(u.Object, "spec", "secretName")
			return err == nil && u.GetKind() == "Certificate" && name == v.Secret.SecretName
		})
		if made {
			gone = append(gone, v.Name)
		}
		return made
	})
	for i := range pod.Containers {
		c := &pod.Containers[i]
		c.VolumeMounts = slices.DeleteFunc(slices.Clone(c.VolumeMounts), func(m corev1.VolumeMount) bool { return slices.Contains(gone, m.Name) })
	}
	return spec
}

// describe fills in the operator's kinds and the samples.
func (b *builder) describe() error {
	kinds := &b.csv.Spec.CustomResourceDefinitions
	for _, one := range owned(b.crds) {
		owns := func(d v1alpha1.CRDDescription) bool { return d.Name == one.Name && d.Version == one.Version }
		requires := func(d v1alpha1.CRDDescription) bool { return d.Name == one.Name }
		if !slices.ContainsFunc(kinds.Owned, owns) && !slices.ContainsFunc(kinds.Required, requires) {
			kinds.Owned = append(kinds.Owned, one)
		}
	}
	var among []*unstructured.Unstructured // config/manifests of operator-sdk has the samples, too
	for _, u := range b.Objects {
		if _, taken := b.taken[u]; !taken && ofKinds(u, b.crds) {
			b.taken[u] = ""
			among = append(among, u)
		}
	}
	if len(among) == 0 {
		among = b.Samples
	}
	text, err := examples(among, b.crds)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&b.csv.ObjectMeta, "alm-examples", text)
	for _, u := range b.Objects {
		if u.GetKind() == "Namespace" && len(b.deployments) > 0 && u.GetName() == b.deployments[0].Namespace {
			metav1.SetMetaDataAnnotation(&b.csv.ObjectMeta, SuggestedNamespace, u.GetName())
		}
	}
	return nil
}

// rest decides on all other objects.
func (b *builder) rest() {
	for _, u := range b.Objects {
		reason, taken := b.taken[u]
		supported, _ := bundle.IsSupported(u.GetKind())
		switch {
		case taken:
		case u.GetKind() == "Namespace":
			reason = chosenByUser
		case !supported:
			reason = notOfBundles
		case u.GetKind() == bundle.RoleBindingKind || u.GetKind() == bundle.ClusterRoleBindingKind:
			reason = foreignSubject
		default:
			u = u.DeepCopy()
			u.SetNamespace("")
			b.others = append(b.others, u)
			continue
		}
		if reason != "" {
			b.leftOut = append(b.leftOut, LeftOut{u.GetKind(), u.GetName(), reason})
		}
	}
}

// files writes all that is in the bundle.
func (b *builder) files() (map[string][]byte, error) {
	files := map[string][]byte{}
	add := func(name string, o any) error {
		raw, err := yaml.Marshal(o)
		if err == nil && files[name] != nil {
			err = fmt.Errorf("two objects are called %s", name)
		}
		files[name] = raw
		return err
	}
	err := add("manifests/"+b.Package+".clusterserviceversion.yaml", b.csv)
	for _, u := range b.others {
		name := strings.ReplaceAll(u.GetName(), ":", "-") + "_" + strings.ToLower(u.GetKind())
		if u.GetKind() == bundle.CRDKind {
			plural, group, _ := strings.Cut(u.GetName(), ".")
			name = group + "_" + plural
		}
		err = errors.Join(err, add(path.Join("manifests", name+".yaml"), u.Object))
	}
	about, wrong := bundle.GenerateAnnotations(bundle.RegistryV1Type, bundle.ManifestsDir, bundle.MetadataDir, b.Package, strings.Join(b.Channels, ","), b.Channels[0])
	files[path.Join(bundle.MetadataDir, bundle.AnnotationsFile)] = about
	return files, errors.Join(err, wrong)
}

// Checked is a bundle that upstream's validators have read.
type Checked struct {
	// CSV is its ClusterServiceVersion; nil if it could not be read.
	CSV *v1alpha1.ClusterServiceVersion
	// Channels are those that it is in; the first one need not be the default channel.
	Channels []string
	// Wrong and Warnings are what the validators call errors and warnings.
	Wrong, Warnings []string
}

// Check has upstream's validators read the bundle in a directory.
func Check(dir string) Checked {
	b, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		return Checked{Wrong: []string{err.Error()}}
	}
	c := Checked{CSV: b.CSV, Channels: b.Channels}
	for _, result := range validation.DefaultBundleValidators.Validate(b.ObjectsToValidate()...) {
		for _, e := range result.Errors {
			c.Wrong = append(c.Wrong, said(e))
		}
		for _, e := range result.Warnings {
			c.Warnings = append(c.Warnings, said(e))
		}
	}
	return c
}

// said returns what a validator says: which field and which value it is about, as far as it tells, and what is wrong.
func said(e validationerrors.Error) string {
	var parts []string
	for _, part := range []any{e.Field, e.BadValue, e.Detail} {
		if text := fmt.Sprint(part); part != nil && text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ": ")
}

// Of returns a file-based catalog with nothing but the bundle in a directory, whose manifests are in it. With the name of an image
// OLM unpacks that instead.
func Of(dir, of string) (*declcfg.DeclarativeConfig, error) {
	in, err := registry.NewImageInput(image.SimpleReference(of), dir)
	if err != nil {
		return nil, err
	}
	b := in.Bundle
	objects, properties, err := registry.ObjectsAndPropertiesFromBundle(b)
	if err != nil {
		return nil, err
	}
	channel := in.Bundle.Annotations.DefaultChannelName
	if channel == "" && len(b.Channels) == 1 {
		channel = b.Channels[0]
	}
	entry := declcfg.ChannelEntry{Name: b.Name}
	var wrong [3]error
	entry.Replaces, wrong[0] = b.Replaces()
	entry.Skips, wrong[1] = b.Skips()
	entry.SkipRange, wrong[2] = b.SkipRange()
	all := &declcfg.DeclarativeConfig{
		Packages: []declcfg.Package{{Schema: declcfg.SchemaPackage, Name: b.Package, DefaultChannel: channel}},
		Bundles:  []declcfg.Bundle{{Schema: declcfg.SchemaBundle, Name: b.Name, Package: b.Package, Image: of, Properties: properties, Objects: objects}},
	}
	for _, name := range b.Channels {
		all.Channels = append(all.Channels, declcfg.Channel{Schema: declcfg.SchemaChannel, Name: name, Package: b.Package, Entries: []declcfg.ChannelEntry{entry}})
	}
	return all, errors.Join(wrong[:]...)
}
