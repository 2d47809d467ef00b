package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

const recoverKey = v1beta2.RecoverAnnotation

// ask has a healthy voter do something, which may take a while.
func (r *hardenedMembers) ask(ctx context.Context, p *clusterPass, do func(context.Context, *clientv3.Client) error) error {
	for _, m := range p.members.voters() {
		if m.pod != nil && m.healthy() {
			return r.askMember(ctx, p, m, do)
		}
	}
	return errors.New("no member answers that has a vote")
}

func (r *hardenedMembers) askMember(ctx context.Context, p *clusterPass, m *member, do func(context.Context, *clientv3.Client) error) error {
	conn, err := r.etcds.of(p).get(m.name)
	if err != nil {
		return fmt.Errorf("make a client of member %s: %w", m.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	p.moved = true
	return do(ctx, conn)
}

// refused notes what etcd does not want, or did not do in time. Whether it was done all the same the next look tells.
func (p *clusterPass) refused(what string, err error) error {
	if err == nil {
		return nil
	}
	p.progress("Waiting", fmt.Sprintf("%s: %s", what, plain(err)))
	p.lookAgain(learnerInterval)
	return nil
}

// remove has etcd forget a member, then deletes its pod, see deleteStrangers. The claim goes when the pod is gone.
func (r *hardenedMembers) remove(ctx context.Context, p *clusterPass, m *member) error {
	err := r.ask(ctx, p, func(ctx context.Context, conn *clientv3.Client) error {
		_, err := conn.MemberRemove(ctx, m.id)
		return err
	})
	if err != nil && !errors.Is(err, rpctypes.ErrMemberNotFound) {
		return p.refused("cannot remove "+m.name, err)
	}
	r.note(p, m.about(), corev1.EventTypeNormal, "MemberRemoved", "Remove", "Removed %s (%016x)", m.name, m.id)
	m.inEtcd = false
	p.lookAgain(learnerInterval)
	_, err = r.deleteStrangers(ctx, p)
	return err
}

// writeEntry has etcd write an entry that changes nothing, which is one to revoke a lease that never was. It takes that
// also when it has no space left, or is corrupt.
func (r *hardenedMembers) writeEntry(ctx context.Context, p *clusterPass) error {
	moved := p.moved
	defer func() { p.moved = moved }() // it is nothing that the status tells
	err := r.ask(ctx, p, func(ctx context.Context, conn *clientv3.Client) error {
		_, err := conn.Revoke(ctx, clientv3.NoLease)
		return err
	})
	if errors.Is(err, rpctypes.ErrLeaseNotFound) || errors.Is(err, rpctypes.ErrCorrupt) {
		return nil
	}
	return err
}

// about returns the related object of an event of a member: its pod, or nil, which must not be a nil pod in an interface.
func (m *member) about() runtime.Object {
	if m.pod == nil {
		return nil
	}
	return m.pod
}

// tendLearner sees a member through until it votes. There is never a second one.
func (r *hardenedMembers) tendLearner(ctx context.Context, p *clusterPass) (busy bool, err error) {
	for _, m := range p.members {
		if !m.inEtcd || !m.learner {
			continue
		}
		if len(p.members.voters()) >= p.target() {
			p.progress("Scaling", "removing "+m.name+", which is not needed any more")
			return true, r.remove(ctx, p, m)
		}
		if m.status != nil && m.started {
			return true, r.promote(ctx, p, m)
		}
		pod := m.pod
		switch {
		case pod == nil || pod.DeletionTimestamp != nil:
		case pod.Annotations[PolicyAnnotation] != policySum(p.cluster):
			return true, r.delete(ctx, pod) // it has nothing to lose, and comes again as it should be
		case pod.Spec.Containers[0].Image != imageOf(p.cluster, p.newVersion()):
			return true, r.setImage(ctx, p, m, p.newVersion())
		}
		if pod != nil && cannotStart(pod) != "" {
			p.trouble(ReasonMemberUnhealthy, "the new member %s does not start: %s", m.name, m.problem)
		}
		p.progress("Adding", fmt.Sprintf("waiting for the new member %s: %s", m.name, m.problemOr("it starts")))
		return true, nil
	}
	return false, nil
}

// promote gives a learner its vote, as soon as etcd agrees that it has caught up.
func (r *hardenedMembers) promote(ctx context.Context, p *clusterPass, m *member) error {
	for _, voter := range p.members.voters() {
		if !voter.healthy() {
			p.progress("Adding", fmt.Sprintf("%s gets its vote when %s is healthy: %s", m.name, voter.name, voter.problem))
			return nil
		}
	}
	err := r.ask(ctx, p, func(ctx context.Context, conn *clientv3.Client) error {
		_, err := conn.MemberPromote(ctx, m.id)
		return err
	})
	if err != nil {
		return p.refused(m.name+" learns and does not vote yet", err)
	}
	p.progress("Adding", m.name+" votes now")
	p.lookAgain(learnerInterval)
	r.note(p, m.about(), corev1.EventTypeNormal, "MemberPromoted", "Promote", "%s has caught up, and votes", m.name)
	return nil
}

// target returns how many members there should be now: one more than spec.size while members are replaced because of their
// policy, if a node may have room for it.
func (p *clusterState) target() int {
	size := p.cluster.Spec.Size
	if p.surges() && slices.ContainsFunc(p.members.voters(), p.outdated) {
		return size + 1
	}
	return size
}

// surges tells whether a member is replaced by adding the new one first. Where each needs a node of its own there may be
// none left for that. One or two members cannot spare any.
func (p *clusterState) surges() bool {
	return p.cluster.Spec.Size < 3 || !podPolicyOf(p.cluster).AntiAffinity
}

// outdated tells whether a member has to be replaced by another one to be as the policy says.
func (p *clusterState) outdated(m *member) bool {
	return m.pod != nil && m.pod.DeletionTimestamp == nil && p.differs(m.pod) && !p.inPlace(m)
}

// differs tells whether a pod is of another policy. One that another operator made is taken for one of this policy, until
// it says something else.
func (p *clusterState) differs(pod *corev1.Pod) bool {
	sum, ok := pod.Annotations[PolicyAnnotation]
	return ok && sum != policySum(p.cluster)
}

// inPlace tells whether a pod can be made again with the same data.
func (p *clusterState) inPlace(m *member) bool {
	return m.claim != nil && podPolicyOf(p.cluster).PersistentVolumeClaimSpec != nil
}

// resize adds a member, or removes one. Removing comes with the leader moved away, and never costs the quorum.
func (r *hardenedMembers) resize(ctx context.Context, p *clusterPass) (busy bool, err error) {
	there, target := len(p.members.voters()), p.target()
	if there == target {
		return false, nil
	}
	for _, m := range p.members.voters() {
		if !m.healthy() && there < target {
			p.progress("Scaling", fmt.Sprintf("a member is added when %s is healthy: %s", m.name, m.problem))
			return true, nil
		}
	}
	if there < target {
		return true, r.add(ctx, p)
	}
	m := p.leaver()
	p.progress("Scaling", fmt.Sprintf("from %d members to %d: removing %s", there, target, m.name))
	if !p.mayLose(m) {
		p.trouble(ReasonMemberUnhealthy, "%s cannot be removed while others do not answer", m.name)
		return true, nil
	}
	if m.id == p.view.leader {
		return true, r.moveLeader(ctx, p, m)
	}
	r.note(p, m.about(), corev1.EventTypeNormal, "ScalingIn", "Scale", "From %d members to %d: %s goes", there, target, m.name)
	return true, r.remove(ctx, p, m)
}

// add adds a member that learns at first: it counts for no quorum until it has caught up, so nothing waits for it.
func (r *hardenedMembers) add(ctx context.Context, p *clusterPass) error {
	name := memberName(p.cluster)
	p.progress("Scaling", fmt.Sprintf("from %d members to %d: adding one", len(p.members.voters()), p.target())) // etcd may refuse this name
	err := r.ask(ctx, p, func(ctx context.Context, conn *clientv3.Client) error {
		answer, err := conn.MemberAddAsLearner(ctx, []string{peerURL(p.cluster, name)})
		if err == nil {
			p.view.list = answer.Members
		}
		return err
	})
	if err != nil {
		return p.refused("cannot add a member", err)
	}
	r.note(p, nil, corev1.EventTypeNormal, "MemberAdded", "Add", "Added %s, which learns", name)
	return r.makePod(ctx, p, memberPod(p.cluster, name, p.newVersion(), p.birth.Token, p.joining()))
}

// leaver returns the member to remove: one that is not healthy, else one that is outdated, else the newest; the leader last.
func (p *clusterState) leaver() *member {
	return slices.MinFunc(p.members.voters(), func(a, b *member) int {
		for _, before := range []func(*member) bool{
			func(m *member) bool { return !m.healthy() },
			p.outdated,
			func(m *member) bool { return m.id != p.view.leader },
		} {
			if before(a) != before(b) {
				if before(a) {
					return -1
				}
				return 1
			}
		}
		return -bornAt(a).Compare(bornAt(b).Time)
	})
}

func bornAt(m *member) metav1.Time {
	if m.pod == nil {
		return metav1.Time{}
	}
	return m.pod.CreationTimestamp
}

// moveLeader has another member lead, so that nobody has to wait for an election.
func (r *hardenedMembers) moveLeader(ctx context.Context, p *clusterPass, from *member) error {
	for _, m := range p.members.voters() {
		if m == from || !m.healthy() {
			continue
		}
		err := r.askMember(ctx, p, from, func(ctx context.Context, conn *clientv3.Client) error {
			_, err := conn.MoveLeader(ctx, m.id)
			return err
		})
		if err != nil {
			return p.refused("cannot move the leader away from "+from.name, err)
		}
		r.note(p, m.about(), corev1.EventTypeNormal, "LeaderMoved", "Move", "%s leads in place of %s", m.name, from.name)
		p.lookAgain(learnerInterval)
		return nil
	}
	return p.refused("cannot move the leader away from "+from.name, errors.New("no other member is healthy"))
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
