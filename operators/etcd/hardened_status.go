package etcd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// Reasons of the condition Degraded of an EtcdCluster, the worst first, and of the events that tell of them.
const (
	ReasonSpecInvalid      = "SpecInvalid"
	ReasonNameTaken        = "NameTaken"
	ReasonTLSSecretInvalid = "TLSSecretInvalid" //nolint:gosec // the name of a reason
	ReasonRejected         = "Rejected"
	ReasonDataLost         = "DataLost"
	ReasonQuorumLost       = "QuorumLost"
	ReasonRestoreFailed    = "RestoreFailed"
	ReasonUpgradeStuck     = "UpgradeStuck"
	ReasonUpgradeRefused   = "UpgradeRefused"
	ReasonNoSpace          = "NoSpace"
	ReasonCorrupt          = "Corrupt"
	ReasonMemberUnhealthy  = "MemberUnhealthy"
	// ReasonAsExpected is that of Degraded and of Progressing while they are False.
	ReasonAsExpected = "AsExpected"
)

// Reasons of the condition Available of an EtcdCluster.
const (
	ReasonQuorumHealthy = "QuorumHealthy"
	ReasonCreating      = "Creating"
	// ReasonPaused is that of Progressing while spec.paused is set.
	ReasonPaused = "Paused"
)

var worst = []string{
	ReasonSpecInvalid, ReasonNameTaken, ReasonTLSSecretInvalid, ReasonRejected, ReasonDataLost, ReasonQuorumLost, ReasonRestoreFailed,
	ReasonUpgradeStuck, ReasonUpgradeRefused, ReasonNoSpace, ReasonCorrupt, ReasonMemberUnhealthy,
}

// trouble is something that is wrong.
type trouble struct{ reason, message string }

// progress is something that is on its way.
type progress struct{ reason, message string }

func (p *clusterPass) trouble(reason, text string, args ...any) {
	p.troubles = append(p.troubles, trouble{reason, fmt.Sprintf(text, args...)})
}

func (p *clusterPass) progress(reason, message string) {
	p.doing = append(p.doing, progress{reason, message})
}

// status returns the status that the cluster should have.
func (p *clusterPass) status() v1beta2.EtcdClusterStatus {
	s := v1beta2.EtcdClusterStatus{
		Phase:              v1beta2.ClusterPhaseRunning,
		ControlPaused:      p.cluster.Spec.Paused,
		ObservedGeneration: p.cluster.Generation,
		ServiceName:        clientService(p.cluster),
		ClientPort:         clientPort,
		RestoredFrom:       p.birth.Restored,
	}
	if !p.birth.Formed {
		s.Phase = v1beta2.ClusterPhaseCreating
	}
	slices.SortFunc(p.members, func(a, b *member) int { return cmp.Compare(a.name, b.name) })
	for _, m := range p.members {
		p.addMember(&s, m)
	}
	if p.view.quorum {
		s.LeaderID = fmt.Sprintf("%016x", p.view.leader)
	}
	s.CurrentVersion = cmp.Or(p.lowestVersion(), p.known.CurrentVersion)
	if target := versionOf(p.cluster); target != s.CurrentVersion && p.upgradeProblem() == nil {
		s.TargetVersion = target
	}
	s.Conditions = p.conditions()
	s.Proxies = p.proxyStatus()
	return s
}

func (p *clusterPass) addMember(s *v1beta2.EtcdClusterStatus, m *member) {
	if m.inEtcd || m.pod != nil && m.pod.DeletionTimestamp == nil {
		s.Size++
	}
	if m.pod != nil {
		if podReady(m.pod) && m.pod.DeletionTimestamp == nil {
			s.Members.Ready = append(s.Members.Ready, m.name)
		} else {
			s.Members.Unready = append(s.Members.Unready, m.name)
		}
	}
	told := v1beta2.Member{Name: m.name, Learner: m.learner, Healthy: m.healthy(), Message: m.problem}
	if m.id != 0 {
		told.ID = fmt.Sprintf("%016x", m.id)
		told.Leader = p.view.quorum && m.id == p.view.leader
	}
	if m.pod != nil {
		told.Version = m.pod.Annotations[VersionAnnotation]
	}
	if m.status != nil {
		told.ServerVersion = m.status.Version
	}
	if !told.Healthy && told.Message == "" {
		told.Message = "it is no member, or has not told so yet"
	}
	for _, a := range p.view.alarms {
		if a.member == m.id {
			told.Healthy, told.Message = false, "it has raised the alarm "+a.kind.String()
		}
	}
	s.MemberStatus = append(s.MemberStatus, told)
}

