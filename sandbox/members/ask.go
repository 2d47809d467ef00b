package members

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const clientPort = 2379

// reconnect is how soon a connection that was lost is tried again.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: answerTime,
}

// answer is what a member says of itself and of the others.
type answer struct {
	status *pb.StatusResponse
	// members as it knows them, which may be old; nil when it does not say.
	members []*pb.Member
	err     error
	// starting: it has never answered, and has not had much time to.
	starting bool
}

func (a answer) ok() bool { return a.err == nil && a.status != nil && a.status.Header != nil }

// newer reports whether a knows more than b of what the members agreed on.
func (a answer) newer(b answer) bool {
	if a.status.RaftTerm != b.status.RaftTerm {
		return a.status.RaftTerm > b.status.RaftTerm
	}
	return a.status.RaftIndex > b.status.RaftIndex
}

// asker asks one member.
type asker struct {
	conn *grpc.ClientConn
	// connect makes such a connection, which is tried with the first question.
	connect func() (*grpc.ClientConn, error)
	// ip is where it asks: a pod gets another address when its node has started anew.
	ip string
	// last is the last answer, and whether one was late since then: one may be, on a machine that is busy.
	last answer
	late bool
	// began is when it was first asked, answered whether it ever did.
	began    time.Time
	answered bool
}

// startTime is how long a member may take to start before it is said not to answer.
var startTime = 10 * time.Second

// newAsker prepares to ask; the connection is made with the first question.
func newAsker(dial Dial, address string, secure *tls.Config) (*asker, error) {
	creds := insecure.NewCredentials()
	if secure != nil {
		creds = credentials.NewTLS(secure)
	}
	connect := func() (*grpc.ClientConn, error) {
		return grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(creds), grpc.WithNoProxy(),
			grpc.WithConnectParams(reconnect), grpc.WithUserAgent(userAgent),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, "tcp", address) }))
	}
	conn, err := connect()
	if err != nil {
		return nil, err
	}
	return &asker{conn: conn, connect: connect, began: time.Now()}, nil
}

// redial replaces a connection over which there was no answer: it may be waiting before it tries again, and what it says
// until then is old.
func (a *asker) redial() error {
	if a.last.ok() {
		return nil
	}
	conn, err := a.connect()
	if err != nil {
		return err
	}
	_ = a.conn.Close() // nothing is under way
	a.conn = conn
	return nil
}

// ask returns the member's answer. Of an answer that is late for the first time the last one stands.
func (a *asker) ask(ctx context.Context) answer {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	now := a.now(ctx)
	if isLate(now.err) && a.last.ok() && !a.late {
		a.late = true
		return a.last
	}
	a.answered = a.answered || now.ok()
	now.starting = !a.answered && time.Since(a.began) < startTime
	a.last, a.late = now, false
	return now
}

func (a *asker) now(ctx context.Context) answer {
	said, err := pb.NewMaintenanceClient(a.conn).Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return answer{err: err}
	}
	out := answer{status: said}
	// Not linearizable: without a quorum there would be no answer. A learner gives none, and need not.
	if list, err := pb.NewClusterClient(a.conn).MemberList(ctx, &pb.MemberListRequest{}); err == nil {
		out.members = list.Members
	}
	return out
}

func isLate(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded
}

func address(ip string) string { return net.JoinHostPort(ip, strconv.Itoa(clientPort)) }

// certificates reads the Secret by which the operator is a client of the members.
func (b *Observer) certificates(ctx context.Context, namespace, name string) (*tls.Config, error) {
	if name == "" {
		return nil, errors.New("TLS, and no operatorSecret")
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	secret, err := b.kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	pair, err := tls.X509KeyPair(secret.Data["etcd-client.crt"], secret.Data["etcd-client.key"])
	if err != nil {
		return nil, fmt.Errorf("TLS: Secret %s: %w", name, err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(secret.Data["etcd-client-ca.crt"]) {
		return nil, fmt.Errorf("TLS: Secret %s has no certificate in etcd-client-ca.crt", name)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: authorities, MinVersion: tls.VersionTLS12}, nil
}
