package metrics

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// virtual is a store with rules, whose clock goes on when a test says so.
type virtual struct {
	t      *testing.T
	store  *Store
	rules  *Rules
	e      *Engine
	at     time.Time
	wanted func(string) bool
}

func newVirtual(t *testing.T, rules *Rules) *virtual {
	t.Helper()
	return &virtual{t, NewStore(time.Hour), rules, NewEngine(), time.Unix(1_800_000_000, 0), anything}
}

// anything wants all metrics.
func anything(string) bool { return true }

// read adds what a target tells, and that it answers.
func (v *virtual) read(text string, target map[string]string) {
	v.t.Helper()
	samples, err := parse([]byte(text), target, v.wanted)
	if err != nil {
		v.t.Fatal(err)
	}
	v.store.Append(fmt.Sprint(target), v.at, append(samples, Sample{Labels: series(upMetric, nil, target), Value: 1}))
}

// silent says that a target does not answer.
func (v *virtual) silent(target map[string]string) {
	v.store.Append(fmt.Sprint(target), v.at, []Sample{{Labels: series(upMetric, nil, target)}})
}

// gone says that a target is not there any more.
func (v *virtual) gone(target map[string]string) { v.store.Append(fmt.Sprint(target), v.at, nil) }

// second evaluates the rules, and lets a second pass.
func (v *virtual) second() {
	v.rules.Evaluate(v.t.Context(), v.e, v.store, v.at)
	v.at = v.at.Add(time.Second)
}

// rule returns a rule by its name.
func (v *virtual) rule(name string) *rule {
	v.t.Helper()
	for _, g := range v.rules.groups {
		for _, one := range g.rules {
			if one.Alert == name {
				return one
			}
		}
	}
	v.t.Fatalf("there is no rule %s", name)
	return nil
}

// state returns the state of a rule.
func (v *virtual) state(name string) State {
	v.t.Helper()
	for _, s := range v.rules.States() {
		if s.Name == name {
			if s.Error != "" {
				v.t.Fatalf("%s: %s", name, s.Error)
			}
			return s.State
		}
	}
	v.t.Fatalf("there is no rule %s", name)
	return ""
}

// alter returns a text of metrics with other values: of all series that begin with a key.
func alter(t *testing.T, text string, values map[string]float64) string {
	t.Helper()
	altered := map[string]bool{}
	var out strings.Builder
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		for prefix, value := range values {
			if strings.HasPrefix(line, prefix) {
				line = fmt.Sprintf("%s %v", line[:strings.LastIndex(line, " ")], value)
				altered[prefix] = true
			}
		}
		fmt.Fprintln(&out, line)
	}
	for prefix := range values {
		if !altered[prefix] {
			t.Fatalf("there is no series %s", prefix)
		}
	}
	return out.String()
}