// conditions are the three that hardened has, and Abnormal where that is asked for.
func (p *clusterPass) conditions() []v1beta2.ClusterCondition {
	now := []v1beta2.ClusterCondition{p.available(), p.progressing(), p.degraded()}
	if p.cluster.Spec.Abnormality != nil {
		now = append(now, p.abnormal())
	}
	var all []v1beta2.ClusterCondition
	for _, c := range now {
		c.ObservedGeneration = p.cluster.Generation
		c.LastTransitionTime = p.now.UTC().Format(time.RFC3339)
		if old := conditionOf(p.known, c.Type); old != nil && old.Status == c.Status && old.LastTransitionTime != "" {
			c.LastTransitionTime = old.LastTransitionTime
		}
		all = append(all, c)
	}
	return all
}

func conditionOf(s v1beta2.EtcdClusterStatus, kind string) *v1beta2.ClusterCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			return &s.Conditions[i]
		}
	}
	return nil
}

func (p *clusterPass) available() v1beta2.ClusterCondition {
	c := v1beta2.ClusterCondition{Type: v1beta2.ConditionAvailable, Status: metav1.ConditionFalse, Reason: ReasonQuorumLost}
	voters, healthy := len(p.members.voters()), 0
	for _, m := range p.members.voters() {
		if m.healthy() {
			healthy++
		}
	}
	c.Message = fmt.Sprintf("%d of %d members healthy, quorum requires %d", healthy, voters, quorum(voters))
	switch {
	case p.tls.missing():
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, ReasonTLSSecretInvalid, "the members cannot be asked: "+p.tls.problem
	case !p.birth.Formed:
		c.Reason, c.Message = ReasonCreating, "the first member is not there yet"
		if p.birth.Size > 1 {
			c.Message = "the first members are not a cluster yet"
		}
		if p.servedByBefore() && p.anyMarked() {
			c.Message += "; until it is, clients reach the members of before"
		}
	case p.handingOver():
		c.Reason, c.Message = ReasonCreating, "clients are let in when the members of before are gone"
	case p.view.quorum && healthy >= quorum(voters):
		c.Status, c.Reason = metav1.ConditionTrue, ReasonQuorumHealthy
		if size := p.cluster.Spec.Size; size%2 == 0 {
			c.Message += fmt.Sprintf("; %d members tolerate no more failures than %d do", size, size-1)
		}
	case voters == 0:
		c.Message = cmp.Or(p.view.problem, "there is no member")
	default:
		c.Message += ": " + p.view.problem
	}
	return c
}

func (p *clusterPass) progressing() v1beta2.ClusterCondition {
	c := v1beta2.ClusterCondition{Type: v1beta2.ConditionProgressing, Status: metav1.ConditionFalse, Reason: ReasonAsExpected}
	switch {
	case p.cluster.Spec.Paused:
		c.Reason, c.Message = ReasonPaused, "nothing is changed while spec.paused is set"
	case len(p.doing) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, p.doing[0].reason, p.doing[0].message
	}
	return c
}

func (p *clusterPass) degraded() v1beta2.ClusterCondition {
	p.noteTroubles()
	c := v1beta2.ClusterCondition{Type: v1beta2.ConditionDegraded, Status: metav1.ConditionFalse, Reason: ReasonAsExpected}
	if len(p.troubles) == 0 {
		return c
	}
	slices.SortStableFunc(p.troubles, func(a, b trouble) int {
		return slices.Index(worst, a.reason) - slices.Index(worst, b.reason)
	})
	c.Status, c.Reason = metav1.ConditionTrue, p.troubles[0].reason
	var messages []string
	for _, t := range p.troubles {
		if !slices.Contains(messages, t.message) {
			messages = append(messages, t.message)
		}
	}
	c.Message = strings.Join(messages, "; ")
	return c
}

