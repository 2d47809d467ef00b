package etcd

import (
	"context"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/operator-lab/operator-lab/operators/kit"
)

// TestClaimOfAStranger goes through what becomes of the claim of a member that etcd does not know, and of whose pod the
// cache does not know.
func TestClaimOfAStranger(t *testing.T) {
	cluster := newTestCluster("ns")
	cluster.UID = "uid"
	named := metav1.ObjectMeta{Namespace: "ns", Name: "example-1", OwnerReferences: []metav1.OwnerReference{*ownedBy(cluster)}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: named}
	for name, test := range map[string]struct {
		live []client.Object
		kept bool
	}{
		"its pod is gone":        {[]client.Object{claim}, false},
		"the API server has one": {[]client.Object{claim, &corev1.Pod{ObjectMeta: named}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(test.live...).Build()
			r := &hardenedMembers{clusterWriter: clusterWriter{
				client: api, live: api, writer: kit.Writer{Client: api, Live: api}, events: events.NewFakeRecorder(10),
			}}
			p := &clusterPass{clusterState: clusterState{cluster: cluster, claims: []*corev1.PersistentVolumeClaim{claim.DeepCopy()}}}
			p.view = view{quorum: true, list: []*pb.Member{{Name: "example-2"}}}
			p.join()
			busy, err := r.bringBack(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			err = api.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(claim), &corev1.PersistentVolumeClaim{})
			if client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if kept := err == nil; kept != test.kept || busy != test.kept {
				t.Errorf("the claim is kept: %t, and the pass waits: %t, want %t for both", kept, busy, test.kept)
			}
		})
	}
}
