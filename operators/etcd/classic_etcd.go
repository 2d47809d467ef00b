package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// classicPatience is the time limit for an answer of etcd.
const classicPatience = 5 * time.Second

// classicClient is a client of some members.
func classicClient(ctx context.Context, o Options, endpoints []string, secure *tls.Config) (*clientv3.Client, error) {
	if len(endpoints) == 0 {
		return nil, errors.New("there is no member to ask")
	}
	pace := backoff.DefaultConfig
	pace.BaseDelay, pace.MaxDelay = 100*time.Millisecond, time.Second
	dial := []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{Backoff: pace, MinConnectTimeout: classicPatience})}
	if o.Dial != nil {
		dial = append(dial, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return o.Dial(ctx, address)
		}))
	}
	return clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: endpoints, DialTimeout: classicPatience, TLS: secure, DialOptions: dial, Logger: zap.NewNop(),
	})
}

// classicTLS is a client's part of TLS, out of a Secret.
func classicTLS(ctx context.Context, reader client.Reader, namespace, name string) (*tls.Config, error) {
	secret := &corev1.Secret{}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return nil, fmt.Errorf("get the Secret of etcd's clients: %w", err)
	}
	pair, err := tls.X509KeyPair(secret.Data["etcd-client.crt"], secret.Data["etcd-client.key"])
	if err != nil {
		return nil, fmt.Errorf("the Secret %s: %w", name, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(secret.Data["etcd-client-ca.crt"]) {
		return nil, fmt.Errorf("the Secret %s has no certificate in etcd-client-ca.crt", name)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// ask asks the members something, in no settled order, as the published operator did: one that takes another for unreachable
// refuses changes of the membership ("unhealthy cluster") that the others accept.
func (c *classicCluster) ask(ctx context.Context, members classicMembers, what func(context.Context, *clientv3.Client) error) error {
	var endpoints []string
	for name := range members {
		endpoints = append(endpoints, clientURL(c.cluster, name))
	}
	etcd, err := classicClient(ctx, c.options, endpoints, c.tls)
	if err != nil {
		return fmt.Errorf("connect to etcd: %w", err)
	}
	defer func() { _ = etcd.Close() }() // what it answered, it answered
	ctx, cancel := context.WithTimeout(ctx, classicPatience)
	defer cancel()
	return what(ctx, etcd)
}

func (c *classicCluster) listMembers(ctx context.Context, members classicMembers) (list []*etcdserverpb.Member, err error) {
	err = c.ask(ctx, members, func(ctx context.Context, etcd *clientv3.Client) error {
		answer, err := etcd.MemberList(ctx)
		if err == nil {
			list = answer.Members
		}
		return err
	})
	return list, err
}

func (c *classicCluster) addVoter(ctx context.Context, members classicMembers, url string) (id uint64, err error) {
	err = c.ask(ctx, members, func(ctx context.Context, etcd *clientv3.Client) error {
		answer, err := etcd.MemberAdd(ctx, []string{url})
		if err == nil {
			id = answer.Member.ID
		}
		return err
	})
	return id, err
}

func (c *classicCluster) removeVoter(ctx context.Context, members classicMembers, id uint64) error {
	return c.ask(ctx, members, func(ctx context.Context, etcd *clientv3.Client) error {
		_, err := etcd.MemberRemove(ctx, id)
		return err
	})
}
