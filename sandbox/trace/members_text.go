package trace

import (
	"fmt"
	"slices"
	"strings"
)

// QuorumText describes the quorum of a store, as in "quorum 3/3, need 2".
func QuorumText(m Membership, l Language) string {
	switch {
	case m.Unknown != "":
		return l.pick("members not known: ", "メンバーは不明: ") + oneLine(m.Unknown)
	case m.Gone:
		return l.pick("gone", "なし")
	case m.Voters == 0:
		return l.pick("no members yet", "メンバーはまだない")
	case !m.Quorum():
		return fmt.Sprintf(l.pick("NO QUORUM %d/%d, need %d", "クォーラムなし %d/%d、必要 %d"), m.Up, m.Voters, m.Need)
	case m.Leader == "":
		return fmt.Sprintf(l.pick("no leader, %d/%d, need %d", "リーダー不在 %d/%d、必要 %d"), m.Up, m.Voters, m.Need)
	}
	return fmt.Sprintf(l.pick("quorum %d/%d, need %d", "クォーラム %d/%d、必要 %d"), m.Up, m.Voters, m.Need)
}

// membersText describes the state of a store and what changed.
func membersText(e *Event, l Language) string {
	now, before, known := MembersOf(e)
	if !known {
		return l.pick("nothing that can be read", "読み取れない記録")
	}
	text := QuorumText(now, l)
	if now.Leader != "" {
		text += l.pick(", leader ", "、リーダー ") + oneLine(ShortMember(now.Leader, e.Object))
	}
	if e.Verb != VerbSwitch {
		return text
	}
	changes := memberChanges(before, now, e.Object, l)
	const most = 6
	if n := len(changes); n > most {
		changes = append(changes[:most], fmt.Sprintf(l.pick("%d more changes", "ほか %d 件"), n-most))
	}
	if len(changes) == 0 {
		return text
	}
	return text + ": " + strings.Join(changes, l.pick("; ", "。"))
}

// memberChanges describes the changes of each member.
func memberChanges(before, now Membership, store Ref, l Language) []string {
	var out []string
	if before.Quorum() && lost(now) {
		out = append(out, l.pick("QUORUM LOST", "クォーラムを失った"))
	}
	if !before.Quorum() && now.Quorum() && before.Voters > 0 {
		out = append(out, l.pick("it has a quorum again", "クォーラムを回復した"))
	}
	for _, m := range now.Members {
		was, known := before.Find(m.Name)
		out = append(out, memberChange(was, m, known, ShortMember(m.Name, store), l)...)
	}
	for _, m := range before.Members {
		if _, still := now.Find(m.Name); !still {
			out = append(out, fmt.Sprintf(l.pick("%s is gone", "%s がなくなった"), oneLine(ShortMember(m.Name, store))))
		}
	}
	return out
}

// lost reports whether a store that is wanted and can be asked has no quorum.
func lost(m Membership) bool { return !m.Quorum() && !m.Gone && m.Unknown == "" }

