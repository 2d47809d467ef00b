package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hardenedMembers does what hardenedClusters does about members: it adds, upgrades, replaces and removes them.
type hardenedMembers struct {
	clusterWriter
	etcds   *etcds
	options Options
}

// move is one change of the members. It tells whether it did something, or waits for something: then nothing else is
// changed in this pass.
type move func(context.Context, *clusterPass) (busy bool, err error)

// tend does the one next thing about the members. Most of them need a quorum: what a quorum has not agreed on is
// not known, and what is not known is not acted upon.
func (r *hardenedMembers) tend(ctx context.Context, p *clusterPass) error {
	if !p.birthRecorded() || !p.tls.usable() {
		return nil
	}
	var moves []move
	switch {
	case !p.birth.Formed:
		moves = append(moves, r.clearEarlierLives, r.begin)
	case !p.view.quorum:
		moves = append(moves, r.clearEarlierLives, r.bringBack, r.makePods, r.undoImages, r.restoreLast, r.tellOfLoss)
	default:
		moves = append(moves, r.clearEarlierLives, r.wake, r.bringBack, r.removeGone, r.deleteStrangers, r.makePods, r.tendLearner,
			r.resize, r.settleImages, r.upgrade, r.roll, r.keepSmall)
	}
	for _, move := range moves {
		busy, err := move(ctx, p)
		if busy {
			p.lookAgain(changeInterval)
		}
		if busy || err != nil {
			return err
		}
	}
	return nil
}

// clearEarlierLives deletes what belongs to an earlier life of the cluster. Until the first members of this one have
// answered, the last life that was formed is kept: a backup that has changed since it was checked, a store that cannot be
// reached or a member that ends while it is copied costs nothing. Nothing waits for it but the clients, see markVoters.
func (r *hardenedMembers) clearEarlierLives(ctx context.Context, p *clusterPass) (busy bool, err error) {
	var earlier []client.Object
	for _, pod := range p.pods {
		if p.ours(pod) || p.isKept(pod) {
			continue
		}
		earlier = append(earlier, pod)
		if !overdue(pod, p.now) {
			p.progress("Clearing", "the members of before are being deleted")
		}
	}
	for _, claim := range p.claims {
		if !p.ours(claim) && !p.isKept(claim) {
			earlier = append(earlier, claim)
		}
	}
	if len(earlier) == 0 {
		return false, nil
	}
	// What seems to be of an earlier life may be of the next.
	if latest, err := r.knowsBirth(ctx, p); err != nil || !latest {
		return true, err
	}
	for _, obj := range earlier {
		if err := r.delete(ctx, obj); err != nil {
			return false, err
		}
	}
	return false, nil
}

// overdue tells whether a pod should have been gone for a while: its node, or the kubelet there, is lost.
func overdue(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && now.Sub(pod.DeletionTimestamp.Time) > overdueAfter
}

const overdueAfter = 5 * time.Second

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func (m *member) problemOr(other string) string {
	if m.problem != "" {
		return m.problem
	}
	return other
}

// makePod makes a member's claim, if it is to have one, and its pod.
func (r *hardenedMembers) makePod(ctx context.Context, p *clusterPass, pod *corev1.Pod) error {
	p.moved = true
	if podPolicyOf(p.cluster).PersistentVolumeClaimSpec != nil && p.claim(pod.Name) == nil {
		claim := memberClaim(p.cluster, pod.Name, p.birth.Token)
		if err := r.client.Create(ctx, claim, fieldOwner); ignoreExists(err) != nil {
			return fmt.Errorf("create PersistentVolumeClaim %s: %w", claim.Name, err)
		}
	}
	// One that exists was made by an earlier pass, whose event is on its way; names are not guessed.
	if err := r.client.Create(ctx, pod, fieldOwner); ignoreExists(err) != nil {
		return fmt.Errorf("create Pod %s: %w", pod.Name, err)
	}
	return nil
}

// wake has an entry written while a member runs and does not answer. One that was sent a snapshot takes what it has applied
// for nothing until it has applied an entry, too; until then it refuses to tell the others its name, and it serves nobody
// before that. Where clients do not write it would wait forever (etcd 3.6).
func (r *hardenedMembers) wake(ctx context.Context, p *clusterPass) (busy bool, err error) {
	waits := slices.ContainsFunc(p.members, func(m *member) bool { return m.inEtcd && m.status == nil && m.pod != nil && canAnswer(m.pod) })
	if !waits {
		return false, nil
	}
	p.lookAgain(changeInterval)
	return false, p.refused("cannot write an entry for a member that starts", r.writeEntry(ctx, p))
}

