package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// newVersion returns the version for a new member: that of the spec, or, while the members may not or cannot be upgraded to
// it, the lowest that one of them runs.
func (p *clusterState) newVersion() string {
	lowest := p.lowestVersion()
	if lowest != "" && (p.upgradeProblem() != nil || p.stuckUpgrade() != nil) {
		return lowest
	}
	return versionOf(p.cluster)
}

// lowestVersion returns the oldest version that a member runs; empty if none has ever run. It decides the format of the data.
func (p *clusterState) lowestVersion() (lowest string) {
	for _, m := range p.members {
		if m.pod == nil {
			continue
		}
		if v := podVersion(m.pod); v != "" && (lowest == "" || older(v, lowest)) {
			lowest = v
		}
	}
	return lowest
}

// upgradeProblem returns why the members may not be upgraded to the version of the spec; nil if they may. Members that were
// upgraded may go back as long as one was not, since the data are still of the old version then.
func (p *clusterState) upgradeProblem() error {
	lowest := p.lowestVersion()
	if lowest == "" {
		return nil
	}
	return checkUpgrade(lowest, versionOf(p.cluster))
}

// stuckUpgrade returns a member that was given another image and does not start with it; nil if there is none.
func (p *clusterState) stuckUpgrade() *member {
	for _, m := range p.members {
		if m.pod == nil || m.pod.Annotations[UpgradedFromAnnotation] == "" || podReady(m.pod) && renewed(m.pod) {
			continue
		}
		if cannotStart(m.pod) != "" {
			return m
		}
	}
	return nil
}

// behind tells whether a member's pod is of another image than is asked for.
func (p *clusterState) behind(m *member) bool {
	return m.pod != nil && m.pod.DeletionTimestamp == nil &&
		(m.pod.Spec.Containers[0].Image != imageOf(p.cluster, versionOf(p.cluster)) ||
			m.pod.Annotations[VersionAnnotation] != versionOf(p.cluster))
}

// settleImages takes the note of an upgrade off members that have come back with their new image, and gives those that
// another operator made the sum of their policy.
func (r *hardenedMembers) settleImages(ctx context.Context, p *clusterPass) (busy bool, err error) {
	for _, m := range p.members.voters() {
		if m.pod == nil || m.pod.DeletionTimestamp != nil {
			continue
		}
		annotations := map[string]any{}
		if m.pod.Annotations[UpgradedFromAnnotation] != "" && podReady(m.pod) && renewed(m.pod) && m.healthy() {
			annotations[UpgradedFromAnnotation] = nil
		}
		if _, ok := m.pod.Annotations[PolicyAnnotation]; !ok {
			annotations[PolicyAnnotation] = policySum(p.cluster)
		}
		if len(annotations) == 0 {
			continue
		}
		change := map[string]any{"metadata": map[string]any{"uid": m.pod.UID, "annotations": annotations}}
		if err := r.patchPod(ctx, m.pod, change); err != nil {
			return true, err
		}
	}
	return false, nil
}

// upgrade gives the next member the image that is asked for, in place: its container is started again, its data stay. One
// that does not run goes first, the leader last; and only when all others are healthy and Ready, so the first that does
// not come back is the last that was touched.
func (r *hardenedMembers) upgrade(ctx context.Context, p *clusterPass) (busy bool, err error) {
	if err := p.upgradeProblem(); err != nil {
		p.trouble(ReasonUpgradeRefused, "%v; the members stay as they are", err)
		return false, nil
	}
	if m := p.stuckUpgrade(); m != nil && !p.behind(m) {
		p.trouble(ReasonUpgradeStuck, "%s does not come up as %s: %s; the others keep their version; set spec.version back to undo it",
			m.name, versionOf(p.cluster), m.problemOr(cannotStart(m.pod)))
		return true, nil
	}
	next := p.nextToUpgrade()
	if next == nil {
		return p.awaitUpgrade(), nil
	}
	p.progress("Upgrading", fmt.Sprintf("from %s to %s: %s is next", p.lowestVersion(), versionOf(p.cluster), next.name))
	for _, m := range p.members {
		if m != next && !m.settled() {
			p.progress("Upgrading", fmt.Sprintf("waiting for %s: %s", m.name, m.problemOr("it is not Ready")))
			p.lookAgain(learnerInterval)
			return true, nil
		}
	}
	if next.id == p.view.leader && len(p.members.voters()) > 1 {
		return true, r.moveLeader(ctx, p, next)
	}
	return true, r.setImage(ctx, p, next, versionOf(p.cluster))
}

// settled: healthy, Ready, and with the image it was given.
func (m *member) settled() bool {
	return m.healthy() && m.pod != nil && m.pod.DeletionTimestamp == nil && podReady(m.pod) && renewed(m.pod)
}

