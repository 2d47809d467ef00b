package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

func TestLeadingName(t *testing.T) {
	for _, test := range []struct {
		line, name, rest string
		wrong            bool
	}{
		{line: "", name: "default"},
		{line: "get pods", name: "default", rest: "get pods"},
		{line: "--name demo get pods", name: "demo", rest: "get pods"},
		{line: "--name=demo get pods", name: "demo", rest: "get pods"},
		{line: "get pods --name demo", name: "default", rest: "get pods --name demo"},
		{line: "--name", wrong: true},
	} {
		t.Run(test.line, func(t *testing.T) {
			name, rest, err := leadingName(strings.Fields(test.line))
			if (err != nil) != test.wrong {
				t.Fatalf("got error %v", err)
			}
			if name != test.name || strings.Join(rest, " ") != test.rest {
				t.Errorf("got %q and %q, want %q and %q", name, rest, test.name, test.rest)
			}
		})
	}
}

// testCommandLine parses flags of the test command.
func testCommandLine(t *testing.T, line string) (*testFlags, *cobra.Command) {
	t.Helper()
	var f testFlags
	cmd := &cobra.Command{}
	f.bind(cmd)
	if err := cmd.ParseFlags(strings.Fields(line)); err != nil {
		t.Fatal(err)
	}
	return &f, cmd
}

