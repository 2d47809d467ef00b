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

// begin makes the first members, lets them start together when all are there, and notes when a quorum of them answers.
func (r *hardenedMembers) begin(ctx context.Context, p *clusterPass) (busy bool, err error) {
	names := p.birth.firstMembers(p.cluster)
	var first []*member
	healthy, late := 0, false
	for _, name := range names {
		m := p.members.named(name)
		if m == nil || m.pod == nil {
			continue
		}
		first = append(first, m)
		if m.healthy() {
			healthy++
		} else {
			late = late || comesSoon(m.pod, p.now)
		}
	}
	switch {
	case p.view.quorum && healthy >= quorum(len(names)) && !late:
		if err := r.formed(ctx, p); err != nil {
			return true, err
		}
		r.note(p, first[0].pod, corev1.EventTypeNormal, "MemberAdded", "Add", "The first %s", are(names))
		return true, nil
	case len(first) < len(names):
		return true, r.makeFirst(ctx, p, names)
	}
	for _, m := range first {
		if busy, err := r.tendFirst(ctx, p, m); busy || err != nil {
			return true, err
		}
	}
	if len(names) > 1 {
		p.lookAgain(learnerInterval)
	}
	return true, nil
}

// are says who the members are.
func are(names []string) string {
	if len(names) == 1 {
		return "member is " + names[0]
	}
	return "members are " + strings.Join(names, ", ")
}

// tendFirst sees one of the first members through until it answers. It is busy when the pod was changed.
func (r *hardenedMembers) tendFirst(ctx context.Context, p *clusterPass, m *member) (busy bool, err error) {
	pod := m.pod
	outdated := pod.Annotations[PolicyAnnotation] != policySum(p.cluster)
	switch {
	case m.healthy():
		return false, nil
	case pod.DeletionTimestamp != nil:
	case ended(pod), outdated && !canAnswer(pod):
		return true, r.delete(ctx, pod)
	case pod.Spec.Containers[0].Image != imageOf(p.cluster, versionOf(p.cluster)):
		return true, r.setImage(ctx, p, m, versionOf(p.cluster))
	case gated(pod):
		p.moved = true
		return false, r.patchPod(ctx, pod, map[string]any{
			"metadata": map[string]any{"uid": pod.UID},
			"spec":     map[string]any{"schedulingGates": []any{map[string]any{"$patch": "delete", "name": BirthAnnotation}}},
		})
	}
	if reason := cannotStart(pod); reason != "" {
		kept := ""
		if p.birth.Before != "" {
			kept = "; the members of before are kept until it does: to go back to them, delete the EtcdRestore, or take the approval back"
		}
		p.trouble(ReasonMemberUnhealthy, "the first member, %s, does not start: %s%s", m.name, m.problemOr(reason), kept)
	}
	p.progress("Creating", fmt.Sprintf("waiting for the first member, %s: %s", m.name, m.problemOr("it starts")))
	return false, nil
}

// comesSoon tells whether a pod was made just now and nothing keeps it from starting.
func comesSoon(pod *corev1.Pod, now time.Time) bool {
	return pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && !ended(pod) && cannotStart(pod) == "" &&
		now.Sub(pod.CreationTimestamp.Time) < startPatience
}

// gated tells whether a first member waits for the others to be made. Its etcd has never run.
func gated(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool { return gate.Name == BirthAnnotation })
}

// makeFirst makes those of the first members that have no pod: one with the data that the life begins with, or all that
// begin without any. Of several none may start before all are there, so that one that is missing here has never run, or
// has its data in a claim.
func (r *hardenedMembers) makeFirst(ctx context.Context, p *clusterPass, names []string) error {
	s := seed{token: string(p.cluster.UID) + "-" + p.birth.Token}
	if uid, ok := strings.CutPrefix(p.birth.Source, fromRestore); ok {
		if p.restore == nil || string(p.restore.UID) != uid {
			p.trouble(ReasonRestoreFailed, "the EtcdRestore whose backup is being restored was deleted: create it again")
			return nil
		}
		s.backup = p.restore
	}
	if survivor, ok := strings.CutPrefix(p.birth.Source, fromMember); ok {
		s.member = survivor
	}
	// One that was formed meanwhile must not be begun a second time.
	if latest, err := r.knowsBirth(ctx, p); err != nil || !latest {
		return err
	}
	forgotten := slices.ContainsFunc(names, func(name string) bool {
		m := p.members.named(name)
		return (m == nil || m.pod == nil) && p.claim(name) == nil
	})
	if len(names) > 1 && forgotten {
		var live corev1.PodList // the cache may not know yet that they were let go
		if err := r.live.List(ctx, &live, client.InNamespace(p.cluster.Namespace)); err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		for i := range live.Items {
			if pod := &live.Items[i]; slices.Contains(names, pod.Name) && !gated(pod) {
				p.progress("Creating", "a first member is missing, and others have begun without it")
				p.lookAgain(learnerInterval)
				return nil
			}
		}
	}
	together := beginning{state: "new", token: s.token, members: map[string]string{}}
	for _, name := range names {
		together.members[name] = peerURL(p.cluster, name)
	}
	p.progress("Creating", "making them: the first "+are(names))
	for _, name := range names {
		if m := p.members.named(name); m != nil && m.pod != nil {
			continue
		}
		pod := memberPod(p.cluster, name, versionOf(p.cluster), p.birth.Token, together)
		s.addTo(pod, p.cluster, name, r.options)
		if len(names) > 1 {
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: BirthAnnotation}}
		}
		if err := r.makePod(ctx, p, pod); err != nil {
			return err
		}
	}
	return nil
}
