package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"k8s.io/component-base/version"
)

// ProbeCommand is a reserved command for probes and hooks over HTTP, TCP and gRPC. On a real node the kubelet connects
// to pods itself, which it cannot do here. Its forms are
//
//	operator-lab-probe [KIND] http|https HOST PORT PATH [NAME=VALUE…]
//	operator-lab-probe [KIND] tcp HOST PORT
//	operator-lab-probe [KIND] grpc HOST PORT [SERVICE]
//	operator-lab-probe [KIND] exec COMMAND [ARGUMENT…]
//
// An empty HOST is the pod. KIND is readiness, liveness, startup or hook. A [Trouble] only affects readiness probes, so
// exec probes of a pod must be wrapped, too. A hook succeeds whatever the answer is, as upstream. The output is in
// upstream's words, and the exit code is 1 if the probe failed.
const ProbeCommand = "operator-lab-probe"

const (
	kindReadiness = "readiness"
	kindHook      = "hook"
)

// errUsage is returned for a malformed command.
var errUsage = errors.New("usage: " + ProbeCommand + " [readiness|liveness|startup|hook] http|https|tcp|grpc|exec …")

// probeResult is the outcome of a probe: its output, and whether it succeeded.
type probeResult struct {
	text string
	ok   bool
}

func failure(text string) probeResult { return probeResult{text, false} }

func (r *Runtime) probe(
	ctx context.Context, c *container, argv []string, timeout time.Duration,
) (stdout, stderr []byte, err error) {
	args, kind := argv[1:], ""
	if len(args) > 0 {
		switch args[0] {
		case kindReadiness, "liveness", "startup", kindHook:
			kind, args = args[0], args[1:]
		}
	}
	if len(args) < 2 {
		return nil, nil, errUsage
	}
	unready := kind == kindReadiness && r.troubles.with(c).Unready
	if args[0] == "exec" {
		if unready {
			return nil, nil, exited(args[1:], 1, "")
		}
		return r.ExecSync(ctx, c.id, args[1:], timeout)
	}
	p := prober{container: c, kind: kind, timeout: timeout, unready: unready}
	result, err := p.carryOut(ctx, args)
	if err != nil {
		return nil, nil, err
	}
	if result.ok {
		return []byte(result.text), nil, nil
	}
	return []byte(result.text), nil, exited(argv, 1, "")
}

// prober carries out one probe.
type prober struct {
	container *container
	kind      string
	timeout   time.Duration
	unready   bool
}

func (p prober) carryOut(ctx context.Context, args []string) (probeResult, error) {
	if len(args) < 3 {
		return probeResult{}, errUsage
	}
	scheme, host, port := strings.ToLower(args[0]), args[1], args[2]
	if host == "" {
		host = p.container.pod.ip
	}
	at := net.JoinHostPort(host, port)
	switch scheme {
	case "http", "https":
		if len(args) < 4 {
			return probeResult{}, errUsage
		}
		return p.get(ctx, scheme, at, args[3], args[4:])
	case "tcp":
		return p.connect(ctx, at), nil
	case "grpc":
		service := ""
		if len(args) > 3 {
			service = args[3]
		}
		return p.check(ctx, at, service), nil
	}
	return probeResult{}, errUsage
}

// dial connects as the node does.
func (p prober) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return p.container.pod.node.DialContext(ctx, network, address)
}

// maxBody is the number of bytes of an answer that are read, as upstream.
const maxBody = 10 << 10

// get follows upstream's pkg/probe/http.
func (p prober) get(ctx context.Context, scheme, at, path string, headers []string) (probeResult, error) {
	request, err := p.request(ctx, scheme, at, path, headers)
	if err != nil {
		return probeResult{}, err
	}
	if p.unready {
		return failure(fmt.Sprintf("HTTP probe failed with statuscode: %d", http.StatusServiceUnavailable)), nil
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // as upstream
		DisableKeepAlives: true, DisableCompression: true, DialContext: p.dial,
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Timeout: p.timeout, Transport: transport, CheckRedirect: withinHost}
	response, err := client.Do(request)
	if err != nil {
		return failure(err.Error()), nil
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return failure(""), nil
	}
	switch code := response.StatusCode; {
	case p.kind == kindHook:
		return probeResult{"", true}, nil
	case code >= http.StatusMultipleChoices && code < http.StatusBadRequest:
		return probeResult{"Probe terminated redirects, Response body: " + string(body), true}, nil
	case code >= http.StatusOK && code < http.StatusBadRequest:
		return probeResult{string(body), true}, nil
	default:
		return failure(fmt.Sprintf("HTTP probe failed with statuscode: %d", code)), nil
	}
}

