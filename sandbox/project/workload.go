package project

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operator-lab/operator-lab/sandbox/images"
)

// workload is the operator's Deployment as it is read.
type workload struct {
	plan *Plan
	all  []*unstructured.Unstructured
	// name and namespace of the Deployment; namespace is not empty.
	name, namespace string
	template        corev1.PodTemplateSpec
	container       corev1.Container
	// dir has a directory for each volume.
	dir string
	// mounts maps paths in the container to private ones.
	mounts map[string]string
	// certificates are the directories with the certificates for webhooks.
	certificates []string
	// env are the variables that are known so far.
	env map[string]string
}

// planWorkload takes from the operator's Deployment how its program is to be run, and returns it; nil if there is none.
func (p *Project) planWorkload(plan *Plan, all []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	object, err := operatorOf(all)
	if err != nil {
		return nil, err
	}
	if object == nil {
		if len(all) > 0 && len(plan.Notes) == 0 && !p.Hooked { // metacontroller has a Deployment and an account of its own
			plan.note(p.unless(NoDeployment, NoDeploymentForeign))
		}
		return nil, nil
	}
	w := &workload{
		plan: plan, all: all, name: object.GetName(), namespace: object.GetNamespace(),
		dir: filepath.Join(p.options.WorkDir, "volumes"), mounts: map[string]string{}, env: map[string]string{},
	}
	if w.namespace == "" {
		w.namespace = plan.Namespace
	}
	if w.template, err = podTemplate(object); err != nil {
		return nil, problem("'kubectl apply --dry-run=server' says the same", "%s %s: %w", object.GetKind(), w.name, err)
	}
	containers := w.template.Spec.Containers
	if len(containers) == 0 {
		return nil, problem("give others with --manifests FILE", "%s %s has no containers", object.GetKind(), w.name)
	}
	w.container = Manager(containers)
	others := slices.DeleteFunc(slices.Clone(containers), func(c corev1.Container) bool { return c.Name == w.container.Name })
	for _, c := range slices.Concat(w.template.Spec.InitContainers, others) {
		plan.note(OtherContainer, c.Name, w.name, w.container.Name)
	}
	plan.leaveOut(object, "its program runs as a process of this machine, with its arguments, variables and ServiceAccount")
	plan.Namespace, plan.ServiceAccount = w.namespace, w.template.Spec.ServiceAccountName
	if plan.ServiceAccount == "" {
		plan.ServiceAccount = "default"
	}
	if err := w.volumes(); err != nil {
		return nil, err
	}
	w.variables()
	w.arguments()
	plan.ports = w.container.Ports
	return object, nil
}

// Manager returns the container with the operator's program, of one or more: the one called manager, else the first.
func Manager(containers []corev1.Container) corev1.Container {
	return containers[max(0, slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == "manager" }))]
}

// operatorOf returns the Deployment of the operator, else its StatefulSet; nil if there is none.
func operatorOf(all []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		var found []*unstructured.Unstructured
		for _, o := range all {
			if o.GetKind() == kind && o.GroupVersionKind().Group == "apps" {
				found = append(found, o)
			}
		}
		if len(found) > 1 {
			names := make([]string, len(found))
			for i, o := range found {
				names[i] = o.GetName()
			}
			found = slices.DeleteFunc(found, func(o *unstructured.Unstructured) bool { return !saysManager(o) })
			if len(found) != 1 {
				return nil, problem("name manifests with one of them: --manifests FILE",
					"the manifests have %d %ss, and none alone is called controller-manager: %s", len(names), kind, strings.Join(names, ", "))
			}
		}
		if len(found) == 1 {
			return found[0], nil
		}
	}
	return nil, nil
}

// saysManager reports whether the name or a label of an object says that it is the controller manager.
func saysManager(o *unstructured.Unstructured) bool {
	for _, text := range append(slices.Collect(maps.Values(o.GetLabels())), o.GetName()) {
		if strings.Contains(text, "controller-manager") {
			return true
		}
	}
	return false
}

// podTemplate reads the template of a Deployment or StatefulSet.
func podTemplate(o *unstructured.Unstructured) (corev1.PodTemplateSpec, error) {
	if o.GetKind() == "StatefulSet" {
		var s appsv1.StatefulSet
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &s)
		return s.Spec.Template, err
	}
	var d appsv1.Deployment
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d)
	return d.Spec.Template, err
}

// object finds an object that the pod refers to.
func (w *workload) object(kind, name string) *unstructured.Unstructured {
	for _, o := range w.all {
		if o.GetKind() == kind && o.GetName() == name && (o.GetNamespace() == w.namespace || o.GetNamespace() == "") {
			return o
		}
	}
	return nil
}

// content returns the data of a ConfigMap or Secret of the manifests.
func (w *workload) content(kind, name string) (data map[string][]byte, found bool) {
	o := w.object(kind, name)
	if o == nil {
		return nil, false
	}
	data = map[string][]byte{}
	var texts map[string]string
	var err error
	if kind == "Secret" {
		var s corev1.Secret
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &s)
		maps.Copy(data, s.Data)
		texts = s.StringData
	} else {
		var c corev1.ConfigMap
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &c)
		maps.Copy(data, c.BinaryData)
		texts = c.Data
	}
	for key, text := range texts {
		data[key] = []byte(text)
	}
	if err != nil {
		w.plan.note(Unreadable, kind, name, err)
	}
	return data, err == nil
}

