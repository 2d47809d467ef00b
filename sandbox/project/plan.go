package project

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operator-lab/operator-lab/sandbox"
)

// Plan is what is to be applied for an operator, and how its program is to be run.
type Plan struct {
	// Sources are the directories and files that the objects are from, relative to the project's root.
	Sources []string
	// Namespace and ServiceAccount are those of the operator's pod. Without a Deployment they are "default" and empty.
	Namespace, ServiceAccount string
	// Args and Env, of the form NAME=value, are those of the manager's container. Paths of mounted volumes are replaced by
	// private directories.
	Args, Env []string
	// Watched is the only namespace that the operator is told to watch; empty if it is told none, or several.
	Watched string
	// Objects are to be applied in this order before the program starts. A namespaced one without a namespace belongs into
	// Namespace. Of a CRD with a conversion webhook this is the one without.
	Objects []*unstructured.Unstructured
	// Webhooks are to be applied once the program serves them, as [PointWebhooks] returns them: configurations of
	// admission webhooks, and CRDs with a conversion webhook.
	Webhooks []*unstructured.Unstructured
	// CertDir has tls.crt, tls.key and ca.crt for the program's webhooks, and CA is the content of ca.crt.
	CertDir string
	CA      []byte
	// WebhookPort is where a program without the taps serves its webhooks, as the manifests say.
	WebhookPort int
	// LeftOut are the objects that are not applied.
	LeftOut []LeftOut
	// Samples are the objects to try the operator with.
	Samples []Sample
	// Notes say what is missing or differs from a pod.
	Notes []Note

	// inPod says that the manifests make the operator's pod. servesWebhooks says that the program finds the certificates where the
	// Deployment mounts them. ports are its ports.
	inPod, servesWebhooks bool
	ports                 []corev1.ContainerPort
}

// ServesWebhooks reports whether a program serves the webhooks of the plan with the lab's certificates, given whether it has
// the taps, and the arguments and variables that it is given besides those of the plan.
func (plan *Plan) ServesWebhooks(tapped bool, more []string) bool {
	says := func(text string) bool { return strings.Contains(text, plan.CertDir) }
	return len(plan.Webhooks) > 0 &&
		(tapped || plan.servesWebhooks || slices.ContainsFunc(slices.Concat(more, plan.Args, plan.Env), says))
}

// LeftOut is an object that is not applied, and why.
type LeftOut struct {
	// Kind, Namespace and Name of the object; Namespace may be empty.
	Kind, Namespace, Name string
	// Reason has no full stop.
	Reason string
}

// Sample is a file with objects to try the operator with.
type Sample struct {
	// File is relative to the project's root.
	File string
	// Objects are in the order of the file, as they are there; the API server may refuse them.
	Objects []*unstructured.Unstructured
	// Namespace is that of objects that name none. Default: default.
	Namespace string
	// again reads the file once more; nil if that is no file.
	again func() file
}

// Plan reads the manifests and the samples. What the program finds at the paths of mounted volumes is written to the
// private directory.
func (p *Project) Plan(ctx context.Context) (*Plan, error) {
	plan := &Plan{Namespace: "default"}
	all, err := p.manifests(plan)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	plan.CertDir = filepath.Join(p.options.WorkDir, "certificates")
	if p.ca == nil { // the program that runs has those of the first plan
		if p.ca, err = MakeCertificates(plan.CertDir); err != nil {
			return nil, err
		}
	}
	plan.CA = p.ca
	deployment, err := p.planWorkload(plan, all)
	if err != nil {
		return nil, err
	}
	if p.config.Args != nil {
		plan.Args = slices.Clone(p.config.Args)
	}
	for name, value := range p.config.Env {
		plan.setEnv(name, value)
	}
	slices.Sort(plan.Env)
	plan.Watched = plan.onlyNamespace()
	for _, o := range all {
		if o != deployment {
			plan.add(o)
		}
	}
	plan.WebhookPort = plan.webhookPort(all)
	if !p.options.Foreign {
		plan.addStubs(all)
	}
	plan.arrange(p.options.Foreign)
	p.planSamples(plan)
	return plan, nil
}

