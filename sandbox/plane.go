package sandbox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/sandbox/early"
)

// What early took is given back: envtest, which this package imports, is initialized by now.
var _ = early.Restore()

// startTimeout limits how long etcd and the API server may take each. They need about a second, but most of a minute
// when twenty sandboxes start at once on two cores.
const startTimeout = 2 * time.Minute

// stopTimeout is how long each may take to end before it is killed, which is an error. They need a fifth of a second.
const stopTimeout = 5 * time.Second

// plane makes the programs of the control plane, and clients of them. etcd and kube-apiserver are run by envtest on
// links to the operator-lab binary.
type plane struct {
	layout
	pki   *pki
	ports ports
	// binary is the operator-lab binary, to which the links in bin lead.
	binary string
	// hub is the path of the socket through which the API server reaches nodes, pods and Services. Default: it connects
	// directly.
	hub string
	// onAudit is called with every write, as a line of the API server's audit log. Default: there is no audit log.
	onAudit func(line []byte)

	mu    sync.Mutex
	users map[string]*rest.Config // by name and groups
}

// etcdProgram runs etcd on 127.0.0.1 with TLS and client certificates for clients and peers.
func (p *plane) etcdProgram() *program {
	var run envtestRun
	return &program{
		name:    "etcd",
		logFile: p.logFile("etcd"),
		launch: func(_ context.Context, out *output) error {
			health, err := p.relayHealth()
			if err != nil {
				return err
			}
			defer func() { _ = health.Close() }()
			if err := p.answerHelp("etcd", "  --unsafe-no-fsync\n"); err != nil {
				return err
			}
			return <-run.start(p.etcdOptions(health.url, out), out)
		},
		halt: run.stop,
	}
}

// apiServerProgram runs kube-apiserver on 127.0.0.1.
func (p *plane) apiServerProgram() *program {
	var run envtestRun
	return &program{
		name:    "kube-apiserver",
		logFile: p.logFile("kube-apiserver"),
		launch: func(ctx context.Context, out *output) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			options, err := p.apiServerOptions(out)
			if err != nil {
				return err
			}
			// envtest checks every 100 ms only. Once the server is ready, envtest can only report an error.
			ready := make(chan error, 1)
			go func() { ready <- p.awaitReady(ctx) }()
			select {
			case err := <-run.start(options, out):
				return err
			case err := <-ready:
				return err
			}
		},
		halt: run.stop,
	}
}

// envtestRun is one run of a process by envtest. Its Start and Stop must not overlap.
type envtestRun struct {
	mu       sync.Mutex
	process  envtestProcess
	returned chan struct{} // closed when Start has
}

// envtestProcess is [envtest.Etcd] or [envtest.APIServer].
type envtestProcess interface {
	Start() error
	Stop() error
}

func (r *envtestRun) start(process envtestProcess, out *output) <-chan error {
	r.mu.Lock()
	defer r.mu.Unlock()
	started, returned := make(chan error, 1), make(chan struct{})
	r.process, r.returned = process, returned
	go func() {
		err := process.Start()
		out.started() // not earlier: nothing else tells that the process was forked
		started <- err
		close(returned)
	}()
	return started
}

// stop ends the process. It waits for a Start in progress: a process that does not come up has been killed before.
func (r *envtestRun) stop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil {
		return nil
	}
	<-r.returned
	return r.process.Stop()
}

func (p *plane) etcdOptions(health *url.URL, out *output) *envtest.Etcd {
	etcd := &envtest.Etcd{
		Path:         p.program("etcd"),
		DataDir:      p.etcd(),
		URL:          health, // what envtest polls; the addresses below are what etcd serves
		StartTimeout: startTimeout,
		StopTimeout:  stopTimeout,
		Out:          out.w,
		Err:          out.w,
	}
	client := fmt.Sprintf("https://127.0.0.1:%d", p.ports.Etcd)
	etcd.Configure().
		Set("listen-client-urls", client).
		Set("advertise-client-urls", client).
		Set("listen-peer-urls", fmt.Sprintf("https://127.0.0.1:%d", p.ports.Peer)).
		Set("cert-file", p.pki.path("etcd.crt")).
		Set("key-file", p.pki.path("etcd.key")).
		Set("client-cert-auth", "true").
		Set("trusted-ca-file", p.pki.path(etcdCA+".crt")).
		Set("peer-cert-file", p.pki.path("etcd.crt")).
		Set("peer-key-file", p.pki.path("etcd.key")).
		Set("peer-client-cert-auth", "true").
		Set("peer-trusted-ca-file", p.pki.path(etcdCA+".crt")).
		Set("socket-reuse-port", "true").
		Set("log-level", "warn").
		// One member: it elects itself. The defaults would let it wait for a second.
		Set("heartbeat-interval", "20").
		Set("election-timeout", "200")
	return etcd
}

