package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	rpcstatus "google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd/store"
)

// How long a member may take to answer.
const (
	statusTimeout = time.Second
	changeTimeout = 2 * time.Second
)

// view holds what the members of etcd answered in a pass.
type view struct {
	quorum  bool         // the list was agreed on just now
	list    []*pb.Member // nil if no member told
	leader  uint64
	alarms  []alarm
	problem string // why there is no quorum, as etcd says it
}

// alarm is one that a member has raised.
type alarm struct {
	member uint64
	kind   pb.AlarmType
}

// lookAtEtcd asks each member of this life of the cluster how it is, and then all together who they are.
func (r *hardenedMembers) lookAtEtcd(ctx context.Context, p *clusterPass) error {
	p.view, p.members = view{}, nil
	for _, pod := range p.pods {
		if p.ours(pod) {
			p.members = append(p.members, &member{name: pod.Name, pod: pod, claim: p.claim(pod.Name)})
		}
	}
	if p.tls.missing() {
		return nil
	}
	conns := r.etcds.of(p)
	var group sync.WaitGroup
	for _, m := range p.members {
		if !canAnswer(m.pod) {
			m.problem = whyNotRunning(m.pod)
			continue
		}
		conn, err := conns.get(m.name)
		if err != nil {
			return fmt.Errorf("make a client of member %s: %w", m.name, err)
		}
		m.packedAt, m.habits = conns.packed[m.name], conns.habits[m.name]
		group.Go(func() { m.ask(ctx, conn, r.options.Clock) })
	}
	group.Wait()
	p.askList(ctx, conns)
	p.join()
	p.askAlarms(ctx, conns)
	return ctx.Err()
}

func (m *member) ask(ctx context.Context, conn *clientv3.Client, clock clock.PassiveClock) {
	began := clock.Now()
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status, err := pb.NewMaintenanceClient(conn.ActiveConnection()).Status(ctx, &pb.StatusRequest{}, grpc.WaitForReady(true))
	if err != nil {
		m.problem = "it does not answer"
		return
	}
	m.status, m.took = status, clock.Since(began)
	m.id, m.learner = status.Header.MemberId, status.IsLearner
	if status.Leader == 0 {
		m.problem = "it knows of no leader"
	}
}

// askList asks for the members. A list that a quorum has just agreed on is the truth; without one, the member that is
// furthest tells what it knows, to tell people about and not to act upon.
func (p *clusterState) askList(ctx context.Context, conns *conns) {
	var furthest *member
	for _, m := range p.members {
		if m.status == nil || m.status.IsLearner {
			continue
		}
		if furthest == nil || m.status.Leader != 0 && furthest.status.Leader == 0 || m.status.RaftIndex > furthest.status.RaftIndex {
			furthest = m
		}
	}
	if furthest == nil {
		p.view.problem = "no member answers"
		return
	}
	if p.view.problem = p.members.split(furthest); p.view.problem != "" {
		return
	}
	conn, err := conns.get(furthest.name)
	if err != nil {
		p.view.problem = err.Error()
		return
	}
	asked := 0
	for _, m := range p.members {
		if m.status == nil || m.status.Leader == 0 || m.status.IsLearner || asked == 2 {
			continue
		}
		asked++
		from, err := conns.get(m.name)
		if err != nil {
			continue
		}
		within, cancel := context.WithTimeout(ctx, changeTimeout)
		list, err := from.MemberList(within)
		cancel()
		if err == nil {
			p.view.quorum, p.view.list, p.view.leader = true, list.Members, m.status.Leader
			return
		}
		p.view.problem = plain(err)
	}
	within, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if list, err := conn.MemberList(within, clientv3.WithSerializable()); err == nil {
		p.view.list = list.Members
	}
	if p.view.problem == "" {
		p.view.problem = "there is no leader"
	}
}

// join puts the list and the pods together.
func (p *clusterState) join() {
	for _, in := range p.view.list {
		name := nameOf(in)
		m := p.members.named(name)
		if m == nil {
			m = &member{name: name, claim: p.claim(name), problem: "it has no pod"}
			p.members = append(p.members, m)
		}
		m.id, m.inEtcd, m.started, m.learner = in.ID, true, in.Name != "", in.IsLearner
	}
}