// PlanInPod reads manifests that make the operator's pod. All objects are applied but those of kinds that the cluster does not have;
// what cert-manager would make of them is made.
func PlanInPod(paths []string) (*Plan, error) {
	all, err := ReadManifests(paths)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Namespace: "default", inPod: true}
	for _, o := range all {
		plan.add(o)
	}
	if err := plan.issue(all); err != nil {
		return nil, err
	}
	plan.addStubs(all)
	plan.arrange(false)
	return plan, nil
}

// arrange puts the objects into the order in which they are applied, and adds namespaces that are missing, which it notes unless the
// cluster is the user's: there it is told if they are missing.
func (plan *Plan) arrange(foreign bool) {
	slices.SortStableFunc(plan.Objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(rank(a), rank(b)) })
	for _, name := range plan.addNamespaces() {
		if !foreign {
			plan.note(NamespaceMade, name)
		}
	}
}

// onlyNamespace returns the namespace in the variable WATCH_NAMESPACE, by which operators are told which they watch, and notes
// it; empty if there is none, or several.
func (plan *Plan) onlyNamespace() string {
	for _, e := range plan.Env {
		if namespace, is := strings.CutPrefix(e, "WATCH_NAMESPACE="); is && namespace != "" && !strings.Contains(namespace, ",") {
			plan.note(OneNamespace, namespace)
			return namespace
		}
	}
	return ""
}

// manifests returns all objects that the project is deployed with.
func (p *Project) manifests(plan *Plan) ([]*unstructured.Unstructured, error) {
	if given := p.options.Manifests; len(given) > 0 {
		for _, name := range given {
			plan.Sources = append(plan.Sources, p.below(absolute(name)))
		}
		return p.reader().read(given)
	}
	for _, place := range []struct {
		name     string
		rendered bool
	}{{"config/default", true}, {"config/crd", true}, {"config/crd/bases", false}, {"config/crd", false}} {
		dir, found := p.directory(place.name)
		if !found {
			continue
		}
		if _, is := kustomization(dir); is != place.rendered || !is && len(p.files().dir(dir)) == 0 {
			continue
		}
		plan.Sources = []string{p.below(dir)}
		if place.name != "config/default" {
			plan.note(p.unless(NoDefault, NoDefaultForeign))
		}
		return p.reader().read([]string{dir})
	}
	plan.note(NoManifests)
	return nil, nil
}

// manifestDirs are the directories whose manifests are applied again when they change: those of a Go operator, without its samples.
func (p *Project) manifestDirs() []string {
	if p.Module == "" || p.IsRead() || p.Hooked || p.options.Foreign { // nothing is applied to a cluster of the user's
		return nil
	}
	roots := p.options.Manifests
	if len(roots) == 0 {
		if dir, found := p.directory("config"); found {
			roots = []string{dir}
		}
	}
	samples := p.samplePaths()
	var dirs []string
	for _, root := range roots {
		if fileExists(root) {
			dirs = append(dirs, absolute(filepath.Dir(root)))
			continue
		}
		_ = filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error { // one may be missing
			if err == nil && d.IsDir() {
				if dir != root && strings.HasPrefix(d.Name(), ".") || slices.ContainsFunc(samples, func(of string) bool { return within(absolute(of), absolute(dir)) }) {
					return fs.SkipDir
				}
				dirs = append(dirs, absolute(dir))
			}
			return nil
		})
	}
	return dirs
}

// directory finds a directory of the project: below the one the user named, or below the module's root.
func (p *Project) directory(name string) (string, bool) {
	for _, from := range []string{p.options.Dir, p.Root} {
		dir := filepath.Join(from, filepath.FromSlash(name))
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, true
		}
	}
	return "", false
}

func absolute(name string) string {
	full, err := filepath.Abs(name)
	if err != nil { // there is no working directory
		return name
	}
	return full
}

