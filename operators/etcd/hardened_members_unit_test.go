package etcd

import (
	"context"
	"strconv"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
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

// TestNextToDefragment goes through which member's database is written anew.
func TestNextToDefragment(t *testing.T) {
	type database struct{ size, used, packedAt int64 } // in MiB, and the revision, which is 7
	for name, test := range map[string]struct {
		databases []database // the first leads
		full      bool       // of the quota of 200
		want      string
	}{
		"none is fragmented":    {[]database{{200, 150, 0}, {200, 150, 0}}, false, ""},
		"the fragmented one":    {[]database{{200, 150, 0}, {200, 150, 0}, {200, 90, 0}}, false, "2"},
		"it is too small":       {[]database{{200, 150, 0}, {200, 150, 0}, {20, 9, 0}}, false, ""},
		"the leader last":       {[]database{{200, 50, 0}, {200, 50, 0}, {200, 50, 0}}, false, "1"},
		"only the leader":       {[]database{{200, 50, 0}, {200, 150, 0}}, false, "0"},
		"full":                  {[]database{{200, 200, 0}, {200, 200, 0}}, true, "1"},
		"full, and mended":      {[]database{{200, 200, 0}, {20, 20, 0}}, true, "0"},
		"full, all was done":    {[]database{{200, 200, 7}, {200, 200, 7}}, true, ""},
		"full, then compacted":  {[]database{{200, 200, 7}, {200, 150, 7}}, true, "1"},
		"full, it was long ago": {[]database{{200, 200, 7}, {200, 200, 5}}, true, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &clusterState{cluster: newTestCluster("ns")}
			p.cluster.Spec.Defragment = &v1beta2.DefragmentPolicy{FreePercent: 50, MinimumSize: resource.MustParse("100Mi")}
			for i, d := range test.databases {
				status := &pb.StatusResponse{
					Header: &pb.ResponseHeader{Revision: 7}, Leader: 1, DbSize: d.size << 20, DbSizeInUse: d.used << 20, DbSizeQuota: 200 << 20,
				}
				p.members = append(p.members, &member{
					name: strconv.Itoa(i), id: uint64(i + 1), inEtcd: true, started: true, status: status, packedAt: d.packedAt,
				})
			}
			p.view = view{quorum: true, leader: 1}
			if test.full {
				p.view.alarms = []alarm{{1, pb.AlarmType_NOSPACE}}
			}
			got := ""
			if m := p.nextToDefragment(); m != nil {
				got = m.name
			}
			if got != test.want {
				t.Errorf("it is %q, not %q", got, test.want)
			}
		})
	}
}

// TestHasSpace: the alarm of a member is taken back when that one has space again, and of one that was removed when all others have.
func TestHasSpace(t *testing.T) {
	for name, test := range map[string]struct {
		id    uint64
		sizes []int64 // in MiB, of a quota of 200; 0: it does not answer
		want  bool
	}{
		"it has":                       {1, []int64{20, 200}, true},
		"it has not":                   {1, []int64{200, 20}, false},
		"it does not answer":           {1, []int64{0, 20}, false},
		"removed, all have":            {9, []int64{20, 20}, true},
		"removed, one has not":         {9, []int64{20, 200}, false},
		"removed, one does not answer": {9, []int64{0, 20}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &clusterState{cluster: newTestCluster("ns")}
			for i, size := range test.sizes {
				m := &member{name: strconv.Itoa(i), id: uint64(i + 1), inEtcd: true, started: true}
				if size > 0 {
					m.status = &pb.StatusResponse{DbSize: size << 20, DbSizeQuota: 200 << 20}
				}
				p.members = append(p.members, m)
			}
			p.view.alarms = []alarm{{test.id, pb.AlarmType_NOSPACE}}
			if full := p.view.full(); len(full) != 1 || full[0] != test.id {
				t.Errorf("full are %v", full)
			}
			if got := p.members.hasSpace(test.id); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}