// withinHost does not follow redirects to another host: they count as success.
func withinHost(request *http.Request, via []*http.Request) error {
	if request.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

func (p prober) request(ctx context.Context, scheme, at, path string, headers []string) (*http.Request, error) {
	u, err := url.Parse(path)
	if err != nil { // as upstream: pass it on as it is
		u = &url.URL{Path: path}
	}
	u.Scheme, u.Host = scheme, at
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, "=")
		request.Header.Add(name, value)
	}
	if _, set := request.Header["User-Agent"]; !set {
		purpose := "probe"
		if p.kind == kindHook {
			purpose = "lifecycle"
		}
		request.Header.Set("User-Agent", userAgent(purpose))
	}
	if accept, set := request.Header["Accept"]; !set {
		request.Header.Set("Accept", "*/*")
	} else if accept[0] == "" {
		request.Header.Del("Accept")
	}
	request.Host = request.Header.Get("Host")
	return request, nil
}

func userAgent(purpose string) string {
	v := version.Get()
	return fmt.Sprintf("kube-%s/%s.%s", purpose, v.Major, v.Minor)
}

// limit returns a context with the probe's timeout, if it has one.
func (p prober) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, p.timeout)
}

// connect follows upstream's pkg/probe/tcp.
func (p prober) connect(ctx context.Context, at string) probeResult {
	if p.unready {
		return failure(fmt.Sprintf("dial tcp %s: connect: connection refused", at))
	}
	ctx, cancel := p.limit(ctx)
	defer cancel()
	conn, err := p.dial(ctx, "tcp", at)
	if errors.Is(err, context.DeadlineExceeded) {
		return failure(fmt.Sprintf("dial tcp %s: i/o timeout", at))
	}
	if err != nil {
		return failure(err.Error())
	}
	_ = conn.Close()
	return probeResult{"", true}
}

// check follows upstream's pkg/probe/grpc.
func (p prober) check(ctx context.Context, at, service string) probeResult {
	if p.unready {
		return failure(fmt.Sprintf("service unhealthy (responded with %q)", "NOT_SERVING"))
	}
	ctx, cancel := p.limit(ctx)
	defer cancel()
	// What connecting fails with is not in the errors of the client.
	probe, err := p.dial(ctx, "tcp", at)
	if err != nil {
		// As upstream, whose client retries until the timeout.
		return failure(fmt.Sprintf("timeout: failed to connect service %q within %v: %v", at, p.timeout,
			context.DeadlineExceeded))
	}
	_ = probe.Close()
	client, err := grpc.NewClient("passthrough:///"+at,
		grpc.WithUserAgent(userAgent("probe")),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // as upstream
		grpc.WithContextDialer(func(ctx context.Context, at string) (net.Conn, error) { return p.dial(ctx, "tcp", at) }))
	if err != nil {
		return failure(fmt.Sprintf("error: failed to connect service at %q: %v", at, err))
	}
	defer func() { _ = client.Close() }()
	answer, err := grpc_health_v1.NewHealthClient(client).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service})
	if err != nil {
		return failure(p.grpcFailure(err))
	}
	if answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return failure(fmt.Sprintf("service unhealthy (responded with %q)", answer.GetStatus().String()))
	}
	return probeResult{"service healthy", true}
}

func (p prober) grpcFailure(err error) string {
	switch status.Code(err) {
	case codes.Unimplemented:
		return "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): " +
			status.Convert(err).Message()
	case codes.DeadlineExceeded:
		return fmt.Sprintf("timeout: health rpc did not complete within %v", p.timeout)
	}
	return fmt.Sprintf("error: health rpc probe failed: %v", err)
}
