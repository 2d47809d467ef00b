package metering

import (
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/operator-lab/operator-lab/operators/metering/v1"
)

// TestQueriesRead checks that the SQL of a ReportQuery can read, and can neither write, nor open another file, nor run on and on.
func TestQueriesRead(t *testing.T) {
	t.Parallel()
	s, err := openStore(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close() //nolint:errcheck // the test is over
	if got, err := s.run(t.Context(), "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT sum(i) AS six FROM n"); err != nil || got.rows[0][0] != int64(6) {
		t.Fatalf("a SELECT returns %+v, %v", got, err)
	}
	for _, query := range []string{
		"DELETE FROM owners",
		"SELECT 1; DELETE FROM owners",
		"ATTACH '/tmp/other.sqlite' AS other",
		"VACUUM INTO '/tmp/other.sqlite'",
		"PRAGMA journal_mode = delete",
		"CREATE TEMP TABLE t (n)",
		"SELECT 1 WHERE",
	} {
		if got, err := s.run(t.Context(), query); err == nil {
			t.Errorf("%s was run: %+v", query, got)
		}
	}
	_, err = s.run(t.Context(), "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")
	if err == nil || !strings.Contains(err.Error(), "more than 100000 rows") {
		t.Errorf("a SELECT without an end returns %v", err)
	}
}

// TestPeriods checks where periods end.
func TestPeriods(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 30, 22, 10, 5, 0, time.UTC) // a Friday
	for name, c := range map[string]struct {
		schedule v1.ReportSchedule
		want     string
	}{
		"hourly":   {v1.ReportSchedule{Period: v1.Hourly}, "2026-01-30T23:00:00Z 2026-01-31T00:00:00Z"},
		"at 5":     {v1.ReportSchedule{Period: v1.Hourly, Hourly: &v1.ScheduleMoment{Minute: 5, Second: 1}}, "2026-01-30T23:05:01Z 2026-01-31T00:05:01Z"},
		"daily":    {v1.ReportSchedule{Period: v1.Daily, Daily: &v1.ScheduleMoment{Hour: 22}}, "2026-01-31T22:00:00Z 2026-02-01T22:00:00Z"},
		"weekly":   {v1.ReportSchedule{Period: v1.Weekly, Weekly: &v1.ScheduleMoment{DayOfWeek: "tuesday"}}, "2026-02-03T00:00:00Z 2026-02-10T00:00:00Z"},
		"monthly":  {v1.ReportSchedule{Period: v1.Monthly}, "2026-02-01T00:00:00Z 2026-03-01T00:00:00Z"},
		"the 31st": {v1.ReportSchedule{Period: v1.Monthly, Monthly: &v1.ScheduleMoment{DayOfMonth: 31}}, "2026-01-31T00:00:00Z 2026-03-31T00:00:00Z"},
		"cron":     {*cronOf("*/20 9 * * 1-5"), "2026-02-02T09:00:00Z 2026-02-02T09:20:00Z"},
	} {
		spec := &v1.ReportSpec{Schedule: &c.schedule}
		first, _, err := periodFrom(spec, since)
		second, _, err2 := periodFrom(spec, first)
		if got := stamp(first) + " " + stamp(second); err != nil || err2 != nil || got != c.want {
			t.Errorf("%s: periods end at %s (%v, %v), want %s", name, got, err, err2, c.want)
		}
	}
	if _, _, err := periodFrom(&v1.ReportSpec{Schedule: cronOf("at noon")}, since); err == nil {
		t.Error("a cron expression that is none is taken")
	}
	end := &v1.ReportSpec{Schedule: &v1.ReportSchedule{Period: v1.Hourly}, ReportingEnd: at(since.Add(time.Minute))}
	if until, over, err := periodFrom(end, since); err != nil || over || !until.Equal(since.Add(time.Minute)) {
		t.Errorf("the last period ends at %v, over %v, error %v", until, over, err)
	}
	if _, over, err := periodFrom(end, since.Add(time.Minute)); err != nil || !over {
		t.Errorf("after the last period: over %v, error %v", over, err)
	}
}

// minutes lets the clock go on, with a pass for each.
func (w *world) minutes(n int, reports ...*v1.Report) {
	w.t.Helper()
	for range n {
		w.now = w.now.Add(time.Minute)
		w.settle(requestSource, reports...)
	}
}