// field returns what a fieldRef stands for.
func (w *workload) field(fieldPath string) (value string, found bool) {
	for prefix, of := range map[string]map[string]string{"metadata.labels": w.template.Labels, "metadata.annotations": w.template.Annotations} {
		if key, found := strings.CutPrefix(fieldPath, prefix+"['"); found {
			return of[strings.TrimSuffix(key, "']")], true
		}
	}
	value, found = map[string]string{
		"metadata.name":           w.name + "-0",
		"metadata.namespace":      w.namespace,
		"metadata.uid":            "00000000-0000-4000-8000-000000000001",
		"spec.nodeName":           "localhost",
		"spec.serviceAccountName": w.plan.ServiceAccount,
		"status.hostIP":           "127.0.0.1",
		"status.hostIPs":          "127.0.0.1",
		"status.podIP":            "127.0.0.1",
		"status.podIPs":           "127.0.0.1",
	}[fieldPath]
	return value, found
}

// resource returns what a resourceFieldRef stands for.
func (w *workload) resource(ref *corev1.ResourceFieldSelector) (value string, found bool) {
	list := w.container.Resources.Limits
	name, of := strings.CutPrefix(ref.Resource, "limits.")
	if !of {
		list = w.container.Resources.Requests
		name = strings.TrimPrefix(ref.Resource, "requests.")
	}
	quantity, found := list[corev1.ResourceName(name)]
	divisor := max(1, ref.Divisor.MilliValue())
	if ref.Divisor.IsZero() {
		divisor = 1000
	}
	return strconv.FormatInt((quantity.MilliValue()+divisor-1)/divisor, 10), found
}

// known returns the value of a variable that is known so far.
func (w *workload) known(name string) (value string, found bool) {
	value, found = w.env[name]
	return value, found
}

// variables fills in the environment.
func (w *workload) variables() {
	for _, from := range w.container.EnvFrom {
		kind, name := "ConfigMap", ""
		switch {
		case from.ConfigMapRef != nil:
			name = from.ConfigMapRef.Name
		case from.SecretRef != nil:
			kind, name = "Secret", from.SecretRef.Name
		default:
			continue
		}
		data, found := w.content(kind, name)
		if !found {
			w.plan.note(NoVariables, kind, name)
		}
		for key, value := range data {
			w.env[from.Prefix+key] = string(value)
		}
	}
	for _, e := range w.container.Env {
		if value, found := w.value(e); found {
			w.env[e.Name] = value
		}
	}
	for name, value := range w.env {
		w.plan.setEnv(name, images.ReplacePaths(value, w.mounts))
	}
}

// value returns the value of a variable.
func (w *workload) value(e corev1.EnvVar) (value string, found bool) {
	from, optional := e.ValueFrom, false
	key := func(kind, name, key string, maybe *bool) (string, bool) {
		data, _ := w.content(kind, name)
		value, found := data[key]
		optional = maybe != nil && *maybe
		return string(value), found
	}
	switch {
	case from == nil:
		return images.Expand(e.Value, w.known), true
	case from.FieldRef != nil:
		value, found = w.field(from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		value, found = w.resource(from.ResourceFieldRef)
	case from.ConfigMapKeyRef != nil:
		value, found = key("ConfigMap", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional)
	case from.SecretKeyRef != nil:
		value, found = key("Secret", from.SecretKeyRef.Name, from.SecretKeyRef.Key, from.SecretKeyRef.Optional)
	}
	if !found && !optional {
		w.plan.note(NoVariable, e.Name)
	}
	return value, found
}

// arguments fills in the arguments. The first word of the command is the program.
func (w *workload) arguments() {
	command := w.container.Command
	if len(command) > 0 {
		if slices.Contains([]string{"sh", "bash", "ash"}, path.Base(command[0])) {
			w.plan.note(ShellCommand)
			return
		}
		command = command[1:]
	}
	for _, arg := range slices.Concat(command, w.container.Args) {
		w.plan.Args = append(w.plan.Args, images.ReplacePaths(images.Expand(arg, w.known), w.mounts))
	}
}

// volumes writes what is mounted into private directories.
func (w *workload) volumes() error {
	known := map[string]bool{}
	if err := os.RemoveAll(filepath.Join(w.dir, "tmp.")); err != nil { // no volume has such a name
		return err
	}
	for _, v := range w.template.Spec.Volumes {
		dir := filepath.Join(w.dir, v.Name)
		if filepath.Base(dir) != v.Name {
			continue // the API server refuses such a name
		}
		known[v.Name] = true
		if v.PersistentVolumeClaim == nil { // the content of a claim outlives the pod
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := w.fill(dir, v.VolumeSource); err != nil {
			return err
		}
	}
	for _, m := range w.container.VolumeMounts {
		mount := path.Clean(m.MountPath)
		if !known[m.Name] || !path.IsAbs(mount) || mount == "/" {
			continue
		}
		dir := filepath.Join(w.dir, m.Name)
		if filepath.IsLocal(m.SubPath) {
			dir = filepath.Join(dir, filepath.FromSlash(m.SubPath))
		}
		w.mounts[mount] = dir
		found, err := w.findable(m, mount)
		if err != nil {
			return err
		}
		if found && slices.Contains(w.certificates, dir) {
			w.plan.servesWebhooks = true
		}
	}
	return nil
}

// findable reports whether the program finds what is mounted at a path: an argument or a variable names it, or it is below
// the directory for temporary files, which becomes a private one. It notes files that it does not find.
func (w *workload) findable(m corev1.VolumeMount, mount string) (bool, error) {
	texts := slices.Concat(w.container.Command, w.container.Args)
	for _, e := range w.container.Env {
		texts = append(texts, e.Value)
	}
	if slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, mount) }) {
		return true, nil
	}
	if below, is := strings.CutPrefix(mount, "/tmp/"); is {
		temp := filepath.Join(w.dir, "tmp.")
		at := filepath.Join(temp, filepath.FromSlash(below))
		w.env["TMPDIR"] = temp
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return false, err
		}
		return true, os.Symlink(w.mounts[mount], at)
	}
	for _, v := range w.template.Spec.Volumes {
		if v.Name == m.Name && (v.ConfigMap != nil || v.Secret != nil || v.Projected != nil) {
			w.plan.note(HiddenVolume, m.Name, mount, w.mounts[mount])
		}
	}
	return false, nil
}

