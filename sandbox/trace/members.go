package trace

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Membership is the state of a replicated store as its members report it: the After of a KindMembers event, as JSON.
type Membership struct {
	// Voters is the number of voting members.
	Voters int `json:"voters"`
	// Need is how many voters a quorum needs.
	Need int `json:"need"`
	// Up is how many voters answer.
	Up int `json:"up"`
	// Leader is the name of the leading member; empty without one.
	Leader string `json:"leader,omitempty"`
	// Members are the members of the store, and pods that are not members yet or any longer, by name.
	Members []Member `json:"members,omitempty"`
	// Program is the program and version that really runs, whatever was requested, such as etcd 3.6.8; empty while no
	// member answers.
	Program string `json:"program,omitempty"`
	// Unknown is the reason why nothing is known of the store, such as that it requires a certificate; else empty.
	Unknown string `json:"unknown,omitempty"`
	// Gone reports that the store is no longer wanted and has no pods.
	Gone bool `json:"gone,omitempty"`
}

// Quorum reports whether enough voters answer for the store to agree on anything. Without a leader it cannot yet.
func (m Membership) Quorum() bool { return m.Voters > 0 && m.Up >= m.Need }

// Learners returns the number of members that do not vote yet.
func (m Membership) Learners() int {
	n := 0
	for _, member := range m.Members {
		if member.Role == RoleLearner {
			n++
		}
	}
	return n
}

// Term returns the newest raft term that any member knows.
func (m Membership) Term() (newest uint64) {
	for _, member := range m.Members {
		newest = max(newest, member.Term)
	}
	return newest
}

// Index returns the newest raft index that any member knows.
func (m Membership) Index() (newest uint64) {
	for _, member := range m.Members {
		newest = max(newest, member.Index)
	}
	return newest
}

// Role is the role of a member in its store.
type Role string

// The roles. It is empty for a pod whose role is not known.
const (
	RoleLeader   Role = "leader"
	RoleVoter    Role = "voter"
	RoleLearner  Role = "learner"
	RoleOutsider Role = "outsider" // a pod that is not a member
)

// MemberState is the state of a member.
type MemberState string

// The states of a member.
const (
	MemberUp         MemberState = "up"         // answers, and knows a leader
	MemberLeaderless MemberState = "leaderless" // answers, but knows no leader
	MemberDown       MemberState = "down"       // its pod runs, but it does not answer
	MemberPending    MemberState = "pending"    // its pod does not run yet
	MemberEnded      MemberState = "ended"      // its pod has ended
	MemberAbsent     MemberState = "absent"     // it has no pod
)

// Answers reports whether the member answers.
func (s MemberState) Answers() bool { return s == MemberUp || s == MemberLeaderless }

// Member is one member of a store.
type Member struct {
	// Name is the name of the member and of its pod; its ID if it has no name yet.
	Name string `json:"name"`
	// ID is its number in the store, in hexadecimal digits.
	ID string `json:"id,omitempty"`
	// Role is its role in the store.
	Role Role `json:"role,omitempty"`
	// State is its state.
	State MemberState `json:"state"`
	// Problem describes the cause of a bad state.
	Problem string `json:"problem,omitempty"`
	// Leaving reports that its pod is being deleted.
	Leaving bool `json:"leaving,omitempty"`
	// Requested is the version that its pod was asked to run.
	Requested string `json:"requested,omitempty"`
	// Runs is the version that runs.
	Runs string `json:"runs,omitempty"`
	// Term is its raft term.
	Term uint64 `json:"term,omitempty"`
	// Index is its raft index.
	Index uint64 `json:"index,omitempty"`
	// Applied is the raft index that it has applied.
	Applied uint64 `json:"applied,omitempty"`
	// Size is the size of its data in bytes.
	Size int64 `json:"size,omitempty"`
	// Alarms are the alarms that it raises, such as NOSPACE.
	Alarms []string `json:"alarms,omitempty"`
}

// Same reports whether two memberships differ only in what each write changes: raft's indexes and sizes.
func (m Membership) Same(other Membership) bool {
	return slices.EqualFunc(m.Members, other.Members, Member.same) && m.Voters == other.Voters && m.Need == other.Need && m.Up == other.Up &&
		m.Leader == other.Leader && m.Program == other.Program && m.Unknown == other.Unknown && m.Gone == other.Gone
}

func (m Member) same(other Member) bool {
	return m.Name == other.Name && m.ID == other.ID && m.Role == other.Role && m.State == other.State && m.Problem == other.Problem &&
		m.Leaving == other.Leaving && m.Requested == other.Requested && m.Runs == other.Runs && slices.Equal(m.Alarms, other.Alarms)
}