func TestCommandLineToRunAgain(t *testing.T) {
	for line, want := range map[string]string{
		"":                                "operator-lab test --failed --seed=7",
		"--seed 1 --failed --test-dir a":  "operator-lab test --failed --seed=7",
		"--quiet --parallel 2":            "operator-lab test --failed --parallel=2 --quiet --seed=7",
		"--set a=1 --set b=2":             "operator-lab test --failed --set=a=1 --set=b=2 --seed=7",
		"--github=false --namespace a&b":  "operator-lab test --failed --github=false --namespace='a&b' --seed=7",
		"--kube-token secret --variant c": "operator-lab test --failed --kube-token=… --variant=c --seed=7",
	} {
		t.Run(line, func(t *testing.T) {
			f, cmd := testCommandLine(t, line)
			if got := f.again(cmd.Flags(), 7); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestClusterFlags(t *testing.T) {
	for _, test := range []struct {
		flag  string
		want  format.Clusters
		wrong bool
	}{
		{flag: "other=a.kubeconfig", want: format.Clusters{"other": {Kubeconfig: "a.kubeconfig"}}},
		{flag: "other=a.kubeconfig:b", want: format.Clusters{"other": {Kubeconfig: "a.kubeconfig", Context: "b"}}},
		{flag: "other", wrong: true},
		{flag: "=a.kubeconfig", wrong: true},
		{flag: "other=", wrong: true},
		{flag: "other=a:b:c", wrong: true},
	} {
		t.Run(test.flag, func(t *testing.T) {
			f, _ := testCommandLine(t, "--cluster "+test.flag)
			var c format.ConfigurationSpec
			if err := f.addClusters(&c); (err != nil) != test.wrong {
				t.Fatalf("got error %v", err)
			}
			if diff := cmp.Diff(test.want, c.Clusters); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSpecOf checks that an operator gets its own parameters that were given, and no defaults.
func TestSpecOf(t *testing.T) {
	op, found := operators.Find("zundoko")
	if !found {
		t.Fatal("there is no zundoko")
	}
	cmd := runOneCommand(streams{}, op)
	if err := cmd.ParseFlags([]string{"--variant", "classic", "--song", "Doko", "--interval", "20ms", "--plain"}); err != nil {
		t.Fatal(err)
	}
	spec := specOf(op, cmd.Flags())
	if spec.Variant != "classic" {
		t.Errorf("got variant %q", spec.Variant)
	}
	if diff := cmp.Diff(map[string]string{"song": "Doko"}, spec.Parameters); diff != "" {
		t.Error(diff)
	}
}

func TestNodeFlags(t *testing.T) {
	for f, valid := range map[nodeFlags]bool{
		{}: true, {nodes: sandbox.MaxNodes}: true, {nodes: sandbox.MaxNodes + 1}: false, {nodes: -1}: false,
		{fake: true}: false, {fake: true, nodes: sandbox.MaxFakeNodes}: true, {fake: true, nodes: sandbox.MaxFakeNodes + 1}: false,
		{fake: true, nodes: 1, olm: true}: false,
	} {
		if err := f.check(); (err == nil) != valid {
			t.Errorf("%+v: got error %v", f, err)
		}
		if title := f.titled("cafe"); strings.HasSuffix(title, "fake nodes") != f.fake {
			t.Errorf("%+v: its runs are called %s", f, title)
		}
	}
}

func TestLanguage(t *testing.T) {
	for _, test := range []struct {
		name, flag, lcAll, lang string
		want                    trace.Language
	}{
		{"nothing says it", "", "", "", trace.English},
		{"the locale", "", "", "ja_JP.UTF-8", trace.Japanese},
		{"LC_ALL over LANG", "", "C", "ja_JP.UTF-8", trace.English},
		{"the flag over all", "ja", "en_US.UTF-8", "C", trace.Japanese},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("LC_ALL", test.lcAll)
			t.Setenv("LC_MESSAGES", "")
			t.Setenv("LANG", test.lang)
			f := lookFlags{lang: test.flag}
			if got := f.language(); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestClientEndpoint(t *testing.T) {
	service := func(ip, port string, number int32) *corev1.Service {
		s := &corev1.Service{}
		s.Namespace, s.Name = "kv", "example"
		s.Spec.ClusterIP = ip
		s.Spec.Ports = []corev1.ServicePort{{Name: port, Port: number}}
		return s
	}
	for _, test := range []struct {
		name    string
		service *corev1.Service
		want    string
	}{
		{"the usual port", service("10.0.0.1", "", 2379), "http://example.kv.svc:2379"},
		{"a port named client", service("10.0.0.1", "client", 80), "http://example.kv.svc:80"},
		{"for members", service("10.0.0.1", "peer", 2380), ""},
		{"without an address", service(corev1.ClusterIPNone, "client", 2379), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, is := clientEndpoint(test.service); got != test.want || is != (test.want != "") {
				t.Errorf("got %q, %v, want %q", got, is, test.want)
			}
		})
	}
}

// TestLogs checks what is printed of the logs of a sandbox, whether it runs or not.
func TestLogs(t *testing.T) {
	dir := t.TempDir()
	var files []logFile
	for program, text := range map[string]string{"etcd": "one\ntwo\nthree\n"} {
		path := filepath.Join(dir, program+".log")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, logFile{program, path})
	}
	gone := logFile{"kubelet", filepath.Join(dir, "kubelet.log")}
	for _, test := range []struct {
		name  string
		files []logFile
		tail  int
		want  string
	}{
		{"all of it", files, -1, "one\ntwo\nthree\n"},
		{"the last line", files, 1, "three\n"},
		{"nothing of it", files, 0, ""},
		{"of several, with names", append(files, gone), 1, fmt.Sprintf("%-24s| three\n", "etcd")},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			if err := printLogs(t.Context(), &out, test.files, test.tail, false); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestJournalsKept checks that the oldest journals go, so that there is room for one more.
func TestJournalsKept(t *testing.T) {
	t.Setenv("OPERATOR_LAB_STATE_DIR", t.TempDir())
	dir, err := journalsDir()
	if err != nil {
		t.Fatal(err)
	}
	for i := range journalsKept + 5 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.jsonl", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := journalsDir(); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(left) != journalsKept-1 {
		t.Errorf("%d are left, want %d (%v)", len(left), journalsKept-1, err)
	}
}

func TestProblemsOf(t *testing.T) {
	one, two := format.Problem{File: "a.yaml", Line: 1, Message: "one"}, format.Problem{File: "b.yaml", Message: "two"}
	for _, test := range []struct {
		name string
		err  error
		want []format.Problem
	}{
		{"nothing", nil, nil},
		{"of another kind", errors.New("other"), nil},
		{"one", fmt.Errorf("read: %w", one), []format.Problem{one}},
		{"several", errors.Join(one, format.Problems{two}), []format.Problem{one, two}},
		{"with another kind", errors.Join(one, errors.New("other")), []format.Problem{one, {Message: "other"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, problemsOf(test.err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadLine(t *testing.T) {
	in := strings.NewReader("one\ntwo")
	for _, want := range []string{"one", "two", ""} {
		line, err := readLine(in)
		if line != want || (err != nil) != (want == "") {
			t.Errorf("got %q, %v, want %q", line, err, want)
		}
	}
}

func TestNamesLabKinds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fault.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: operator-lab.dev/v1alpha1\nkind: Fault\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{
		"get faults": true, "get loop/x": true, "get operators.operator-lab.dev": true, "get operators": false,
		"apply -f " + file: true, "apply -f" + file: true, "apply --filename=" + file: true, "get pods": false, "logs loopback": false,
	} {
		if got := namesLabKinds(strings.Fields(line)); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}