func (p *plane) apiServerOptions(out *output) (*envtest.APIServer, error) {
	api := &envtest.APIServer{
		Path:         p.program("kube-apiserver"),
		CertDir:      p.pki.dir,
		EtcdURL:      &url.URL{Scheme: "https", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(p.ports.Etcd))},
		StartTimeout: startTimeout,
		StopTimeout:  stopTimeout,
		Out:          out.w,
		Err:          out.w,
	}
	api.SecureServing.Address = "127.0.0.1"
	api.SecureServing.Port = strconv.Itoa(p.ports.API)
	api.SecureServing.CA = p.pki.caPEM(clusterCA)
	api.SecureServing.Authn = certificates{p.pki}
	api.Configure().
		Set("etcd-cafile", p.pki.path(etcdCA+".crt")).
		Set("etcd-certfile", p.pki.path("apiserver-etcd-client.crt")).
		Set("etcd-keyfile", p.pki.path("apiserver-etcd-client.key")).
		Set("authorization-mode", "Node", "RBAC").
		Set("service-cluster-ip-range", serviceRange).
		// Without it the server looks for a network interface, and does not start on a machine that is offline.
		// Nothing dials it; loopback is refused as an endpoint of the kubernetes Service.
		Set("advertise-address", advertisedIP).
		Set("service-account-issuer", "https://kubernetes.default.svc.cluster.local").
		Set("kubelet-client-certificate", p.pki.path("apiserver-kubelet-client.crt")).
		Set("kubelet-client-key", p.pki.path("apiserver-kubelet-client.key")).
		Set("kubelet-certificate-authority", p.pki.path(clusterCA+".crt")).
		Set("kubelet-preferred-address-types", "InternalIP").
		// A lost node is noticed soon: upstream waits five minutes for it.
		Set("default-not-ready-toleration-seconds", strconv.Itoa(lostNodeSeconds)).
		Set("default-unreachable-toleration-seconds", strconv.Itoa(lostNodeSeconds)).
		Set("requestheader-client-ca-file", p.pki.path(frontProxyCA+".crt")).
		Set("requestheader-allowed-names", "front-proxy-client").
		Set("requestheader-username-headers", "X-Remote-User").
		Set("requestheader-group-headers", "X-Remote-Group").
		Set("requestheader-extra-headers-prefix", "X-Remote-Extra-").
		Set("proxy-client-cert-file", p.pki.path("front-proxy-client.crt")).
		Set("proxy-client-key-file", p.pki.path("front-proxy-client.key")).
		Set("permit-port-sharing", "true").
		Set("profiling", "false").
		Set(MetricsFlag, "true").
		// envtest switches this plugin off because it has no service account controller; we have it.
		Disable("disable-admission-plugins")
	if err := errors.Join(p.answerHelp("kube-apiserver", ""), p.egressThroughHub(api)); err != nil {
		return nil, err
	}
	return api, p.audit(api, out)
}

// MetricsFlag is the flag of kube-apiserver that makes it serve the resource metrics API. Upstream's has no such flag.
const MetricsFlag = "serve-resource-metrics"

// answerHelp has a program answer envtest's question for one flag of it at once, see [early.HelpSuffix].
func (p *plane) answerHelp(program, flags string) error {
	return writeFile(p.program(program)+early.HelpSuffix, []byte(flags))
}

// lostNodeSeconds is the number of seconds that pods stay bound to a node that does not answer, by default.
const lostNodeSeconds = 5

// egressThroughHub makes the API server connect to nodes, pods and Services through the pod network.
func (p *plane) egressThroughHub(api *envtest.APIServer) error {
	if p.hub == "" {
		return nil
	}
	config, err := yaml.Marshal(egressConfig(p.hub))
	if err != nil {
		return err
	}
	if err := writeFile(p.layout.egress(), config); err != nil {
		return err
	}
	api.Configure().Set("egress-selector-config-file", p.layout.egress())
	return nil
}

func egressConfig(socket string) *apiserverv1beta1.EgressSelectorConfiguration {
	return &apiserverv1beta1.EgressSelectorConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1beta1.SchemeGroupVersion.String(), Kind: "EgressSelectorConfiguration"},
		EgressSelections: []apiserverv1beta1.EgressSelection{{
			Name: "cluster",
			Connection: apiserverv1beta1.Connection{
				ProxyProtocol: apiserverv1beta1.ProtocolHTTPConnect,
				Transport:     &apiserverv1beta1.Transport{UDS: &apiserverv1beta1.UDSTransport{UDSName: socket}},
			},
		}},
	}
}

