package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// registry is the prefix of the keys of everything that an API server stores.
const registry = "/registry/"

// ofTheServer are prefixes of keys below which the running API server reports that it is alive. They belong to that
// server, and are no part of a checkpoint.
var ofTheServer = []string{
	"/registry/masterleases/", "/registry/peerserverleases/", "/registry/leases/kube-system/apiserver-",
}

// Limits of one transaction: by default etcd accepts 128 operations and 1.5 MiB.
const (
	transactionOperations = 128
	transactionBytes      = 1 << 20
)

// etcdAPI returns a client of etcd with the API server's certificate.
func (p *plane) etcdAPI(ctx context.Context) (*clientv3.Client, error) {
	config, err := p.etcdTLS()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{"127.0.0.1:" + strconv.Itoa(p.ports.Etcd)}, TLS: config,
		Logger: zap.NewNop(), // its errors report the same
	})
}

// store holds what etcd stores below [registry] as of one revision.
type store etcdserverpb.RangeResponse

// addresses is the prefix of the keys of IPAddresses, in which the API server keeps the addresses of Services.
const addresses = registry + "ipaddresses/"

// readStore reads everything that etcd stores below a prefix.
func readStore(ctx context.Context, client *clientv3.Client, prefix string) (*store, error) {
	answer, err := client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read what etcd stores: %w", err)
	}
	return (*store)(answer).without(ofTheServer), nil
}

// without removes the keys that begin with one of several prefixes from a store, and returns it.
func (s *store) without(prefixes []string) *store {
	s.Kvs = slices.DeleteFunc(s.Kvs, func(kv *mvccpb.KeyValue) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return bytes.HasPrefix(kv.Key, []byte(prefix)) })
	})
	return s
}

// below returns the part of a store whose keys begin with a prefix.
func (s *store) below(prefix string) *store {
	part := &store{}
	for _, kv := range s.Kvs {
		if bytes.HasPrefix(kv.Key, []byte(prefix)) {
			part.Kvs = append(part.Kvs, kv)
		}
	}
	return part
}

// save writes a store to a new file, preceded by its checksum.
func (s *store) save(file string) error {
	content, err := (*etcdserverpb.RangeResponse)(s).Marshal()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	return os.WriteFile(file, append(sum[:], content...), 0o600)
}

// loadStore reads a file of [store.save].
func loadStore(file string) (*store, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(b) < sha256.Size {
		return nil, fmt.Errorf("%s is damaged", file)
	}
	content := b[sha256.Size:]
	if sum := sha256.Sum256(content); !bytes.Equal(sum[:], b[:sha256.Size]) {
		return nil, fmt.Errorf("%s is damaged", file)
	}
	s := &store{}
	return s, (*etcdserverpb.RangeResponse)(s).Unmarshal(content)
}

// storeName returns the name of the file with the store at a revision. A checkpoint that another one of its name has
// replaced does not find its file.
func storeName(revision int64) string { return fmt.Sprintf("etcd-%d.db", revision) }

// saveStore saves what etcd stores to a file in dir, and returns the revision.
func (c *Checkpoints) saveStore(ctx context.Context, dir string) (revision int64, err error) {
	client, err := c.box.plane.etcdAPI(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = client.Close() }()
	now, err := readStore(ctx, client, registry)
	if err != nil {
		return 0, err
	}
	return now.Header.Revision, now.save(filepath.Join(dir, storeName(now.Header.Revision)))
}

// putBack writes the differences from an earlier store to etcd, and returns the revision at which there are none any
// more. Watches report it like any other write. Only the API server may write meanwhile; a write that it still had to
// finish for a client that is gone is found by comparing again.
func putBack(ctx context.Context, client *clientv3.Client, then *store) (revision int64, err error) {
	var failed error
	for range putBackRounds {
		leases, err := aliveLeases(ctx, client)
		if err != nil {
			return 0, err
		}
		now, err := readStore(ctx, client, registry)
		if err != nil {
			return 0, err
		}
		revision = now.Header.Revision
		changes := changes(now, then, leases)
		if len(changes) == 0 {
			return revision, nil
		}
		// A lease that has expired since it was listed is missing in the next round.
		if revision, failed = write(ctx, client, changes); failed != nil && !errors.Is(failed, rpctypes.ErrLeaseNotFound) {
			return 0, failed
		}
	}
	return revision, failed
}

// aliveLeases returns the IDs of the leases of etcd that have not expired.
func aliveLeases(ctx context.Context, client *clientv3.Client) (map[int64]bool, error) {
	answer, err := client.Leases(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the leases of etcd: %w", err)
	}
	alive := map[int64]bool{}
	for _, lease := range answer.Leases {
		alive[int64(lease.ID)] = true
	}
	return alive, nil
}

// write carries out operations, in as many transactions as it takes, and returns the revision of the last one.
func write(ctx context.Context, client *clientv3.Client, operations []clientv3.Op) (revision int64, err error) {
	for _, batch := range batches(operations) {
		answer, err := client.Txn(ctx).Then(batch...).Commit()
		if err != nil {
			return 0, fmt.Errorf("write to etcd what it stored: %w", err)
		}
		revision = answer.Header.Revision
	}
	return revision, nil
}

// putBackRounds limits how often the stores are compared. An API server that writes of its own accord, as when an
// aggregated API goes away or comes back, does not keep a restore from ending.
const putBackRounds = 3

// changes returns the operations that turn one store into the other. Events have leases that delete them after an hour:
// those whose lease has expired get none.
func changes(now, then *store, leases map[int64]bool) []clientv3.Op {
	surplus := map[string]*mvccpb.KeyValue{}
	for _, kv := range now.Kvs {
		surplus[string(kv.Key)] = kv
	}
	var all []clientv3.Op
	for _, kv := range then.Kvs {
		is := surplus[string(kv.Key)]
		delete(surplus, string(kv.Key))
		if is != nil && bytes.Equal(is.Value, kv.Value) {
			continue
		}
		var options []clientv3.OpOption
		if leases[kv.Lease] {
			options = append(options, clientv3.WithLease(clientv3.LeaseID(kv.Lease)))
		}
		all = append(all, clientv3.OpPut(string(kv.Key), string(kv.Value), options...))
	}
	for _, key := range slices.Sorted(maps.Keys(surplus)) {
		all = append(all, clientv3.OpDelete(key))
	}
	return all
}

// batches divides operations into transactions that etcd accepts.
func batches(all []clientv3.Op) (out [][]clientv3.Op) {
	var batch []clientv3.Op
	size := 0
	for _, op := range all {
		bytes := len(op.KeyBytes()) + len(op.ValueBytes())
		if len(batch) == transactionOperations || len(batch) > 0 && size+bytes > transactionBytes {
			out, batch, size = append(out, batch), nil, 0
		}
		batch, size = append(batch, op), size+bytes
	}
	if len(batch) > 0 {
		out = append(out, batch)
	}
	return out
}

// isEtcdAway reports whether an error says that etcd cannot be reached, or went away during the request.
func isEtcdAway(err error) bool {
	if said, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return said.Code() == codes.Unavailable
	}
	return status.Code(err) == codes.Unavailable
}
