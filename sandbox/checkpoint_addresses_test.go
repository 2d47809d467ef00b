package sandbox

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// TestRestoreKeepsAddresses: the API server deletes an IPAddress of more than a minute whose Service it does not know. After
// a restore it is told of both at once, in any order.
func TestRestoreKeepsAddresses(t *testing.T) {
	t.Parallel()
	if _, err := FindBinary(); err != nil {
		t.Skip(err)
	}
	s, err := Start(t.Context(), Options{StateDir: t.TempDir(), Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	const services = 40
	for i := range services {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("service-", i)}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		if _, err := c.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.age(t)
	onlyEventsExpire(t, s)
	was := addressesOf(t, c)
	if len(was) < services {
		t.Fatalf("there are only %d addresses", len(was))
	}
	point, err := s.Checkpoints().Save(t.Context(), "services")
	if err != nil {
		t.Fatal(err)
	}
	rounds := 3 // one finds it in most runs
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		for i := range services {
			if err := c.CoreV1().Services("default").Delete(t.Context(), fmt.Sprint("service-", i), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return len(addressesOf(t, c)) == len(was)-services, nil
		})
		if err != nil {
			t.Fatalf("the addresses do not go with their Services: %v", err)
		}
		if err := s.Checkpoints().Restore(t.Context(), point); err != nil {
			t.Fatal(err)
		}
		now := addressesOf(t, c)
		for name, uid := range was {
			if now[name] != uid {
				t.Errorf("the address %s is %q, and was %q", name, now[name], uid)
			}
		}
	}
}

// onlyEventsExpire fails if a checkpoint would hold a key with which the running API server reports that it is alive:
// written again, it would outlive that server.
func onlyEventsExpire(t *testing.T, s *Sandbox) {
	t.Helper()
	client, err := s.plane.etcdAPI(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	for _, prefix := range []string{"masterleases/", "peerserverleases/"} {
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			answer, err := client.Get(ctx, registry+prefix, clientv3.WithPrefix())
			return err == nil && answer.Count > 0 && answer.Kvs[0].Lease != 0, err
		})
		if err != nil {
			t.Fatalf("the API server reports nothing below %s: %v", prefix, err)
		}
	}
	all, err := readStore(t.Context(), client, registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range all.Kvs {
		if key := string(kv.Key); kv.Lease != 0 && !strings.HasPrefix(key, registry+"events/") {
			t.Errorf("a checkpoint holds %s, which expires", key)
		}
	}
}

// addressesOf returns the UIDs of all IPAddresses by name.
func addressesOf(t *testing.T, c kubernetes.Interface) map[string]types.UID {
	t.Helper()
	list, err := c.NetworkingV1().IPAddresses().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]types.UID{}
	for _, each := range list.Items {
		uids[each.Name] = each.UID
	}
	return uids
}

// age makes all IPAddresses an hour older, which no API does.
func (s *Sandbox) age(t *testing.T) {
	t.Helper()
	client, err := s.plane.etcdAPI(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	now, err := readStore(t.Context(), client, addresses)
	if err != nil {
		t.Fatal(err)
	}
	codec := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme)
	for _, kv := range now.Kvs {
		address := &networkingv1.IPAddress{}
		if _, _, err := codec.Decode(kv.Value, nil, address); err != nil {
			t.Fatal(err)
		}
		address.CreationTimestamp = metav1.NewTime(address.CreationTimestamp.Add(-time.Hour))
		aged, err := runtime.Encode(clientgoscheme.Codecs.EncoderForVersion(codec, networkingv1.SchemeGroupVersion), address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Put(t.Context(), string(kv.Key), string(aged)); err != nil {
			t.Fatal(err)
		}
	}
}
