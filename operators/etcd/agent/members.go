package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/snapshot"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	rpcstatus "google.golang.org/grpc/status"

	"github.com/operator-lab/operator-lab/operators/etcd/report"
)

// answerTimeout is the time limit for the status of a member.
const answerTimeout = 5 * time.Second

// members are those a backup can be taken from, as the flags say.
type members struct {
	endpoints []string
	tlsDir    string
}

func (m *members) flags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&m.endpoints, "endpoints", nil, "URLs of members")
	fs.StringVar(&m.tlsDir, "tls-dir", "", "folder with etcd-client.crt, etcd-client.key and etcd-client-ca.crt")
}

// config of a client of one member.
func (m *members) config(endpoint string) (clientv3.Config, error) {
	config := clientv3.Config{
		Endpoints:   []string{endpoint},
		DialTimeout: answerTimeout,
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
				MinConnectTimeout: answerTimeout,
			}),
			grpc.WithChainUnaryInterceptor(impatient),
		},
		// One that refuses is asked a few times and no more: why it does is a better error than that time was over.
		MaxUnaryRetries: 3,
		Logger:          zap.NewNop(),
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return config, fmt.Errorf("the endpoint %q is no URL: %w", endpoint, err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return config, fmt.Errorf("the endpoint %q is no URL such as https://host:2379", endpoint)
	}
	if u.Scheme == "https" {
		config.TLS, err = m.tls()
	}
	return config, err
}

// impatient takes a connection that cannot be made for an answer, which the client by itself does not.
func impatient(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoker(ctx, method, req, reply, cc, append(opts, grpc.WaitForReady(false))...)
}

func (m *members) tls() (*tls.Config, error) {
	if m.tlsDir == "" {
		return &tls.Config{MinVersion: tls.VersionTLS12}, nil
	}
	info := transport.TLSInfo{
		CertFile:      filepath.Join(m.tlsDir, "etcd-client.crt"),
		KeyFile:       filepath.Join(m.tlsDir, "etcd-client.key"),
		TrustedCAFile: filepath.Join(m.tlsDir, "etcd-client-ca.crt"),
	}
	config, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the keys of TLS: %w", err)
	}
	return config, nil
}

// member is one that answers.
type member struct {
	endpoint string
	status   *clientv3.StatusResponse
}

// best returns the members that answer, the one to take a backup from first: one with a leader before one without, and
// then the one that has the most. Those that do not answer are told of, and do not matter. A member whose data are known
// to be corrupt is none to take a backup from, and a learner may not have them yet.
func (m *members) best(ctx context.Context) (usable []member, complaints []error) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, endpoint := range m.endpoints {
		wait.Go(func() {
			status, err := m.ask(ctx, endpoint)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				complaints = append(complaints, err)
				return
			}
			usable = append(usable, member{endpoint, status})
		})
	}
	wait.Wait()
	slices.SortStableFunc(usable, func(a, b member) int {
		if led := a.status.Leader != 0; led != (b.status.Leader != 0) {
			if led {
				return -1
			}
			return 1
		}
		return cmp.Or(
			cmp.Compare(b.status.Header.Revision, a.status.Header.Revision),
			strings.Compare(a.endpoint, b.endpoint),
		)
	})
	return usable, complaints
}

func (m *members) ask(ctx context.Context, endpoint string) (*clientv3.StatusResponse, error) {
	config, err := m.config(endpoint)
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", endpoint, err)
	}
	defer client.Close() //nolint:errcheck // there is nothing left to say to the member
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	status, err := client.Status(ctx, endpoint)
	if err != nil {
		return nil, fmt.Errorf("ask %s how it is: %s", endpoint, rpcstatus.Convert(err).Message())
	}
	if status.IsLearner {
		return nil, fmt.Errorf("%s is a learner, which may not have all data yet", endpoint)
	}
	for _, alarm := range status.Errors {
		if strings.Contains(alarm, "CORRUPT") {
			return nil, fmt.Errorf("%s has the alarm CORRUPT", endpoint)
		}
	}
	return status, nil
}

// snapshot writes a verified snapshot of the best member that can give one to a file.
func (m *members) snapshot(ctx context.Context, log *slog.Logger, to string) (backup, error) {
	if err := m.check(); err != nil {
		return backup{}, because(report.ReasonBadRequest, err)
	}
	usable, complaints := m.best(ctx)
	if len(usable) == 0 {
		return backup{}, because(report.ReasonNoEndpoint, errors.New("no member to take a backup from: "+errorText(complaints)))
	}
	for _, from := range usable {
		taken, err := m.take(ctx, from, to)
		if err == nil {
			log.Info("Took a snapshot", "endpoint", from.endpoint, "revision", taken.Revision, "leader", from.status.Leader != 0)
			if from.status.Leader == 0 {
				complaints = append(complaints, fmt.Errorf("%s has no leader: what it has may not be the latest", from.endpoint))
			}
			taken.Warning = errorText(complaints)
			return taken, nil
		}
		complaints = append(complaints, err)
	}
	return backup{}, because(report.ReasonSnapshotFailed, errors.New(errorText(complaints)))
}

func (m *members) take(ctx context.Context, from member, to string) (backup, error) {
	config, err := m.config(from.endpoint)
	if err != nil {
		return backup{}, err
	}
	if _, err := snapshot.SaveWithVersion(ctx, zap.NewNop(), config, to); err != nil {
		return backup{}, fmt.Errorf("take a snapshot of %s: %w", from.endpoint, err)
	}
	taken, err := verify(to)
	if err != nil {
		return backup{}, &failure{report.ReasonSnapshotFailed, fmt.Errorf("the snapshot of %s: %w", from.endpoint, err)}
	}
	taken.Endpoint, taken.EtcdVersion = from.endpoint, from.status.Version
	return taken, nil
}

// check refuses what no waiting can make right.
func (m *members) check() error {
	if len(m.endpoints) == 0 {
		return errors.New("which members? name some with --endpoints")
	}
	var errs []error
	for _, endpoint := range m.endpoints {
		_, err := m.config(endpoint)
		errs = append(errs, err)
	}
	if text := errorText(errs); text != "" {
		return errors.New(text)
	}
	return nil
}

// errorText is all of some errors in one line, in the order of the alphabet: that in which they came is by chance.
func errorText(errs []error) string {
	var texts []string
	for _, err := range errs {
		if err != nil {
			texts = append(texts, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}
