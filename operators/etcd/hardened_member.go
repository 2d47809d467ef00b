package etcd

import (
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
)

// member holds what the API and etcd say of one member.
type member struct {
	name    string
	pod     *corev1.Pod
	claim   *corev1.PersistentVolumeClaim
	id      uint64
	inEtcd  bool
	started bool
	learner bool
	status  *pb.StatusResponse // nil if it does not answer
	problem string             // why it does not
	// packedAt is the revision at which this operator has defragmented it last; 0 if that is not known. What etcd says of the
	// space in use does not tell: of a member that takes no writes it may still count what was forgotten.
	packedAt int64
	took     time.Duration // to answer
	habits   *habits       // nil if it is not compared with what is normal
}

// healthy tells whether a member answers, and knows a leader.
func (m *member) healthy() bool {
	return m.status != nil && m.status.Leader != 0 && m.inEtcd && m.started
}

// memberList holds the members of a cluster: those with a pod, and those that only etcd knows.
type memberList []*member

// named returns the member of a name, or nil.
func (l memberList) named(name string) *member {
	for _, m := range l {
		if m.name == name {
			return m
		}
	}
	return nil
}

// ofID returns the member of an ID, or nil.
func (l memberList) ofID(id uint64) *member {
	for _, m := range l {
		if m.id == id {
			return m
		}
	}
	return nil
}

// nameOfID returns the name of a member; of one that is not known, the ID as etcd writes it.
func (l memberList) nameOfID(id uint64) string {
	if m := l.ofID(id); m != nil {
		return m.name
	}
	return fmt.Sprintf("%016x", id)
}

// voters returns the members that vote.
func (l memberList) voters() (voters []*member) {
	for _, m := range l {
		if m.inEtcd && !m.learner {
			voters = append(voters, m)
		}
	}
	return voters
}

// split tells whether the members are of more than one etcd cluster, as an operator leaves them that begins a cluster anew
// beside its old members. Each of these has a quorum of its own, to which the others are strangers: none of them is to be
// believed before a person has chosen.
func (l memberList) split(one *member) string {
	for _, m := range l {
		if m.status != nil && m.status.Header.ClusterId != one.status.Header.ClusterId {
			return fmt.Sprintf("%s and %s are members of different clusters", one.name, m.name)
		}
	}
	return ""
}
