package tui

import (
	"math"
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// storeBar shows a replicated store: its quorum, the writes to it, and its members.
type storeBar struct{ *state }

// theStore is the one on the screen: that which is written to, or the first.
func theStore(all []trace.Store) (trace.Store, bool) {
	if len(all) == 0 {
		return trace.Store{}, false
	}
	return all[max(0, slices.IndexFunc(all, func(o trace.Store) bool { return o.Writes != nil }))], true
}

// storeMargin is the column at which the lines of a store begin.
const storeMargin = 6

type memberColumns struct {
	*theme

	object  trace.Ref
	names   int
	numbers bool // there is room for raft's
}

func (t memberColumns) headings() row {
	r := row{}
	r.add(plain, blanks(storeMargin+2))
	r.cell(t.theme, dim, t.t("member", "メンバー"), t.names).cell(t.theme, dim, t.t("role", "役割"), 9)
	r.cell(t.theme, dim, t.t("requested", "指定"), 10).cell(t.theme, dim, t.t("runs", "実際"), 11)
	if t.numbers {
		r.cell(t.theme, dim, "term", 6).cell(t.theme, dim, "index", 9).cell(t.theme, dim, t.t("size", "サイズ"), 9)
	}
	r.add(dim, t.t("state", "状態"))
	return r
}

func (t memberColumns) member(m trace.Member) row {
	sign, st, word := t.condition(m)
	r := row{}
	r.add(plain, blanks(storeMargin)).cell(t.theme, st, sign, 1)
	r.name(t.theme, plain, trace.ShortMember(m.Name, t.object), t.names)
	role, roleStyle := t.role(m.Role)
	r.cell(t.theme, roleStyle, role, 9).cell(t.theme, plain, m.Requested, 10)
	runs := ""
	if m.Runs != "" {
		runs = "etcd " + m.Runs
	}
	r.cell(t.theme, plain, runs, 11)
	if t.numbers {
		number := func(n uint64) string {
			if m.Term == 0 {
				return ""
			}
			return itoa(int64(min(n, math.MaxInt64)))
		}
		size := ""
		if m.Size > 0 {
			size = sizeText(m.Size)
		}
		r.cell(t.theme, plain, number(m.Term), 6).cell(t.theme, plain, number(m.Index), 9).cell(t.theme, plain, size, 9)
	}
	r.add(st, word)
	return r
}

func (t memberColumns) role(role trace.Role) (string, style) {
	switch role {
	case trace.RoleLeader:
		return t.t("leader", "リーダー"), accent
	case trace.RoleVoter:
		return "voter", plain
	case trace.RoleLearner:
		return "learner", warn
	case trace.RoleOutsider:
		return t.t("none", "なし"), dim
	}
	return "?", dim
}

// condition says how a member is, in a sign and in words.
func (t memberColumns) condition(m trace.Member) (sign string, st style, word string) {
	sign, st = t.down, bad
	switch m.State {
	case trace.MemberUp:
		sign, st, word = t.up, ok, t.t("healthy", "正常")
	case trace.MemberLeaderless:
		word = t.t("no leader", "リーダー不在")
	case trace.MemberDown:
		word = t.t("no answer", "応答なし")
	case trace.MemberPending:
		sign, st, word = t.learns, warn, t.t("starting", "起動中")
	case trace.MemberEnded:
		word = t.t("ended", "終了")
	case trace.MemberAbsent:
		word = t.t("no pod", "Pod なし")
	default:
		sign, st, word = "?", dim, t.t("not asked", "未確認")
	}
	if m.Problem != "" {
		word += ": " + m.Problem
	}
	if m.Leaving {
		word += t.t(", being deleted", "、削除中")
	}
	for _, a := range m.Alarms {
		word += ", " + a
		st = bad
	}
	return sign, st, word
}

// sizeText writes a number of bytes as a reader wants it.
func sizeText(n int64) string {
	switch {
	case n < 1000:
		return itoa(n) + " B"
	case n < 1_000_000:
		return itoa(n/1000) + " kB"
	}
	return itoa(n/1_000_000) + " MB"
}

func (s storeBar) draw(r Rect) []row {
	if r.Empty() {
		return nil
	}
	// As in the layout: at an earlier point another one may have been the first.
	shown, _ := theStore(s.index.timeline.Tip().Stores())
	all := s.snapshot.Stores()
	i := slices.IndexFunc(all, func(o trace.Store) bool { return o.Object == shown.Object })
	if i < 0 || all[i].Membership == nil {
		return []row{text(dim, " ETCD  "+s.t("there are no members yet", "メンバーはまだない"))}
	}
	o := all[i]
	if r.H == 1 {
		return []row{s.line(o, r.W)}
	}
	rows := []row{s.quorumLine(o, r.W, len(all)-1), s.writesLine(o.Writes, r.W)}
	if r.H > 2 {
		rows = append(rows, s.memberTable(o, r.W, r.H-2)...)
	}
	return rows
}

// badge is the name at the beginning of the line, and whether all is well.
func (s storeBar) badge(m trace.Membership) style {
	switch {
	case m.Gone || m.Unknown != "" || m.Voters == 0:
		return dim | bold
	case !m.Quorum() || m.Leader == "":
		return alarm
	}
	return dim | bold
}

// gauge has a sign for each voter, and then for each learner.
func (s storeBar) gauge(r *row, m trace.Membership) {
	voters := 0
	for _, member := range m.Members {
		if member.Role != trace.RoleVoter && member.Role != trace.RoleLeader {
			continue
		}
		voters++
		sign, st := s.up, ok
		if !member.State.Answers() {
			sign, st = s.down, bad
		}
		r.add(st, s.fit(sign, 1))
	}
	for range m.Learners() {
		r.add(warn, s.fit(s.learns, 1))
	}
	if voters > 0 {
		r.add(plain, " ")
	}
}

// quorum says how many voters answer, and how many must.
func (s storeBar) quorum(r *row, m trace.Membership) {
	switch {
	case m.Gone:
		r.add(dim, s.t("the cluster is gone", "クラスターはもうない"))
	case m.Unknown != "":
		r.add(warn, s.t("members not known: ", "メンバー不明: ")+m.Unknown)
	case m.Voters == 0:
		r.add(dim, s.t("no members yet", "メンバーはまだない"))
	default:
		s.gauge(r, m)
		st := plain
		if m.Up < m.Need {
			st = bad
		}
		r.add(st, itoa(m.Up)+"/"+itoa(m.Voters)+s.t(" need ", " 必要 ")+itoa(m.Need))
	}
}

// line is all of a store in one line.
func (s storeBar) line(o trace.Store, w int) row {
	m := *o.Membership
	r := row{}
	r.add(plain, " ").add(s.badge(m), "ETCD").add(plain, " ")
	s.quorum(&r, m)
	switch {
	case m.Leader != "":
		r.add(plain, s.t("  leader ", "  リーダー ")+s.elide(trace.ShortMember(m.Leader, o.Object), 10))
	case s.badge(m) == alarm:
		r.add(bad, s.t("  no leader", "  リーダー不在"))
	}
	if wr := o.Writes; wr != nil {
		r.add(plain, "  ")
		s.rate(&r, wr)
		r.add(plain, s.t("  gap ", "  途絶 ")+trace.FormatDuration(wr.Longest))
	}
	if runs := s.t("  runs ", "  実際 ") + strings.TrimPrefix(m.Program, "etcd "); m.Program != "" && r.width()+width(runs) <= w {
		r.add(dim, runs)
	}
	return r
}

// rate says how many writes are acknowledged a second while there are any, and how many have failed.
func (s storeBar) rate(r *row, wr *trace.Writes) {
	st := plain
	if wr.Failing {
		st = bad
	}
	if !wr.Over {
		r.add(st, itoa(int64(math.Round(wr.PerSecond)))+s.t("/s  ", " 件/秒  "))
	}
	st = plain
	if wr.Failed > 0 {
		st = bad
	}
	r.add(st, itoa(wr.Failed)+s.t(" failed", " 失敗"))
}

// quorumLine shows the quorum, the leader and the program that really runs.
func (s storeBar) quorumLine(o trace.Store, w, others int) row {
	m := *o.Membership
	r := row{}
	r.add(plain, " ").add(s.badge(m), "ETCD").add(plain, " ").add(bold, s.cutTo(o.Object.Name, max(8, w/5))).add(plain, "  ")
	word, st := s.t("QUORUM", "クォーラム"), dim|bold
	if s.badge(m) == alarm {
		word, st = s.t("NO LEADER", "リーダー不在"), alarm
		if !m.Quorum() {
			word = s.t("NO QUORUM", "クォーラムなし")
		}
	}
	if m.Voters > 0 {
		r.add(st, word).add(plain, " ")
	}
	s.quorum(&r, m)
	if m.Leader != "" {
		r.add(plain, s.t("  leader ", "  リーダー ")).add(accent, s.cutTo(trace.ShortMember(m.Leader, o.Object), 16))
	}
	if n := m.Learners(); n > 0 {
		r.add(warn, "  "+itoa(n)+s.t(" learning", " learner"))
	}
	if others > 0 {
		r.add(dim, "  +"+itoa(others)+s.t(" more clusters", " クラスター"))
	}
	s.atRight(&r, w, s.honesty(m))
	return r
}

// honesty says which etcd really runs.
func (s storeBar) honesty(m trace.Membership) []string {
	if m.Program == "" {
		return nil
	}
	return []string{
		s.t("the image's version is only requested: "+m.Program+" runs", "イメージのバージョンは指定だけ。実際に動くのは "+m.Program),
		s.t("really runs: "+m.Program, "実際に動くのは "+m.Program),
	}
}

// atRight puts the longest of several texts at the end of a line that there is room for.
func (s storeBar) atRight(r *row, w int, texts []string) {
	for _, t := range texts {
		if gap := w - 1 - r.width() - width(t); gap >= 2 {
			r.add(plain, blanks(gap)).add(dim, t)
			return
		}
	}
}

// writesLine says what comes of writing to the store, and how it was in the last minute.
func (s storeBar) writesLine(wr *trace.Writes, w int) row {
	r := row{}
	r.add(plain, blanks(storeMargin)).add(dim|bold, s.t("WRITES ", "書込 "))
	switch {
	case wr == nil:
		return *r.add(dim, s.t("none was acknowledged yet", "成功はまだない"))
	case wr.Over:
		r.add(dim, s.t("over", "終了"))
	case wr.Failing:
		r.add(bad, s.fit(s.failing, 2))
	default:
		r.add(ok, s.fit(s.ok, 2))
	}
	r.add(plain, " ")
	s.rate(&r, wr)
	r.add(plain, "  "+itoa(wr.OK)+s.t(" acknowledged", " 成功"))
	r.add(plain, s.t("  longest gap ", "  最長の途絶 ")+trace.FormatDuration(wr.Longest))
	if chart := s.chart(wr.Recent, min(60, w-r.width()-4)); chart != "" {
		r.add(plain, "  ").add(ok, chart)
	}
	if wr.Failing {
		r.add(bad, "  "+s.cutTo(wr.Error, max(0, w-r.width()-3)))
	}
	return r
}

// chart draws numbers as bars, the newest at the right.
func (s storeBar) chart(values []float64, w int) string {
	if w < 10 || len(values) == 0 {
		return ""
	}
	values = values[max(0, len(values)-w):]
	top := max(1, slices.Max(values))
	levels := []rune(s.levels)
	var b strings.Builder
	for _, v := range values {
		level := int(math.Ceil(v / top * float64(len(levels)-1)))
		b.WriteRune(levels[min(max(level, 0), len(levels)-1)])
	}
	return b.String()
}

// memberTable has a line for each member, below a line of headings.
func (s storeBar) memberTable(o trace.Store, w, h int) []row {
	m := *o.Membership
	if len(m.Members) == 0 {
		return nil
	}
	names := 12
	for _, member := range m.Members {
		names = max(names, min(24, width(trace.ShortMember(member.Name, o.Object))))
	}
	t := memberColumns{theme: &s.theme, object: o.Object, names: names, numbers: w >= 100}
	rows := []row{t.headings()}
	for i, member := range m.Members {
		if left := len(m.Members) - i; len(rows) == h-1 && left > 1 {
			return append(rows, text(dim, blanks(storeMargin+2)+s.t("and ", "ほか ")+itoa(left)+s.t(" more", "")))
		}
		rows = append(rows, t.member(member))
	}
	return rows
}
