package node_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	remote "k8s.io/cri-client/pkg"
	utilexec "k8s.io/utils/exec"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/node"
)

func TestExecSync(t *testing.T) {
	m := newMachine(t)
	volume := t.TempDir()
	if err := os.WriteFile(filepath.Join(volume, "key"), []byte("value\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id, pod := m.start(t, "waits", func(c *runtimeapi.ContainerConfig) {
		c.Envs = []*runtimeapi.KeyValue{{Key: "A", Value: []byte("1")}}
		c.WorkingDir = "/etc/config"
		c.Mounts = []*runtimeapi.Mount{{ContainerPath: "/etc/config", HostPath: volume, Readonly: true}}
	})
	for script, want := range map[string]string{
		"hostname; hostname -i": "pod-waits\n" + m.ip(t, pod) + "\n",
		"cat key; echo $A":      "value\n1\n",
		"cat /srv/page":         "of the image\n",
		"cat /etc/resolv.conf":  "search shop.svc.cluster.local\nnameserver 10.96.0.10\n",
		"cat /etc/hostname":     "pod-waits\n",
		"echo kept > /tmp/f":    "",
		"ps | tail -1":          "    1 root      0:00 waits\n",
	} {
		if out, err := m.sh(t, id, script); err != nil || out != want {
			t.Errorf("%s: %q, %v; want %q", script, out, err, want)
		}
	}
	if out, err := m.sh(t, id, "cat /tmp/f"); err != nil || out != "kept\n" {
		t.Errorf("what was written is %q, %v", out, err)
	}
	_, stderr, err := m.ExecSync(t.Context(), id, []string{"sh", "-c", "echo no >&2; exit 4"}, 0)
	var exit utilexec.ExitError
	if !errors.As(err, &exit) || exit.ExitStatus() != 4 || string(stderr) != "no\n" {
		t.Errorf("%q, %v", stderr, err)
	}
	_, _, err = m.ExecSync(t.Context(), id, []string{"bash", "-c", "true"}, 0)
	if err == nil || !strings.HasPrefix(err.Error(), "rpc error: code = Unknown desc = failed to exec in container: failed to start exec ") ||
		!strings.HasSuffix(err.Error(), `OCI runtime exec failed: exec failed: unable to start container process: exec: "bash": executable file not found in $PATH: unknown`) {
		t.Errorf("a missing command: %v", err)
	}
	_, _, err = m.ExecSync(t.Context(), id, []string{"/bin/app"}, 0)
	if err == nil || !strings.Contains(err.Error(), `exec: "/bin/app": stat /bin/app: no such file or directory`) {
		t.Errorf("a missing file: %v", err)
	}
	_, _, err = m.ExecSync(t.Context(), id, []string{"sleep", "infinity"}, 10*time.Millisecond)
	if !errors.Is(err, remote.ErrCommandTimedOut) || err.Error() != `command timed out: "sleep infinity" timed out after 10ms` {
		t.Errorf("a timeout: %v", err)
	}
	if _, _, err = m.ExecSync(t.Context(), id, []string{"yes"}, 0); err == nil {
		t.Error("a command wrote without end")
	}
}

func TestExecEndsWithItsContainer(t *testing.T) {
	m := newMachine(t)
	id, _ := m.start(t, "waits")
	ended := make(chan error, 1)
	go func() {
		_, _, err := m.ExecSync(t.Context(), id, []string{"sh", "-c", "echo > /tmp/begun; sleep infinity"}, 0)
		ended <- err
	}()
	eventually(t, "it begins", func() error {
		_, err := m.sh(t, id, "cat /tmp/begun")
		return err
	})
	if _, err := m.sh(t, id, "kill 1"); err != nil {
		t.Logf("the shell was killed, too: %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("it succeeded")
	}
	if s := m.awaitExit(t, id); s.ExitCode != 143 {
		t.Errorf("status %v", s)
	}
	if _, _, err := m.ExecSync(t.Context(), id, []string{"true"}, 0); err == nil || !strings.Contains(err.Error(), "container is in CONTAINER_EXITED state") {
		t.Errorf("in an ended container: %v", err)
	}
}

// probed returns what a probe says, and whether it is good.
func (m *machine) probed(t *testing.T, id string, timeout time.Duration, args ...string) (string, bool) {
	t.Helper()
	out, errs, err := m.ExecSync(t.Context(), id, append([]string{node.ProbeCommand}, args...), timeout)
	var exit utilexec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", args, err)
	}
	return string(out) + string(errs), err == nil
}

