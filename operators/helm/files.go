package helm

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/pkg/version"
	"sigs.k8s.io/yaml"
)

// Project describes an operator that is to be made of a chart.
type Project struct {
	// Name is the operator's name, such as tomcat-operator: a DNS label of at most 40 characters.
	Name string
	// Kind is whose objects become releases.
	Kind schema.GroupVersionKind
	// Chart is the path of the chart: a directory, or an archive.
	Chart string
	// InPlace lets watches.yaml name the chart where it is, by an absolute path in Chart. Default: the project has a copy.
	InPlace bool
}

// LongestRelease is the length of the longest name that Helm gives a release. An operator of [Files] names it as the object.
const LongestRelease = 53

// ParseKind returns the kind of an apiVersion, such as apache.org/v1alpha1, and a name, such as Tomcat.
func ParseKind(apiVersion, kind string) (schema.GroupVersionKind, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	switch {
	case err != nil || gv.Group == "" || gv.Version == "":
		return schema.GroupVersionKind{}, fmt.Errorf("%q is no group and version, such as example.com/v1alpha1", apiVersion)
	case len(validation.IsDNS1123Subdomain(gv.Group)) > 0 || !strings.Contains(gv.Group, "."):
		return schema.GroupVersionKind{}, fmt.Errorf("%q is no group: it is a domain such as example.com", gv.Group)
	case !versionName.MatchString(gv.Version):
		return schema.GroupVersionKind{}, fmt.Errorf("%q is no version, such as v1alpha1", gv.Version)
	case !kindName.MatchString(kind):
		return schema.GroupVersionKind{}, fmt.Errorf("%q is no kind: it is up to 40 letters and digits, such as Tomcat, a capital first", kind)
	}
	return gv.WithKind(kind), nil
}

var (
	versionName = regexp.MustCompile(`\Av[0-9]+((alpha|beta)[0-9]+)?\z`)
	kindName    = regexp.MustCompile(`\A[A-Z][A-Za-z0-9]{0,39}\z`)
)

// Files returns the files of an operator's project by their slash-separated paths: watches.yaml, the chart, the kind's
// definition with a schema of its values, what the operator may do by what the chart renders, and a sample with the
// chart's values.
func Files(p Project) (map[string][]byte, error) {
	c, err := LoadChart(p.Chart)
	if err != nil {
		return nil, err
	}
	f := &files{Project: p, chart: c, of: map[string][]byte{}}
	plural, singular := meta.UnsafeGuessKindToResource(p.Kind)
	f.plural, f.singular = plural.Resource, singular.Resource
	at := p.Chart
	if !p.InPlace {
		at = "helm-charts/" + c.Name()
		for _, file := range c.Raw {
			f.of[path.Join(at, file.Name)] = file.Data
		}
	}
	f.yaml(WatchesFile, []map[string]any{{"group": p.Kind.Group, "version": p.Kind.Version, "kind": p.Kind.Kind, "chart": at}})
	if err := f.definition(); err != nil {
		return nil, err
	}
	rules, err := f.rules()
	if err != nil {
		return nil, err
	}
	if err := f.sample(); err != nil {
		return nil, err
	}
	f.deployment(rules)
	f.of["README.md"] = []byte(f.readme())
	return f.of, nil
}

// LoadChart loads a chart with Helm, and says what is wrong with it in one line.
func LoadChart(at string) (*chart.Chart, error) {
	c, err := loader.Load(at)
	if err != nil {
		return nil, fmt.Errorf("chart %s cannot be loaded: %s", at, firstLine(err))
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("chart %s: %s", at, firstLine(err))
	}
	return c, nil
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// Rendered is an object that a chart renders.
type Rendered struct {
	schema.GroupVersionKind
	// Name is its name, Namespace the namespace that it names.
	Name, Namespace string
}

// capabilities returns Helm's for a chart that is rendered without a cluster, with the version of Kubernetes that this program
// is built with if it knows that: Helm's own is 1.20.
func capabilities() *chartutil.Capabilities {
	c := chartutil.DefaultCapabilities.Copy()
	if v, err := chartutil.ParseKubeVersion(version.Get().GitVersion); err == nil {
		c.KubeVersion = *v
	}
	return c
}

// Execute returns the files that the templates of a chart make with the given values, by their names, as the first release of a name in
// the namespace default, without notes and partial templates. Templates that look up objects of a cluster find none.
func Execute(c *chart.Chart, name string, values map[string]any) (map[string]string, error) {
	able := capabilities()
	if needs := c.Metadata.KubeVersion; needs != "" && !chartutil.IsCompatibleRange(needs, able.KubeVersion.Version) {
		return nil, fmt.Errorf("chart %s needs Kubernetes %s, and this is %s", c.Name(), needs, able.KubeVersion.Version)
	}
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return nil, fmt.Errorf("chart %s: %s", c.Name(), firstLine(err))
	}
	release := chartutil.ReleaseOptions{Name: name, Namespace: "default", Revision: 1, IsInstall: true}
	given, err := chartutil.ToRenderValues(c, values, release, able)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %s", c.Name(), strings.Join(strings.Fields(err.Error()), " "))
	}
	texts, err := engine.Render(c, given)
	if err != nil {
		return nil, fmt.Errorf("chart %s cannot be rendered: %s", c.Name(), firstLine(err))
	}
	maps.DeleteFunc(texts, func(name, _ string) bool {
		base := path.Base(name)
		return base == "NOTES.txt" || strings.HasPrefix(base, "_")
	})
	return texts, nil
}

