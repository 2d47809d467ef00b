package trace

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

var kv = Ref{APIVersion: "etcd.database.coreos.com/v1beta2", Kind: "EtcdCluster", Namespace: "etcd-operator", Name: "kv"}

// membership returns the report of three members; members with names in capitals do not answer.
func membership(leader string, names ...string) Membership {
	m := Membership{Leader: leader, Program: "etcd 3.6.8"}
	for _, name := range names {
		member := Member{Name: strings.ToLower(name), Role: RoleVoter, State: MemberUp, Requested: "3.2.13", Runs: "3.6.8", Term: 2, Index: 9}
		switch {
		case strings.HasPrefix(name, "+"):
			member.Name, member.Role = name[1:], RoleLearner
		case name != member.Name:
			member.State, member.Problem = MemberDown, "connection refused"
		}
		if member.Name == leader {
			member.Role = RoleLeader
		}
		if member.Role != RoleLearner {
			m.Voters++
			if member.State.Answers() {
				m.Up++
			}
		}
		m.Members = append(m.Members, member)
	}
	m.Need = m.Voters/2 + 1
	return m
}

// kept returns the journal of a cluster that is written to: one member, a learner that is promoted, a third member, the
// leader's death and the loss of the quorum.
func kept(tb testing.TB) *Journal {
	tb.Helper()
	at := time.Duration(0)
	base := time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)
	j := New(Options{Now: func() time.Time { return base.Add(at) }})
	var before json.RawMessage
	members := func(verb string, m Membership) {
		raw, err := json.Marshal(m)
		if err != nil {
			tb.Fatal(err)
		}
		at += time.Second
		j.Append(Event{Kind: KindMembers, Actor: "members", Verb: verb, Object: kv, Before: before, After: raw})
		before = raw
	}
	writes := func(verb string, count, failed int, problem string, longest time.Duration, gap string) {
		at += time.Second
		j.Append(Event{
			Kind: KindWrites, Actor: "writes", Verb: verb, Object: kv, Count: count, Delay: time.Second, Error: problem,
			Duration: longest, Values: WritesPayload{"http://kv-client.etcd-operator.svc:2379", failed, gap}.Values(),
		})
	}
	members(VerbSwitch, membership("kv-a", "kv-a"))
	writes(VerbSwitch, 1, 0, "", 0, "")
	members(VerbSwitch, membership("kv-a", "kv-a", "+kv-b"))
	members(VerbSwitch, membership("kv-a", "kv-a", "kv-b"))
	members(VerbSwitch, membership("kv-a", "kv-a", "kv-b", "kv-c"))
	writes(VerbAnswer, 20, 0, "", 60*time.Millisecond, "")
	members(VerbSwitch, membership("kv-b", "KV-A", "kv-b", "kv-c"))
	writes(VerbSwitch, 2, 3, "connection refused", 200*time.Millisecond, "")
	writes(VerbSwitch, 9, 0, "", 700*time.Millisecond, "690ms")
	members(VerbSwitch, membership("", "KV-A", "KV-B", "kv-c"))
	newer := membership("", "KV-A", "KV-B", "kv-c")
	newer.Members[2].Index = 10
	members(VerbAnswer, newer)
	return j
}

func TestStores(t *testing.T) {
	timeline := NewTimeline(kept(t))
	timeline.Update()
	got := timeline.Tip().Stores()[0]
	if len(timeline.Tip().Stores()) != 1 || got.Membership.Quorum() || got.Membership.Up != 1 || got.Membership.Index() != 10 || got.Most != 3 ||
		got.Since.Seq != 10 || got.Last.Seq != 11 || timeline.Tip().Worked() != 0 {
		t.Errorf("%+v", got)
	}
	if w := got.Writes; w.OK != 32 || w.Failed != 3 || w.Outages != 1 || w.Failing || w.PerSecond != 9 || w.Longest != 700*time.Millisecond ||
		w.Error != "connection refused" || !slices.Equal(w.Recent, []float64{1, 20, 2, 9}) {
		t.Errorf("%+v", w)
	}
	then := timeline.At(4).Stores()[0]
	if !then.Membership.Quorum() || then.Membership.Voters != 2 || then.Membership.Learners() != 0 || then.Writes.OK != 1 {
		t.Errorf("then: %+v", then)
	}
}