// bringBack makes the pods of members again whose data are in a claim: the same member, the same data, be there a quorum
// or not. A claim of a member that etcd does not know any more is deleted.
func (r *hardenedMembers) bringBack(ctx context.Context, p *clusterPass) (busy bool, err error) {
	for _, claim := range p.claims {
		if !p.ours(claim) || claim.DeletionTimestamp != nil {
			continue
		}
		m := p.members.named(claim.Name)
		switch {
		case p.view.quorum && (m == nil || !m.inEtcd):
			if m != nil && m.pod != nil {
				continue
			}
			if exists, err := r.podExists(ctx, p, claim.Name); exists || err != nil {
				return true, err
			}
			if err := r.delete(ctx, claim); err != nil {
				return true, err
			}
		case m != nil && m.pod != nil && ended(m.pod):
			if err := r.delete(ctx, m.pod); err != nil {
				return true, err
			}
			busy = true
		case m == nil || m.pod == nil:
			pod := memberPod(p.cluster, claim.Name, p.newVersion(), p.birth.Token, p.joining())
			pod.Spec.Volumes[0] = claimVolume(claim.Name) // whatever the policy says by now
			if err := r.makePod(ctx, p, pod); err != nil {
				return true, err
			}
			r.note(p, pod, corev1.EventTypeNormal, "MemberReturned", "Return", "Made the pod of %s again, with its data", claim.Name)
			p.progress("Returning", "bringing back "+claim.Name+" with its data")
			busy = true
		}
	}
	return busy && p.view.quorum, nil
}

func claimVolume(name string) corev1.Volume {
	return corev1.Volume{Name: dataVolume, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}
}

// joining returns how a new member joins the present ones.
func (p *clusterState) joining() beginning {
	b := beginning{state: "existing", members: map[string]string{}}
	for _, in := range p.view.list {
		for _, url := range in.PeerURLs {
			b.members[nameOf(in)] = url
		}
	}
	return b
}

// removeGone has etcd forget a member that does not come back: its pod is gone, or has ended, or is on a lost node, and
// its data with it. A member that is only slow is none of these.
func (r *hardenedMembers) removeGone(ctx context.Context, p *clusterPass) (busy bool, err error) {
	for _, m := range p.members {
		if !m.inEtcd || !m.gone(p.now) {
			continue
		}
		if !m.started && m.pod == nil && len(p.members.voters()) < p.target() {
			continue // a member that was added and has no pod yet gets it
		}
		if m.pod == nil {
			if exists, err := r.podExists(ctx, p, m.name); exists || err != nil {
				return true, err
			}
		}
		if !p.mayLose(m) {
			p.trouble(ReasonMemberUnhealthy, "%s is gone, and cannot be replaced while others do not answer either", m.name)
			return true, nil
		}
		p.progress("Replacing", "replacing "+m.name+": "+m.problem)
		r.note(p, m.about(), corev1.EventTypeWarning, "ReplacingMember", "Replace", "%s is replaced: %s", m.name, m.problem)
		return true, r.remove(ctx, p, m)
	}
	return false, nil
}

