package project_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// names returns kind, namespace and name of objects.
func names(objects []*unstructured.Unstructured) []string {
	out := make([]string, len(objects))
	for i, o := range objects {
		out[i] = strings.ReplaceAll(o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName(), " /", " ")
		if kind := o.GetKind(); kind == "ConfigMap" || kind == "Secret" { // their names end with a hash
			out[i] = out[i][:strings.LastIndex(out[i], "-")]
		}
	}
	return out
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestPlanKubebuilder(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	p := find(t, project.Options{Dir: toy(t, "kubebuilder"), WorkDir: work})
	got := plan(t, p)

	want(t, "sources", got.Sources, []string{"config/default"})
	want(t, "namespace and account", []string{got.Namespace, got.ServiceAccount}, []string{"toy-system", "toy-controller-manager"})
	want(t, "objects", names(got.Objects), []string{
		"Namespace toy-system", "CustomResourceDefinition toys.example.com", "CustomResourceDefinition plains.example.com",
		"CustomResourceDefinition certificates.cert-manager.io", "ServiceAccount toy-system/toy-controller-manager", "ClusterRole toy-manager-role", "ClusterRoleBinding toy-manager-rolebinding",
		"ConfigMap toy-system/toy-settings", "Secret toy-system/toy-token",
	})
	want(t, "webhooks", names(got.Webhooks), []string{"CustomResourceDefinition toys.example.com", "ValidatingWebhookConfiguration toy-validating"})
	var left []string
	for _, l := range got.LeftOut {
		left = append(left, l.Kind+" "+l.Name)
		if l.Reason == "" {
			t.Errorf("%s %s is left out without a reason", l.Kind, l.Name)
		}
	}
	slices.Sort(left)
	want(t, "left out", left, []string{
		"Certificate toy-serving", "Deployment toy-controller-manager", "Issuer toy-selfsigned", "NetworkPolicy toy-allow",
		"Service toy-metrics", "Service toy-webhook-service", "ServiceMonitor toy-metrics",
	})

	volume := func(name string) string { return filepath.Join(work, "volumes", filepath.FromSlash(name)) }
	want(t, "args", got.Args, []string{
		"--from-command", "--leader-elect", "--color=red", "--literal=$(COLOR)-$(UNKNOWN)",
		"--config=" + volume("settings/mode") + ",/etc/toy/settings-not", "--data=" + volume("data"), "--one=" + volume("settings/color"),
		"--webhook-cert-path=" + volume("webhook-certs"),
	})
	want(t, "env", got.Env, []string{
		"BOTH=toy-system/toy-controller-manager-0", "COLOR=red", "CPUS=2", "MEBIBYTES=64", "POD_IP=127.0.0.1", "POD_NAME=toy-controller-manager-0",
		"POD_NAMESPACE=toy-system", "SETTINGS=file:///etc/toy/settings/color", "TIER=first", "TOKEN=secret", "WATCH_NAMESPACE=toy-system",
	})
	want(t, "mounted", []string{
		read(t, volume("settings/mode")), read(t, volume("hidden/below/secret")), read(t, volume("hidden/namespace")), read(t, volume("webhook-certs/tls.crt")),
	}, []string{"quiet", "secret", "toy-system", read(t, filepath.Join(got.CertDir, "tls.crt"))})

	var files []string
	for _, s := range got.Samples {
		if s.Namespace != "toy-system" {
			t.Errorf("%s goes to the namespace %q, which is not watched", s.File, s.Namespace)
		}
		files = append(files, s.File+": "+strings.Join(names(s.Objects), ", "))
	}
	want(t, "samples", files, []string{"config/samples/second.yaml: Toy second", "config/samples/first.yaml: Toy first, Toy listed"})
	wantNotes(t, got, "config/samples/broken.yaml: document 1: ", "variable ABSENT is not set", "watch the namespace toy-system only", "container proxy", "volume hidden is not at /etc/hidden",
		"kind Certificate of cert-manager.io exists without its controller")
}

// wantNotes checks that the notes have texts, and no others.
func wantNotes(t *testing.T, p *project.Plan, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !slices.ContainsFunc(p.Notes, func(n project.Note) bool { return strings.Contains(n.Text(trace.English), text) }) {
			t.Errorf("no note says %q: %q", text, p.Notes)
		}
	}
	if len(p.Notes) != len(texts) {
		t.Errorf("%d notes, not %d: %q", len(p.Notes), len(texts), p.Notes)
	}
}