// audit makes the API server report every write on its standard output, if onAudit is set.
func (p *plane) audit(api *envtest.APIServer, out *output) (err error) {
	if p.onAudit == nil {
		return nil
	}
	if err := os.WriteFile(p.auditPolicy(), []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	if out.audit, err = auditPipe(p.onAudit); err != nil {
		return err
	}
	api.Out = out.audit
	api.Configure().Set("audit-policy-file", p.auditPolicy()).Set("audit-log-path", "-")
	return nil
}

func (p *plane) logFile(program string) string { return p.logs() + "/" + program + ".log" }

// awaitReady polls /readyz, which needs no credentials.
func (p *plane) awaitReady(ctx context.Context) error {
	pool := x509.NewCertPool()
	pool.AddCert(p.pki.authorities[clusterCA].Certificate)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	return awaitStatus(ctx, client, fmt.Sprintf("https://127.0.0.1:%d/readyz", p.ports.API), http.StatusOK)
}

// awaitPaths returns when an API server that is starting knows all its paths. Before, it answers a request for one that it does not
// know with 503 and Retry-After: 5, and client-go waits as long.
func (p *plane) awaitPaths(ctx context.Context) error {
	config, err := p.config("admin")
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return awaitStatus(ctx, client, config.Host+"/apis/nobody.invalid", http.StatusNotFound)
}

// awaitStatus repeats a request until the answer has a status.
func awaitStatus(ctx context.Context, client *http.Client, url string, want int) error {
	for {
		if statusOf(ctx, client, url) == want {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// statusOf returns the status of the answer to a request; 0 if there is none.
func statusOf(ctx context.Context, client *http.Client, url string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// relay answers envtest's health check for an etcd that accepts only clients with a certificate, which that check does
// not have. It answers as soon as etcd is healthy, so that nothing is polled every 100 ms.
type relay struct {
	*http.Server
	url *url.URL
}

func (p *plane) relayHealth() (*relay, error) {
	client, err := p.etcdClient()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	health := fmt.Sprintf("https://127.0.0.1:%d/health", p.ports.Etcd)
	r := &relay{
		url: &url.URL{Scheme: "https", Host: listener.Addr().String()},
		Server: &http.Server{
			ReadHeaderTimeout: startTimeout,
			ErrorLog:          log.New(io.Discard, "", 0), // envtest hangs up on purpose
			Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if awaitStatus(req.Context(), client, health, http.StatusOK) != nil {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}),
		},
	}
	go func() { _ = r.ServeTLS(listener, p.pki.path("apiserver.crt"), p.pki.path("apiserver.key")) }()
	return r, nil
}

// etcdClient returns an HTTP client of etcd with the API server's certificate.
func (p *plane) etcdClient() (*http.Client, error) {
	config, err := p.etcdTLS()
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config}}, nil
}

func (p *plane) etcdTLS() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(p.pki.path("apiserver-etcd-client.crt"), p.pki.path("apiserver-etcd-client.key"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(p.pki.authorities[etcdCA].Certificate)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool}, nil
}

// certificates makes envtest's users with certificates of our authority.
type certificates struct{ pki *pki }

var _ envtest.Authn = certificates{}

func (c certificates) Configure(_ string, args *envtest.Arguments) error {
	args.Set("client-ca-file", c.pki.path(clusterCA+".crt"))
	return nil
}

func (c certificates) Start() error { return nil }

func (c certificates) Stop() error { return nil }

func (c certificates) AddUser(user envtest.User, base *rest.Config) (*rest.Config, error) {
	if user.Name == "" {
		return nil, errors.New("a user needs a name")
	}
	certPEM, keyPEM, err := c.pki.issue(subject{ca: clusterCA, name: user.Name, groups: user.Groups})
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(base)
	config.CertData, config.KeyData = certPEM, keyPEM
	return config, nil
}

// config returns a client configuration with a certificate of the pki, named by its file.
func (p *plane) config(file string) (*rest.Config, error) {
	certPEM, err := os.ReadFile(p.pki.path(file + ".crt"))
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(p.pki.path(file + ".key"))
	if err != nil {
		return nil, err
	}
	return p.configFor(certPEM, keyPEM), nil
}

// user returns a configuration with a client certificate, which is issued the first time: client-go keeps the connections of each
// certificate open.
func (p *plane) user(name string, groups []string) (*rest.Config, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who := strings.Join(append([]string{name}, groups...), "\x00")
	config := p.users[who]
	if config == nil {
		certPEM, keyPEM, err := p.pki.issue(subject{ca: clusterCA, name: name, groups: groups})
		if err != nil {
			return nil, err
		}
		config = p.configFor(certPEM, keyPEM)
		if p.users == nil {
			p.users = map[string]*rest.Config{}
		}
		p.users[who] = config
	}
	return rest.CopyConfig(config), nil
}

func (p *plane) configFor(certPEM, keyPEM []byte) *rest.Config {
	return &rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", p.ports.API),
		QPS:  -1, // the server has its own fairness; a client-side limit only hides what is going on
		TLSClientConfig: rest.TLSClientConfig{
			CAData: p.pki.caPEM(clusterCA), CertData: certPEM, KeyData: keyPEM,
		},
	}
}
