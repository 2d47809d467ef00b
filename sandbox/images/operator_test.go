package images_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/sandbox/images"
)

const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// withToken gives a container the volume of a service account.
func withToken(t *testing.T, in *images.Container) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"token", "ca.crt", "namespace"} {
		write(t, filepath.Join(dir, name), name)
	}
	in.APIServer = "https://127.0.0.1:6443"
	in.Mounts = append(in.Mounts, images.Mount{ContainerPath: tokenPath, HostPath: dir, ReadOnly: true})
	return dir
}

// TestAnOperatorIsNamedByItsImage checks that a bundled operator needs no image of its own in the catalogue.
func TestAnOperatorIsNamedByItsImage(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"quay.io/operator-lab/cafe-operator:v1":       "operator cafe --kubeconfig FILE\n",
		"quay.io/operator-lab/cafe-operator":          "operator cafe --kubeconfig FILE --leader-elect\n",
		"quay.io/operator-lab/tomcat-operator:v9":     "operator tomcat --kubeconfig FILE --variant=hardened\n",
		"quay.io/operator-lab/reporting-operator:tag": "operator metering --kubeconfig FILE --variant=hardened\n",
	} {
		c, _ := catalogue(t, "")
		in, log := container(t, image)
		withToken(t, in)
		if strings.Contains(want, "elect") {
			in.Args = []string{"--leader-elect"}
		}
		r := start(t, c, in)
		log.Await(t, "ready")
		if want = strings.Replace(want, "FILE", filepath.Join(in.Dir, "kubeconfig"), 1); !strings.Contains(log.String(), want) {
			t.Errorf("%s: it does not say %q:\n%s", image, want, log)
		}
		r.Signal(syscall.SIGTERM)
		<-r.Done()
	}
}

func TestAnOperatorIsThePodsServiceAccount(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "")
	in, log := container(t, "quay.io/daein/maintpage-operator:v0.0.1")
	dir := withToken(t, in)
	in.Command = []string{"maintpage-operator"}
	in.Env = []string{"WATCH_NAMESPACE=ns", "OPERATOR_NAME=maintpage-operator"}
	r := start(t, c, in)
	log.Await(t, "ready")
	file := filepath.Join(in.Dir, "kubeconfig")
	for _, want := range []string{
		"args: operator-lab operator maintpage --kubeconfig " + file + " --variant=classic\n",
		"env: WATCH_NAMESPACE=ns\n", "env: OPERATOR_NAME=maintpage-operator\n", "env: POD_NAMESPACE=ns\n", "env: HOME=" + in.Dir + "\n", "env: TMPDIR=" + in.Dir + "\n",
		"is the bundled operator maintpage, a process of this machine, as the pod's service account",
		`not used, since it is a file of the real image: command "maintpage-operator"`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, log)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := yaml.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "lab",
		"clusters": []any{map[string]any{"name": "lab", "cluster": map[string]any{
			"server": "https://127.0.0.1:6443", "certificate-authority": filepath.Join(dir, "ca.crt"),
		}}},
		"users": []any{map[string]any{"name": "lab", "user": map[string]any{"tokenFile": filepath.Join(dir, "token")}}},
		"contexts": []any{map[string]any{"name": "lab", "context": map[string]any{
			"cluster": "lab", "user": "lab", "namespace": "ns",
		}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	r.Signal(syscall.SIGTERM)
	if code := exit(t, r); code != 0 {
		t.Errorf("it exits with %d", code)
	}
}

func TestThePodsArgumentsOfAnOperator(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "")
	for _, x := range []struct {
		image         string
		command, args []string
		ports         []int
		want, ignored string
	}{
		{image: "kaitoy/zundoko-operator", want: "zundoko --variant=classic"},
		{image: "kaitoy/zundoko-operator:hardened", want: "zundoko --variant=hardened"},
		{image: "quay.io/daein/maintpage-operator:hardened", want: "maintpage --variant=hardened"},
		{
			image: "kaitoy/zundoko-operator", args: []string{"--variant=hardened", "--leader-elect"}, ports: []int{8080, 8081},
			want: "zundoko --variant=classic --variant=hardened --leader-elect --metrics-bind-address=127.0.0.1:38080 --health-probe-bind-address=127.0.0.1:38081",
		},
		{
			image: "kaitoy/zundoko-operator", args: []string{"-namespace", "x", "--metrics-bind-address=:9090", "--health-probe-bind-address", "0"},
			ports: []int{8080, 8081},
			want:  "zundoko --variant=classic --namespace=x --metrics-bind-address=127.0.0.1:39090 --health-probe-bind-address=0",
		},
		{
			image: "kaitoy/zundoko-operator", command: []string{"/manager", "--seed=8"},
			args: []string{"-v", "2", "--metrics-addr=:8080", "--kubeconfig=/etc/passwd", "--enable", "--leader-elect", "word"},
			want: "zundoko --variant=classic --seed=8 --leader-elect", ignored: "-v 2 --metrics-addr=:8080 --kubeconfig=/etc/passwd --enable word",
		},
	} {
		in, log := container(t, x.image)
		withToken(t, in)
		in.Command, in.Args, in.Ports = x.command, x.args, x.ports
		r := start(t, c, in)
		log.Await(t, "ready")
		name, rest, _ := strings.Cut(x.want, " ")
		want := "args: operator-lab operator " + name + " --kubeconfig " + filepath.Join(in.Dir, "kubeconfig") + " " + rest + "\n"
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q: it does not say\n%s%s", x.args, want, log)
		}
		if x.ignored != "" && !strings.Contains(log.String(), "does not know it: "+x.ignored+"\n") {
			t.Errorf("%q: it does not say that %s is ignored:\n%s", x.args, x.ignored, log)
		}
		r.Signal(syscall.SIGKILL)
		if code := exit(t, r); code != 137 {
			t.Errorf("it exits with %d", code)
		}
	}
}

func TestAnOperatorWithoutATokenSaysSo(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "images: [{name: app, command: [sh, -c, 'test ! -e $KUBECONFIG']}]")
	for want, change := range map[string]func(*images.Container){
		"the operator cannot run: the pod has no service account token: automountServiceAccountToken is false": func(*images.Container) {},
		"the operator cannot run: there is no API server that a process of this node can reach": func(in *images.Container) {
			withToken(t, in)
			in.APIServer = ""
		},
		"ca.crt: no such file or directory": func(in *images.Container) {
			if err := os.Remove(filepath.Join(withToken(t, in), "ca.crt")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		in, log := container(t, "quay.io/daein/maintpage-operator:v0.0.1")
		change(in)
		if code := exit(t, start(t, c, in)); code != 1 || !strings.Contains(log.String(), want) {
			t.Errorf("it exits with %d, want %q:\n%s", code, want, log)
		}
	}
	// A command of the person's runs without one; it is nobody.
	in, _ := container(t, "app")
	if code := exit(t, start(t, c, in)); code != 0 {
		t.Errorf("it exits with %d", code)
	}
}
