package durability_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// clients are applications that use a store through one address.
type clients struct {
	// URL of the Service, such as http://example-client.default.svc:2379.
	URL string
	// Dial connects to it.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Count is the number of clients. Default: 4.
	Count int
	// Seed of what they do.
	Seed uint64
	// History records their requests and answers.
	History *history
}

const (
	// answerTimeout is the time limit for an answer, after which the outcome is unknown.
	answerTimeout = time.Second
	// pause is the time between two operations of one client. Without one, the test would only measure the speed of the
	// machine.
	pause = 5 * time.Millisecond
	// epoch is the time for which a key is used. Changing the key keeps each history short, and so the check quick.
	epoch = time.Second
	// keysAtOnce is for how few keys clients meet.
	keysAtOnce = 2
)

// Run runs the clients until ctx is done.
func (c clients) Run(ctx context.Context) {
	count := c.Count
	if count == 0 {
		count = 4
	}
	var all sync.WaitGroup
	for id := range count {
		all.Go(func() { c.work(ctx, id) })
	}
	all.Wait()
}

// work runs one client.
func (c clients) work(ctx context.Context, id int) {
	//nolint:gosec // it is to be repeatable, not secret
	chance := rand.New(rand.NewPCG(c.Seed, uint64(id)))
	for n := 0; ctx.Err() == nil; {
		store, err := c.open()
		if err != nil {
			return // the URL is wrong; the history is empty, which the caller sees
		}
		for ; ctx.Err() == nil; n++ {
			if err := c.operate(ctx, store, chance, id, n); err != nil {
				break // an application takes a new connection, which is to another member, perhaps
			}
			await(ctx, pause)
		}
		_ = store.Close()
	}
}

// operate carries out one operation.
func (c clients) operate(ctx context.Context, store *clientv3.Client, chance *rand.Rand, id, n int) error {
	key := fmt.Sprintf("durability/%d/%d", int(c.History.now()/epoch), chance.IntN(keysAtOnce))
	began := c.History.now()
	// What is under way when the clients stop is seen to its end.
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	if chance.IntN(2) == 0 {
		value := strconv.Itoa(id) + "." + strconv.Itoa(n)
		_, err := store.Put(asked, key, value)
		c.History.wrote(id, key, value, began, err == nil)
		return err
	}
	value, err := get(asked, store, key)
	if err == nil {
		c.History.read(id, key, value, began)
	}
	return err
}

// ReadAll reads every key that was ever used, when all is calm again.
func (c clients) ReadAll(ctx context.Context) error {
	store, err := c.open()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	for _, key := range c.History.keys() {
		began := c.History.now()
		value, err := get(ctx, store, key)
		if err != nil {
			return fmt.Errorf("read %s: %w", key, err)
		}
		c.History.read(-1, key, value, began)
	}
	return nil
}

// get reads a key, linearizably as etcd does by default.
func get(ctx context.Context, store *clientv3.Client, key string) (string, error) {
	got, err := store.Get(ctx, key)
	if err != nil || len(got.Kvs) == 0 {
		return "", err
	}
	return string(got.Kvs[0].Value), nil
}

// open is a new client. It retries no write by itself: what came of the first try would not be known.
func (c clients) open() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:   []string{c.URL},
		DialTimeout: answerTimeout,
		Logger:      zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return c.Dial(ctx, "tcp", address) }),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: 500 * time.Millisecond},
				MinConnectTimeout: answerTimeout,
			}),
		},
	})
}

func await(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
