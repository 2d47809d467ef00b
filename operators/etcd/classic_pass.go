package etcd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// classicMembers are the members of a cluster by name, with their IDs. An ID is 0 as long as etcd has not been asked for
// it: that of the first member, until something fails (E-11).
type classicMembers map[string]uint64

// names in a settled order, so that a seed makes the same choices.
func (m classicMembers) names() []string { return slices.Sorted(maps.Keys(m)) }

// without are the members that are not among others.
func (m classicMembers) without(others classicMembers) classicMembers {
	rest := classicMembers{}
	for name, id := range m {
		if _, there := others[name]; !there {
			rest[name] = id
		}
	}
	return rest
}

// equal tells whether the names are the same.
func (m classicMembers) equal(others classicMembers) bool {
	return len(m) == len(others) && len(m.without(others)) == 0
}

type classicPods []corev1.Pod

func classicNames(pods classicPods) []string {
	names := make([]string, len(pods))
	for i := range pods {
		names[i] = pods[i].Name
	}
	return names
}

// members are those of the pods.
func (p classicPods) members() classicMembers {
	members := classicMembers{}
	for _, name := range classicNames(p) {
		members[name] = 0
	}
	return members
}

// pods are those of the cluster that run, and those that do not yet. One that has ended is as good as none, and so is one
// that is being deleted, or that is somebody else's.
func (c *classicCluster) pods(ctx context.Context) (running, pending classicPods, err error) {
	list := &corev1.PodList{}
	err = c.reader.List(ctx, list, client.InNamespace(c.cluster.Namespace), client.MatchingLabels(classicLabels(c.cluster)))
	if err != nil {
		return nil, nil, err
	}
	for _, pod := range list.Items {
		if !pod.DeletionTimestamp.IsZero() {
			continue
		}
		if len(pod.OwnerReferences) == 0 || pod.OwnerReferences[0].UID != c.cluster.UID {
			log.FromContext(ctx).Info("ignoring a pod that belongs to somebody else", "pod", pod.Name)
			continue
		}
		switch pod.Status.Phase {
		case corev1.PodRunning:
			running = append(running, pod)
		case corev1.PodPending:
			pending = append(pending, pod)
		default: // it has ended
		}
	}
	return running, pending, nil
}

// classicFatal is an error after which the cluster has failed for good.
type classicFatal struct{ error }

// Error is of error.
func (e *classicFatal) Error() string { return e.error.Error() }

// askMembers asks etcd for its members, through the pods that run. A current etcd tells only with a quorum; one of the
// operator's time told what it knew.
func (c *classicCluster) askMembers(ctx context.Context, running classicPods) error {
	list, err := c.listMembers(ctx, running.members())
	if err != nil {
		return err
	}
	members := classicMembers{}
	for _, m := range list {
		name, err := classicMemberName(m.PeerURLs)
		if err != nil {
			return &classicFatal{err}
		}
		members[name] = m.ID
	}
	c.members = members
	return nil
}

// classicMemberName is the first label of the host by which the other members know one. A member that has not started yet
// has no other name.
func classicMemberName(peerURLs []string) (string, error) {
	if len(peerURLs) == 0 {
		return "", errors.New("a member without a peer URL")
	}
	u, err := url.Parse(peerURLs[0])
	if err != nil {
		return "", fmt.Errorf("a member with the peer URL %q: %w", peerURLs[0], err)
	}
	name, _, _ := strings.Cut(u.Hostname(), ".")
	if name == "" || u.Scheme == "" || u.Path != "" {
		return "", fmt.Errorf("a member with the peer URL %q", peerURLs[0])
	}
	return name, nil
}

// errClassicQuorum is not fatal: it comes again in every pass, and nobody is told (E-01).
var errClassicQuorum = errors.New("lost quorum")

// reconcile makes one change, of the membership or of the version.
func (c *classicCluster) reconcile(ctx context.Context, pods classicPods) error {
	defer func() { c.status.Size = len(c.members) }()
	spec, running := c.cluster.Spec, pods.members()
	if !running.equal(c.members) || len(c.members) != spec.Size {
		return c.reconcileMembers(ctx, running)
	}
	c.status.clear(classicScaling)
	if old := classicOldPod(pods, spec.Version); old != nil {
		c.status.setUpgrading(spec.Version)
		return c.upgrade(ctx, old.Name)
	}
	c.status.clear(classicUpgrading)
	c.status.CurrentVersion = spec.Version
	// The pods run. Whether they are Ready, or etcd has a leader, was not asked, and it is never taken back (E-08).
	c.status.setAvailable()
	return nil
}