// Find returns the member with a name.
func (m Membership) Find(name string) (Member, bool) {
	for _, member := range m.Members {
		if member.Name == name {
			return member, true
		}
	}
	return Member{}, false
}

// MembersOf decodes the membership of a KindMembers event, and the one before it.
func MembersOf(e *Event) (now, before Membership, known bool) {
	if e.Kind != KindMembers || json.Unmarshal(e.After, &now) != nil {
		return Membership{}, Membership{}, false
	}
	if len(e.Before) > 0 && json.Unmarshal(e.Before, &before) != nil {
		before = Membership{}
	}
	return now, before, true
}

// Store describes a replicated store.
type Store struct {
	// Object is the object that the store was created for, such as an EtcdCluster.
	Object Ref
	// Membership is the newest one; nil if none was recorded.
	Membership *Membership
	// Most is the largest number of members it has had at once.
	Most int
	// Last is the newest event of its members; Since is that of the last change other than of raft's indexes.
	Last, Since *Event
	// Writes is the result of the repeated writes to it; nil without any.
	Writes *Writes
}

// stores are the replicated stores. The values behind its pointers never change.
type stores []Store

// Stores returns the replicated stores, in the order of first appearance.
func (all *stores) Stores() []Store { return *all }

// apply folds an event of a store in.
func (all *stores) apply(e *Event) {
	switch e.Kind {
	case KindMembers:
		all.membersReported(e)
	case KindWrites:
		all.writesReported(e)
	}
}

// store returns the entry of a store, and adds it if it is missing.
func (all *stores) store(object Ref) *Store {
	i := slices.IndexFunc(*all, func(o Store) bool { return o.Object.Kind == object.Kind && o.Object.Key() == object.Key() })
	if i < 0 {
		i = len(*all)
		*all = append(*all, Store{Object: object})
	}
	return &(*all)[i]
}

// membersReported folds a membership in.
func (all *stores) membersReported(e *Event) {
	now, _, known := MembersOf(e)
	if !known {
		return
	}
	o := all.store(e.Object)
	o.Membership, o.Last, o.Most = &now, e, max(o.Most, len(now.Members))
	if e.Verb == VerbSwitch || o.Since == nil {
		o.Since = e
	}
}

// ShortMember returns a member's name without the prefix of its store's name, if it has it.
func ShortMember(name string, store Ref) string {
	short, has := strings.CutPrefix(name, store.Name+"-")
	if !has || short == "" {
		return name
	}
	return short
}

// Writes is the result of repeated writes to a store at a state.
type Writes struct {
	// Endpoint is the address that was written to.
	Endpoint string
	// OK is the number of writes that were acknowledged, Failed of those that were not.
	OK, Failed int
	// PerSecond is the rate of acknowledged writes, measured over about the last second.
	PerSecond float64
	// Recent are the rates of about each of the last 60 seconds, oldest first.
	Recent []float64
	// Longest is the longest time without an acknowledgement.
	Longest time.Duration
	// Failing reports that the last write failed.
	Failing bool
	// Error is the error of the last failed write.
	Error string
	// Over reports that writing has stopped because the store is gone.
	Over bool
	// Outages is how often writes began to fail.
	Outages int
	// Last is the newest event; Since is that of the last change between working and failing.
	Last, Since *Event
}

// rememberedRates bounds the number of rates in Writes.Recent.
const rememberedRates = 60

// leastPeriod is the shortest period that a rate is computed for; a shorter one would be too inaccurate.
const leastPeriod = 500 * time.Millisecond

// writesReported folds the result of writes in.
func (all *stores) writesReported(e *Event) {
	o := all.store(e.Object)
	w := Writes{}
	if o.Writes != nil {
		w = *o.Writes
	}
	payload := e.Writes()
	failing := e.Verb != VerbStop && e.Error != ""
	if failing && !w.Failing {
		w.Outages++
	}
	w.Endpoint, w.Failing, w.Over = payload.Endpoint, failing, e.Verb == VerbStop
	w.OK += max(0, e.Count)
	w.Failed += payload.Failed
	w.Longest = max(w.Longest, e.Duration)
	switch {
	case e.Delay >= leastPeriod:
		w.PerSecond = float64(max(0, e.Count)) / e.Delay.Seconds()
		w.Recent = append(slices.Clip(w.Recent), w.PerSecond)
		w.Recent = w.Recent[max(0, len(w.Recent)-rememberedRates):]
	case failing || w.Over:
		w.PerSecond = 0
	}
	if e.Error != "" {
		w.Error = e.Error
	}
	w.Last = e
	if e.Verb != VerbAnswer || w.Since == nil {
		w.Since = e
	}
	o.Writes = &w
}