// podExists asks the API server whether a member has a pod. The cache may be behind, and what is done about a member
// without a pod cannot be undone.
func (r *clusterWriter) podExists(ctx context.Context, p *clusterPass, member string) (bool, error) {
	err := r.live.Get(ctx, client.ObjectKey{Namespace: p.cluster.Namespace, Name: member}, &corev1.Pod{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get Pod %s: %w", member, err)
	}
	return err == nil, nil
}

// gone tells whether neither the process of a member nor its data come back.
func (m *member) gone(now time.Time) bool {
	switch {
	case m.status != nil:
		return false
	case m.pod == nil:
		return m.claim == nil || m.claim.DeletionTimestamp != nil
	case m.pod.DeletionTimestamp != nil:
		return overdue(m.pod, now)
	default:
		return ended(m.pod) && m.claim == nil
	}
}

// mayLose tells whether those that are left have a quorum among themselves.
func (p *clusterState) mayLose(gone *member) bool {
	if gone.learner {
		return true
	}
	left, healthy := 0, 0
	for _, m := range p.members.voters() {
		if m == gone {
			continue
		}
		left++
		if m.healthy() {
			healthy++
		}
	}
	return left > 0 && healthy >= quorum(left)
}

func quorum(voters int) int { return voters/2 + 1 }

// deleteStrangers deletes pods whose members etcd has been told to forget. Since a member is added before its pod is made,
// one that a quorum does not know was removed.
//
// Before that, those who stay write it down. Each knows it at once, but etcd writes what was agreed on only with the next
// entry: one that is killed before that comes back with the old list, and waits, when it is alone, for the vote of the one
// that is gone. While there is no such entry, the pod stays, and tells the next pass that this is still to be done.
func (r *hardenedMembers) deleteStrangers(ctx context.Context, p *clusterPass) (busy bool, err error) {
	for _, m := range p.members {
		if m.inEtcd || m.pod == nil || overdue(m.pod, p.now) {
			continue
		}
		if err := r.writeEntry(ctx, p); err != nil {
			return true, p.refused("cannot see to it that the removal of "+m.name+" is written down", err)
		}
		if err := r.delete(ctx, m.pod); err != nil {
			return true, err
		}
	}
	return false, nil
}

// makePods makes the pods of members that were added and have none: an operator ended in between, or the answer to its
// request got lost. Without a quorum it may be just they who are missing.
func (r *hardenedMembers) makePods(ctx context.Context, p *clusterPass) (busy bool, err error) {
	for _, m := range p.members {
		if !m.inEtcd || m.started || m.pod != nil {
			continue
		}
		if !strings.HasPrefix(m.name, p.cluster.Name+"-") {
			if !p.view.quorum {
				continue
			}
			p.progress("Replacing", "removing "+m.name+", which somebody else has added and never started")
			return true, r.remove(ctx, p, m)
		}
		p.progress("Adding", "making the pod of "+m.name)
		return true, r.makePod(ctx, p, memberPod(p.cluster, m.name, p.newVersion(), p.birth.Token, p.joining()))
	}
	return false, nil
}

// tellOfLoss says what a person can do about a lost quorum. Nothing is done about it without one: members that come back
// bring everything, a beginning with the data of one loses what only others knew, and the last backup all that came later.
func (r *hardenedMembers) tellOfLoss(ctx context.Context, p *clusterPass) (busy bool, err error) {
	backup, err := r.lastBackup(ctx, p.cluster) // without an answer the rest is told all the same
	var answer, back, lost []string
	for _, m := range p.members {
		switch {
		case m.pod != nil && p.ours(m.pod) && m.status != nil && !m.learner:
			answer = append(answer, m.name)
		case m.gone(p.now):
			lost = append(lost, m.name)
		default:
			back = append(back, m.name)
		}
	}
	approve := fmt.Sprintf("kubectl annotate --overwrite etcdcluster %s -n %s %s=", p.cluster.Name, p.cluster.Namespace, recoverKey)
	goBack := ""
	if backup != nil {
		goBack = fmt.Sprintf("go back to the last backup, of %s, which loses what came later: %s%s",
			backup.Status.LastSuccessDate.UTC().Format(time.RFC3339), approve, approvalOf(backup))
	}
	switch {
	case len(p.members) == 0 && len(p.claims) == 0:
		if goBack == "" {
			goBack = "restore a backup by an EtcdRestore named " + p.cluster.Name
		}
		p.trouble(ReasonDataLost, "no member is left, and no volume claim with data: %s, or begin without data: %s%s", goBack, approve, Nothing)
	case len(answer) == 0 && len(lost) == 0 && p.starting():
		p.progress("Starting", "waiting for members that start: "+strings.Join(back, ", "))
	default:
		text := p.view.problem
		if len(back) > 0 {
			text += fmt.Sprintf("; %s may come back by themselves: wait for them", strings.Join(back, ", "))
		}
		if len(lost) > 0 {
			text += fmt.Sprintf("; %s will not come back", strings.Join(lost, ", "))
		}
		if len(answer) > 0 {
			or := ""
			if len(back) > 0 {
				or = "or "
			}
			text += fmt.Sprintf("; %sbegin anew with the data of one that answers (%s), which loses what only the others knew: %s%s",
				or, strings.Join(answer, ", "), approve, answer[0])
		}
		if goBack != "" {
			text += "; or " + goBack
		}
		p.trouble(ReasonQuorumLost, "%s", text)
	}
	p.lookAgain(changeInterval)
	return false, err
}

// startPatience is the time after which an etcd that runs and does not answer is no longer taken for starting.
const startPatience = time.Minute

// runsInVain tells whether a pod's etcd has run for so long that it should answer.
func runsInVain(pod *corev1.Pod, now time.Time) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == containerName && c.State.Running != nil && !c.Ready {
			return now.Sub(c.State.Running.StartedAt.Time) > startPatience
		}
	}
	return false
}

// starting tells whether all members that there are may still be on their way.
func (p *clusterState) starting() bool {
	for _, m := range p.members {
		if m.pod == nil && m.claim == nil || m.pod != nil && (cannotStart(m.pod) != "" || runsInVain(m.pod, p.now)) || m.gone(p.now) {
			return false
		}
	}
	return len(p.members) > 0
}