// fixture returns what a real program told.
func fixture(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func member(n string) map[string]string {
	return map[string]string{"job": "etcd", "namespace": "default", "pod": "kv-" + n, "etcd_cluster": "kv", "operator": "etcd"}
}

var operator = map[string]string{"job": "operator", "operator": "etcd", "instance": "lab"}

// TestBundledRules lets each rule of the lab fire, and stop again, over what real programs told and a virtual clock.
func TestBundledRules(t *testing.T) {
	etcd, told := fixture(t, "etcd.txt"), fixture(t, "operator.txt")
	const (
		reconciles = `controller_runtime_reconcile_total{controller="etcdcluster",result="success"}`
		failures   = `controller_runtime_reconcile_errors_total{controller="etcdcluster"}`
		depth      = `workqueue_depth{controller="etcdcluster"`
		leader     = "etcd_server_has_leader "
	)
	tell := func(v *virtual, of map[string]string, text string, values map[string]float64) {
		v.t.Helper()
		v.read(alter(v.t, text, values), of)
	}
	all := func(v *virtual, values map[string]float64) {
		for _, n := range []string{"a", "b", "c"} {
			tell(v, member(n), etcd, values)
		}
	}
	slow := func(n float64) map[string]float64 { // n observations, all in the last bucket
		return map[string]float64{
			`etcd_disk_wal_fsync_duration_seconds_bucket{le="+Inf"}`: 1000 + n, `etcd_disk_wal_fsync_duration_seconds_bucket{le="8.192"}`: 1000 + n,
			`etcd_disk_wal_fsync_duration_seconds_bucket{le="4.096"}`: 1000, `etcd_disk_wal_fsync_duration_seconds_bucket{le="2.048"}`: 1000,
			`etcd_disk_wal_fsync_duration_seconds_bucket{le="1.024"}`: 1000, `etcd_disk_wal_fsync_duration_seconds_bucket{le="0.512"}`: 1000,
			`etcd_disk_wal_fsync_duration_seconds_bucket{le="0.256"}`: 1000,
		}
	}
	tests := []struct {
		rule string
		// well and ill tell the metrics of second n of a time in which all is well, or is not.
		well, ill func(v *virtual, n int)
		// fires and stops are the seconds after which it does, since all is ill, or well again.
		fires, stops int
	}{
		{
			"EtcdNoQuorum",
			func(v *virtual, _ int) { all(v, map[string]float64{leader: 1}) },
			func(v *virtual, _ int) { // two pods are gone, the last one knows no leader
				v.gone(member("a"))
				v.gone(member("b"))
				tell(v, member("c"), etcd, map[string]float64{leader: 0})
			},
			3, 0,
		},
		{
			"EtcdNoQuorum",
			func(v *virtual, _ int) { all(v, map[string]float64{leader: 1}) },
			func(v *virtual, _ int) { // nobody answers
				for _, n := range []string{"a", "b", "c"} {
					v.silent(member(n))
				}
			},
			3, 0,
		},
		{
			"EtcdMemberWithoutLeader",
			func(v *virtual, _ int) { all(v, map[string]float64{leader: 1}) },
			func(v *virtual, _ int) {
				tell(v, member("a"), etcd, map[string]float64{leader: 1})
				tell(v, member("b"), etcd, map[string]float64{leader: 0})
			},
			3, 0,
		},
		{
			"EtcdMemberDown",
			func(v *virtual, _ int) { all(v, map[string]float64{leader: 1}) },
			func(v *virtual, _ int) { v.silent(member("b")) },
			5, 0,
		},
		{
			"EtcdAllMembersGone",
			func(v *virtual, _ int) { all(v, map[string]float64{leader: 1}) },
			func(v *virtual, _ int) {
				for _, n := range []string{"a", "b", "c"} {
					v.gone(member(n))
				}
			},
			5, 0,
		},
		{
			"EtcdProposalsFail",
			func(v *virtual, _ int) { all(v, map[string]float64{"etcd_server_proposals_failed_total ": 3}) },
			func(v *virtual, n int) {
				all(v, map[string]float64{"etcd_server_proposals_failed_total ": 3 + float64(n)})
			},
			5, -1,
		},
		{
			"EtcdDatabaseNearQuota",
			func(v *virtual, _ int) {
				all(v, map[string]float64{"etcd_mvcc_db_total_size_in_bytes ": 79, "etcd_server_quota_backend_bytes ": 100})
			},
			func(v *virtual, _ int) {
				all(v, map[string]float64{"etcd_mvcc_db_total_size_in_bytes ": 81, "etcd_server_quota_backend_bytes ": 100})
			},
			3, 0,
		},
		{
			"EtcdSlowDisk",
			func(v *virtual, _ int) { all(v, slow(0)) },
			func(v *virtual, n int) { all(v, slow(float64(n))) },
			16, -1,
		},
		{
			"ReconcileErrors",
			func(v *virtual, n int) {
				tell(v, operator, told, map[string]float64{reconciles: float64(10 * n), failures: 0})
			},
			func(v *virtual, n int) {
				tell(v, operator, told, map[string]float64{reconciles: 0, failures: float64(n)})
			},
			-1, -1,
		},
		{
			"QueueOnlyGrows",
			func(v *virtual, n int) { tell(v, operator, told, map[string]float64{depth: float64(n % 2)}) },
			func(v *virtual, n int) { tell(v, operator, told, map[string]float64{depth: float64(5 + n)}) },
			-1, -1,
		},
		{
			"NoReconcile",
			func(v *virtual, n int) {
				tell(v, operator, told, map[string]float64{depth: 3, reconciles: 1000 + float64(n)})
			},
			func(v *virtual, _ int) { tell(v, operator, told, map[string]float64{depth: 3, reconciles: 2000}) },
			-1, -1,
		},
		{
			"SlowReconciles",
			func(v *virtual, n int) {
				tell(v, operator, told, map[string]float64{`controller_runtime_reconcile_time_seconds_bucket{controller="etcdcluster"`: float64(n)})
			},
			func(v *virtual, n int) {
				tell(v, operator, told, map[string]float64{
					`controller_runtime_reconcile_time_seconds_bucket{controller="etcdcluster"`:           1000,
					`controller_runtime_reconcile_time_seconds_bucket{controller="etcdcluster",le="60"`:   1000 + float64(n),
					`controller_runtime_reconcile_time_seconds_bucket{controller="etcdcluster",le="+Inf"`: 1000 + float64(n),
				})
			},
			-1, -1,
		},
	}
	bundled, err := Bundled()
	if err != nil {
		t.Fatal(err)
	}
	untested := bundled.Alerts()
	for _, test := range tests {
		untested = slices.DeleteFunc(untested, func(name string) bool { return name == test.rule })
		t.Run(test.rule, func(t *testing.T) {
			rules, err := Bundled()
			if err != nil {
				t.Fatal(err)
			}
			v := newVirtual(t, rules)
			v.wanted = rules.wanted()
			const long = 120 // seconds
			for n := range long / 3 {
				test.well(v, n)
				v.second()
				if s := v.state(test.rule); s != Inactive {
					t.Fatalf("it is %s after %d s in which all was well", s, n)
				}
			}
			until := func(want State, after int, tell func(*virtual, int)) {
				t.Helper()
				var was []State
				for n := range long {
					tell(v, n)
					v.second()
					is := v.state(test.rule)
					if was = append(was, is); is != want {
						continue
					}
					if after >= 0 && n != after {
						t.Errorf("it was %s after %d s, want %d", want, n, after)
					}
					if waits := v.rule(test.rule).For > 0; want == Firing && waits != slices.Contains(was, Pending) {
						t.Errorf("before it fired it was %v", slices.Compact(was))
					}
					return
				}
				t.Fatalf("it is never %s: %v", want, slices.Compact(was))
			}
			until(Firing, test.fires, test.ill)
			until(Inactive, test.stops, test.well)
		})
	}
	if len(untested) > 0 {
		t.Errorf("rules without a test: %v", untested)
	}
}

const example = `
groups:
  - name: example
    labels: {team: blue}
    rules:
      - record: job:errors:rate
        expr: sum by (job) (rate(errors_total[10s]))
      - alert: Errors
        expr: job:errors:rate > 0.5
        for: 3s
        keep_firing_for: 5s
        labels:
          severity: '{{ if gt $value 5.0 }}high{{ else }}low{{ end }}'
        annotations:
          summary: '{{ $labels.job }} has {{ $value | humanize }} a second, of {{ with query "errors_total" }}{{ . | first | value }}{{ end }}'
`

// TestStates follows an alert through all states: a recording rule, the time it is pending, templates, and the time it goes
// on.
func TestStates(t *testing.T) {
	rules, err := ParseRules("example.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	v := newVirtual(t, rules)
	job := map[string]string{"job": "shop"}
	total, states := 0, []State{}
	for n := range 40 {
		if n >= 5 && n < 10 {
			total += 2
		}
		v.read(fmt.Sprintf("errors_total %d\n", total), job)
		v.second()
		s := v.state("Errors")
		states = append(states, s)
		if s == Firing && states[len(states)-2] != Firing {
			a := rules.States()[0].Alerts[0]
			if a.Labels["severity"] != "low" || a.Labels["team"] != "blue" || a.Labels["job"] != "shop" || a.Labels["alertname"] != "Errors" {
				t.Errorf("labels %v", a.Labels)
			}
			if want := "shop has "; !strings.HasPrefix(a.Annotations["summary"], want) || !strings.HasSuffix(a.Annotations["summary"], fmt.Sprintf(", of %d", total)) {
				t.Errorf("summary %q", a.Annotations["summary"])
			}
			if d := a.FiredAt.Sub(a.ActiveAt); d != 3*time.Second {
				t.Errorf("it fired after %v", d)
			}
		}
	}
	var inRow []string
	for i, s := range states {
		if i == 0 || s != states[i-1] {
			inRow = append(inRow, string(s))
		}
	}
	if got := strings.Join(inRow, " "); got != "inactive pending firing inactive" {
		t.Errorf("its states are %s", got)
	}
	a := rules.States()[0].Alerts[0]
	if a.State != Inactive || a.ResolvedAt.IsZero() || a.Since() != a.ResolvedAt {
		t.Errorf("in the end it is %+v", a)
	}
	v.at = v.at.Add(resolvedTime + time.Second)
	v.read("errors_total 10\n", job)
	v.second()
	if left := rules.States()[0].Alerts; len(left) > 0 {
		t.Errorf("it is shown forever: %+v", left)
	}
}

// TestPendingVanishes checks that an alert that is not there once begins anew.
func TestPendingVanishes(t *testing.T) {
	rules, err := ParseRules("r.yaml", []byte("groups: [{name: g, rules: [{alert: A, expr: x > 0, for: 3s}]}]"))
	if err != nil {
		t.Fatal(err)
	}
	v := newVirtual(t, rules)
	for n := range 20 {
		x := 1
		if n%3 == 2 {
			x = 0
		}
		v.read(fmt.Sprintf("x %d\n", x), nil)
		v.second()
		if v.state("A") == Firing {
			t.Fatalf("it fires after %d s, and was there for two at most", n)
		}
	}
}

// TestGroups checks the interval, the offset and the limit of a group, and what is wrong when rules are evaluated.
func TestGroups(t *testing.T) {
	rules, err := ParseRules("r.yaml", []byte(`
groups:
  - {name: slow, interval: 5s, rules: [{alert: Slow, expr: x > 0}]}
  - {name: late, query_offset: 4s, rules: [{alert: Late, expr: x > 0}]}
  - {name: few, limit: 1, rules: [{alert: Few, expr: y > 0}]}
  - {name: same, rules: [{alert: Same, expr: y > 0, labels: {n: x}}, {record: same, expr: y, labels: {n: x}}]}
  - {name: none, rules: [{alert: Many, expr: x * on () y}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	v := newVirtual(t, rules)
	first := map[string]int{}
	for n := range 12 {
		x := 0
		if n > 1 {
			x = 1
		}
		v.read(fmt.Sprintf("x %d\ny{n=\"1\"} 1\ny{n=\"2\"} 1\n", x), nil)
		v.second()
		for _, s := range rules.States() {
			if _, known := first[s.Name]; s.State == Firing && !known {
				first[s.Name] = n
			}
		}
	}
	if first["Slow"] != 5 || first["Late"] != 6 {
		t.Errorf("they fire after %v s", first)
	}
	errs := map[string]string{}
	for _, s := range rules.States() {
		errs[s.Name] = s.Error
	}
	for name, want := range map[string]string{
		"Slow": "", "Few": "there are 2 alerts, and the limit of the group is 1", "Same": "have the same labels", "Many": "many-to-many",
	} {
		if got := errs[name]; !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: error %q, want %q", name, got, want)
		}
	}
}

// TestSeriesEnd checks that a series that is not told any more is not seen, although its last value is young.
func TestSeriesEnd(t *testing.T) {
	v := newVirtual(t, &Rules{})
	see := func(want int) {
		t.Helper()
		got, err := v.e.At(t.Context(), v.store, "x", v.at)
		if err != nil || len(got) != want {
			t.Errorf("%v (error: %v), want %d", got, err, want)
		}
	}
	one, other := map[string]string{"pod": "a"}, map[string]string{"pod": "b"}
	v.read("x{n=\"1\"} 1\nx{n=\"2\"} 2\n", one)
	v.read("x 1\n", other)
	see(3)
	v.second()
	v.read("x{n=\"2\"} 2\n", one)
	see(2)
	v.second()
	v.silent(one)
	see(1)
	v.second()
	v.gone(other)
	see(0)
	v.second()
	v.read("x 1\n", other)
	see(1)
	v.at = v.at.Add(2 * time.Hour)
	v.store.Forget(v.at)
	if n := v.store.Len(); n != 0 {
		t.Errorf("%d series are kept forever", n)
	}
}

// TestStoreForgets checks that a store does not grow without end, and that it keeps what it has to.
func TestStoreForgets(t *testing.T) {
	v := newVirtual(t, &Rules{})
	v.store = NewStore(time.Minute)
	for range 10_000 {
		v.read("x 1\n", nil)
		v.at = v.at.Add(time.Second)
	}
	got, err := v.e.At(t.Context(), v.store, "count_over_time(x[1m])", v.at.Add(-time.Second))
	if err != nil || len(got) != 1 || got[0].F != 60 {
		t.Errorf("%v (error: %v)", got, err)
	}
	for _, one := range v.store.series {
		if len(one.samples) > 200 {
			t.Errorf("%d samples are kept", len(one.samples))
		}
	}
}
