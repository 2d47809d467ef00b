package images_test

import (
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest/output"
)

// called is how a program of a test says that it was called, without where the container is.
func called(in *images.Container, log *output.Output) string {
	for line := range strings.Lines(log.String()) {
		if args, is := strings.CutPrefix(line, "args: "); is {
			return strings.TrimSpace(strings.ReplaceAll(args, in.Dir, "DIR"))
		}
	}
	return ""
}

func TestAMemberIsEtcdAtThePodsAddress(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "")
	data := t.TempDir()
	const fast = "--election-timeout=500 --heartbeat-interval=50 "
	const defaults = "--listen-client-urls=http://127.0.0.1:32379 --listen-peer-urls=http://127.0.0.1:32380"
	for _, x := range []struct {
		name               string
		command, args, env []string
		want, says         string
	}{
		{
			name: "without arguments", want: "etcd " + fast + "--advertise-client-urls=http://localhost:2379 " + defaults,
			says: "/etcd:v3.2.13 was asked for; a real etcd runs, whose version is " + version.Version,
		},
		{
			name: "as an operator starts it", command: []string{
				"/usr/local/bin/etcd", "--data-dir=/var/etcd/data", "--name=a-0", "--initial-advertise-peer-urls=http://a-0.a.ns.svc:2380",
				"--listen-peer-urls=http://0.0.0.0:2380", "--listen-client-urls=http://0.0.0.0:2379", "--advertise-client-urls=http://a-0.a.ns.svc:2379",
				"--initial-cluster=a-0=http://a-0.a.ns.svc:2380", "--initial-cluster-state=new", "--initial-cluster-token=b",
			},
			want: "etcd " + fast + "--data-dir=DATA/data --name=a-0 --initial-advertise-peer-urls=http://a-0.a.ns.svc:2380 " +
				"--listen-peer-urls=http://127.0.0.1:32380 --listen-client-urls=http://127.0.0.1:32379 --advertise-client-urls=http://a-0.a.ns.svc:2379 " +
				"--initial-cluster=a-0=http://a-0.a.ns.svc:2380 --initial-cluster-state=new --initial-cluster-token=b",
			says: "on this machine http://0.0.0.0:2380 is http://127.0.0.1:32380, http://0.0.0.0:2379 is http://127.0.0.1:32379",
		},
		{
			name: "addresses", args: []string{
				"etcd", "-listen-client-urls", "http://127.0.0.1:2379,http://0.0.0.0:2379,http://10.244.1.5:4001",
				"--listen-peer-urls=http://[::]:2380", "--listen-metrics-urls", "http://0.0.0.0:2381", "--advertise-client-urls=x", "--heartbeat-interval=9",
			},
			want: "etcd --listen-client-urls=http://127.0.0.1:32379,http://127.0.0.1:34001 --listen-peer-urls=http://127.0.0.1:32380 " +
				"--listen-metrics-urls=http://127.0.0.1:32381 --advertise-client-urls=x --heartbeat-interval=9",
		},
		{
			name: "what it does not know", args: []string{"--enable-v2", "--proxy", "off", "--debug=true", "--auto-tls", "--name", "a"},
			want: "etcd " + fast + "--advertise-client-urls=http://localhost:2379 " + defaults + " --auto-tls --name=a",
			says: "not used, since etcd " + version.Version + " does not know it: --enable-v2 --proxy=off --debug=true\n",
		},
		{
			name: "variables", env: []string{
				"ETCD_DATA_DIR=/var/etcd", "ETCD_LISTEN_CLIENT_URLS=http://0.0.0.0:2379", "ETCD_ELECTION_TIMEOUT=2000", "ETCD_PEER_CERT_FILE=/etc/tls/peer.crt",
			},
			want: "etcd --peer-skip-client-san-verification=true --listen-peer-urls=http://127.0.0.1:32380",
			says: "env: ETCD_DATA_DIR=DATA\nenv: ETCD_LISTEN_CLIENT_URLS=http://127.0.0.1:32379\nenv: ETCD_ELECTION_TIMEOUT=2000\nenv: ETCD_PEER_CERT_FILE=DIR/etc/tls/peer.crt\n",
		},
		{
			name: "files", args: []string{
				"--data-dir=../../../data", "--log-outputs=stderr,/var/log/etcd.log,file:///etcd.log", "--auth-token=jwt,pub-key=/etc/jwt.pub,sign-method=RS256",
			},
			want: "etcd " + fast + "--advertise-client-urls=http://localhost:2379 " + defaults +
				" --data-dir=DIR/data --log-outputs=stderr,/nowhere/log/etcd.log,DIR/etcd.log --auth-token=jwt,pub-key=DIR/etc/jwt.pub,sign-method=RS256",
		},
		{name: "its version", command: []string{"etcd", "--version"}, want: "etcd --version"},
		{
			name: "a word", command: []string{"etcd", "--name=a", "--", "b"},
			want: "etcd " + fast + "--advertise-client-urls=http://localhost:2379 " + defaults + " --name=a -- b",
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			in, log := container(t, "quay.io/coreos/etcd:v3.2.13")
			in.Command, in.Args, in.Env = x.command, x.args, x.env
			in.Mounts = []images.Mount{{ContainerPath: "/var", HostPath: "/nowhere"}, {ContainerPath: "/var/etcd/", HostPath: data}}
			r := start(t, c, in)
			log.Await(t, "ready")
			if got := strings.ReplaceAll(called(in, log), data, "DATA"); got != x.want {
				t.Errorf("it is called\n%s\nnot\n%s", got, x.want)
			}
			text := strings.NewReplacer(data, "DATA", in.Dir, "DIR").Replace(log.String())
			if !strings.Contains(text, x.says) || !strings.Contains(text, "\ndir: DIR\n") || !strings.Contains(text, "\nenv: HTTPS_PROXY=http://lab:secret@127.0.0.1:3128\n") {
				t.Errorf("it does not say %q:\n%s", x.says, text)
			}
			r.Signal(syscall.SIGTERM)
			if code := exit(t, r); code != 0 { // as process 1
				t.Errorf("it exits with %d", code)
			}
		})
	}
}

