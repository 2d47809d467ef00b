package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// etcdProbe runs 'etcdctl endpoint status' or 'endpoint health' without a process. Probes run these every few seconds
// on every member, and starting the binary takes a tenth of a second of CPU time. It uses etcdctl's own client with the
// same settings and prints the same; for anything else, etcdctl itself runs.
type etcdProbe struct {
	call   *etcdctlCall
	health bool
	dial   func(ctx context.Context, network, address string) (net.Conn, error)

	stdout, stderr io.Writer
}

// The patience of etcdctl.
const (
	etcdctlDial             = 2 * time.Second
	etcdctlPatience         = 5 * time.Second
	etcdctlKeepAlive        = 2 * time.Second
	etcdctlKeepAliveTimeout = 6 * time.Second
)

// readProbe parses a command; false if it is another one.
func readProbe(c *Container, argv []string, env *variables) (*etcdProbe, bool) {
	if path.Base(argv[0]) != etcdctlCommand {
		return nil, false
	}
	call := readEtcdctl(c, argv[1:], env)
	health := slices.Equal(call.words, []string{"endpoint", "health"})
	if !health && !slices.Equal(call.words, []string{"endpoint", "status"}) {
		return nil, false
	}
	known := []string{"endpoints", "cert", "key", "cacert"}
	used := len(call.words)
	for name, at := range call.values {
		if !slices.Contains(known, name) {
			return nil, false
		}
		if env.get(etcdctlVariable(name)) != "" {
			return nil, false // etcdctl takes both for a mistake
		}
		used++
		if at.from == 0 {
			used++
		}
	}
	if used != len(call.args) { // there are switches, or flags that occur twice
		return nil, false
	}
	for _, name := range env.names {
		flag, is := strings.CutPrefix(name, "ETCDCTL_")
		if is && flag != "API" && !slices.Contains(known, strings.ToLower(flag)) {
			return nil, false
		}
	}
	return &etcdProbe{call: call, health: health, dial: c.Network.DialContext}, true
}

// run runs the probe; done is false if etcdctl must report what is wrong.
func (p *etcdProbe) run(ctx context.Context) (code int, done bool) {
	text, has := p.call.get("endpoints")
	if !has {
		text = etcdEndpoint
	}
	endpoints := strings.Split(text, ",")
	clients := make([]*clientv3.Client, len(endpoints))
	defer func() {
		for _, c := range clients {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	for i, endpoint := range endpoints {
		c, err := p.client(ctx, endpoint)
		if err != nil {
			return 0, false
		}
		clients[i] = c
	}
	if p.health {
		return p.sayHealth(ctx, endpoints, clients), true
	}
	return p.sayStatus(ctx, endpoints, clients), true
}

// client returns etcdctl's client for an endpoint, which connects as the pod does.
func (p *etcdProbe) client(ctx context.Context, endpoint string) (*clientv3.Client, error) {
	file := func(name string) string {
		if value, _ := p.call.get(name); value != "" {
			return p.call.container.hostPath(value)
		}
		return ""
	}
	config, err := clientv3.NewClientConfig(&clientv3.ConfigSpec{
		Endpoints: []string{endpoint}, DialTimeout: etcdctlDial,
		KeepAliveTime: etcdctlKeepAlive, KeepAliveTimeout: etcdctlKeepAliveTimeout,
		Secure: &clientv3.SecureConfig{
			Cert: file("cert"), Key: file("key"), Cacert: file("cacert"), InsecureTransport: true,
		},
	}, zap.NewNop())
	if err != nil {
		return nil, err
	}
	config.Context = ctx
	config.DialOptions = append(config.DialOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		return p.dial(ctx, "tcp", address)
	}))
	return clientv3.New(*config)
}

// sayStatus prints the status of each endpoint.
func (p *etcdProbe) sayStatus(ctx context.Context, endpoints []string, clients []*clientv3.Client) (code int) {
	var rows []string
	for i, endpoint := range endpoints {
		limited, cancel := context.WithTimeout(ctx, etcdctlPatience)
		status, err := clients[i].Status(limited, endpoint)
		cancel()
		if err != nil {
			fmt.Fprintf(p.stderr, "Failed to get the status of endpoint %s (%v)\n", endpoint, err)
			code = 1
			continue
		}
		rows = append(rows, statusRow(endpoint, status))
	}
	for _, row := range rows {
		fmt.Fprintln(p.stdout, row)
	}
	return code
}

// statusRow formats a status as etcdctl does.
func statusRow(endpoint string, s *clientv3.StatusResponse) string {
	unused := int64(0)
	if s.DbSize > 0 {
		unused = 100 - s.DbSizeInUse*100/s.DbSize
	}
	return strings.Join([]string{
		endpoint, fmt.Sprintf("%x", s.Header.GetMemberId()), s.Version, s.StorageVersion,
		humanize.Bytes(uint64(s.DbSize)), humanize.Bytes(uint64(s.DbSizeInUse)), fmt.Sprintf("%d%%", unused),
		humanize.Bytes(uint64(s.DbSizeQuota)),
		strconv.FormatBool(s.Leader == s.Header.GetMemberId()), strconv.FormatBool(s.IsLearner),
		strconv.FormatUint(s.RaftTerm, 10), strconv.FormatUint(s.RaftIndex, 10), strconv.FormatUint(s.RaftAppliedIndex, 10),
		strings.Join(s.Errors, ", "), s.DowngradeInfo.GetTargetVersion(), strconv.FormatBool(s.DowngradeInfo.GetEnabled()),
	}, ", ")
}

// sayHealth tries whether each endpoint gets something agreed upon.
func (p *etcdProbe) sayHealth(ctx context.Context, endpoints []string, clients []*clientv3.Client) (code int) {
	type answer struct {
		took    time.Duration
		problem string
	}
	answers := make([]answer, len(endpoints))
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			limited, cancel := context.WithTimeout(ctx, etcdctlPatience)
			defer cancel()
			began := time.Now()
			_, err := c.Get(limited, "health")
			answers[i].took = time.Since(began)
			if err != nil && !errors.Is(err, rpctypes.ErrPermissionDenied) {
				answers[i].problem = err.Error()
				return
			}
			alarms, err := c.AlarmList(limited)
			switch {
			case err != nil:
				answers[i].problem = "Unable to fetch the alarm list"
			case len(alarms.Alarms) > 0:
				answers[i].problem = alarmText(alarms.Alarms)
			}
		})
	}
	all.Wait()
	for i, a := range answers {
		if a.problem == "" {
			fmt.Fprintf(p.stdout, "%s is healthy: successfully committed proposal: took = %v\n", endpoints[i], a.took)
			continue
		}
		fmt.Fprintf(p.stderr, "%s is unhealthy: failed to commit proposal: %v\n", endpoints[i], a.problem)
		code = 1
	}
	if code != 0 {
		fmt.Fprintln(p.stderr, "Error: unhealthy cluster")
	}
	return code
}

func alarmText(alarms []*etcdserverpb.AlarmMember) string {
	var text strings.Builder
	text.WriteString("Active Alarm(s): ")
	for _, a := range alarms {
		switch a.GetAlarm() {
		case etcdserverpb.AlarmType_NOSPACE, etcdserverpb.AlarmType_CORRUPT:
			text.WriteString(a.GetAlarm().String() + " ")
		default:
			text.WriteString("UNKNOWN ")
		}
	}
	return text.String()
}