// classicOldPod is one of another version; nil: there is none. All pods run then, and that is all that is known of them:
// one that was upgraded a pass ago may still be starting (E-06).
func classicOldPod(pods classicPods, version string) *corev1.Pod {
	for i := range pods {
		if pods[i].Annotations[VersionAnnotation] != version {
			return &pods[i]
		}
	}
	return nil
}

// reconcileMembers brings pods and members together. A pod that is no member, as far as the operator believes, is deleted.
func (c *classicCluster) reconcileMembers(ctx context.Context, running classicMembers) error {
	logger := log.FromContext(ctx)
	logger.Info("comparing", "running", running.names(), "members", c.members.names())
	unexpected := running.without(c.members)
	for _, name := range unexpected.names() {
		logger.Info("deleting an unexpected pod", "pod", name)
		if err := c.deletePod(ctx, name); err != nil {
			return err
		}
	}
	alive := running.without(unexpected)
	switch {
	case len(alive) == len(c.members):
		return c.resize(ctx)
	case len(alive) < len(c.members)/2+1:
		return errClassicQuorum
	}
	return c.removeDead(ctx, c.pick(c.members.without(alive)))
}

// pick picks one of several members: any.
func (c *classicCluster) pick(members classicMembers) string {
	names := members.names()
	return names[c.choice.IntN(len(names))]
}

// resize adds or removes one member.
func (c *classicCluster) resize(ctx context.Context) error {
	switch size := len(c.members); {
	case size < c.cluster.Spec.Size:
		return c.addMember(ctx)
	case size > c.cluster.Spec.Size:
		c.status.setScaling(size, c.cluster.Spec.Size)
		return c.removeMember(ctx, c.pick(c.members)) // it may be the leader (E-13), or the last one (E-14)
	}
	return nil
}

// createSeed creates the first member. Its ID is etcd's to give, and is not asked for (E-11).
func (c *classicCluster) createSeed(ctx context.Context) error {
	name, err := c.newName(ctx)
	if err != nil {
		return err
	}
	members := classicMembers{name: 0}
	if err := c.createPod(ctx, name, members, true); err != nil {
		return fmt.Errorf("create the first member %s: %w", name, err)
	}
	c.members = members
	c.event(ctx, classicEventAdded, fmt.Sprintf("%s is a member now", name))
	return nil
}

// addMember adds a member that votes at once. From here until its process has joined, the cluster needs one voter more
// than before, and has not got it: of one member, nothing can be written until then (E-04).
func (c *classicCluster) addMember(ctx context.Context) error {
	c.status.setScaling(len(c.members), c.cluster.Spec.Size)
	name, err := c.newName(ctx)
	if err != nil {
		return err
	}
	id, err := c.addVoter(ctx, c.members, peerURL(c.cluster, name))
	if err != nil {
		// If it was the answer that got lost, etcd has a member that has no pod (E-05).
		return fmt.Errorf("add member %s: %w", name, err)
	}
	c.members[name] = id
	if err := c.createPod(ctx, name, c.members, false); err != nil {
		return fmt.Errorf("create the pod of member %s: %w", name, err)
	}
	c.event(ctx, classicEventAdded, fmt.Sprintf("%s is a member now", name))
	return nil
}

func (c *classicCluster) removeDead(ctx context.Context, name string) error {
	c.event(ctx, classicEventReplacing, fmt.Sprintf("%s has no running pod, and another member takes its place", name))
	return c.removeMember(ctx, name)
}

// removeMember removes a member and its pod. That etcd does not know a member of the ID is as good: it must have been
// removed before. But of the first member the ID may be 0, which nobody has: then etcd keeps it (E-11).
func (c *classicCluster) removeMember(ctx context.Context, name string) error {
	logger, id := log.FromContext(ctx), c.members[name]
	err := c.removeVoter(ctx, c.members, id)
	if errors.Is(err, rpctypes.ErrMemberNotFound) {
		logger.Info("etcd does not know the member: it has been removed already", "member", name, "id", id)
		err = nil
	}
	if err != nil {
		return fmt.Errorf("remove member %s: %w", name, err)
	}
	delete(c.members, name)
	c.event(ctx, classicEventRemoved, fmt.Sprintf("%s is no member any more", name))
	if err := c.deletePod(ctx, name); err != nil {
		return err
	}
	if classicClaims(c.cluster) {
		return c.deleteClaim(ctx, name)
	}
	return nil
}
