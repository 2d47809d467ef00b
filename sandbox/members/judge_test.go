package members

import (
	"errors"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func running(names ...string) []pod {
	var pods []pod
	for _, name := range names {
		pods = append(pods, pod{name: name, phase: corev1.PodRunning, ip: "10.244.0.1", requested: "3.2.13"})
	}
	return pods
}

// list are members of the given names, whose numbers are 1, 2, 3…; a name that begins with + is a learner's.
func list(names ...string) []*pb.Member {
	var out []*pb.Member
	for i, name := range names {
		plain := strings.TrimPrefix(name, "+")
		out = append(out, &pb.Member{ID: uint64(i + 1), Name: plain, IsLearner: plain != name})
	}
	return out
}

func says(id, leader, term, index uint64, members []*pb.Member) answer {
	return answer{members: members, status: &pb.StatusResponse{
		Header: &pb.ResponseHeader{MemberId: id, ClusterId: 7}, Version: "3.6.8", Leader: leader, RaftTerm: term, RaftIndex: index,
	}}
}

var silent = answer{err: status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp 10.244.0.1:2379: connect: connection refused"`)}

// picture formats the essential part of a membership in one line.
func picture(m trace.Membership) string {
	words := []string{trace.QuorumText(m, trace.English)}
	for _, member := range m.Members {
		word := member.Name + "=" + string(member.Role) + "/" + string(member.State)
		if member.Problem != "" {
			word += "(" + member.Problem + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestJudge(t *testing.T) {
	three := list("a", "b", "c")
	for _, test := range []struct {
		name    string
		pods    []pod
		answers map[string]answer
		before  []*pb.Member
		want    string
	}{
		{"nothing", nil, nil, nil, "no members yet"},
		{
			"a pod that does not run yet",
			[]pod{{name: "a", phase: corev1.PodPending, problem: "ErrImagePull"}},
			nil, nil,
			"no members yet a=/pending(ErrImagePull)",
		},
		{"one", running("a"), map[string]answer{"a": says(1, 1, 2, 5, list("a"))}, nil, "quorum 1/1, need 1 a=leader/up"},
		{
			"a learner, which is asked for no members", running("a", "b"),
			map[string]answer{"a": says(1, 1, 2, 5, list("a", "+b")), "b": says(2, 1, 2, 4, nil)},
			nil,
			"quorum 1/1, need 1 a=leader/up b=learner/up",
		},
		{
			"a voter that has not started has no name", running("a", "b"),
			map[string]answer{
				"a": says(1, 0, 2, 5, []*pb.Member{{ID: 1, Name: "a"}, {ID: 2, PeerURLs: []string{"http://b.kv.default.svc:2380"}}}), "b": silent,
			},
			nil,
			"NO QUORUM 1/2, need 2 a=voter/leaderless b=voter/down(connection refused)",
		},
		{
			"one of three dies", running("a", "b"),
			map[string]answer{"a": says(1, 1, 2, 9, three), "b": says(2, 1, 2, 9, three)},
			nil,
			"quorum 2/3, need 2 a=leader/up b=voter/up c=voter/absent",
		},
		{
			"who is behind is not believed", running("a", "b", "c"),
			map[string]answer{"a": says(1, 1, 2, 5, list("a")), "b": says(2, 2, 3, 9, three), "c": says(3, 2, 3, 9, three)},
			nil,
			"quorum 3/3, need 2 a=voter/up b=leader/up c=voter/up",
		},
		{
			"a leader that does not answer leads nobody", running("a", "b", "c"),
			map[string]answer{"a": silent, "b": says(2, 1, 2, 9, three), "c": says(3, 1, 2, 9, three)},
			nil,
			"no leader, 2/3, need 2 a=voter/down(connection refused) b=voter/up c=voter/up",
		},
		{
			"one that starts", running("a"),
			map[string]answer{"a": {err: silent.err, starting: true}},
			list("a"),
			"NO QUORUM 0/1, need 1 a=voter/pending",
		},
		{
			"all are dead", nil, nil, three,
			"NO QUORUM 0/3, need 2 a=voter/absent b=voter/absent c=voter/absent",
		},
		{
			"a pod that is no member", running("a", "z"),
			map[string]answer{"a": says(1, 1, 2, 9, list("a")), "z": silent},
			nil,
			"quorum 1/1, need 1 a=leader/up z=outsider/down(connection refused)",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			seen, _ := judge(test.pods, test.answers, test.before)
			if got := picture(seen); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestJudgeTellsClustersApart(t *testing.T) {
	other := says(9, 9, 1, 3, list("z"))
	other.status.Header.ClusterId = 8
	seen, _ := judge(running("a", "z"), map[string]answer{"a": says(1, 1, 2, 9, list("a")), "z": other}, nil)
	if got, want := picture(seen), "quorum 1/1, need 1 a=leader/up z=outsider/up(is in a cluster of its own)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if seen.Program != "etcd 3.6.8" || seen.Members[0].Requested != "3.2.13" {
		t.Errorf("%+v", seen)
	}
}

func TestAlarms(t *testing.T) {
	a := says(5, 5, 1, 1, []*pb.Member{{ID: 5, Name: "a"}})
	a.status.Errors = []string{"memberID:5 alarm:NOSPACE ", "memberID:6 alarm:CORRUPT ", "etcdserver: no leader"}
	seen, _ := judge(running("a"), map[string]answer{"a": a}, nil)
	if got := seen.Members[0].Alarms; !slices.Equal(got, []string{"NOSPACE"}) {
		t.Errorf("got %v", got)
	}
}

func TestPods(t *testing.T) {
	for image, want := range map[string]string{
		"quay.io/coreos/etcd:v3.2.13": "3.2.13", "etcd": "", "localhost:5000/etcd": "", "etcd:3.1.10@sha256:abc": "3.1.10",
	} {
		if got := imageVersion(image); got != want {
			t.Errorf("%s: %q", image, got)
		}
	}
	for command, want := range map[string]bool{
		"etcd --listen-client-urls=https://0.0.0.0:2379":                    true,
		"etcd --listen-client-urls https://0.0.0.0:2379":                    true,
		"/bin/sh -ec exec etcd --listen-client-urls=https://0.0.0.0:2379":   true,
		"etcd --listen-client-urls=http://0.0.0.0:2379":                     false,
		"etcd --listen-peer-urls=https://0.0.0.0:2380 --listen-client-urls": false,
	} {
		if got := ServesTLS([]string{command}); got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
	p := podOf(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{versionAnnotation: "3.1.10"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Image: "etcd:v3.2.13"}}},
	})
	if p.requested != "3.1.10" {
		t.Errorf("%+v", p)
	}
}

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{silent.err, "connection refused"},
		{status.Error(codes.DeadlineExceeded, "context deadline exceeded"), "no answer in 1s"},
		{status.Error(codes.Unavailable, "etcdserver:  no\nleader"), "etcdserver: no leader"},
		{status.Error(codes.Unavailable, `connection error: desc = "error reading server preface: read tcp 127.0.0.1:1->127.0.0.1:2: use of closed network connection"`), "it accepts connections and says nothing"},
		{errors.New("else"), "else"},
	} {
		if got := explain(test.err); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func FuzzAlarm(f *testing.F) {
	f.Add("memberID:5 alarm:NOSPACE ")
	f.Fuzz(func(t *testing.T, text string) {
		if id, alarm, is := alarmOf(text); is && (id == "" || alarm == "") {
			t.Errorf("%q has an alarm without a name", text)
		}
	})
}

func FuzzImageVersion(f *testing.F) {
	f.Add("quay.io/coreos/etcd:v3.2.13@sha256:abc")
	f.Fuzz(func(t *testing.T, image string) {
		if v := imageVersion(image); !strings.Contains(image, v) || strings.ContainsAny(v, "/@") {
			t.Errorf("%q has version %q", image, v)
		}
	})
}