func TestPointWebhooks(t *testing.T) {
	t.Parallel()
	got := plan(t, find(t, project.Options{Dir: toy(t, "kubebuilder")}))
	if o := got.Objects[1]; o.GetName() != "toys.example.com" || o.Object["spec"].(map[string]any)["conversion"] != nil {
		t.Errorf("%s has its conversion before the program serves it", o.GetName())
	}
	pointed := project.PointWebhooks(got.Webhooks, 4321, got.CA)
	ca := base64.StdEncoding.EncodeToString(got.CA)
	conversion, _, err := unstructured.NestedMap(pointed[0].Object, "spec", "conversion", "webhook", "clientConfig")
	if err != nil {
		t.Fatal(err)
	}
	want(t, "conversion", conversion, map[string]any{"url": "https://127.0.0.1:4321/convert", "caBundle": ca})
	webhooks := pointed[1].Object["webhooks"].([]any)
	want(t, "validation", webhooks[0].(map[string]any)["clientConfig"], any(map[string]any{"url": "https://127.0.0.1:4321/validate-toy", "caBundle": ca}))
	want(t, "elsewhere", webhooks[1].(map[string]any)["clientConfig"], any(map[string]any{"url": "https://example.com/validate"}))
	if got.Webhooks[1].Object["webhooks"].([]any)[0].(map[string]any)["clientConfig"].(map[string]any)["service"] == nil {
		t.Error("the plan itself was changed")
	}
}

// TestPlanInPod checks that an operator in a pod gets all that the cluster can hold, and what cert-manager would make.
func TestPlanInPod(t *testing.T) {
	t.Parallel()
	got, err := project.PlanInPod([]string{filepath.Join(toy(t, "kubebuilder"), "config", "default")})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "objects", names(got.Objects), []string{
		"Namespace toy-system", "CustomResourceDefinition toys.example.com", "CustomResourceDefinition plains.example.com",
		"CustomResourceDefinition certificates.cert-manager.io", "ServiceAccount toy-system/toy-controller-manager", "ClusterRole toy-manager-role", "ClusterRoleBinding toy-manager-rolebinding",
		"ConfigMap toy-system/toy-settings", "Secret toy-system/toy-token", "Secret toy-system/webhook-server",
		"Deployment toy-system/toy-controller-manager", "ValidatingWebhookConfiguration toy-validating",
		"Service toy-system/toy-webhook-service", "NetworkPolicy toy-system/toy-allow", "Service toy-system/toy-metrics",
	})
	var left []string
	for _, l := range got.LeftOut {
		left = append(left, l.Kind+" "+l.Name+": "+l.Reason)
	}
	slices.Sort(left)
	want(t, "left out", left, []string{
		"Certificate toy-serving: the lab makes the certificates", "Issuer toy-selfsigned: the lab makes the certificates",
		"ServiceMonitor toy-metrics: there is no Prometheus here that would read it",
	})
	wantNotes(t, got, "kind Certificate of cert-manager.io exists without its controller")
	service := types.NamespacedName{Namespace: "toy-system", Name: "toy-webhook-service"}
	want(t, "Services of webhooks", got.WebhookServices(), []types.NamespacedName{service, service})

	data := map[string][]byte{}
	for name, text := range got.Objects[9].Object["data"].(map[string]any) {
		if data[name], err = base64.StdEncoding.DecodeString(text.(string)); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	config := got.Objects[11].Object["webhooks"].([]any)[0].(map[string]any)["clientConfig"].(map[string]any)
	ca, err := base64.StdEncoding.DecodeString(config["caBundle"].(string))
	if err != nil || config["service"] == nil {
		t.Errorf("the webhook is at %v: %v", config, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "toy-webhook-service.toy-system.svc"}); err != nil {
		t.Error(err)
	}
	if conversion, _, _ := unstructured.NestedMap(got.Objects[1].Object, "spec", "conversion", "webhook", "clientConfig"); conversion["caBundle"] != nil {
		t.Errorf("an authority is put where no annotation asks for it: %v", conversion)
	}
}