// nameOf is the name of a member. One that has not started has not told etcd its name, but its URL has it.
func nameOf(in *pb.Member) string {
	if in.Name != "" {
		return in.Name
	}
	for _, text := range in.PeerURLs {
		if u, err := url.Parse(text); err == nil && u.Hostname() != "" {
			name, _, _ := strings.Cut(u.Hostname(), ".")
			return name
		}
	}
	return fmt.Sprintf("%016x", in.ID)
}

// askAlarms asks for them if any member has heard of one.
func (p *clusterState) askAlarms(ctx context.Context, conns *conns) {
	var heard *member
	for _, m := range p.members {
		if m.status != nil && strings.Contains(strings.Join(m.status.Errors, " "), "alarm:") && !m.learner {
			heard = m
		}
	}
	if heard == nil || !p.view.quorum {
		return
	}
	conn, err := conns.get(heard.name)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	answer, err := conn.AlarmList(ctx)
	if err != nil {
		return
	}
	for _, a := range answer.Alarms {
		p.view.alarms = append(p.view.alarms, alarm{a.MemberID, a.Alarm})
	}
}

// plain returns an error of etcd in words for people.
func plain(err error) string {
	if errors.Is(err, context.DeadlineExceeded) || rpcstatus.Code(err) == codes.DeadlineExceeded {
		return "the members do not agree on anything in time"
	}
	return err.Error()
}

func canAnswer(pod *corev1.Pod) bool {
	return pod.Status.PodIP != "" && pod.Status.Phase == corev1.PodRunning
}

// etcds keeps connections from one pass to the next, for all clusters. Nothing in it is knowledge.
type etcds struct {
	dial func(context.Context, string) (net.Conn, error)
	http *http.Client

	mu        sync.Mutex
	byCluster map[types.NamespacedName]*conns
}

func newEtcds(dial func(context.Context, string) (net.Conn, error)) *etcds {
	return &etcds{dial: dial, http: &http.Client{Transport: store.Transport(dial)}, byCluster: map[types.NamespacedName]*conns{}}
}

// Start ends all connections with the manager.
func (e *etcds) Start(ctx context.Context) error {
	<-ctx.Done()
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, c := range e.byCluster {
		c.close()
		delete(e.byCluster, key)
	}
	return nil
}

func (e *etcds) forget(key types.NamespacedName) {
	forgetAbnormality(key)
	e.mu.Lock()
	defer e.mu.Unlock()
	if c, ok := e.byCluster[key]; ok {
		c.close()
		delete(e.byCluster, key)
	}
}

// of returns the connections to a cluster. It closes those to members that have no pod any more, and those with other
// certificates.
func (e *etcds) of(p *clusterPass) *conns {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := client.ObjectKeyFromObject(p.cluster)
	c := e.byCluster[key]
	if c == nil || c.uid != p.cluster.UID || c.tls.version() != p.tls.version() {
		if c != nil {
			c.close()
		}
		c = &conns{
			uid: p.cluster.UID, tls: p.tls, dial: e.dial, byPod: map[string]*clientv3.Client{}, packed: map[string]int64{}, habits: map[string]*habits{},
		}
		e.byCluster[key] = c
	}
	c.url = func(name string) string { return clientURL(p.cluster, name) }
	c.keepOnly(p.members)
	return c
}

// conns are the connections to the members of one cluster.
type conns struct {
	uid  types.UID
	tls  *clientTLS
	dial func(context.Context, string) (net.Conn, error)
	url  func(name string) string

	mu    sync.Mutex // a manager that ends closes them while a pass may be under way
	byPod map[string]*clientv3.Client

	// What the passes over the cluster have measured; only they use it, one after the other.
	packed map[string]int64   // see member.packedAt
	habits map[string]*habits // of its members
	load   proxyLoad
}

func (c *conns) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.byPod {
		_ = conn.Close() // it is of no use any more either way
	}
	c.byPod = map[string]*clientv3.Client{}
}

func (c *conns) keepOnly(members []*member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, conn := range c.byPod {
		found := false
		for _, m := range members {
			found = found || m.name == name && m.pod != nil
		}
		if !found {
			_ = conn.Close() // it is of no use any more either way
			delete(c.byPod, name)
			delete(c.packed, name)
			delete(c.habits, name)
		}
	}
}

