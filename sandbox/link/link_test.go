package link_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/operator-lab/operator-lab/sandbox/link"
)

// errSeen ends NewManager once its options were seen.
var errSeen = errors.New("seen")

// connect returns a link whose lab sends settings and then only reads.
func connect(t *testing.T, s link.Settings) (linked *link.Link, lines *bufio.Scanner) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close() })
	go func() { _ = json.NewEncoder(ours).Encode(s) }() // New fails if this does
	linked, err := link.New(theirs)
	if err != nil {
		t.Fatal(err)
	}
	return linked, bufio.NewScanner(ours)
}

// adapted returns the options that a manager is made with.
func adapted(t *testing.T, s link.Settings, o ctrl.Options) (got ctrl.Options) {
	t.Helper()
	linked, lines := connect(t, s)
	go func() {
		for lines.Scan() {
		}
	}()
	_, err := linked.Wrap(func(_ *rest.Config, o manager.Options) (manager.Manager, error) {
		got = o
		return nil, errSeen
	})(&rest.Config{}, o)
	if !errors.Is(err, errSeen) {
		t.Fatal(err)
	}
	return got
}

func TestOptions(t *testing.T) {
	settings := link.Settings{Operator: "toy", Namespace: "lab", WebhookPort: 1234, WebhookCertDir: "certs"}
	mine := webhook.NewServer(webhook.Options{Port: 9443, CertName: "my.crt", ClientCAName: "ca.crt"})
	plain := adapted(t, link.Settings{}, ctrl.Options{})
	if plain.Metrics.BindAddress != "127.0.0.1:0" || plain.HealthProbeBindAddress != "" || plain.WebhookServer != nil || !plain.LeaderElectionReleaseOnCancel {
		t.Errorf("empty options: %+v", plain)
	}
	o := adapted(t, settings, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: ":8081", PprofBindAddress: "0",
		LeaderElectionNamespace: "theirs", WebhookServer: mine,
	})
	if o.Metrics.BindAddress != "0" || o.HealthProbeBindAddress != "127.0.0.1:0" || o.PprofBindAddress != "0" || o.LeaderElectionNamespace != "theirs" {
		t.Errorf("options that are set: %+v", o)
	}
	if o := adapted(t, settings, ctrl.Options{}); o.LeaderElectionNamespace != "lab" || o.WebhookServer == nil {
		t.Errorf("options that are not: %+v", o)
	}
	t.Setenv("LAB_HOST", "127.2.1.2")
	t.Setenv("LAB_PORT_9443", "12345")
	inPod := adapted(t, link.Settings{InPod: true}, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: ":8080"}, HealthProbeBindAddress: "127.2.1.2:8081",
	})
	if hooks := inPod.WebhookServer.(*webhook.DefaultServer).Options; hooks.Host != "127.2.1.2" || hooks.Port != 12345 {
		t.Errorf("in a pod, the webhook server: %+v", hooks)
	}
	other := webhook.NewServer(webhook.Options{Port: 8443, CertDir: "theirs", CertName: "my.crt"})
	adapted(t, link.Settings{InPod: true}, ctrl.Options{WebhookServer: other})
	if hooks := other.(*webhook.DefaultServer).Options; hooks.Host != "127.2.1.2" || hooks.Port != 8443 || hooks.CertDir != "theirs" || hooks.CertName != "my.crt" {
		t.Errorf("in a pod, the webhook server of the program: %+v", hooks)
	}
	if inPod.Metrics.BindAddress != "127.0.0.1:0" || inPod.HealthProbeBindAddress != "127.2.1.2:8081" {
		t.Errorf("in a pod: %+v", inPod)
	}
	elected := ctrl.Options{LeaderElection: true}
	if !adapted(t, settings, elected).LeaderElection || adapted(t, link.Settings{NoLeaderElection: true}, elected).LeaderElection {
		t.Error("leader election is not as the program and the lab ask for")
	}
	w := mine.(*webhook.DefaultServer).Options
	w.TLSOpts, w.WebhookMux = nil, nil
	want := webhook.Options{Host: "127.0.0.1", Port: 1234, CertDir: "certs", CertName: "tls.crt", KeyName: "tls.key"}
	if !reflect.DeepEqual(w, want) {
		t.Errorf("the webhook server: %+v", w)
	}
}

// TestClusters checks which clusters get the taps: those of the API server that the lab gave the program.
func TestClusters(t *testing.T) {
	linked, _ := connect(t, link.Settings{Operator: "toy", APIServer: "https://gate"})
	for host, want := range map[string]bool{"https://gate": true, "https://elsewhere": false} {
		_, err := linked.WrapCluster(func(cfg *rest.Config, options ...cluster.Option) (cluster.Cluster, error) {
			var o cluster.Options
			for _, set := range options {
				set(&o)
			}
			if o.Scheme != clientgoscheme.Scheme || (o.NewCache != nil && o.NewClient != nil && cfg.WrapTransport != nil) != want {
				t.Errorf("%s: %+v, %+v", host, cfg, o)
			}
			return nil, errSeen
		})(&rest.Config{Host: host}, func(o *cluster.Options) { o.Scheme = clientgoscheme.Scheme })
		if !errors.Is(err, errSeen) {
			t.Error(err)
		}
	}
}