// Render renders a chart with its own values, as the release of an object with the given name, and returns the objects.
func Render(c *chart.Chart, name string) ([]Rendered, error) {
	texts, err := Execute(c, name, map[string]any{})
	if err != nil {
		return nil, err
	}
	var all []Rendered
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		documents := releaseutil.SplitManifests(texts[file])
		for _, key := range slices.Sorted(maps.Keys(documents)) {
			var o struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				Metadata   struct {
					Name, Namespace string
				} `json:"metadata"`
			}
			if err := yaml.Unmarshal([]byte(documents[key]), &o); err != nil {
				return nil, fmt.Errorf("chart %s: %s is no YAML once it is rendered: %s", c.Name(), file, firstLine(err))
			}
			if o.Kind != "" {
				all = append(all, Rendered{schema.FromAPIVersionAndKind(o.APIVersion, o.Kind), o.Metadata.Name, o.Metadata.Namespace})
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("chart %s renders no object with its own values", c.Name())
	}
	return all, nil
}

// files are those of a project.
type files struct {
	Project

	chart            *chart.Chart
	plural, singular string
	of               map[string][]byte
}

// yaml adds a file with one document for each value.
func (f *files) yaml(name string, documents ...any) {
	texts := make([][]byte, len(documents))
	for i, d := range documents {
		raw, err := yaml.Marshal(d)
		if err != nil {
			panic(err) // maps, lists and texts of this package, and schemas
		}
		texts[i] = raw
	}
	f.of[name] = bytes.Join(texts, []byte("---\n"))
}

// object begins an object.
func object(apiVersion, kind, name string, more map[string]any) map[string]any {
	o := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
	maps.Copy(o, more)
	return o
}

const rbacVersion = "rbac.authorization.k8s.io/v1"

type rule = map[string]any

// rules are what the operator may do: with its kind, with releases, which Helm keeps in Secrets, and with what the chart
// renders.
func (f *files) rules() ([]rule, error) {
	all, err := Render(f.chart, f.singular+"-sample")
	if err != nil {
		return nil, err
	}
	every := []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	rules := []rule{
		{"apiGroups": []string{f.Kind.Group}, "resources": []string{f.plural}, "verbs": []string{"get", "list", "patch", "update", "watch"}},
		{"apiGroups": []string{f.Kind.Group}, "resources": []string{f.plural + "/finalizers", f.plural + "/status"}, "verbs": []string{"get", "patch", "update"}},
		{"apiGroups": []string{"", "events.k8s.io"}, "resources": []string{"events"}, "verbs": []string{"create", "patch"}},
	}
	kinds := map[string]map[string]bool{"": {"secrets": true}}
	for _, o := range all {
		resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind)
		if kinds[o.Group] == nil {
			kinds[o.Group] = map[string]bool{}
		}
		kinds[o.Group][resource.Resource] = true
	}
	for _, group := range slices.Sorted(maps.Keys(kinds)) {
		verbs := every
		if group == "rbac.authorization.k8s.io" { // it may give more than it has
			verbs = slices.Concat([]string{"bind"}, every[:2], []string{"escalate"}, every[2:])
		}
		rules = append(rules, rule{"apiGroups": []string{group}, "resources": slices.Sorted(maps.Keys(kinds[group])), "verbs": verbs})
	}
	return rules, nil
}

