package durability_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// membership watches the members of an etcd cluster, and reports an error if more than one changes at a time.
type membership struct {
	// URL of the Service.
	URL string
	// Dial connects to it.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Changes is the number of times that the members had changed, Looks the number of times that they were listed.
	Changes, Looks int
	// problems are the errors found.
	problems []error
}

const (
	// look is the interval between two lists, much shorter than the time in which a new member can join and catch up.
	look = 25 * time.Millisecond
	// blind is the time without an answer after which two views are not compared: more than one change is possible in
	// it.
	blind = time.Second
)

// view holds the members at one moment: by ID, whether each is a learner.
type view struct {
	at      time.Time
	members map[uint64]bool
}

// Run watches until ctx is done.
func (m *membership) Run(ctx context.Context) error {
	var before view
	for ctx.Err() == nil {
		store, err := clients{URL: m.URL, Dial: m.Dial}.open()
		if err != nil {
			return err
		}
		for ctx.Err() == nil {
			now, err := list(ctx, store)
			if err != nil {
				break
			}
			m.compare(before, now)
			before = now
			await(ctx, look)
		}
		_ = store.Close()
	}
	return nil
}

// list lists the members, linearizably: a stale list must not be compared with a newer one.
func list(ctx context.Context, store *clientv3.Client) (view, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	got, err := store.MemberList(ctx)
	if err != nil {
		return view{}, err
	}
	v := view{at: time.Now(), members: map[uint64]bool{}}
	for _, member := range got.Members {
		v.members[member.ID] = member.IsLearner
	}
	return v, nil
}

// compare reports two learners at once, and two changes between one list and the next.
func (m *membership) compare(before, now view) {
	m.Looks++
	if learners := count(maps.Values(now.members)); learners > 1 {
		m.problems = append(m.problems, fmt.Errorf("%d learners at once", learners))
	}
	if before.members == nil || maps.Equal(before.members, now.members) {
		return
	}
	m.Changes++
	came, left, promoted := changes(before, now)
	if max(came, left, promoted) > 1 && now.at.Sub(before.at) < blind {
		m.problems = append(m.problems, fmt.Errorf("within %v %d members came, %d left and %d were promoted",
			now.at.Sub(before.at).Round(time.Millisecond), came, left, promoted))
	}
}

// changes counts the changes. A member that leaves and one that joins may appear together, as when a dead member is
// replaced.
func changes(before, now view) (came, left, promoted int) {
	for id, learner := range now.members {
		switch was, known := before.members[id]; {
		case !known:
			came++
		case was != learner:
			promoted++
		}
	}
	for id := range before.members {
		if _, still := now.members[id]; !still {
			left++
		}
	}
	return came, left, promoted
}

// votersOf returns the names of the voting members, as etcd knows them.
func votersOf(ctx context.Context, url string, dial func(ctx context.Context, network, address string) (net.Conn, error)) ([]string, error) {
	store, err := clients{URL: url, Dial: dial}.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	got, err := store.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, member := range got.Members {
		if !member.IsLearner && member.Name != "" { // a member without a name has never started
			names = append(names, member.Name)
		}
	}
	return names, nil
}

func count(all func(func(bool) bool)) (n int) {
	for is := range all {
		if is {
			n++
		}
	}
	return n
}

// Err returns the errors found. Call it after the end.
func (m *membership) Err() error { return errors.Join(m.problems...) }
