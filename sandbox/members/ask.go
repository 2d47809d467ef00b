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

// reconnect sets how soon a lost connection is retried.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: answerTime,
}

// answer is a member's answer about itself and the others.
type answer struct {
	status *pb.StatusResponse
	// members as the member knows them, possibly out of date; nil if it does not answer that.
	members []*pb.Member
	err     error
	// starting is set if the member has never answered and was first asked a short time ago.
	starting bool
}

func (a answer) ok() bool { return a.err == nil && a.status != nil && a.status.Header != nil }

// newer reports whether a is based on a newer state of raft than b.
func (a answer) newer(b answer) bool {
	if a.status.RaftTerm != b.status.RaftTerm {
		return a.status.RaftTerm > b.status.RaftTerm
	}
	return a.status.RaftIndex > b.status.RaftIndex
}

// asker asks one member.
type asker struct {
	conn *grpc.ClientConn
	// connect makes a new connection, which is not opened before the first request.
	connect func() (*grpc.ClientConn, error)
	// ip is the address that it asks. A pod gets another one when its node restarts.
	ip string
	// last is the last answer; late reports whether one was late since then. One late answer is accepted, because the
	// machine may be busy.
	last answer
	late bool
	// began is the time of the first request; answered reports whether there was ever an answer.
	began    time.Time
	answered bool
}

// startTime is the time for a member to start before it counts as not answering.
var startTime = 10 * time.Second

// newAsker prepares to ask; the connection is opened with the first request.
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

// redial replaces a connection without an answer: it may be waiting for its next attempt, and until then only repeats
// its old error.
func (a *asker) redial() error {
	if a.last.ok() {
		return nil
	}
	conn, err := a.connect()
	if err != nil {
		return err
	}
	_ = a.conn.Close() // no request is under way
	a.conn = conn
	return nil
}

// ask returns the member's answer. If it is late for the first time, it returns the last answer.
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
	// Not linearizable, because that needs a quorum. A learner does not answer this, and need not.
	if list, err := pb.NewClusterClient(a.conn).MemberList(ctx, &pb.MemberListRequest{}); err == nil {
		out.members = list.Members
	}
	return out
}

func isLate(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded
}

func address(ip string) string { return net.JoinHostPort(ip, strconv.Itoa(clientPort)) }

// certificates reads the operator's client certificate from the Secret.
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