// lines are what the loggers of TestLogger got. ctrl.SetLogger works once in a process, and tests may run again.
var lines []string

// TestLogger has lines come to the program's own logger, whenever it is set.
func TestLogger(t *testing.T) {
	lines = nil
	logger := func(name string) logr.Logger {
		return funcr.New(func(_, line string) { lines = append(lines, name+" "+line) }, funcr.Options{})
	}
	o := adapted(t, link.Settings{}, ctrl.Options{})
	late := o.Logger.WithValues("a", 1)
	ctrl.SetLogger(logger("global"))
	late.Info("set after")
	adapted(t, link.Settings{}, ctrl.Options{}).Logger.Info("set before")
	adapted(t, link.Settings{}, ctrl.Options{Logger: logger("option")}).Logger.Info("an option")
	want := []string{`global "level"=0 "msg"="set after" "a"=1`, `global "level"=0 "msg"="set before"`, `option "level"=0 "msg"="an option"`}
	if !reflect.DeepEqual(lines, want) {
		t.Errorf("lines: %q", lines)
	}
}

func TestWithoutTheVariable(t *testing.T) {
	if wrapped := link.Wrap(ctrl.NewManager); reflect.ValueOf(wrapped).Pointer() != reflect.ValueOf(ctrl.NewManager).Pointer() {
		t.Error("NewManager is replaced without a lab")
	}
}

// asProgram is set where this test is run again as a linked program.
const asProgram = "OPERATOR_LAB_TEST_LINK"

func TestLabThatCannotBeReached(t *testing.T) {
	if os.Getenv(asProgram) != "" {
		_, err := link.Wrap(ctrl.NewManager)(&rest.Config{}, ctrl.Options{})
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), asProgram+"=1", link.SocketVariable+"="+filepath.Join(t.TempDir(), "gone"))
	out, err := cmd.CombinedOutput()
	if want := "operator-lab cannot be reached at "; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%v, without %q:\n%s", err, want, out)
	}
}

// TestPodWithoutLab checks that a program in a pod is told of its pod also where no lab sees it.
func TestPodWithoutLab(t *testing.T) {
	if os.Getenv(asProgram) != "" {
		_, _ = link.Wrap(func(_ *rest.Config, o manager.Options) (manager.Manager, error) {
			t.Logf("leads in %s, serves at %s", o.LeaderElectionNamespace, o.WebhookServer.(*webhook.DefaultServer).Options.Host)
			return nil, errSeen
		})(&rest.Config{}, ctrl.Options{})
		t.Log("children know: ", os.Getenv(link.PodVariable))
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), asProgram+"=1", link.PodVariable+"=mine", "LAB_HOST=127.2.1.2")
	out, err := cmd.CombinedOutput()
	if want := "leads in mine, serves at 127.2.1.2\n"; err != nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "know: mine") {
		t.Errorf("%v, without %q:\n%s", err, want, out)
	}
}

func TestLabThatSaysNothing(t *testing.T) {
	for _, said := range []string{"", "hello\n", "[]\n"} {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = ours.Write([]byte(said)) // New may close it first
			_ = ours.Close()
		}()
		if _, err := link.New(theirs); err == nil || !strings.HasPrefix(err.Error(), "begin the link: ") {
			t.Errorf("after %q: %v", said, err)
		}
	}
}

func TestWithoutConfig(t *testing.T) {
	linked, _ := connect(t, link.Settings{})
	if _, err := linked.Wrap(ctrl.NewManager)(nil, ctrl.Options{}); err == nil {
		t.Error("a manager without a config is made")
	}
}

func TestMode(t *testing.T) {
	for orders, want := range map[string]link.Mode{
		"":                    {},
		"pause":               {Paused: true},
		"pause resume":        {},
		"step":                {Paused: true},
		"hold step":           {Paused: true},
		"step-call":           {Paused: true, HoldWrites: true},
		"step-call release":   {Paused: true},
		"step-call resume":    {},
		"hold pause":          {Paused: true, HoldWrites: true},
		"hold probe flush ?":  {HoldWrites: true},
		"pause close":         {Closed: true},
		"close pause hold ??": {Closed: true},
	} {
		var mode link.Mode
		for do := range strings.FieldsSeq(orders) {
			mode = mode.After(do)
		}
		if mode != want {
			t.Errorf("%s: %+v, want %+v", orders, mode, want)
		}
	}
}