func TestHTTPProbes(t *testing.T) {
	m := newMachine(t)
	m.images["site"] = images.Image{Program: serves(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			_, _ = fmt.Fprintf(w, "%s %s %s", r.Header.Get("X-Test"), strings.SplitN(r.UserAgent(), "/", 2)[0], r.Host)
		case "/broken":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/moved":
			http.Redirect(w, r, "/ok", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://elsewhere/", http.StatusFound)
		case "/slow":
			<-r.Context().Done()
		}
	})}
	id, pod := m.start(t, "site")
	ip := m.ip(t, pod)
	eventually(t, "it listens", func() error {
		if out, ok := m.probed(t, id, time.Minute, "tcp", "", "8080"); !ok {
			return errors.New(out)
		}
		return nil
	})
	for _, c := range []struct {
		args []string
		says string
		ok   bool
	}{
		{[]string{"http", "", "8080", "/ok", "X-Test=yes", "Host=shop"}, "yes kube-probe shop", true},
		{[]string{"liveness", "http", ip, "8080", "/ok"}, " kube-probe " + ip + ":8080", true},
		{[]string{"http", "", "8080", "/moved"}, " kube-probe " + ip + ":8080", true},
		{[]string{"http", "", "8080", "/away"}, "Probe terminated redirects, Response body: <a href=\"http://elsewhere/\">Found</a>.\n\n", true},
		{[]string{"http", "", "8080", "/broken"}, "HTTP probe failed with statuscode: 503", false},
		{[]string{"hook", "http", "", "8080", "/broken"}, "", true},
		{[]string{"http", "", "81", "/"}, fmt.Sprintf(`Get "http://%s:81/": dial tcp %[1]s:81: connect: connection refused`, ip), false},
		{[]string{"https", "", "8080", "/"}, fmt.Sprintf(`Get "https://%s:8080/": http: server gave HTTP response to HTTPS client`, ip), false},
		{[]string{"tcp", "", "81"}, fmt.Sprintf("dial tcp %s:81: connect: connection refused", ip), false},
	} {
		if out, ok := m.probed(t, id, time.Minute, c.args...); out != c.says || ok != c.ok {
			t.Errorf("%v: %q, %v; want %q, %v", c.args, out, ok, c.says, c.ok)
		}
	}
	want := fmt.Sprintf(`Get "http://%s:8080/slow": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`, ip)
	if out, ok := m.probed(t, id, 100*time.Millisecond, "http", "", "8080", "/slow"); ok || out != want {
		t.Errorf("slow: %q, want %q", out, want)
	}
	if _, _, err := m.ExecSync(t.Context(), id, []string{node.ProbeCommand, "smtp", "", "25"}, 0); err == nil || !strings.Contains(err.Error(), "usage") {
		t.Errorf("an unknown probe: %v", err)
	}
}

func TestGRPCProbes(t *testing.T) {
	m := newMachine(t)
	checks := health.NewServer()
	checks.SetServingStatus("sick", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	listen := func(t *task, port int, register func(*grpc.Server)) *grpc.Server {
		l, err := t.Network.Listen(port)
		if err != nil {
			_, _ = fmt.Fprintln(t.Stderr, err)
			return grpc.NewServer()
		}
		s := grpc.NewServer()
		register(s)
		go func(l net.Listener) { _ = s.Serve(l) }(l)
		return s
	}
	ready := make(chan struct{})
	m.images["rpc"] = images.Image{Program: image(func(t *task) int {
		defer listen(t, 9090, func(s *grpc.Server) { grpc_health_v1.RegisterHealthServer(s, checks) }).Stop()
		defer listen(t, 9091, func(*grpc.Server) {}).Stop()
		close(ready)
		return t.untilSignal()
	})}
	id, pod := m.start(t, "rpc")
	<-ready
	for _, c := range []struct {
		port, service, says string
		ok                  bool
	}{
		{"9090", "", "service healthy", true},
		{"9090", "sick", `service unhealthy (responded with "NOT_SERVING")`, false},
		{"9091", "", "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service grpc.health.v1.Health", false},
		{"1", "", fmt.Sprintf(`timeout: failed to connect service "%s:1" within 1m0s: context deadline exceeded`, m.ip(t, pod)), false},
	} {
		if out, ok := m.probed(t, id, time.Minute, "grpc", "", c.port, c.service); out != c.says || ok != c.ok {
			t.Errorf("%s %s: %q, %v; want %q, %v", c.port, c.service, out, ok, c.says, c.ok)
		}
	}
}

func TestShellOfAProgram(t *testing.T) {
	m := newMachine(t)
	life := t.Context()
	m.images["tools"] = images.Image{Program: image(func(t *task) int {
		ctx, cancel := context.WithCancel(life)
		defer cancel()
		go func() {
			<-t.signals
			cancel()
		}()
		return t.Shell.Run(ctx, t.Args, t.Container.Stdin, t.Stdout, t.Stderr)
	})}
	id, _ := m.start(t, "tools", func(c *runtimeapi.ContainerConfig) {
		c.Args = []string{"sh", "-c", "echo hello from $HOSTNAME; exit 3"}
	})
	if s := m.awaitExit(t, id); s.ExitCode != 3 {
		t.Errorf("status %v", s)
	}
	if got := m.log(t, id); len(got) != 1 || got[0] != "stdout F hello from pod-tools" {
		t.Errorf("log %q", got)
	}
}
