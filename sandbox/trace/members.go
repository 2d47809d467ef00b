package trace

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Membership is what the members of a replicated store say of it: the After of a KindMembers event, as JSON.
type Membership struct {
	// Voters of the store, how many of them a quorum needs, and how many of them answer.
	Voters int `json:"voters"`
	Need   int `json:"need"`
	Up     int `json:"up"`
	// Leader is the name of the member that leads; empty without one.
	Leader string `json:"leader,omitempty"`
	// Members of the store, and pods that are none yet or no longer, by name.
	Members []Member `json:"members,omitempty"`
	// Program is what really runs, whatever version was asked for, such as etcd 3.6.8; empty while nobody answers.
	Program string `json:"program,omitempty"`
	// Unknown is why nothing can be known of the store, such as that it wants a certificate; else empty.
	Unknown string `json:"unknown,omitempty"`
	// Gone: the store is no longer wanted, and has no pods.
	Gone bool `json:"gone,omitempty"`
}

// Quorum reports whether enough voters answer for the store to agree on anything. While they have no leader it does not
// yet.
func (m Membership) Quorum() bool { return m.Voters > 0 && m.Up >= m.Need }

// Learners is how many members do not vote yet.
func (m Membership) Learners() int {
	n := 0
	for _, member := range m.Members {
		if member.Role == RoleLearner {
			n++
		}
	}
	return n
}

// Term and Index are the newest of raft that any member knows.
func (m Membership) Term() (newest uint64) {
	for _, member := range m.Members {
		newest = max(newest, member.Term)
	}
	return newest
}

// Index is the newest index of raft that any member knows.
func (m Membership) Index() (newest uint64) {
	for _, member := range m.Members {
		newest = max(newest, member.Index)
	}
	return newest
}

// Role is what a member is in its store.
type Role string

// The roles. A pod of which it is not known has none.
const (
	RoleLeader   Role = "leader"
	RoleVoter    Role = "voter"
	RoleLearner  Role = "learner"
	RoleOutsider Role = "outsider" // a pod that is no member
)

// MemberState is how a member is.
type MemberState string

// The states.
const (
	MemberUp         MemberState = "up"         // answers, and knows a leader
	MemberLeaderless MemberState = "leaderless" // answers, and knows no leader
	MemberDown       MemberState = "down"       // its pod runs, and it does not answer
	MemberPending    MemberState = "pending"    // its pod does not run yet
	MemberEnded      MemberState = "ended"      // its pod has ended
	MemberAbsent     MemberState = "absent"     // it has no pod
)

// Answers reports whether a member does.
func (s MemberState) Answers() bool { return s == MemberUp || s == MemberLeaderless }

// Member is one member.
type Member struct {
	// Name of the member, which is that of its pod; its number if it has none yet.
	Name string `json:"name"`
	// ID is its number in the store, in hexadecimal digits.
	ID    string      `json:"id,omitempty"`
	Role  Role        `json:"role,omitempty"`
	State MemberState `json:"state"`
	// Problem says more about a state that is not well.
	Problem string `json:"problem,omitempty"`
	// Leaving: its pod is being deleted.
	Leaving bool `json:"leaving,omitempty"`
	// Requested is the version that its pod was asked to run, Runs the one that does.
	Requested string `json:"requested,omitempty"`
	Runs      string `json:"runs,omitempty"`
	// Term, Index and Applied are raft's.
	Term    uint64 `json:"term,omitempty"`
	Index   uint64 `json:"index,omitempty"`
	Applied uint64 `json:"applied,omitempty"`
	// Size of its data, in bytes.
	Size int64 `json:"size,omitempty"`
	// Alarms that it raises, such as NOSPACE.
	Alarms []string `json:"alarms,omitempty"`
}

// Same reports whether two memberships differ in nothing but what changes with each write: raft's indexes and sizes.
func (m Membership) Same(other Membership) bool {
	return slices.EqualFunc(m.Members, other.Members, Member.same) && m.Voters == other.Voters && m.Need == other.Need && m.Up == other.Up &&
		m.Leader == other.Leader && m.Program == other.Program && m.Unknown == other.Unknown && m.Gone == other.Gone
}