// get connects to a member, without waiting for it.
func (c *conns) get(name string) (*clientv3.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn := c.byPod[name]; conn != nil {
		return conn, nil
	}
	pace := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}
	cfg := clientv3.Config{
		Endpoints:   []string{c.url(name)},
		DialTimeout: changeTimeout,
		Logger:      zap.NewNop(), // what fails is said in the status
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: pace, MinConnectTimeout: statusTimeout}),
		},
	}
	if c.dial != nil {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithContextDialer(c.dial))
	}
	if c.tls != nil {
		cfg.TLS = c.tls.config
	}
	conn, err := clientv3.New(cfg)
	if err != nil {
		return nil, err
	}
	c.byPod[name] = conn
	return conn, nil
}

// clientTLS holds the certificates by which the operator connects to members. It is nil for a cluster without TLS.
type clientTLS struct {
	versions [3]string // of the Secrets
	config   *tls.Config
	problem  string
}

// version returns the versions of the Secrets, which differ when a Secret has changed.
func (t *clientTLS) version() [3]string {
	if t == nil {
		return [3]string{}
	}
	return t.versions
}

// usable tells whether nothing is wrong with the Secrets of a cluster, if it has any.
func (t *clientTLS) usable() bool { return t == nil || t.problem == "" }

// missing tells whether the operator has nothing to connect to members by.
func (t *clientTLS) missing() bool { return t != nil && t.config == nil && t.problem != "" }

// readTLS reads the Secrets of a cluster with TLS, and says what is wrong with them. Nothing is destroyed because of it:
// members go on with what they have, and no new ones are made.
func (r *hardenedClusters) readTLS(ctx context.Context, p *clusterPass) error {
	static := staticTLS(p.cluster)
	if static.Member == nil {
		return nil
	}
	p.tls = &clientTLS{}
	for i, want := range []struct{ secret, prefix string }{
		{static.Member.PeerSecret, "peer"}, {static.Member.ServerSecret, "server"}, {static.OperatorSecret, "etcd-client"},
	} {
		if want.secret == "" {
			continue
		}
		secret := &corev1.Secret{}
		err := r.live.Get(ctx, client.ObjectKey{Namespace: p.cluster.Namespace, Name: want.secret}, secret)
		if apierrors.IsNotFound(err) {
			p.tls.complain("Secret %s is not there: it should have the keys %[2]s.crt, %[2]s.key and %[2]s-ca.crt", want.secret, want.prefix)
			continue
		}
		if err != nil {
			return fmt.Errorf("get Secret %s: %w", want.secret, err)
		}
		p.tls.versions[i] = string(secret.UID) + "/" + secret.ResourceVersion
		config, err := tlsConfig(secret, want.prefix)
		if err != nil {
			p.tls.complain("Secret %s: %v", want.secret, err)
			continue
		}
		if want.secret == static.OperatorSecret && want.prefix == "etcd-client" {
			p.tls.config = config
		}
	}
	if p.tls.problem != "" {
		p.trouble(ReasonTLSSecretInvalid, "%s; members are not touched until then", p.tls.problem)
		p.lookAgain(changeInterval) // Secrets are not watched
	}
	return nil
}

func (t *clientTLS) complain(text string, args ...any) {
	if t.problem != "" {
		t.problem += "; "
	}
	t.problem += fmt.Sprintf(text, args...)
}

// tlsConfig checks that a Secret holds a key, its certificate and an authority.
func tlsConfig(secret *corev1.Secret, prefix string) (*tls.Config, error) {
	names := [3]string{prefix + ".crt", prefix + ".key", prefix + "-ca.crt"}
	for _, name := range names {
		if len(secret.Data[name]) == 0 {
			return nil, fmt.Errorf("there is no key %s", name)
		}
	}
	pair, err := tls.X509KeyPair(secret.Data[names[0]], secret.Data[names[1]])
	if err != nil {
		return nil, fmt.Errorf("%s and %s are no pair: %w", names[0], names[1], err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(secret.Data[names[2]]) {
		return nil, fmt.Errorf("%s has no certificate", names[2])
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: authorities, MinVersion: tls.VersionTLS12}, nil
}
