package tui

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// update rewrites the goldens: go test ./cmd/operator-lab/tui -run Golden -update; then read the difference.
var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares a screen with testdata/<name>.txt.
func golden(t *testing.T, name, got string) {
	t.Helper()
	var out strings.Builder
	for line := range strings.SplitSeq(ansi.Strip(got), "\n") {
		// Blanks at the end are cut, but what is there is checked elsewhere: every line is exact.
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	path := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("%s differs; with -update it is rewritten:\n%s", path, firstDifference(string(want), out.String()))
	}
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	part := ""
	for i := range min(len(a), len(b)) {
		if strings.HasPrefix(b[i], "===") {
			part = b[i]
		}
		if a[i] != b[i] {
			return fmt.Sprintf("line %d %s\nwant %s\ngot  %s", i+1, part, a[i], b[i])
		}
	}
	return fmt.Sprintf("want %d lines, got %d", len(a), len(b))
}

// recorded is a journal that the taps recorded of real operators (sandbox/trace/testdata).
func recorded(t *testing.T) *trace.Journal { return recordedAs(t, "tour") }

// recordedAs is another one: "crash" is 'run zundoko' with a Fault that ends the operator after its third word, "members"
// the first deeds of 'run etcd --variant classic'.
func recordedAs(t *testing.T, name string) *trace.Journal {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	j, report, err := trace.Load(f, trace.Options{})
	if err != nil || !report.Complete() {
		t.Fatal(err, report)
	}
	return j
}

var goldenSizes = [][2]int{{80, 24}, {120, 40}, {200, 50}}

// TestGoldenScreens draws recorded journals at three sizes: the end of each, and in Japanese the reconcile that was cut off.
func TestGoldenScreens(t *testing.T) {
	for _, size := range goldenSizes {
		for _, c := range []struct {
			id, keys string
			Options
		}{
			{"screen", "", Options{Journal: recorded(t), Title: "tour"}},
			{"members", "1 c", Options{Journal: recordedAs(t, "members"), Title: "etcd / classic"}},
			{"crash-ja", "<", Options{Journal: recordedAs(t, "crash"), Title: "zundoko / hardened", Language: trace.Japanese}},
		} {
			id := fmt.Sprintf("%s-%dx%d", c.id, size[0], size[1])
			t.Run(id, func(t *testing.T) {
				c.Replay = true
				m := modelOf(t, c.Options, size[0], size[1])
				press(m, c.keys)
				golden(t, id, m.frame())
			})
		}
	}
}

func utf8Env(name string) string { return map[string]string{"LANG": "C.UTF-8"}[name] }

// merging is a loop that is paused while you edit the same object three times.
func merging() *clockwork {
	c := newClockwork()
	h := c.zundoko(song...)
	h.begin()
	c.run(700e6, h)
	h.Pause()
	for range 3 {
		h.touch()
		c.run(50e6, h)
	}
	c.run(800e6, h)
	return c
}

// answer is what somebody who asks gets so many times.
type answer struct {
	times      int
	text, fail string
}

const outage = "connection refused: dial tcp 10.244.1.5:8080: connect"

// asked is a song during which somebody asks a URL twice a second.
func asked(answers ...answer) *trace.Journal {
	c := newClockwork()
	c.at = 200 * time.Millisecond
	h := c.zundoko(song...)
	h.begin()
	c.run(300*time.Millisecond, h)
	for _, a := range answers {
		verb := trace.VerbSwitch
		for range a.times {
			c.run(500*time.Millisecond, h)
			c.journal.Append(trace.Event{
				Kind: trace.KindTraffic, Actor: "traffic", Verb: verb, Message: a.text, Error: a.fail,
				Duration: 3 * time.Millisecond, Values: trace.TrafficValues("http://httpd.maintpage-operator.svc.cluster.local:8080"),
			})
			verb = trace.VerbAnswer
		}
	}
	return c.journal
}