func (m Member) same(other Member) bool {
	return m.Name == other.Name && m.ID == other.ID && m.Role == other.Role && m.State == other.State && m.Problem == other.Problem &&
		m.Leaving == other.Leaving && m.Requested == other.Requested && m.Runs == other.Runs && slices.Equal(m.Alarms, other.Alarms)
}

// Find returns the member of a name.
func (m Membership) Find(name string) (Member, bool) {
	for _, member := range m.Members {
		if member.Name == name {
			return member, true
		}
	}
	return Member{}, false
}

// MembersOf reads the membership that a KindMembers event tells, and the one before it.
func MembersOf(e *Event) (now, before Membership, known bool) {
	if e.Kind != KindMembers || json.Unmarshal(e.After, &now) != nil {
		return Membership{}, Membership{}, false
	}
	if len(e.Before) > 0 && json.Unmarshal(e.Before, &before) != nil {
		before = Membership{}
	}
	return now, before, true
}

// Store is what is known of a replicated store, up to some event.
type Store struct {
	// Object is what the store was made of, such as an EtcdCluster.
	Object Ref
	// Membership as it was last told; nil if nobody looked.
	Membership *Membership
	// Most is how many members it has had at once.
	Most int
	// Last is the newest event of its members, Since the one of the last change of anything but raft's indexes.
	Last, Since *Event
	// Writes of somebody who writes to it again and again; nil if nobody does.
	Writes *Writes
}

// Stores returns what is known of each replicated store, in the order in which they were first seen.
func (s *State) Stores() []Store { return s.stores }

// store returns the place of a store, made if need be. The list is cloned with the state; what its pointers lead to is
// never changed.
func (s *State) store(object Ref) *Store {
	i := slices.IndexFunc(s.stores, func(o Store) bool { return o.Object.Kind == object.Kind && o.Object.Key() == object.Key() })
	if i < 0 {
		i = len(s.stores)
		s.stores = append(s.stores, Store{Object: object})
	}
	return &s.stores[i]
}

// told folds in what the members of a store say.
func (s *State) told(e *Event) {
	now, _, known := MembersOf(e)
	if !known {
		return
	}
	o := s.store(e.Object)
	o.Membership, o.Last, o.Most = &now, e, max(o.Most, len(now.Members))
	if e.Verb == VerbSwitch || o.Since == nil {
		o.Since = e
	}
}

// ShortMember is a member's name without that of its store, where it begins with it.
func ShortMember(name string, store Ref) string {
	short, has := strings.CutPrefix(name, store.Name+"-")
	if !has || short == "" {
		return name
	}
	return short
}

// Writes is what came of writing to a store again and again, up to some event.
type Writes struct {
	// Endpoint that was written to.
	Endpoint string
	// OK and Failed are how many writes were acknowledged, and how many were not.
	OK, Failed int
	// PerSecond is how many were acknowledged in the last second or so.
	PerSecond float64
	// Recent are such rates, oldest first, at most 60 of them: one a second.
	Recent []float64
	// Longest is the longest time without an acknowledgement.
	Longest time.Duration
	// Failing: the last one failed. Error says why the last failure did.
	Failing bool
	Error   string
	// Over: nothing is written any more, because the store is gone.
	Over bool
	// Outages are how often writes began to fail.
	Outages int
	// Last is the newest event, Since that of the last change between working and failing.
	Last, Since *Event
}

// rememberedRates bounds the rates of writes that are remembered.
const rememberedRates = 60

// leastPeriod is the shortest time a rate is computed of: of a shorter one it would say little.
const leastPeriod = 500 * time.Millisecond

// wrote folds in what came of writes.
func (s *State) wrote(e *Event) {
	o := s.store(e.Object)
	w := Writes{}
	if o.Writes != nil {
		w = *o.Writes
	}
	endpoint, failed := WritesOf(e)
	failing := e.Verb != VerbStop && e.Error != ""
	if failing && !w.Failing {
		w.Outages++
	}
	w.Endpoint, w.Failing, w.Over = endpoint, failing, e.Verb == VerbStop
	w.OK += max(0, e.Count)
	w.Failed += failed
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