func TestStoresArePrintedWhenTheyChange(t *testing.T) {
	for language, want := range map[Language]string{
		English: `members kv: quorum 1/1, need 1, leader a: a leads
writes kv: writes are acknowledged
members kv: quorum 1/1, need 1, leader a: b joined as a learner
members kv: quorum 2/2, need 2, leader a: b was promoted: it votes now
members kv: quorum 3/3, need 2, leader a: c joined as a voter
members kv: quorum 2/3, need 2, leader b: a leads no more; a does not answer: connection refused; b leads
writes kv: writes fail: connection refused
writes kv: writes are acknowledged again, after 690ms without one
members kv: NO QUORUM 1/3, need 2: QUORUM LOST; b leads no more; b does not answer: connection refused

http://kv-client.etcd-operator.svc:2379: 32 writes acknowledged, 3 failed; longest time without an acknowledgement 700ms
`,
		Japanese: `members kv: クォーラム 1/1、必要 1、リーダー a: a がリーダーになった
writes kv: 書き込みが成功している
members kv: クォーラム 1/1、必要 1、リーダー a: b が learner として加わった
members kv: クォーラム 2/2、必要 2、リーダー a: b が昇格し、投票権を得た
members kv: クォーラム 3/3、必要 2、リーダー a: c が投票メンバーとして加わった
members kv: クォーラム 2/3、必要 2、リーダー b: a はリーダーでなくなった。a が応答しない (connection refused)。b がリーダーになった
writes kv: 書き込みが失敗している: connection refused
writes kv: 書き込みがまた成功している。途絶は 690ms
members kv: クォーラムなし 1/3、必要 2: クォーラムを失った。b はリーダーでなくなった。b が応答しない (connection refused)

http://kv-client.etcd-operator.svc:2379: 書き込み成功 32 件、失敗 3 件。応答の途絶は最長 700ms
`,
	} {
		var out bytes.Buffer
		p := NewPrinter(&out, kept(t), PrintOptions{Language: language, Width: 160})
		if err := p.Update(); err != nil {
			t.Fatal(err)
		}
		if err := p.Summary(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	}
}

func TestStoresAreKeptAndTold(t *testing.T) {
	var file, page bytes.Buffer
	if err := kept(t).Save(&file); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(file.String(), `"before":`); n > 0 {
		t.Errorf("the file has %d memberships twice", n)
	}
	j, report, err := Load(&file, Options{})
	if err != nil || !report.Complete() {
		t.Fatal(err, report)
	}
	timeline := NewTimeline(j)
	timeline.Update()
	if got := timeline.Tip().Stores(); len(got) != 1 || got[0].Writes.OK != 32 || got[0].Membership.Voters != 3 {
		t.Errorf("after loading: %+v", got)
	}
	if got, want := timeline.Tip().Why(j.Get(4), English), "EtcdCluster kv: quorum 2/2, need 2, leader a: b was promoted: it votes now."; got != want {
		t.Errorf("got %q", got)
	}
	if got, want := timeline.Tip().Why(j.Get(6), English), "EtcdCluster kv: 20 writes acknowledged, 0 failed."; got != want {
		t.Errorf("got %q", got)
	}
	if err := WriteHTML(&page, j, HTMLOptions{}); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]int{"b was promoted": 1, "QUORUM LOST": 1, "20 writes acknowledged": 0} {
		if n := strings.Count(page.String(), what); n < want || want == 0 && n > 0 {
			t.Errorf("the page says %q %d times, want %d", what, n, want)
		}
	}
}

// FuzzMembers checks that any membership is described in one line, and that an unchanged one is described as unchanged.
func FuzzMembers(f *testing.F) {
	for _, e := range kept(f).Since(0) {
		f.Add([]byte(e.Before), []byte(e.After), "3")
	}
	f.Add([]byte(`{"members":[{"name":"a\nb","state":"\u001b[31m"}]}`), []byte(`[]`), "-1")
	f.Fuzz(func(t *testing.T, before, after []byte, failed string) {
		j := New(Options{})
		for _, verb := range []string{VerbSwitch, VerbAnswer, VerbStop} {
			j.Append(Event{Kind: KindMembers, Verb: verb, Object: kv, Before: before, After: after})
			j.Append(Event{Kind: KindWrites, Verb: verb, Object: kv, Count: len(before) - 9, Values: []string{"x", failed}, Error: string(after)})
		}
		everything(j)
		for _, e := range j.Since(0) {
			for _, l := range []Language{English, Japanese} {
				if text := storeText(e, l); strings.ContainsAny(text, "\n\r\x1b") {
					t.Errorf("%q is no line", text)
				}
			}
		}
		if now, was, known := MembersOf(j.Get(1)); known && now.Same(was) != was.Same(now) {
			t.Error("being the same has a direction")
		}
	})
}