// fill writes the content of a volume.
func (w *workload) fill(dir string, v corev1.VolumeSource) error {
	switch {
	case v.ConfigMap != nil:
		return w.fillFrom(dir, "ConfigMap", v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	case v.Secret != nil:
		return w.fillFrom(dir, "Secret", v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
	case v.DownwardAPI != nil:
		return w.fillFields(dir, v.DownwardAPI.Items)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			var err error
			switch {
			case s.ConfigMap != nil:
				err = w.fillFrom(dir, "ConfigMap", s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional)
			case s.Secret != nil:
				err = w.fillFrom(dir, "Secret", s.Secret.Name, s.Secret.Items, s.Secret.Optional)
			case s.DownwardAPI != nil:
				err = w.fillFields(dir, s.DownwardAPI.Items)
			case s.ServiceAccountToken != nil:
				w.plan.note(NoToken, s.ServiceAccountToken.Path)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// fillFields writes the files of a downward API volume.
func (w *workload) fillFields(dir string, items []corev1.DownwardAPIVolumeFile) error {
	for _, item := range items {
		value, found := "", false
		if item.FieldRef != nil {
			value, found = w.field(item.FieldRef.FieldPath)
		} else if item.ResourceFieldRef != nil {
			value, found = w.resource(item.ResourceFieldRef)
		}
		if !found {
			continue
		}
		if err := writeVolumeFile(dir, item.Path, []byte(value)); err != nil {
			return err
		}
	}
	return nil
}

// fillFrom writes the files of a ConfigMap or Secret. The Secrets that cert-manager would make hold the lab's
// certificates.
func (w *workload) fillFrom(dir, kind, name string, items []corev1.KeyToPath, optional *bool) error {
	data, found := w.content(kind, name)
	if !found && kind == "Secret" && w.isCertificate(name) {
		data, found = map[string][]byte{}, true
		w.certificates = append(w.certificates, dir)
		for _, file := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, "ca.crt"} {
			raw, err := os.ReadFile(filepath.Join(w.plan.CertDir, file))
			if err != nil {
				return err
			}
			data[file] = raw
		}
	}
	if !found && (optional == nil || !*optional) {
		w.plan.note(NothingToMount, kind, name)
	}
	for key, content := range data {
		to := key
		if len(items) > 0 {
			i := slices.IndexFunc(items, func(item corev1.KeyToPath) bool { return item.Key == key })
			if i < 0 {
				continue
			}
			to = items[i].Path
		}
		if err := writeVolumeFile(dir, to, content); err != nil {
			return err
		}
	}
	return nil
}

// isCertificate reports whether a Secret is one that cert-manager makes.
func (w *workload) isCertificate(secret string) bool {
	return slices.ContainsFunc(w.all, func(o *unstructured.Unstructured) bool {
		name, _, err := unstructured.NestedString(o.Object, "spec", "secretName")
		return err == nil && name == secret && o.GetKind() == "Certificate"
	}) || strings.Contains(secret, "cert")
}

// writeVolumeFile writes a file of a volume. A path that leads out of it is one that the API server refuses.
func writeVolumeFile(dir, name string, content []byte) error {
	if !filepath.IsLocal(name) {
		return problem("a path in a volume is relative and has no '..'", "a volume cannot have a file %q", name)
	}
	return writeChanged(filepath.Join(dir, filepath.FromSlash(name)), content)
}