// noteTroubles adds what is wrong by itself, whatever the pass has tried.
func (p *clusterPass) noteTroubles() {
	if len(p.taken) > 0 {
		p.trouble(ReasonNameTaken, "%s belongs to somebody else: delete it, or use another name", strings.Join(p.taken, ", "))
	}
	byKind := map[pb.AlarmType][]string{}
	for _, a := range p.view.alarms {
		byKind[a.kind] = append(byKind[a.kind], p.members.nameOfID(a.member))
	}
	if full := byKind[pb.AlarmType_NOSPACE]; full != nil {
		advice := "delete and compact what is not needed, defragment, or raise ETCD_QUOTA_BACKEND_BYTES, then disarm the alarm: etcdctl alarm disarm"
		if p.cluster.Spec.Defragment != nil {
			advice = "the history is forgotten and the databases are defragmented; if that does not suffice, delete what is not needed, or raise ETCD_QUOTA_BACKEND_BYTES"
		}
		p.trouble(ReasonNoSpace, "%s has no space left: no writes are accepted; %s", strings.Join(full, ", "), advice)
	}
	if corrupt := byKind[pb.AlarmType_CORRUPT]; corrupt != nil {
		p.trouble(ReasonCorrupt, "the data of %s differ from those of the others: a person has to decide which are right", strings.Join(corrupt, ", "))
	}
	if !p.birth.Formed || !p.view.quorum {
		return
	}
	for _, m := range p.members.voters() {
		upgraded := m.pod != nil && m.pod.Annotations[UpgradedFromAnnotation] != "" && cannotStart(m.pod) == ""
		if !m.healthy() && !upgraded { // one that is being upgraded is away for a moment because it is told to be
			p.trouble(ReasonMemberUnhealthy, "%s is not healthy: %s", m.name, m.problemOr("it does not answer"))
		}
	}
}

// writeStatus writes the status if it differs from what it was, and tells in events what has become of the cluster. The
// version of the object that was looked at keeps it from overwriting what was written since.
func (r *hardenedClusters) writeStatus(ctx context.Context, p *clusterPass) error {
	status := p.status()
	if equality.Semantic.DeepEqual(status, p.known) {
		return nil
	}
	base := p.cluster.DeepCopy()
	base.Status = p.known
	next := base.DeepCopy()
	next.Status = status
	err := r.client.Status().Patch(ctx, next, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}), fieldOwner)
	if apierrors.IsNotFound(err) {
		return nil // deleted meanwhile
	}
	if apierrors.IsConflict(err) {
		p.lookAgain(learnerInterval)
		return nil // somebody changed the EtcdCluster: its event is on the way
	}
	if err != nil {
		return fmt.Errorf("patch the status: %w", err)
	}
	r.tell(p, status)
	r.written.Remember(next)
	return nil
}

// tell tells in events what differs from the last status in more than words.
func (r *hardenedClusters) tell(p *clusterPass, now v1beta2.EtcdClusterStatus) {
	if size := p.cluster.Spec.Size; size%2 == 0 && p.known.ObservedGeneration != p.cluster.Generation {
		r.note(p, nil, corev1.EventTypeWarning, "EvenSize", "Look", "%d members tolerate no more failures than %d do", size, size-1)
	}
	if p.known.ControlPaused != now.ControlPaused {
		reason := map[bool]string{true: "Paused", false: "Resumed"}[now.ControlPaused]
		r.note(p, nil, corev1.EventTypeNormal, reason, "Pause", "spec.paused is %v", now.ControlPaused)
	}
	for kind, event := range map[string]map[metav1.ConditionStatus]string{
		v1beta2.ConditionAvailable: {metav1.ConditionTrue: corev1.EventTypeNormal, metav1.ConditionFalse: corev1.EventTypeWarning},
		v1beta2.ConditionDegraded:  {metav1.ConditionTrue: corev1.EventTypeWarning, metav1.ConditionFalse: corev1.EventTypeNormal},
		v1beta2.ConditionAbnormal:  {metav1.ConditionTrue: corev1.EventTypeWarning, metav1.ConditionFalse: corev1.EventTypeNormal},
	} {
		c, old := conditionOf(now, kind), conditionOf(p.known, kind)
		if c == nil {
			continue
		}
		news := old == nil || old.Status != c.Status || old.Reason != c.Reason
		first := old == nil && (kind == v1beta2.ConditionDegraded) == (c.Status == metav1.ConditionFalse)
		if !news || first || event[c.Status] == "" {
			continue
		}
		reason, message := c.Reason, c.Message
		if kind == v1beta2.ConditionDegraded && c.Status == metav1.ConditionFalse {
			reason, message = "Recovered", "nothing is wrong any more"
		}
		r.note(p, nil, event[c.Status], reason, "Look", "%s", cmp.Or(message, reason))
	}
}