func memberChange(was, m Member, known bool, name string, l Language) (out []string) {
	name = oneLine(name)
	say := func(english, japanese string, args ...any) {
		out = append(out, name+" "+fmt.Sprintf(l.pick(english, japanese), args...))
	}
	switch {
	case m.Role == was.Role:
	case m.Role == RoleLeader:
		say("leads", "がリーダーになった")
	case m.Role == RoleLearner:
		say("joined as a learner", "が learner として加わった")
	case m.Role == RoleVoter && was.Role == RoleLearner:
		say("was promoted: it votes now", "が昇格し、投票権を得た")
	case m.Role == RoleVoter && was.Role == RoleLeader:
		say("leads no more", "はリーダーでなくなった")
	case m.Role == RoleVoter:
		say("joined as a voter", "が投票メンバーとして加わった")
	case m.Role == RoleOutsider && (was.Role == RoleVoter || was.Role == RoleLeader || was.Role == RoleLearner):
		say("was removed from the members", "がメンバーから外れた")
	}
	if m.State != was.State {
		switch {
		case m.State == MemberDown:
			say("does not answer%s", "が応答しない%s", why(m.Problem, l))
		case m.State == MemberLeaderless:
			say("knows no leader", "がリーダーを見失った")
		case m.State == MemberAbsent && known:
			say("has no pod any more, and is a member still", "は Pod がないのにメンバーとして残っている")
		case m.State == MemberAbsent:
			say("has no pod", "には Pod がない")
		case m.State == MemberEnded:
			say("has ended%s", "が終了した%s", why(m.Problem, l))
		case m.State == MemberPending && !known && m.Role == "":
			say("has a pod that does not run yet", "の Pod はまだ動いていない")
		case m.State == MemberUp && was.State == MemberPending && m.Role == was.Role:
			say("has started", "が起動した")
		case m.State == MemberUp && (was.State == MemberDown || was.State == MemberEnded || was.State == MemberLeaderless):
			say("is well again", "が回復した")
		}
	}
	if m.Leaving && !was.Leaving {
		say("is being deleted", "の Pod を削除中")
	}
	if known && m.Requested != was.Requested && m.Requested != "" && was.Requested != "" {
		say("was asked to run %s instead of %s", "に求められた版は %s になった (それまで %s)", oneLine(m.Requested), oneLine(was.Requested))
	}
	if !slices.Equal(m.Alarms, was.Alarms) {
		if len(m.Alarms) > 0 {
			say("raises the alarm %s", "がアラーム %s を出した", oneLine(strings.Join(m.Alarms, ", ")))
		} else {
			say("raises no alarm any more", "のアラームが消えた")
		}
	}
	return out
}

func why(problem string, l Language) string {
	if problem == "" {
		return ""
	}
	return l.pick(": ", " (") + cut(oneLine(problem), 100) + l.pick("", ")")
}

// writesText describes the result of writes.
func writesText(e *Event, l Language) string {
	w := e.Writes()
	switch {
	case e.Verb == VerbStop:
		return fmt.Sprintf(l.pick("nothing is written any more: the store is gone; the longest time without an acknowledgement was %s",
			"書き込みは終わり: 対象がなくなった。応答の途絶は最長 %s"), FormatDuration(e.Duration))
	case e.Error != "" && e.Verb == VerbSwitch:
		return l.pick("writes fail: ", "書き込みが失敗している: ") + oneLine(e.Error)
	case e.Verb == VerbSwitch && w.Gap != "":
		return fmt.Sprintf(l.pick("writes are acknowledged again, after %s without one", "書き込みがまた成功している。途絶は %s"), oneLine(w.Gap))
	case e.Verb == VerbSwitch:
		return l.pick("writes are acknowledged", "書き込みが成功している")
	}
	text := fmt.Sprintf(l.pick("%d writes acknowledged, %d failed", "書き込み成功 %d 件、失敗 %d 件"), e.Count, w.Failed)
	if e.Error != "" {
		text += ": " + oneLine(e.Error)
	}
	return text
}

// storeText describes an event of a store's members or writes in one line.
func storeText(e *Event, l Language) string {
	if e.Kind == KindWrites {
		return writesText(e, l)
	}
	return membersText(e, l)
}

// summary describes the result of all writes in one line.
func (w Writes) summary(l Language, hideTimes bool) string {
	longest := FormatDuration(w.Longest)
	if hideTimes {
		longest = "-"
	}
	return fmt.Sprintf(l.pick("%s: %d writes acknowledged, %d failed; longest time without an acknowledgement %s",
		"%s: 書き込み成功 %d 件、失敗 %d 件。応答の途絶は最長 %s"), w.Endpoint, w.OK, w.Failed, longest)
}

// StoreFails reports whether an event shows a store that does not work.
func StoreFails(e *Event) bool {
	if e.Kind == KindWrites {
		return e.Verb != VerbStop && e.Error != ""
	}
	now, before, known := MembersOf(e)
	return known && before.Quorum() && lost(now)
}
