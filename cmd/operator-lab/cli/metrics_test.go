package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clipperhouse/displaywidth"
	"github.com/google/go-cmp/cmp"

	"github.com/operator-lab/operator-lab/sandbox/metrics"
)

// look returns a picture as a look might see it.
func look(at time.Time) *metrics.Picture {
	rising := metrics.Line{Name: "zundoko hikawa"}
	for n := range 31 {
		rising.Points = append(rising.Points, metrics.Point{At: at.Add(time.Duration(n-30) * time.Second), Value: float64(n) / 2})
	}
	quiet := metrics.Line{Name: "zundoko other"}
	firing := metrics.Alert{
		State: metrics.Firing, ActiveAt: at.Add(-time.Minute), FiredAt: at.Add(-45 * time.Second),
		Labels:      map[string]string{"alertname": "ReconcileErrors", "operator": "zundoko", "instance": "lab"},
		Annotations: map[string]string{"summary": "67% of the reconciles\nof hikawa fail"},
	}
	return &metrics.Picture{
		At: at,
		Targets: []metrics.Target{
			{Labels: map[string]string{"operator": "zundoko"}, Path: "/o", Up: true},
			{Labels: map[string]string{"namespace": "shop", "pod": "web"}, Path: "/p", Error: "nothing is there"},
		},
		Plots: []metrics.Plot{
			{Signal: metrics.Signal{Of: "operator", Name: "traffic", Title: "reconciles", Unit: metrics.PerSecond}, Lines: []metrics.Line{rising, quiet}},
			{Signal: metrics.Signal{Of: "operator", Name: "errors", Title: "failed reconciles", Unit: metrics.PerSecond}, Lines: []metrics.Line{quiet}},
			{Signal: metrics.Signal{Of: "etcd", Name: "latency", Title: "sync", Unit: metrics.Seconds}, Lines: []metrics.Line{{Name: "kv-a", Points: []metrics.Point{{At: at, Value: 0.0123}}}}},
		},
		Alerts: []metrics.RuleState{
			{Name: "Quiet", State: metrics.Inactive},
			{Name: "Quieter", State: metrics.Inactive},
			{Name: "Waits", State: metrics.Pending, Alerts: []metrics.Alert{{State: metrics.Pending, ActiveAt: at.Add(-2 * time.Second)}}},
			{Name: "ReconcileErrors", State: metrics.Firing, Alerts: []metrics.Alert{firing}},
			{Name: "Was", State: metrics.Inactive, Alerts: []metrics.Alert{{State: metrics.Inactive, ResolvedAt: at.Add(-time.Minute), Annotations: map[string]string{"summary": "it is so no more"}}}},
			{Name: "Wrong", File: "f.yaml", Error: "many-to-many"},
		},
	}
}

func TestMetricsText(t *testing.T) {
	at := time.Date(2026, 11, 27, 15, 4, 5, 0, time.Local)
	got := strings.Join(metricsText(look(at), "sandbox default", 80, 0), "\n")
	want := `15:04:05  sandbox default  1 of 2 answer
shop/web: nothing is there

traffic: reconciles                      errors: failed reconciles
   15/s |                          aaaa          |
        |                    aaaaaa              |
        |               aaaaa                    |
        |         aaaaaa                         |
        |   aaaaaa                               |
    0/s |aaa                                 0/s |
        +------------------------------          +------------------------------
   -30s  a 15/s zundoko hikawa, b - zu…      -1s  a - zundoko other
latency: sync
 12.3ms |                             a
        |
        |
        |
        |
     0s |
        +------------------------------
    -1s  a 12.3ms kv-a

FIRING  ReconcileErrors since 15:03:20 (45s): 67% of the reconciles of hikawa fail {operator=zundoko}
pending Waits since 15:04:03 (2s) {}
over    Was since 15:03:05 (1m0s) {}
rule Wrong of f.yaml cannot be evaluated: many-to-many
inactive: Quiet, Quieter`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestMetricsFit checks that a screen shows the alerts however small it is, and that no plot is wider.
func TestMetricsFit(t *testing.T) {
	p := look(time.Now())
	for _, size := range [][2]int{{80, 24}, {120, 40}, {40, 24}, {80, 12}, {200, 60}} {
		lines := metricsText(p, "sandbox default", size[0], size[1])
		if len(lines) > size[1] {
			t.Errorf("%d lines on a screen of %v", len(lines), size)
		}
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "inactive: ") {
			t.Errorf("the last line at %v is %q", size, last)
		}
		for _, line := range lines {
			if strings.Contains(line, "|") && displaywidth.String(line) > size[0] {
				t.Errorf("at %v a plot is wider: %q", size, line)
			}
		}
	}
}

