package etcd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

const (
	// BirthAnnotation is on the Services and the PodDisruptionBudget of a cluster: how it came into being.
	BirthAnnotation = v1beta2.Group + "/birth"
	// TokenLabel is on all that belongs to one life of a cluster: the token of its birth.
	TokenLabel = "etcd_token"
	// VotingLabel with the value true is on the pods that the Service for clients leads to.
	VotingLabel = "etcd_voting"

	// adopted is the token of a cluster that somebody else began: its pods have none.
	adopted = "adopted"

	// fromRestore and fromMember, with what follows, are the sources of a birth that has one.
	fromRestore = "restore/"
	fromMember  = "member/"
	// Nothing is the value of RecoverAnnotation, or its beginning, by which a person has a cluster whose data are all gone
	// begin empty.
	Nothing = "nothing"
)

// birth is how a cluster came into being, or comes just now. It has to be known when neither pods nor claims are left:
// a cluster that never was is begun, one that was is not, because its data may still be somewhere and are a person's to
// give up. So it is kept where nobody has a reason to write, unlike the status, and in three places: as an annotation of
// the two Services and the PodDisruptionBudget. Each of them is made again with it when it is gone.
type birth struct {
	// Life counts the births of a cluster: of two records the later one counts.
	Life int `json:"life"`
	// Token of etcd and of the pods: it tells this life's members from those of an earlier one. It follows from the UID
	// and the source, so that an operator that died in between comes to the same.
	Token string `json:"token"`
	// Source of the data: none, a restore, a member, or nothing.
	Source string `json:"source,omitempty"`
	// Restored is the UID of the restore the data came from last, in this life or an earlier one.
	Restored string `json:"restored,omitempty"`
	// Approved is the last approval of a backup by which a person had the cluster go back to it, in this life or an earlier
	// one: it is good for no second time.
	Approved string `json:"approved,omitempty"`
	// Size is the number of members that a cluster without data begins with, all together; 0 for one, which has the data.
	Size int `json:"size,omitempty"`
	// Formed: a quorum of the first members has answered. Until then no client was let in, it may be begun again, and the
	// members of the life before are kept, for it may have to be given up. From then on they go.
	Formed bool `json:"formed,omitempty"`
	// Before is the record of the last life that was formed: this one gives way to it if it is given up.
	Before string `json:"before,omitempty"`
}

// String is the annotation's value.
func (b birth) String() string {
	if b.Token == "" {
		return ""
	}
	text, err := json.Marshal(b)
	if err != nil {
		return "" // there is nothing in it that could fail
	}
	return string(text)
}

func (b birth) writeTo(u *unstructured.Unstructured) {
	if text := b.String(); text != "" {
		u.SetAnnotations(map[string]string{BirthAnnotation: text})
	}
}

// birthOf reads the record of an object; one that cannot be read is none.
func birthOf(obj client.Object) (b birth) {
	text := obj.GetAnnotations()[BirthAnnotation]
	if err := json.Unmarshal([]byte(text), &b); err != nil || b.Token == "" {
		return birth{}
	}
	return b
}

// latestBirth returns the latest record that the objects have; the zero value if they have none.
func latestBirth(objects ...client.Object) (latest birth) {
	for _, obj := range objects {
		b := birthOf(obj)
		if b.Life > latest.Life || b.Life == latest.Life && b.Formed && !latest.Formed || latest.Token == "" {
			latest = b
		}
	}
	return latest
}

// tokenFor makes a token of what is the same in every attempt.
func tokenFor(cluster *v1beta2.EtcdCluster, life int, source string) string {
	return tenLetters("%s %d %s", cluster.UID, life, source)
}

// tenLetters are always the same for the same text, and differ for others.
func tenLetters(format string, args ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, format, args...))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:10])
}

// tokenOf is the token of the life that something belongs to, as its label has it.
func tokenOf(obj client.Object) string {
	if token := obj.GetLabels()[TokenLabel]; token != "" {
		return token
	}
	return adopted
}

// ours tells whether something belongs to this life of the cluster. In the first one all does, whatever its label says:
// there is no other that it could belong to, and somebody who takes labels off must not lose data by that.
func (p *clusterState) ours(obj client.Object) bool {
	return p.birth.Life <= 1 || tokenOf(obj) == p.birth.Token
}

// birthRecorded tells whether the Service of the members has the record of this life. Without it there is no place to
// note what is begun.
func (p *clusterState) birthRecorded() bool {
	return p.birth.Token != "" && birthOf(&p.peers) == p.birth
}

// isKept tells whether something is of the life that the cluster goes back to if this one is given up.
func (p *clusterState) isKept(obj client.Object) bool {
	var before birth
	if p.birth.Before == "" || json.Unmarshal([]byte(p.birth.Before), &before) != nil {
		return !p.birth.Formed && p.birth.Size == 0 // of a life with a source there should be a record
	}
	return !p.birth.Formed && tokenOf(obj) == before.Token
}

// handingOver tells whether members of an earlier life are still there, while no client was let in to those of this one.
func (p *clusterState) handingOver() bool {
	earlier := false
	for _, pod := range p.pods {
		if p.ours(pod) && pod.Labels[VotingLabel] != "" {
			return false
		}
		earlier = earlier || !p.ours(pod) && !overdue(pod, p.now)
	}
	return earlier
}