func TestAProxyOfEtcd(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "")
	for _, x := range []struct {
		name       string
		args       []string
		want, says string
	}{
		{
			"without arguments",
			[]string{"etcd", "grpc-proxy", "start"},
			"etcd grpc-proxy start --endpoints=127.0.0.1:32379 --advertise-client-url=127.0.0.1:53790 --listen-addr=127.0.0.1:53790",
			"on this machine tcp://127.0.0.1:23790 is tcp://127.0.0.1:53790\n",
		},
		{
			"as an operator starts it",
			[]string{
				"/usr/local/bin/etcd", "grpc-proxy", "start", "--endpoints=http://a-client.ns.svc:2379,10.244.1.5:2379", "--listen-addr=0.0.0.0:2379",
				"--advertise-client-url", "10.244.1.5:2379", "--metrics-addr=http://0.0.0.0:2381", "--debug", "--cacert=/etc/ca.crt",
			},
			"etcd grpc-proxy start --endpoints=http://a-client.ns.svc:2379,10.244.1.5:2379 --listen-addr=127.0.0.1:32379 " +
				"--advertise-client-url=10.244.1.5:2379 --metrics-addr=http://127.0.0.1:32381 --debug --cacert=DIR/etc/ca.crt",
			"http://0.0.0.0:2381 is http://127.0.0.1:32381\n",
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			in, log := container(t, "quay.io/coreos/etcd:v3.2.13")
			in.Args = x.args
			start(t, c, in)
			log.Await(t, "ready")
			if got := called(in, log); got != x.want {
				t.Errorf("it is called\n%s\nnot\n%s", got, x.want)
			}
			if !strings.Contains(log.String(), x.says) {
				t.Errorf("it does not say %q:\n%s", x.says, log)
			}
		})
	}
	for _, x := range []struct{ args, says string }{
		{"grpc-proxy start --listen-addr=10.0.0.1:2379", "listen tcp 10.0.0.1:2379: bind: cannot assign requested address"},
		{"gateway start", "etcd gateway: it would look for names of the cluster in the DNS of this machine; etcd grpc-proxy does not"},
	} {
		in, _ := container(t, "quay.io/coreos/etcd:v3.2.13")
		in.Args = append([]string{"etcd"}, strings.Fields(x.args)...)
		if _, err := lookup(t, c, in.Image).Program.Start(in); err == nil || err.Error() != x.says {
			t.Errorf("%s: %v, not %q", x.args, err, x.says)
		}
	}
}