// kept is a song beside which a cluster of etcd lives: it has one member, then a learner too, then three voters, and then it
// has lost its quorum.
func kept(steps int) *trace.Journal {
	c := newClockwork()
	c.at = 200 * time.Millisecond
	h := c.zundoko(song...)
	h.begin()
	c.run(300*time.Millisecond, h)
	kv := trace.Ref{APIVersion: "etcd.database.coreos.com/v1beta2", Kind: "EtcdCluster", Namespace: "etcd-operator", Name: "example"}
	member := func(name string, role trace.Role, state trace.MemberState) trace.Member {
		m := trace.Member{Name: "example-" + name, Role: role, State: state, Requested: "3.2.13"}
		if state.Answers() {
			m.Runs, m.Term, m.Index, m.Applied, m.Size = "3.6.8", 2, 1203, 1203, 24576
		} else {
			m.Problem = "connection refused"
		}
		return m
	}
	const a, b, third, up, down = "x7k2m9p4qa", "b3c4d5f6gh", "zz9zz8zz7z", trace.MemberUp, trace.MemberDown
	lives := []trace.Membership{
		{Voters: 1, Need: 1, Up: 1, Leader: "example-" + a, Members: []trace.Member{member(a, trace.RoleLeader, up)}},
		{Voters: 1, Need: 1, Up: 1, Leader: "example-" + a, Members: []trace.Member{member(b, trace.RoleLearner, up), member(a, trace.RoleLeader, up)}},
		{Voters: 3, Need: 2, Up: 3, Leader: "example-" + a, Members: []trace.Member{
			member(b, trace.RoleVoter, up), member(a, trace.RoleLeader, up), member(third, trace.RoleVoter, up),
		}},
		{Voters: 3, Need: 2, Up: 1, Members: []trace.Member{
			member(b, trace.RoleVoter, down), member(a, trace.RoleVoter, trace.MemberAbsent), member(third, trace.RoleVoter, trace.MemberLeaderless),
		}},
	}
	var before json.RawMessage
	for i, life := range lives[:steps] {
		life.Program = "etcd 3.6.8"
		raw, _ := json.Marshal(life) // it is plain data
		c.run(400*time.Millisecond, h)
		c.journal.Append(trace.Event{Kind: trace.KindMembers, Actor: "members", Verb: trace.VerbSwitch, Object: kv, Before: before, After: raw})
		before = raw
		for n := range 6 {
			payload := trace.WritesPayload{Endpoint: "http://example-client.etcd-operator.svc:2379"}
			e := trace.Event{
				Kind: trace.KindWrites, Actor: "writes", Verb: trace.VerbAnswer, Object: kv, Count: 20 - n%3, Delay: time.Second,
				Duration: 85 * time.Millisecond,
			}
			if i == 0 && n == 0 {
				e.Verb = trace.VerbSwitch
			}
			if i == 3 {
				e.Verb, e.Count, e.Duration, e.Error = trace.VerbSwitch, 0, 6*time.Second, "etcdserver: no leader"
				payload.Failed = 20
			}
			e.Values = payload.Values()
			c.run(100*time.Millisecond, h)
			c.journal.Append(e)
		}
	}
	return c.journal
}

// TestTrafficIsNoWork: a loop with nothing to do is quiet, whoever asks a URL; and the cursor does not stop at each answer.
func TestTrafficIsNoWork(t *testing.T) {
	j := asked(answer{30, "Production Page !", ""})
	m := newModel(t.Context(), Options{Journal: j, Getenv: utf8Env, NoMotion: true, Controls: Controls{Loop: &fakeLoop{}, Cluster: &demoCluster{}}})
	if !m.quiet() {
		t.Error("the loop is not quiet")
	}
	if m.index.lastMark() >= m.index.last() {
		t.Error("an answer that is the same as before has a mark")
	}
	m.w, m.h = 80, 24
	m.press("{")
	if m.live {
		t.Fatal("it did not go back")
	}
	m.press("}")
	m.press("}")
	if !m.live {
		t.Error("it does not come back to the live edge")
	}
}