// TestCost: a pod that requests a quarter of a core for an hour has 900 core-seconds, and they cost what the Report says.
func TestCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pod("shop", "web", "250m")
	start := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	price := []v1.ReportInput{{Name: "PricePerCoreSecond", Value: apiextensionsv1.JSON{Raw: []byte("0.5")}}}
	r := w.report("cost", v1.ReportSpec{
		Query: "namespace-cpu-request-cost", Inputs: price, Schedule: &v1.ReportSchedule{Period: v1.Hourly}, ReportingStart: at(start),
	})
	w.minutes(42, r)
	if c := w.said(r); c.Reason != v1.ReasonPeriodWaiting || c.Status != metav1.ConditionTrue || !r.Status.NextReportTime.Time.Equal(start.Add(time.Hour)) {
		t.Errorf("before the period it is %+v, next %v", c, r.Status.NextReportTime)
	}
	w.minutes(62, r)
	columns, rows, _, err := w.store.rows(t.Context(), "cost")
	if err != nil || len(rows) != 1 {
		t.Fatalf("there are the rows %v (error: %v), want one", rows, err)
	}
	want := []any{"2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", "shop", 900.0, 450.0}
	for i := range want {
		if rows[0][i] != want[i] {
			t.Errorf("%s is %v, want %v", columns[i].Name, rows[0][i], want[i])
		}
	}
	if c := w.said(r); !r.Status.LastReportTime.Time.Equal(start.Add(time.Hour)) || r.Status.TableRef.Name != "report_team_cost" || c.Reason != v1.ReasonPeriodWaiting {
		t.Errorf("after the period it is %+v, last %v", c, r.Status.LastReportTime)
	}

	// The operator is away for three hours: it makes up for each, and says that it saw nothing.
	w.now = w.now.Add(3 * time.Hour)
	w.live()
	w.minutes(3, r)
	if w.said(r); !r.Status.LastReportTime.Time.Equal(start.Add(4 * time.Hour)) {
		t.Errorf("after three hours away the last report is of %v", r.Status.LastReportTime)
	}
	if c := w.said(r); !strings.HasSuffix(c.Message, "of the one before, 0s of 1h0m0s were observed") {
		t.Errorf("of the hour in which it was away it says: %s", c.Message)
	}
	if observed, err := w.store.observed(t.Context(), "ReportDataSource"+requestSource, start.Add(2*time.Hour), start.Add(3*time.Hour)); err != nil || observed != 0 {
		t.Errorf("of an hour away %v was observed (error: %v)", observed, err)
	}
}

// TestWaits checks what a Report waits for, and what it does not.
func TestWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pod("shop", "web", "1")
	w.minutes(2)
	over := begin.Add(2 * time.Minute)
	waits := w.report("waits", v1.ReportSpec{Query: "pod-cpu-request", ReportingStart: at(begin), ReportingEnd: at(over)})
	now := w.report("now", v1.ReportSpec{Query: "pod-cpu-request", ReportingStart: at(begin), ReportingEnd: at(over.Add(time.Hour)), RunImmediately: true})
	nothing := w.report("nothing", v1.ReportSpec{Query: "no-such-query", ReportingStart: at(begin), ReportingEnd: at(over)})
	bad := w.report("bad", v1.ReportSpec{
		Query: "pod-cpu-request", ReportingStart: at(begin), ReportingEnd: at(over), Inputs: []v1.ReportInput{{Name: "Price", Value: apiextensionsv1.JSON{Raw: []byte("1")}}},
	})
	short := w.report("short", v1.ReportSpec{
		Query: "pod-cpu-request", Schedule: &v1.ReportSchedule{Period: v1.Hourly}, Expiration: &metav1.Duration{Duration: 5 * time.Minute},
	})
	w.settle(requestSource, waits, now, nothing, bad, short)
	for r, want := range map[*v1.Report][2]string{
		waits:   {v1.ReasonUnmetDependencies, "samples until"},
		now:     {v1.ReasonFinished, "were observed"},
		nothing: {v1.ReasonUnmetDependencies, "ReportQuery no-such-query is not there"},
		bad:     {v1.ReasonInvalid, "has no input Price"},
		short:   {v1.ReasonPeriodWaiting, "ends at 2026-03-01T10:00:00Z"},
	} {
		if c := w.said(r); c.Reason != want[0] || !strings.Contains(c.Message, want[1]) {
			t.Errorf("%s says %s: %s, want %s: %s", r.Name, c.Reason, c.Message, want[0], want[1])
		}
	}
	w.minutes(1, waits)
	if c := w.said(waits); c.Reason != v1.ReasonFinished {
		t.Errorf("with the data, it says %s: %s", c.Reason, c.Message)
	}
	w.minutes(4, short)
	if err := w.cluster.Get(t.Context(), client.ObjectKeyFromObject(short), short); err == nil {
		t.Error("an expired Report is still there")
	}
}