func TestAMemberWithAConfigurationFile(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "")
	in, log := container(t, "quay.io/coreos/etcd:v3.5.0")
	config := t.TempDir()
	in.Mounts = []images.Mount{{ContainerPath: "/etc/etcd", HostPath: config}}
	in.Command = []string{"etcd", "--config-file=/etc/etcd/etcd.yaml", "--name=ignored"}
	write(t, filepath.Join(config, "etcd.yaml"), `
name: a
data-dir: /var/etcd
listen-client-urls: http://0.0.0.0:2379,http://127.0.0.1:2379
election-timeout: 2000
quota-backend-bytes: 2147483648
log-outputs: [stderr, /etc/etcd/log]
peer-transport-security: {cert-file: /etc/etcd/peer.crt, client-cert-auth: true}
`)
	start(t, c, in)
	log.Await(t, "ready")
	if got, want := called(in, log), "etcd --config-file=DIR/etcd.yaml --name=ignored"; got != want {
		t.Errorf("it is called %q, not %q", got, want)
	}
	content, err := os.ReadFile(filepath.Join(in.Dir, "etcd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.NewReplacer(in.Dir, "DIR", config, "CONFIG").Replace(string(content))
	want := `data-dir: DIR/var/etcd
election-timeout: 2000
listen-client-urls: http://127.0.0.1:32379
listen-peer-urls: http://127.0.0.1:32380
log-outputs:
- stderr
- CONFIG/log
name: a
peer-transport-security:
  cert-file: CONFIG/peer.crt
  client-cert-auth: true
  skip-client-san-verification: true
quota-backend-bytes: 2147483648
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAMemberThatIsKilledOrMissing(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "")
	in, log := container(t, "gcr.io/etcd-development/etcd:v3.6.8")
	r := start(t, c, in)
	log.Await(t, "ready")
	r.Signal(syscall.SIGKILL)
	if code := exit(t, r); code != 137 {
		t.Errorf("it exits with %d", code)
	}
	for command, want := range map[string]string{
		"vim": "executable file not found in $PATH", "/opt/etcd": "executable file not found in $PATH",
	} {
		in, _ := container(t, "registry.k8s.io/etcd:3.6.5-0")
		in.Command = []string{command}
		if _, err := lookup(t, c, in.Image).Program.Start(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %q", command, err, want)
		}
	}
	for listen, want := range map[string]string{
		"http://0.0.0.0:6666":  "", // it has no address here
		"http://10.0.0.1:2379": "cannot assign requested address",
		"unix:///tmp/socket":   "not of the container",
	} {
		in, _ = container(t, "quay.io/coreos/etcd")
		in.Args = []string{"etcd", "--listen-client-urls=" + listen}
		if _, err := lookup(t, c, in.Image).Program.Start(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it listens at %s: %v, not %q", listen, err, want)
		}
	}
}

// run runs a command of an image in a container, and returns what the test's program was called.
func run(t *testing.T, in *images.Container, env []string, dir, stdin string, argv ...string) (code int, log *output.Output) {
	t.Helper()
	c, _ := catalogue(t, "")
	commands := images.CommandsOf(lookup(t, c, in.Image).Program, in)
	if commands == nil || !commands.Has(filepath.Base(argv[0])) || commands.Has("vim") {
		t.Fatalf("the commands of %s are %v", in.Image, commands)
	}
	log = &output.Output{}
	return commands.Run(t.Context(), argv, env, dir, strings.NewReader(stdin), log, log), log
}

func TestEtcdctlInAContainer(t *testing.T) {
	t.Parallel()
	tls := t.TempDir()
	for _, x := range []struct {
		argv, env []string
		want      string
	}{
		{argv: []string{"etcdctl", "member", "list"}, want: "etcdctl member list ENDPOINTS=127.0.0.1:32379"},
		{
			argv: []string{"/usr/local/bin/etcdctl", "--endpoints=http://localhost:2379,127.0.0.1:2380", "get", "/etc/tls/key"},
			want: "etcdctl --endpoints=http://127.0.0.1:32379,127.0.0.1:32380 get /etc/tls/key",
		},
		{
			argv: []string{"etcdctl", "--endpoints", "http://a.b.svc:2379,http://localhost:2379", "get", "x"},
			want: "etcdctl --endpoints http://a.b.svc:2379,http://10.244.1.5:2379 get x",
		},
		{
			argv: []string{"etcdctl", "get", "x"}, env: []string{"ETCDCTL_ENDPOINTS=http://localhost:2379", "ETCDCTL_CACERT=/etc/tls/ca.crt"},
			want: "etcdctl get x ENDPOINTS=http://127.0.0.1:32379",
		},
		{
			argv: []string{"etcdctl", "--cert=/etc/tls/a.crt", "--key", "/etc/tls/a.key", "--cacert=ca.crt", "--endpoints=https://a.b.svc:2379", "put", "/etc/tls", "/etc/tls"},
			want: "etcdctl --cert=TLS/a.crt --key TLS/a.key --cacert=ca.crt --endpoints=https://a.b.svc:2379 put /etc/tls /etc/tls",
		},
		{argv: []string{"etcdctl", "-w", "json", "snapshot", "save", "/etc/tls/x.db"}, want: "etcdctl -w json snapshot save TLS/x.db ENDPOINTS=127.0.0.1:32379"},
		{argv: []string{"etcdctl", "snapshot", "save", "/some/x.db"}, want: "etcdctl snapshot save DIR/some/x.db ENDPOINTS=127.0.0.1:32379"},
		{argv: []string{"etcdctl", "endpoint", "status", "--cluster"}, want: "etcdctl endpoint status --cluster ENDPOINTS=127.0.0.1:32379"},
		{argv: []string{"etcdctl", "--", "--endpoints=localhost:2379"}, want: "etcdctl -- --endpoints=localhost:2379 ENDPOINTS=127.0.0.1:32379"},
		{
			argv: []string{"etcdutl", "snapshot", "restore", "/etc/tls/x.db", "--data-dir=/var/etcd/data", "--name", "a"},
			want: "etcdutl snapshot restore TLS/x.db --data-dir=DIR/var/etcd/data --name a",
		},
	} {
		in, _ := container(t, "quay.io/coreos/etcd:v3.5.0")
		in.Mounts = []images.Mount{{ContainerPath: "/etc/tls", HostPath: tls}}
		code, log := run(t, in, x.env, "", "", x.argv...)
		got := strings.ReplaceAll(called(in, log), tls, "TLS")
		for line := range strings.Lines(log.String()) {
			if endpoints, is := strings.CutPrefix(line, "env: ETCDCTL_ENDPOINTS="); is {
				got += " ENDPOINTS=" + strings.TrimSpace(endpoints)
			}
		}
		if got != x.want || code != 4 {
			t.Errorf("%q: it is called\n%s\nnot\n%s\nand exits with %d", x.argv, got, x.want, code)
		}
	}
}

func TestEtcdctlReadsOnlyWhereItHasTo(t *testing.T) {
	t.Parallel()
	in, _ := container(t, "quay.io/coreos/etcd:v3.5.0")
	in.Command = []string{"sleep"}
	if _, log := run(t, in, nil, "", "from somebody", "etcdctl", "put", "x"); !strings.HasSuffix(log.String(), "from somebody") {
		t.Errorf("put does not read:\n%s", log)
	}
	// Of a script it is the rest.
	if _, log := run(t, in, nil, "", "from somebody", "etcdctl", "get", "x"); strings.Contains(log.String(), "from somebody") {
		t.Errorf("get reads:\n%s", log)
	}
	in.Mounts = []images.Mount{{ContainerPath: "/work", HostPath: t.TempDir()}}
	if _, log := run(t, in, nil, "/work", "", "etcdctl", "get", "x"); !strings.Contains(log.String(), "dir: "+in.Mounts[0].HostPath+"\n") {
		t.Errorf("it is not where the container is:\n%s", log)
	}
}

func TestEtcdctlRunsNothingOfThisMachine(t *testing.T) {
	t.Parallel()
	in, _ := container(t, "quay.io/coreos/etcd:v3.5.0")
	for _, command := range []string{"etcdctl lock name touch /tmp/x", "etcdctl watch key -- touch /tmp/x", "etcdctl watch -i"} {
		code, log := run(t, in, nil, "", "", strings.Fields(command)...)
		if code != 126 || called(in, log) != "" || !strings.Contains(log.String(), "would be one of this machine") {
			t.Errorf("%s: it exits with %d:\n%s", command, code, log)
		}
	}
	if _, log := run(t, in, nil, "", "", "etcdctl", "lock", "name"); called(in, log) == "" {
		t.Errorf("a lock alone is refused:\n%s", log)
	}
}

func TestEtcdctlKeepsTheNameThatACertificateHas(t *testing.T) {
	t.Parallel()
	in, _ := container(t, "quay.io/coreos/etcd:v3.5.0")
	_, log := run(t, in, nil, "", "", "etcdctl", "--endpoints=https://localhost:2379,https://127.0.0.1:2379", "get", "x")
	_, list, _ := strings.Cut(called(in, log), "--endpoints=")
	list, _, _ = strings.Cut(list, " ")
	first, second, _ := strings.Cut(list, ",")
	for text, host := range map[string]string{first: "localhost", second: "127.0.0.1"} {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() != host || u.Port() == "2379" || u.Scheme != "https" {
			t.Errorf("the endpoint is %q", text)
		}
	}
}

// member is a real one, which serves the container's port 2379.
func member(t *testing.T, in *images.Container) *embed.Etcd {
	t.Helper()
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.LogOutputs = t.TempDir(), "error", []string{os.DevNull}
	config.UnsafeNoFsync = true
	anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenClientUrls, config.ListenPeerUrls = anywhere, anywhere
	e, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	network := in.Network.(*loopback)
	network.mu.Lock()
	defer network.mu.Unlock()
	network.ports[2379] = e.Clients[0].Addr().String()
	return e
}

func TestProbesOfAMember(t *testing.T) {
	t.Parallel()
	in, _ := container(t, "quay.io/coreos/etcd:v3.5.0")
	e := member(t, in)
	for command, want := range map[string]string{
		"etcdctl endpoint status":                                   "127.0.0.1:2379, " + e.Server.MemberID().String() + ", " + version.Version + ", ",
		"/usr/local/bin/etcdctl endpoint status":                    ", true, false, 2, ",
		"etcdctl --endpoints=http://localhost:2379 endpoint health": "http://localhost:2379 is healthy: successfully committed proposal: took = ",
	} {
		code, log := run(t, in, []string{"ETCDCTL_API=3"}, "", "", strings.Fields(command)...)
		if code != 0 || !strings.Contains(log.String(), want) || strings.Contains(log.String(), "args: ") {
			t.Errorf("%s: it exits with %d, and does not say %q:\n%s", command, code, want, log)
		}
	}
	// With anything else it is etcdctl itself.
	for _, command := range []string{
		"etcdctl endpoint status -w json", "etcdctl endpoint health --cluster", "etcdctl endpoint status --command-timeout=9s", "etcdctl endpoint hashkv",
		"etcdctl --endpoints=a:1 --endpoints=b:2 endpoint status", "etcdctl --cert=/nobody endpoint status",
	} {
		if _, log := run(t, in, nil, "", "", strings.Fields(command)...); called(in, log) == "" {
			t.Errorf("%s: etcdctl does not run:\n%s", command, log)
		}
	}
	if _, log := run(t, in, []string{"ETCDCTL_USER=root:x"}, "", "", "etcdctl", "endpoint", "status"); called(in, log) == "" {
		t.Errorf("with a user: etcdctl does not run:\n%s", log)
	}
	// A member that is not there.
	in.Network.(*loopback).ports[2379] = closed(t)
	c, _ := catalogue(t, "")
	commands := images.CommandsOf(lookup(t, c, in.Image).Program, in)
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for _, verb := range []string{"status", "health"} {
		log := &output.Output{}
		code := commands.Run(soon, []string{"etcdctl", "endpoint", verb}, nil, "", nil, log, log)
		if code != 1 || !strings.Contains(log.String(), "context deadline exceeded") {
			t.Errorf("%s: it exits with %d:\n%s", verb, code, log)
		}
	}
}

// closed returns an address on which nothing listens.
func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func TestTheEtcdOperatorsImage(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "")
	for _, x := range []struct {
		image              string
		command, args, env []string
		want, ignored      string
	}{
		{image: "quay.io/coreos/etcd-operator:v0.9.4", want: "--variant=classic --controllers=etcdcluster --create-crd --namespace=ns"},
		{
			image: "quay.io/coreos/etcd-operator:v0.9.4", command: []string{"etcd-operator", "-cluster-wide", "-create-crd=false"}, env: []string{"MY_POD_NAMESPACE=mine"},
			want: "--variant=classic --cluster-wide --create-crd=false --controllers=etcdcluster",
		},
		{
			image: "quay.io/coreos/etcd-operator:v0.9.4", command: []string{"/usr/local/bin/etcd-backup-operator"}, env: []string{"MY_POD_NAMESPACE=mine"},
			want: "--variant=classic --controllers=etcdbackup --create-crd --namespace=mine",
		},
		{
			image: "quay.io/coreos/etcd-operator:v0.9.4", args: []string{"etcd-restore-operator", "--period", "2s"},
			want: "--variant=classic --period=2s --controllers=etcdrestore --create-crd --namespace=ns",
		},
		{
			image: "quay.io/coreos/etcd-operator:v0.9.4", command: []string{"etcd-operator"},
			args:    []string{"-chaos-level", "1", "-gc-interval=5m", "-listen-addr=0.0.0.0:8080", "--seed=3", "--agent-image=x"},
			want:    "--variant=classic --metrics-bind-address=127.0.0.1:38080 --seed=3 --agent-image=x --controllers=etcdcluster --create-crd --namespace=ns",
			ignored: "-chaos-level 1 -gc-interval=5m",
		},
		{image: "quay.io/coreos/etcd-operator:hardened", want: "--variant=hardened"},
		{
			image: "quay.io/coreos/etcd-operator:hardened", command: []string{"etcd-operator"}, env: []string{"MY_POD_NAMESPACE=mine"},
			want: "--variant=hardened --namespace=mine",
		},
		{image: "quay.io/coreos/etcd-operator:v0.9.4", args: []string{"--variant=hardened"}, want: "--variant=classic --variant=hardened"},
	} {
		in, log := container(t, x.image)
		withToken(t, in)
		in.Command, in.Args, in.Env = x.command, x.args, x.env
		r := start(t, c, in)
		log.Await(t, "ready")
		want := "operator-lab operator etcd --kubeconfig DIR/kubeconfig " + x.want
		if got := called(in, log); got != want {
			t.Errorf("%q: it is called\n%s\nnot\n%s", slices.Concat(x.command, x.args), got, want)
		}
		if x.ignored != "" && !strings.Contains(log.String(), "does not know it: "+x.ignored+"\n") {
			t.Errorf("it does not say that %s is ignored:\n%s", x.ignored, log)
		}
		if strings.Contains(log.String(), "file of the real image") {
			t.Errorf("it says that its command is not used:\n%s", log)
		}
		r.Signal(syscall.SIGKILL)
		exit(t, r)
	}
}

func TestTheEtcdOperatorsAgent(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "")
	in, log := container(t, "quay.io/coreos/etcd-operator:hardened")
	backup, words := t.TempDir(), filepath.Join(t.TempDir(), "words")
	write(t, words, "")
	in.Mounts = []images.Mount{{ContainerPath: "/backup", HostPath: backup}, {ContainerPath: "/dev/termination-log", HostPath: words}}
	in.Command = []string{"etcd-operator", "agent", "save", "--volume=/backup", "/backup/x.db", "--result=/dev/termination-log", "--s3-path=/backups/x"}
	r := start(t, c, in)
	log.Await(t, "ready")
	want := "operator-lab operator etcd agent save --volume=" + backup + " " + backup + "/x.db --result=" + words + " --s3-path=/backups/x"
	if got := called(in, log); got != want {
		t.Errorf("it is called\n%s\nnot\n%s", got, want)
	}
	if !strings.Contains(log.String(), "\nenv: LAB_ROOT="+in.Dir+"/root\n") {
		t.Errorf("it does not know where its files are:\n%s", log)
	}
	r.Signal(syscall.SIGTERM)
	if code := exit(t, r); code != 0 {
		t.Errorf("it exits with %d", code)
	}
}