// TestMetricsLines checks that a line is printed when something changes, and only then.
func TestMetricsLines(t *testing.T) {
	var out, errs bytes.Buffer
	l := &metricsLook{metricsFlags: &metricsFlags{}, io: streams{out: &out, err: &errs}, where: "sandbox default"}
	show := l.lines()
	at := time.Date(2026, 11, 27, 15, 4, 5, 0, time.Local)
	see := func(p *metrics.Picture, want string) {
		t.Helper()
		if err := show(p); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, out.String()); d != "" {
			t.Error(d)
		}
		out.Reset()
	}
	p := look(at)
	see(p, `15:04:05 operator zundoko: answers
15:04:05 shop/web: nothing is there
15:04:05 pending Waits since 15:04:03 (2s) {}
15:04:05 FIRING  ReconcileErrors since 15:03:20 (45s): 67% of the reconciles of hikawa fail {operator=zundoko}
15:04:05 over    Was since 15:03:05 (1m0s) {}
15:04:05 rule Wrong cannot be evaluated: many-to-many
`)
	p.At = at.Add(time.Second)
	see(p, "")
	p.Targets, p.Alerts = p.Targets[:1], p.Alerts[3:4]
	see(p, "15:04:06 over    Waits {}\n15:04:06 shop/web: gone\n")
	if errs.Len() > 0 {
		t.Errorf("there are targets, and yet: %s", errs.String())
	}
	see(&metrics.Picture{At: at}, "15:04:05 operator zundoko: gone\n")
	if got := errs.String(); got != "nothing in sandbox default has metrics so far\n" {
		t.Errorf("without targets: %q", got)
	}
}

func TestInUnit(t *testing.T) {
	for want, v := range map[string]struct {
		value float64
		unit  metrics.Unit
	}{
		"0s": {0, metrics.Seconds}, "12.3ms": {0.01234, metrics.Seconds}, "1.5s": {1.5, metrics.Seconds}, "20µs": {0.00002, metrics.Seconds},
		"0/s": {0, metrics.PerSecond}, "0.333/s": {1.0 / 3, metrics.PerSecond}, "123/s": {123.4, metrics.PerSecond}, "1.23k/s": {1234, metrics.PerSecond},
		"81.5%": {0.8149, metrics.Ratio}, "<0.01%": {0.00002, metrics.Ratio}, "0%": {0, metrics.Ratio}, "7": {7, metrics.Count}, "2.5M": {2.5e6, metrics.Count},
	} {
		if got := inUnit(v.value, v.unit); got != want {
			t.Errorf("%v in %s is %q, want %q", v.value, v.unit, got, want)
		}
	}
}

// TestMetricsRefuses checks what is said of a command line or a file that is wrong, before anything is read.
func TestMetricsRefuses(t *testing.T) {
	t.Setenv("OPERATOR_LAB_STATE_DIR", t.TempDir())
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte("groups:\n- name: g\n  rules:\n  - alert: A\n    expr: sum(\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"--output yaml":             `unknown output format "yaml"`,
		"--interval 1ms":            "--interval 1ms is less than 100ms",
		"--window 48h":              "--window 48h0m0s is not between",
		"--for -1s":                 "--for -1s is negative",
		"--once --until A=firing":   "--once does not wait",
		"--until EtcdNoQuorum":      `--until "EtcdNoQuorum" is not ALERT=STATE`,
		"--until EtcdNoQuorum=on":   `--until "EtcdNoQuorum=on" is not ALERT=STATE`,
		"--until Nobody=firing":     `there is no rule "Nobody"`,
		"--rules /no/such/file":     "read the rules: open /no/such/file",
		"--rules " + file:           file + `: 5:11: group "g", rule 1, "A": could not parse expression: `,
		"etcd zundoko":              "takes one operator, got 2",
		"--kubeconfig /no/such/one": "read the kubeconfig: ",
	} {
		got := runLine(append([]string{"metrics"}, strings.Fields(line)...), Programs{})
		if err := got.refusal(); got.code != exitUsage || err != nil || !strings.Contains(got.stderr, want) {
			t.Errorf("metrics %s: exit code %d (%v)\n%s", line, got.code, err, got.stderr)
		}
	}
	if got := runLine([]string{"metrics"}, Programs{}); got.code != exitSandbox || got.refusal() != nil {
		t.Errorf("without a sandbox: exit code %d\n%s", got.code, got.stderr)
	}
}