// seedName is the first member's.
func (b birth) seedName(cluster *v1beta2.EtcdCluster) string { return cluster.Name + "-" + b.Token }

// firstMembers returns the names of the members that this life begins with. They follow from the token.
func (b birth) firstMembers(cluster *v1beta2.EtcdCluster) []string {
	names := []string{b.seedName(cluster)}
	for n := 2; n <= b.Size; n++ {
		names = append(names, cluster.Name+"-"+tenLetters("%s %d", b.Token, n))
	}
	return names
}

// torn tells whether one of several first members has lost its data after the first of them were let go, and before they
// were a cluster. It may have voted, or have taken what the others count on, and would not know: one that comes again
// under its name could give its vote to another leader in the same term, and entries that were agreed on would be
// replaced. So they begin anew, as another cluster to which what is left of this one means nothing.
func (p *clusterState) torn() bool {
	begun, lost := false, false
	if p.birth.Size > 1 && !p.birth.Formed {
		for _, name := range p.birth.firstMembers(p.cluster) {
			m := p.members.named(name)
			there := m != nil && m.pod != nil && m.pod.DeletionTimestamp == nil && !ended(m.pod)
			begun = begun || m != nil && m.pod != nil && !gated(m.pod)
			lost = lost || !there && p.claim(name) == nil
		}
	}
	return begun && lost
}

// keepBirth sees to it that there is a record before anything is made, and begins another life when a person wants one:
// with the backup of a restore, or with the data of one member.
func (r *hardenedClusters) keepBirth(ctx context.Context, p *clusterPass) error {
	was := p.birth
	if err := r.recordBirth(ctx, p); err != nil {
		return err
	}
	if was.Token == "" || p.birth.Token == was.Token {
		return nil
	}
	return r.members.lookAtEtcd(ctx, p) // what was seen is of the members of another life
}

func (r *hardenedClusters) recordBirth(ctx context.Context, p *clusterPass) error {
	next, why := p.nextBirth()
	if why == "" {
		return nil
	}
	if p.peers.UID != "" && !p.mine(&p.peers) {
		return nil // the Service's name is somebody else's: there is no place to write to
	}
	// The cache may be behind what an earlier pass has written: what is to follow another record is not for this one.
	fresh := &corev1.Service{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: p.cluster.Namespace, Name: peerService(p.cluster)}, fresh)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get the Service of the members: %w", err)
	}
	if was := birthOf(fresh); err == nil && was != p.birth && was.Life >= p.birth.Life {
		p.birth, p.peers = birthOf(fresh), *fresh
		return nil
	}
	if err == nil && fresh.UID != p.peers.UID {
		return apierrors.NewConflict(corev1.Resource("services"), fresh.Name, fmt.Errorf("it is another one"))
	}
	back, again := p.birth.Token != "" && next.Formed, p.birth.Token != "" && next.Source == p.birth.Source
	p.birth = next
	if err := r.keep(ctx, p, &p.peers, wantedPeers(p)); err != nil {
		return err
	}
	if birthOf(&p.peers) != next {
		p.birth = birthOf(&p.peers) // somebody else's, or an older one's
		return nil
	}
	switch {
	case back:
		r.note(p, nil, corev1.EventTypeNormal, "GivenUp", "GoBack", "%s", why)
	case again:
		r.note(p, nil, corev1.EventTypeWarning, "BegunAnew", "Begin", "%s", why)
	case strings.HasPrefix(next.Source, fromRestore):
		r.note(p, p.restore, corev1.EventTypeNormal, "RestoreStarted", "Restore", "%s", why)
	case next.Source != "":
		r.note(p, nil, corev1.EventTypeWarning, "RecoveryStarted", "Recover", "%s", why)
	case next.Token == adopted || next.Formed:
		r.note(p, nil, corev1.EventTypeNormal, "Adopted", "Adopt", "%s", why)
	}
	return nil
}

// knowsBirth tells whether the record of this pass is still the latest. The cache may be behind, and what a pass destroys
// or begins because of the record cannot be undone.
func (r *clusterWriter) knowsBirth(ctx context.Context, p *clusterPass) (latest bool, err error) {
	fresh := &corev1.Service{}
	err = r.live.Get(ctx, client.ObjectKey{Namespace: p.cluster.Namespace, Name: peerService(p.cluster)}, fresh)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get the Service of the members: %w", err)
	}
	if birthOf(fresh) != p.birth {
		p.lookAgain(learnerInterval)
		return false, nil
	}
	return true, nil
}