// setEnv sets a variable, also where the manifests set it to something else.
func (plan *Plan) setEnv(name, value string) {
	plan.Env = slices.DeleteFunc(plan.Env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	plan.Env = append(plan.Env, name+"="+value)
}

// order is the order to apply kinds in. The others come last.
var order = []string{"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap", "Secret"}

func rank(o *unstructured.Unstructured) int {
	if i := slices.Index(order, o.GetKind()); i >= 0 {
		return i
	}
	return len(order)
}

// leftOut says of kinds why they are not applied. An empty kind is for all of the group; inPods says that an operator in a pod does
// without them, too.
var leftOut = []struct {
	group, kind string
	inPods      bool
	reason      string
}{
	{"", "Service", false, "the operator is a process of this machine: nothing would answer behind it"},
	{"", "Endpoints", false, "the operator is a process of this machine"},
	{"discovery.k8s.io", "", false, "the operator is a process of this machine"},
	{"apiregistration.k8s.io", "", false, "an aggregated API would need the operator's Service"},
	{"networking.k8s.io", "NetworkPolicy", false, "the operator has no pod that it would be for"},
	{"networking.k8s.io", "Ingress", false, "the operator has no pod that it would be for"},
	{"policy", "PodDisruptionBudget", false, "the operator has no pod that it would be for"},
	{"autoscaling", "", false, "the operator has no pod that it would be for"},
	{"monitoring.coreos.com", "", true, "there is no Prometheus here that would read it"},
	{certManager, "", true, "the lab makes the certificates"},
	{"gateway.networking.k8s.io", "", true, "there is no Gateway API here"},
}

// add puts an object where it belongs.
func (plan *Plan) add(o *unstructured.Unstructured) {
	gvk := o.GroupVersionKind()
	if hook := o.GetAnnotations()["helm.sh/hook"]; hook != "" {
		plan.leaveOut(o, "it is a hook of Helm's: "+hook)
		return
	}
	for _, l := range leftOut {
		if gvk.Group == l.group && (l.kind == "" || l.kind == gvk.Kind) && (l.inPods || !plan.inPod) {
			plan.leaveOut(o, l.reason)
			return
		}
	}
	switch {
	case plan.inPod:
		plan.Objects = append(plan.Objects, o)
	case gvk.Group == "admissionregistration.k8s.io" && strings.HasSuffix(gvk.Kind, "WebhookConfiguration"):
		plan.Webhooks = append(plan.Webhooks, o)
	case hasConversion(o):
		plan.Webhooks = append(plan.Webhooks, o)
		without := o.DeepCopy()
		unstructured.RemoveNestedField(without.Object, "spec", "conversion")
		plan.Objects = append(plan.Objects, without)
	default:
		plan.Objects = append(plan.Objects, o)
	}
}

func (plan *Plan) leaveOut(o *unstructured.Unstructured, reason string) {
	plan.LeftOut = append(plan.LeftOut, LeftOut{o.GetKind(), o.GetNamespace(), o.GetName(), reason})
}

// unless returns a kind of note, or the one for a cluster of the user's, where a program without a ServiceAccount has their
// permissions.
func (p *Project) unless(kind, foreign NoteKind) NoteKind {
	if p.options.Foreign {
		return foreign
	}
	return kind
}

// addNamespaces adds the namespaces that objects are in and that neither the manifests nor every cluster have, and returns
// their names.
func (plan *Plan) addNamespaces() (added []string) {
	has := map[string]bool{"": true, "default": true, "kube-system": true, "kube-public": true, "kube-node-lease": true}
	for _, o := range plan.Objects {
		if o.GetKind() == "Namespace" {
			has[o.GetName()] = true
		}
	}
	used := []string{plan.Namespace}
	for _, o := range plan.Objects {
		used = append(used, o.GetNamespace())
	}
	for _, name := range used {
		if has[name] {
			continue
		}
		has[name] = true
		ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
		plan.Objects = slices.Insert(plan.Objects, 0, ns)
		added = append(added, name)
	}
	return added
}

// samplePaths returns where the samples are.
func (p *Project) samplePaths() []string {
	if len(p.options.Samples) > 0 {
		return p.options.Samples
	}
	if dir, found := p.directory("config/samples"); found {
		return []string{dir}
	}
	return nil
}

// planSamples reads the samples. A file that cannot be read is noted.
func (p *Project) planSamples(plan *Plan) {
	paths := p.samplePaths()
	if len(paths) == 0 && p.Module != "" { // a program that is not built has none
		plan.note(NoSamples)
	}
	for _, name := range paths {
		for _, f := range p.files().samples(absolute(name)) {
			if f.wrong != nil {
				plan.note(WrongSample, f.wrong)
			} else if len(f.objects) > 0 {
				plan.Samples = append(plan.Samples, Sample{File: f.name, Objects: f.objects, Namespace: plan.Watched, again: f.again})
			}
		}
	}
}

// problem is an error about manifests.
func problem(hint, format string, args ...any) error {
	return &sandbox.Problem{Err: fmt.Errorf(format, args...), Hint: hint}
}
