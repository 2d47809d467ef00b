package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
)

// defragmentTimeout limits how long a member may take to write its database anew. It answers nobody meanwhile.
const defragmentTimeout = time.Minute

// enoughFree is the share of its quota, in percent, that a member must have free before its alarm is taken back: with less
// the next writes would raise it again.
const enoughFree = 10

// keepSmall keeps the databases of the members small, if spec.defragment asks for it: of one that is full it forgets the
// history, it defragments, and takes the alarm back when there is space again. One member at a time and only while all
// are healthy, since one that defragments does not answer; the leader last, and after another one leads.
func (r *hardenedMembers) keepSmall(ctx context.Context, p *clusterPass) (busy bool, err error) {
	if p.cluster.Spec.Defragment == nil {
		return false, nil
	}
	full := p.view.full()
	if len(full) > 0 {
		if busy, err := r.forgetHistory(ctx, p); busy || err != nil {
			return busy, err
		}
	}
	next := p.nextToDefragment()
	if next == nil {
		return r.disarm(ctx, p, full)
	}
	p.progress("Defragmenting", fmt.Sprintf("%s is next, whose database has %s", next.name, size(next.status.DbSize)))
	for _, m := range p.members.voters() {
		if !m.settled() {
			p.progress("Defragmenting", fmt.Sprintf("waiting for %s: %s", m.name, m.problemOr("it is not Ready")))
			return true, nil
		}
	}
	if next.id == p.view.leader && len(p.members.voters()) > 1 {
		return true, r.moveLeader(ctx, p, next)
	}
	return true, r.defragment(ctx, p, next)
}

// full returns the IDs of the members whose databases have reached their quota, for which etcd takes no writes any more. One may be of
// a member that was removed since: etcd keeps its alarm.
func (v view) full() (full []uint64) {
	for _, a := range v.alarms {
		if a.kind == pb.AlarmType_NOSPACE {
			full = append(full, a.member)
		}
	}
	return full
}

// hasSpace reports whether a member has space again; of one that was removed, whether all others have.
func (l memberList) hasSpace(id uint64) bool {
	asked := l
	if m := l.ofID(id); m != nil {
		asked = memberList{m}
	}
	return !slices.ContainsFunc(asked, func(m *member) bool {
		return m.status == nil || m.status.DbSizeQuota > 0 && m.lacksSpace()
	})
}

// nextToDefragment returns the member whose database is to be written anew; nil if none is worth it.
func (p *clusterState) nextToDefragment() *member {
	full := p.view.full()
	var worth []*member
	for _, m := range p.members {
		if m.healthy() && (p.fragmented(m.status) || len(full) > 0 && m.lacksSpace() && m.worthPacking()) {
			worth = append(worth, m)
		}
	}
	if len(worth) == 0 {
		return nil
	}
	return slices.MinFunc(worth, func(a, b *member) int {
		if leads := a.id == p.view.leader; leads != (b.id == p.view.leader) {
			if leads {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.name, b.name)
	})
}

// fragmented tells whether so much of a database file holds nothing that it is worth to be written anew.
func (p *clusterState) fragmented(s *pb.StatusResponse) bool {
	policy := p.cluster.Spec.Defragment
	return s.DbSize >= policy.MinimumSize.Value() && (s.DbSize-s.DbSizeInUse)*100 >= s.DbSize*int64(policy.FreePercent)
}

// lacksSpace tells whether the database of a member has reached its quota, or would soon. etcd before 3.6 does not tell its
// quota.
func (m *member) lacksSpace() bool {
	return m.status.DbSizeQuota == 0 || m.status.DbSize > m.status.DbSizeQuota/100*(100-enoughFree)
}

// worthPacking tells whether a member was not defragmented since the last write, or before its own compaction was over: the one that was
// asked to compact answers when it is done, and the others follow. etcd before 3.4 does not tell what is in use.
func (m *member) worthPacking() bool {
	s := m.status
	return m.packedAt != s.Header.Revision || s.DbSizeInUse > 0 && (s.DbSize-s.DbSizeInUse)*100 >= s.DbSize*enoughFree
}

// forgetHistory has etcd forget what values were before: all but the last spec.defragment.keepRevisions changes. It is
// busy when that was not done yet.
func (r *hardenedMembers) forgetHistory(ctx context.Context, p *clusterPass) (busy bool, err error) {
	upTo := int64(0)
	for _, m := range p.members.voters() {
		if m.status != nil {
			upTo = max(upTo, m.status.Header.Revision-p.cluster.Spec.Defragment.KeepRevisions)
		}
	}
	if upTo <= 0 {
		return false, nil
	}
	err = r.ask(ctx, p, func(ctx context.Context, conn *clientv3.Client) error {
		_, err := conn.Compact(ctx, upTo, clientv3.WithCompactPhysical())
		return err
	})
	if errors.Is(err, rpctypes.ErrCompacted) {
		return false, nil
	}
	p.progress("Compacting", fmt.Sprintf("there is no space left: forgetting what was before revision %d", upTo))
	if err != nil {
		return true, p.refused("cannot forget the history", err)
	}
	r.note(p, nil, corev1.EventTypeNormal, "Compacted", "Compact", "Forgot what was before revision %d, since there was no space left", upTo)
	p.lookAgain(learnerInterval)
	return true, nil
}

// defragment has a member write its database anew without what holds nothing.
func (r *hardenedMembers) defragment(ctx context.Context, p *clusterPass, m *member) error {
	conns := r.etcds.of(p)
	conn, err := conns.get(m.name)
	if err != nil {
		return fmt.Errorf("make a client of member %s: %w", m.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, defragmentTimeout)
	defer cancel()
	p.moved = true
	if _, err := pb.NewMaintenanceClient(conn.ActiveConnection()).Defragment(ctx, &pb.DefragmentRequest{}); err != nil {
		return p.refused("cannot defragment "+m.name, err)
	}
	conns.packed[m.name] = m.status.Header.Revision
	r.note(p, m.about(), corev1.EventTypeNormal, "Defragmented", "Defragment", "Defragmented %s, whose database had %s",
		m.name, size(m.status.DbSize))
	p.lookAgain(learnerInterval)
	return nil
}

// disarm takes the alarms of members back that have space again. Of those that have none, what they store is too much.
func (r *hardenedMembers) disarm(ctx context.Context, p *clusterPass, full []uint64) (busy bool, err error) {
	for _, id := range full {
		if !p.members.hasSpace(id) {
			continue
		}
		err := r.ask(ctx, p, func(ctx context.Context, conn *clientv3.Client) error {
			_, err := conn.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: id, Alarm: pb.AlarmType_NOSPACE})
			return err
		})
		if err != nil {
			return true, p.refused("cannot take back the alarm of "+p.members.nameOfID(id), err)
		}
		if m := p.members.ofID(id); m != nil {
			r.note(p, m.about(), corev1.EventTypeNormal, "AlarmDisarmed", "Disarm", "%s has space again", m.name)
		} else {
			r.note(p, nil, corev1.EventTypeNormal, "AlarmDisarmed", "Disarm", "%016x had no space left and was removed; all others have space", id)
		}
		p.lookAgain(learnerInterval)
		busy = true
	}
	return busy, nil
}

// size returns a number of bytes for people.
func size(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