// nextBirth returns the record that should replace the present one, and why; without a reason the present one stays.
func (p *clusterState) nextBirth() (next birth, why string) {
	if p.birth.Token == "" {
		return p.firstBirth()
	}
	next = birth{Life: p.birth.Life + 1, Restored: p.birth.Restored, Approved: p.birth.Approved, Before: p.birth.before()}
	approved := p.cluster.Annotations[v1beta2.RecoverAnnotation]
	switch {
	case p.wantsRestore():
		next.Source = fromRestore + string(p.restore.UID)
		next.Approved = cmp.Or(p.restore.Annotations[v1beta2.RecoverAnnotation], p.birth.Approved)
		why = fmt.Sprintf("EtcdRestore %s: the members and their data give way to the backup, as soon as a first member has it", p.restore.Name)
	case p.givenUp():
		return p.backToBefore()
	case !p.view.quorum && p.torn():
		next.Source, next.Size = p.birth.Source, p.cluster.Spec.Size
		why = "A first member has lost its data before there was a quorum: all of them begin anew, as another cluster"
	case p.birth.Size > 1 && !p.birth.Formed && !p.view.quorum && p.birth.Size != p.cluster.Spec.Size:
		next.Source, next.Size = p.birth.Source, p.cluster.Spec.Size
		why = fmt.Sprintf("Of %d first members there was no quorum, and %d are wanted now: they begin anew", p.birth.Size, next.Size)
	case approved == "" || p.view.quorum || !p.birth.Formed:
		return birth{}, ""
	case strings.HasPrefix(approved, Nothing) && p.birth.Source != approved && len(p.pods) == 0 && len(p.claims) == 0:
		next.Source, next.Size = approved, p.cluster.Spec.Size
		why = "A person has approved to begin without data"
	case p.survivor(approved) != nil:
		next.Source = fromMember + approved
		why = fmt.Sprintf("A person has approved to begin anew with the data of %s", approved)
	default:
		return birth{}, ""
	}
	next.Token = tokenFor(p.cluster, next.Life, next.Source)
	return next, why
}

// wantsRestore tells whether there is a restore that has not been begun. Its backup was looked at already: what cannot be
// read destroys nothing.
func (p *clusterState) wantsRestore() bool {
	return p.restore != nil && restoreWanted(p.restore, p.cluster) &&
		p.birth.Restored != string(p.restore.UID) && p.birth.Source != fromRestore+string(p.restore.UID)
}

// before returns the record of the last life that was formed, for Before of a life that follows this one.
func (b birth) before() string {
	if !b.Formed {
		return b.Before
	}
	b.Before = ""
	return b.String()
}

// givenUp tells whether nobody wants the life any more that is about to begin: the EtcdRestore was deleted, or the person's
// approval was taken back or is for another member. It is too late for that when the first member answers.
func (p *clusterState) givenUp() bool {
	if m := p.members.named(p.birth.seedName(p.cluster)); p.birth.Formed || p.birth.Before == "" || m != nil && m.healthy() {
		return false
	}
	if uid, ok := strings.CutPrefix(p.birth.Source, fromRestore); ok {
		return p.restore == nil || string(p.restore.UID) != uid
	}
	name, ok := strings.CutPrefix(p.birth.Source, fromMember)
	return ok && p.cluster.Annotations[v1beta2.RecoverAnnotation] != name
}

// backToBefore has the cluster go on with the members it had. They were kept.
func (p *clusterState) backToBefore() (next birth, why string) {
	if err := json.Unmarshal([]byte(p.birth.Before), &next); err != nil || next.Token == "" {
		return birth{}, "" // not written by us
	}
	next.Life, next.Approved = p.birth.Life+1, p.birth.Approved
	return next, "What the cluster was to begin anew with is not wanted any more: it goes on with the members of before"
}

// survivor returns the member that a person has named, if it still answers; else nil.
func (p *clusterState) survivor(name string) *member {
	m := p.members.named(name)
	if m == nil || m.pod == nil || m.pod.DeletionTimestamp != nil || !p.ours(m.pod) || m.status == nil || m.learner {
		return nil
	}
	return m
}

// firstBirth returns the record of a cluster that has none. Pods and claims that exist are adopted. Of the status only one
// thing counts: whether it tells of a cluster.
func (p *clusterState) firstBirth() (next birth, why string) {
	token := ""
	for _, pod := range p.pods {
		token = tokenOf(pod)
	}
	for _, claim := range p.claims {
		if token == "" {
			token = tokenOf(claim)
		}
	}
	status := p.cluster.Status
	if token == "" && (status.Phase == v1beta2.ClusterPhaseRunning || status.Size > 0 || status.RestoredFrom != "") {
		token = adopted
	}
	if token != "" {
		next = birth{Life: 1, Token: token, Formed: true}
		next.Restored = status.RestoredFrom
		return next, "Adopted what there is of the cluster"
	}
	return birth{Life: 1, Token: tokenFor(p.cluster, 1, ""), Size: p.cluster.Spec.Size}, "a new cluster"
}

// formed notes that a quorum of the first members has answered. From here on nothing but a person begins it again, and the
// members of an earlier life are of no use any more.
func (r *hardenedMembers) formed(ctx context.Context, p *clusterPass) error {
	p.birth.Formed = true
	if uid, ok := strings.CutPrefix(p.birth.Source, fromRestore); ok {
		p.birth.Restored = uid
	}
	if err := r.keep(ctx, p, &p.peers, wantedPeers(p)); err != nil {
		return err
	}
	p.lookAgain(learnerInterval)
	p.moved = true
	return nil
}
