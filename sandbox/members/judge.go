package members

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// judge combines the answers of all members, any of which may be out of date: the one with the newest term and index
// counts. If no member answers, the members are those known before.
func judge(pods []pod, answers map[string]answer, before []*pb.Member) (seen trace.Membership, members []*pb.Member) {
	members = before
	var best answer
	for _, p := range pods { // in a fixed order, so that the result does not alternate among equals
		if a := answers[p.name]; a.ok() && len(a.members) > 0 && (best.status == nil || a.newer(best)) {
			best = a
		}
	}
	if best.status != nil {
		members = best.members
	}
	j := judgement{pods: pods, answers: answers, best: best}
	for _, m := range members {
		seen.Members = append(seen.Members, j.member(m))
	}
	for _, p := range pods {
		if !slices.ContainsFunc(seen.Members, func(m trace.Member) bool { return m.Name == p.name }) {
			seen.Members = append(seen.Members, j.stranger(p, len(members) > 0))
		}
	}
	slices.SortFunc(seen.Members, func(a, b trace.Member) int { return cmp.Compare(a.Name, b.Name) })
	for i := range seen.Members {
		count(&seen, &seen.Members[i])
	}
	if seen.Voters > 0 {
		seen.Need = seen.Voters/2 + 1
	}
	return seen, members
}

// count adds a member to the totals.
func count(seen *trace.Membership, m *trace.Member) {
	if m.Role == trace.RoleVoter || m.Role == trace.RoleLeader {
		seen.Voters++
		if m.State.Answers() {
			seen.Up++
		}
	}
	if m.Role == trace.RoleLeader {
		seen.Leader = m.Name
	}
	if m.Runs != "" && !strings.Contains(seen.Program, m.Runs) {
		if seen.Program == "" {
			seen.Program = "etcd " + m.Runs
		} else {
			seen.Program += ", " + m.Runs
		}
	}
}

type judgement struct {
	pods    []pod
	answers map[string]answer
	best    answer
}

// member describes one of the members.
func (j judgement) member(m *pb.Member) trace.Member {
	name := memberName(m)
	out := trace.Member{Name: name, ID: strconv.FormatUint(m.ID, 16), Role: trace.RoleVoter, State: trace.MemberAbsent}
	if m.IsLearner {
		out.Role = trace.RoleLearner
	}
	i := slices.IndexFunc(j.pods, func(p pod) bool { return p.name == name })
	if i < 0 {
		return out
	}
	j.fill(&out, j.pods[i])
	if j.best.status != nil && j.best.status.Leader == m.ID && out.State.Answers() && !m.IsLearner {
		out.Role = trace.RoleLeader
	}
	return out
}

// stranger describes a pod that is not among the members.
func (j judgement) stranger(p pod, known bool) trace.Member {
	out := trace.Member{Name: p.name}
	if known {
		out.Role = trace.RoleOutsider
	}
	j.fill(&out, p)
	return out
}

// fill adds the state of a pod and of the member in it.
func (j judgement) fill(out *trace.Member, p pod) {
	out.Requested, out.Leaving, out.Problem = p.requested, p.leaving, p.problem
	a, asked := j.answers[p.name]
	switch {
	case p.phase == corev1.PodPending || p.phase == corev1.PodRunning && p.ip == "":
		out.State = trace.MemberPending
	case p.phase != corev1.PodRunning:
		out.State = trace.MemberEnded
	case !asked:
		out.State = "" // nothing could ask it
	case a.starting:
		out.State = trace.MemberPending
	case !a.ok():
		out.State = trace.MemberDown
		if out.Problem == "" {
			out.Problem = explain(a.err)
		}
	default:
		out.State, out.Problem = trace.MemberUp, ""
		if a.status.Leader == 0 {
			out.State = trace.MemberLeaderless
		}
		tell(out, a.status)
		if j.best.status != nil && a.status.Header.ClusterId != j.best.status.Header.ClusterId {
			out.Role, out.Problem = trace.RoleOutsider, "is in a cluster of its own"
		}
	}
}

// tell adds a member's own answer.
func tell(out *trace.Member, s *pb.StatusResponse) {
	out.Runs, out.Term, out.Index, out.Applied, out.Size = s.Version, s.RaftTerm, s.RaftIndex, s.RaftAppliedIndex, s.DbSize
	own := strconv.FormatUint(s.Header.MemberId, 10)
	for _, text := range s.Errors { // alarms of all members, as text
		id, alarm, is := alarmOf(text)
		if is && id == own && !slices.Contains(out.Alarms, alarm) {
			out.Alarms = append(out.Alarms, alarm)
		}
	}
	slices.Sort(out.Alarms)
}

// alarmOf parses an alarm such as memberID:123 alarm:NOSPACE.
func alarmOf(text string) (id, alarm string, is bool) {
	for word := range strings.FieldsSeq(text) {
		if v, has := strings.CutPrefix(word, "memberID:"); has {
			id = v
		}
		if v, has := strings.CutPrefix(word, "alarm:"); has {
			alarm = v
		}
	}
	return id, alarm, id != "" && alarm != ""
}

// memberName returns the name of a member. A member that has not started yet has no name, but its address contains it.
func memberName(m *pb.Member) string {
	if m.Name != "" {
		return m.Name
	}
	for _, text := range m.PeerURLs {
		if u, err := url.Parse(text); err == nil && u.Hostname() != "" {
			name, _, _ := strings.Cut(u.Hostname(), ".")
			return name
		}
	}
	return strconv.FormatUint(m.ID, 16)
}

// explain says why a member does not answer, without the parts that differ each time.
func explain(err error) string {
	if isLate(err) {
		return "no answer in " + answerTime.String()
	}
	text := status.Convert(err).Message()
	for _, usual := range [][2]string{
		{"connection refused", "connection refused"},
		{"connection reset", "connection reset by peer"},
		{"unreachable", "host is unreachable"},
		{"no route to host", "host is unreachable"},
		{"no such host", "no such host"},
		{"certificate", "it does not accept the certificate, or its own is wrong"},
		{"handshake", "TLS handshake failed"},
		{"server preface", "it accepts connections and says nothing"},
		{"EOF", "connection closed"},
		{"closed network connection", "connection closed"},
	} {
		if strings.Contains(text, usual[0]) {
			return usual[1]
		}
	}
	return strings.Join(strings.Fields(text), " ")
}