func TestMakeCertificates(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "certificates")
	ca, err := project.MakeCertificates(dir)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("the authority is no PEM")
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

// TestPlanWithout shows what is said of projects that lack manifests, samples, or both.
func TestPlanWithout(t *testing.T) {
	t.Parallel()
	dir := unpack(t, "kubebuilder")
	writeModule(t, dir, "example.com/toy")
	work := t.TempDir()
	remove := func(names ...string) {
		for _, name := range names {
			if err := os.RemoveAll(filepath.Join(dir, "config", filepath.FromSlash(name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	look := func() *project.Plan { return plan(t, find(t, project.Options{Dir: dir, WorkDir: work})) }

	remove("default", "samples/kustomization.yaml")
	got := look()
	want(t, "sources", got.Sources, []string{"config/crd"})
	want(t, "objects", names(got.Objects), []string{"CustomResourceDefinition toys.example.com", "CustomResourceDefinition plains.example.com"})
	want(t, "run", []string{got.Namespace, got.ServiceAccount, strings.Join(got.Args, " ")}, []string{"default", "", ""})
	want(t, "samples", got.Samples[1].File, "config/samples/second.yaml")
	wantNotes(t, got, "there is no config/default", "config/samples/broken.yaml")

	remove("crd/kustomization.yaml", "samples")
	got = look()
	want(t, "sources", got.Sources, []string{"config/crd/bases"})
	want(t, "objects", names(got.Objects), []string{"CustomResourceDefinition plains.example.com", "CustomResourceDefinition toys.example.com"})
	wantNotes(t, got, "there is no config/default", "there is no config/samples")

	remove("crd")
	got = look()
	want(t, "how much there is", []int{len(got.Objects), len(got.Webhooks), len(got.Samples), len(got.Env), len(got.Args)}, []int{0, 0, 0, 0, 0})
	wantNotes(t, got, "no manifests were found", "no samples were found")
	if hint := got.Notes[0].Hint(trace.English) + got.Notes[1].Hint(trace.English); !strings.Contains(hint, "--manifests") || !strings.Contains(hint, "--apply") {
		t.Errorf("hints: %q", hint)
	}
}

// deployment is a manifest.
func deployment(name, more string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `, namespace: there}
spec: {template: {spec: {containers: [{name: only, command: [sh, -c, run]}]` + more + "}}}\n---\n"
}

func TestGivenManifests(t *testing.T) {
	t.Parallel()
	dir, given := toy(t, "kubebuilder"), t.TempDir()
	file := func(name, content string) string {
		write(t, filepath.Join(given, name), []byte(content))
		return filepath.Join(given, name)
	}
	look := func(manifests ...string) (*project.Plan, error) {
		p := find(t, project.Options{Dir: dir, Manifests: manifests, Samples: []string{file("sample.json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s-1"}}`)}})
		return p.Plan(t.Context())
	}

	got, err := look(file("all/one.yaml", deployment("first", "")+deployment("the-controller-manager", ", serviceAccountName: me")), file("sample.json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s-1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "objects", names(got.Objects), []string{"Namespace there", "ConfigMap s", "Deployment there/first"})
	want(t, "run", []string{got.Namespace, got.ServiceAccount}, []string{"there", "me"})
	want(t, "samples", names(got.Samples[0].Objects), []string{"ConfigMap s"})
	wantNotes(t, got, "by a shell", "namespace there is made")

	got, err = look(filepath.Join(dir, "config", "manager", "kustomization.yaml"))
	if err != nil || got.Namespace != "system" {
		t.Errorf("%+v %v", got, err)
	}

	for name, c := range map[string]struct{ manifests, hint, text string }{
		"missing":         {filepath.Join(given, "missing"), "YAML or JSON", "no such file"},
		"two":             {file("two.yaml", deployment("first", "")+deployment("second", "")), "--manifests", "2 Deployments, and none alone is called controller-manager: first, second"},
		"empty directory": {filepath.Dir(filepath.Dir(file("a/b/c.yaml", ""))), "below it are not read", "has no YAML"},
		"not YAML":        {file("wrong.yaml", "a: [\n"), "kubectl apply", "wrong.yaml: document 1: "},
		"no kind":         {file("none.yaml", "---\n---\na: b\n"), "kubectl apply", "apiVersion and kind"},
		"no containers":   {file("no.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: bare}\n"), "--manifests", "Deployment bare has no containers"},
		"wrong type":      {file("type.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: bare}\nspec: {template: 1}\n"), "dry-run", "Deployment bare: "},
		"a way out":       {file("out.yaml", deployment("d", ", volumes: [{name: v, downwardAPI: {items: [{path: ../x, fieldRef: {fieldPath: metadata.name}}]}}]")), "relative", "../x"},
		"no resource":     {filepath.Dir(file("k/kustomization.yaml", "resources: [missing.yaml]\n")), "make manifests", "cannot be rendered"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := look(c.manifests)
			wantProblem(t, err, c.hint, c.text)
		})
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	dir := unpack(t, "two")
	writeModule(t, dir, "example.com/toy")
	file := filepath.Join(dir, project.ConfigName)
	write(t, filepath.Join(dir, "deploy", "all.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c-1}\n"))
	write(t, file, []byte("main: cmd/two\ntags: [special]\nargs: [--fixed]\nenv: {A: 1, B: two}\nmanifests: [deploy]\nsamples: [deploy/all.yaml]\nnodes: 3\nimages: images.yaml\n"))
	unchanged(t, dir)
	p := find(t, project.Options{Dir: dir})
	want(t, "found", []string{p.MainPath, p.Config}, []string{"example.com/toy/cmd/two", file})
	got := plan(t, p)
	want(t, "run", [][]string{got.Args, got.Env, got.Sources, names(got.Objects), {got.Samples[0].File}}, [][]string{
		{"--fixed"}, {"A=1", "B=two"}, {"deploy"}, {"ConfigMap c"}, {"deploy/all.yaml"},
	})
	if p.Nodes == nil || *p.Nodes != 3 || p.Images != filepath.Join(dir, "images.yaml") {
		t.Errorf("nodes and images: %+v", p)
	}
	_, err := p.WriteConfig(got, project.Config{})
	wantProblem(t, err, "move it away", "lab.yaml is there already")
	if p = find(t, project.Options{Dir: dir, Main: "cmd/one"}); p.MainPath != "example.com/toy/cmd/one" {
		t.Errorf("the option does not win: %+v", p)
	}
}

// TestWriteConfig checks that a project is found by the file that was written as it was without it.
func TestWriteConfig(t *testing.T) {
	t.Parallel()
	dir := unpack(t, "kubebuilder")
	writeModule(t, dir, "example.com/toy")
	p := find(t, project.Options{Dir: dir})
	before := plan(t, p)
	two := 2
	file, err := p.WriteConfig(before, project.Config{Env: map[string]string{"A": "b"}, Nodes: &two, Images: filepath.Join(dir, "images.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	content := read(t, file)
	for _, line := range []string{"main: ", "manifests:\n    - config/default\n", "samples:\n    - config/samples\n", "nodes: 2\n", "images: images.yaml\n", "    A: b\n"} {
		if !strings.Contains(content, line) {
			t.Errorf("it lacks %q:\n%s", line, content)
		}
	}
	again := find(t, project.Options{Dir: dir})
	after := plan(t, again)
	want(t, "main", []string{again.MainPath, again.Config}, []string{p.MainPath, file})
	want(t, "objects", names(after.Objects), names(before.Objects))
	want(t, "arguments", len(after.Args), len(before.Args))
	want(t, "samples", len(after.Samples), len(before.Samples))
}

// TestServesWebhooks checks what a program without taps needs to serve its webhooks: certificates where it looks for them,
// and a port.
func TestServesWebhooks(t *testing.T) {
	t.Parallel()
	const others = `---
apiVersion: v1
kind: Service
metadata: {name: hooks, namespace: there}
spec: {ports: [{port: 443, targetPort: hook}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: v}
webhooks: [{name: a.example.com, clientConfig: {service: {name: hooks, namespace: there, path: /v}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: there}
spec:
  template:
    spec:
      containers:
      - name: manager
        args: [ARGS]
        ports: [{name: hook, containerPort: 9444}]
        volumeMounts: [{name: certs, mountPath: MOUNT}]
      volumes: [{name: certs, secret: {secretName: webhook-server-cert}}]
`
	for name, c := range map[string]struct {
		mount, args string
		found       bool
		notes       []string
	}{
		"the directory for temporary files": {"/tmp/k8s-webhook-server/serving-certs", "", true, []string{"namespace there"}},
		"named by an argument":              {"/certs", "--webhook-cert-path=/certs", true, []string{"namespace there"}},
		"not found":                         {"/certs", "", false, []string{"namespace there", "volume certs is not at /certs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "all.yaml")
			write(t, file, []byte(strings.NewReplacer("MOUNT", c.mount, "ARGS", c.args).Replace(others)))
			p, err := project.Program("prog", project.Options{WorkDir: t.TempDir(), Manifests: []string{file}})
			if err != nil {
				t.Fatal(err)
			}
			got := plan(t, p)
			wantNotes(t, got, c.notes...)
			if got.WebhookPort != 9444 || got.ServesWebhooks(false, nil) != c.found || !got.ServesWebhooks(true, nil) {
				t.Errorf("port %d, found %v", got.WebhookPort, got.ServesWebhooks(false, nil))
			}
			if !got.ServesWebhooks(false, []string{"--certs=" + got.CertDir}) {
				t.Error("an argument with the directory of the certificates does not count")
			}
			dir := filepath.Join(p.Root, "nowhere")
			for _, given := range slices.Concat(got.Args, got.Env) {
				if _, value, _ := strings.Cut(given, "="); strings.HasPrefix(given, "TMPDIR=") {
					dir = filepath.Join(value, "k8s-webhook-server", "serving-certs")
				} else {
					dir = value
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "tls.crt")); (err == nil) != c.found {
				t.Errorf("the certificate in %s: %v", dir, err)
			}
		})
	}
}

// TestNotes checks that every note has its texts in both languages.
func TestNotes(t *testing.T) {
	t.Parallel()
	for _, kind := range []project.NoteKind{
		project.NoDefault, project.NoDefaultForeign, project.NoManifests, project.NoDeployment, project.NoDeploymentForeign, project.NoSamples, project.WrongSample, project.NamespaceMade,
		project.StubKind, project.OtherContainer, project.Unreadable, project.NoVariables, project.NoVariable, project.ShellCommand,
		project.HiddenVolume, project.NoToken, project.NothingToMount, project.WebhooksWithout, project.OneNamespace, project.ClusterLacks, project.ClusterWebhooks, project.ClusterAccount,
		project.ClusterNoAccount, project.ClusterNoToken, project.ClusterDeployed,
	} {
		n := project.Note{Kind: kind, Values: []any{"one", "two", "three"}}
		for _, language := range []trace.Language{trace.English, trace.Japanese} {
			if text := n.Text(language) + n.Hint(language); n.Text(language) == "" || strings.Contains(text, "%!") {
				t.Errorf("%s in %s: %q", kind, language, text)
			}
			if (n.Hint(language) == "") != (n.Hint(trace.English) == "") {
				t.Errorf("%s: a hint in one language only", kind)
			}
		}
	}
}