// definition adds the definition of the kind.
func (f *files) definition() error {
	spec, err := specSchema(f.chart.Schema)
	if err != nil {
		return fmt.Errorf("chart %s: %w", f.chart.Name(), err)
	}
	name := f.plural + "." + f.Kind.Group
	whole := apiextensionsv1.JSONSchemaProps{
		Type:        "object",
		Description: fmt.Sprintf("%s is a release of the chart %s.", f.Kind.Kind, f.chart.Name()),
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"apiVersion": {Type: "string"},
			"kind":       {Type: "string"},
			"metadata":   {Type: "object"},
			"spec":       spec,
			"status":     anything("What Helm made of it: conditions, and the release with its manifest."),
		},
		// Of a longer one Helm would take neither the installation nor the end, so that its finalizer would stay for ever.
		XValidations: apiextensionsv1.ValidationRules{{
			Rule:    fmt.Sprintf("size(self.metadata.name) <= %d", LongestRelease),
			Message: fmt.Sprintf("its release has the same name, and Helm takes at most %d characters", LongestRelease),
		}},
	}
	f.yaml("config/crd/bases/"+f.Kind.Group+"_"+f.plural+".yaml", object("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, map[string]any{
		"spec": map[string]any{
			"group": f.Kind.Group,
			"names": map[string]any{"kind": f.Kind.Kind, "listKind": f.Kind.Kind + "List", "plural": f.plural, "singular": f.singular},
			"scope": "Namespaced",
			"versions": []any{map[string]any{
				"name": f.Kind.Version, "served": true, "storage": true,
				"schema":       map[string]any{"openAPIV3Schema": whole},
				"subresources": map[string]any{"status": map[string]any{}},
			}},
		},
	}))
	f.yaml("config/crd/kustomization.yaml", map[string]any{"resources": []string{"bases/" + f.Kind.Group + "_" + f.plural + ".yaml"}})
	return nil
}

// sample adds an object with the chart's values, as they are written there, comments included.
func (f *files) sample() error {
	spec := " {}\n"
	for _, file := range f.chart.Raw {
		if file.Name != chartutil.ValuesfileName {
			continue
		}
		var lines strings.Builder
		for line := range strings.Lines(string(file.Data)) {
			if strings.TrimSpace(line) != "" {
				line = "  " + line
			}
			lines.WriteString(line)
		}
		if len(f.chart.Values) > 0 {
			spec = "\n" + lines.String()
		}
	}
	name := f.singular + "-sample"
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\nspec:%s", f.Kind.GroupVersion(), f.Kind.Kind, name, spec)
	var read struct{ Spec map[string]any }
	if err := yaml.Unmarshal([]byte(text), &read); err != nil || len(read.Spec) != len(f.chart.Values) {
		// A document that is more than a map of values: without its comments.
		raw, err := yaml.Marshal(object(f.Kind.GroupVersion().String(), f.Kind.Kind, name, map[string]any{"spec": f.chart.Values}))
		if err != nil {
			return err
		}
		text = string(raw)
	}
	f.of["config/samples/"+f.singular+".yaml"] = []byte(text)
	return nil
}

// deployment adds how the operator runs in a cluster, and as whom.
func (f *files) deployment(rules []rule) {
	namespace := f.Name + "-system"
	subject := []any{map[string]any{"kind": "ServiceAccount", "name": f.Name, "namespace": namespace}}
	account := object("v1", "ServiceAccount", f.Name, nil)
	binding := object(rbacVersion, "ClusterRoleBinding", f.Name, map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f.Name},
		"subjects": subject,
	})
	role := object(rbacVersion, "ClusterRole", f.Name, map[string]any{"rules": rules})
	f.yaml("config/rbac/role.yaml", role)
	f.yaml("config/rbac/account.yaml", account, binding)
	labels := map[string]any{"app.kubernetes.io/name": f.Name}
	f.yaml("config/default/deployment.yaml", object("v1", "Namespace", namespace, nil), object("apps/v1", "Deployment", f.Name, map[string]any{
		"spec": map[string]any{
			"replicas": 1,
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{
					"serviceAccountName": f.Name,
					"containers":         []any{map[string]any{"name": "manager", "image": f.Name}},
				},
			},
		},
	}))
	f.yaml("config/default/kustomization.yaml", map[string]any{
		"namespace": namespace,
		"resources": []string{"deployment.yaml", "../crd", "../rbac/account.yaml", "../rbac/role.yaml"},
	})
}

func (f *files) readme() string {
	return fmt.Sprintf(`# %[1]s

A Helm operator: each %[2]s is a release of the chart %[3]s. Its spec are the release's values, its name is the release's
name, of at most %[4]d characters.

`+"```sh"+`
operator-lab run . --apply      # a sandbox with the operator and the sample in it; shows each turn of the loop
operator-lab run . --dry-run    # what is applied, and what the operator may do
`+"```"+`

| where | what |
|---|---|
| `+"`watches.yaml`"+` | which chart is for which kind, in the format of helm-operator-plugins |
| `+"`config/crd`"+` | the kind; its schema is from the chart's values.schema.json, if it has one |
| `+"`config/rbac/role.yaml`"+` | what the operator may do: what the chart renders with its own values needs it. Add what other values render |
| `+"`config/samples`"+` | an object with the chart's values |

On a cluster of your own the operator is a program of helm-operator-plugins with watches.yaml and the chart beside it. Build
such an image, name it in `+"`config/default/deployment.yaml`"+`, and `+"`kubectl apply -k config/default`"+`.
`, f.Name, f.Kind.Kind, f.chart.Name(), LongestRelease)
}