func (p *clusterState) nextToUpgrade() *member {
	var next []*member
	for _, m := range p.members {
		if p.behind(m) {
			next = append(next, m)
		}
	}
	if len(next) == 0 {
		return nil
	}
	rank := func(m *member) int {
		switch {
		case !m.healthy():
			return 0
		case m.id == p.view.leader:
			return 2
		}
		return 1
	}
	return slices.MinFunc(next, func(a, b *member) int {
		if rank(a) != rank(b) {
			return rank(a) - rank(b)
		}
		return strings.Compare(a.name, b.name)
	})
}

// awaitUpgrade waits for the member that was upgraded last.
func (p *clusterPass) awaitUpgrade() (busy bool) {
	for _, m := range p.members.voters() {
		if m.pod != nil && m.pod.Annotations[UpgradedFromAnnotation] != "" && !m.settled() {
			p.progress("Upgrading", fmt.Sprintf("waiting for %s: %s", m.name, m.problemOr("it is not Ready")))
			return true
		}
	}
	return false
}

// undoImages gives members that do not come up with their image the one that is asked for now. It needs no quorum, which
// they may be missing for.
func (r *hardenedMembers) undoImages(ctx context.Context, p *clusterPass) (busy bool, err error) {
	allowed := p.upgradeProblem() == nil
	for _, m := range p.members {
		if allowed && m.status == nil && p.behind(m) && cannotStart(m.pod) != "" {
			if err := r.setImage(ctx, p, m, versionOf(p.cluster)); err != nil {
				return true, err
			}
		}
	}
	if m := p.stuckUpgrade(); m != nil && !p.behind(m) {
		p.trouble(ReasonUpgradeStuck, "%s does not come up as %s: %s; set spec.version back to undo it",
			m.name, versionOf(p.cluster), m.problemOr(cannotStart(m.pod)))
	}
	return false, nil
}

// setImage changes the image of a pod, which starts its container again. What it was is noted on the pod. If somebody has given it
// the image by hand, only its version is written down.
func (r *hardenedMembers) setImage(ctx context.Context, p *clusterPass, m *member, version string) error {
	from, image := podVersion(m.pod), imageOf(p.cluster, version)
	annotations := map[string]any{VersionAnnotation: version, UpgradedFromAnnotation: nil}
	changes := m.pod.Spec.Containers[0].Image != image
	if from != "" && from != version && changes {
		annotations[UpgradedFromAnnotation] = from + " " + containerID(m.pod)
	}
	change := map[string]any{
		"metadata": map[string]any{"uid": m.pod.UID, "annotations": annotations},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": containerName, "image": image}}},
	}
	if err := r.patchPod(ctx, m.pod, change); err != nil {
		return err
	}
	p.moved = true
	if changes {
		r.note(p, m.pod, corev1.EventTypeNormal, "MemberUpgraded", "Upgrade", "%s gets %s in place of %s", m.name, version, from)
	}
	return nil
}

// roll makes the next member anew whose pod is of another policy: with its data, where they are in a claim, else as
// another member. One after the other, and only while all are healthy.
func (r *hardenedMembers) roll(ctx context.Context, p *clusterPass) (busy bool, err error) {
	var old []*member
	for _, m := range p.members.voters() {
		if m.pod != nil && m.pod.DeletionTimestamp == nil && p.differs(m.pod) {
			old = append(old, m)
		}
		if !m.settled() && len(old) > 0 {
			p.progress("Rolling", fmt.Sprintf("the pod policy has changed; waiting for %s: %s", m.name, m.problemOr("it is not Ready")))
			return true, nil
		}
	}
	if len(old) == 0 {
		return false, nil
	}
	for _, m := range p.members.voters() {
		if !m.settled() {
			p.progress("Rolling", fmt.Sprintf("the pod policy has changed; waiting for %s: %s", m.name, m.problemOr("it is not Ready")))
			return true, nil
		}
	}
	m := old[0]
	for _, other := range old {
		if other.id != p.view.leader {
			m = other
		}
	}
	if m.id == p.view.leader && len(p.members.voters()) > 1 {
		return true, r.moveLeader(ctx, p, m)
	}
	p.progress("Rolling", "the pod policy has changed: "+m.name+" is made anew")
	r.note(p, m.pod, corev1.EventTypeNormal, "ReplacingMember", "Replace", "%s is replaced: the pod policy has changed", m.name)
	if p.inPlace(m) {
		return true, r.delete(ctx, m.pod)
	}
	return true, r.remove(ctx, p, m) // there is one more than needed, or the next is added after this, see target
}
