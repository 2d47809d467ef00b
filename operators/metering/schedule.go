package metering

import (
	"cmp"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	v1 "github.com/operator-lab/operator-lab/operators/metering/v1"
)

// boundaries returns the times at which periods of a schedule end, as cron says them.
func boundaries(s *v1.ReportSchedule) (cron.Schedule, error) {
	moment := func(m *v1.ScheduleMoment) v1.ScheduleMoment {
		if m == nil {
			return v1.ScheduleMoment{}
		}
		return *m
	}
	var fields string
	switch s.Period {
	case v1.Hourly:
		m := moment(s.Hourly)
		fields = fmt.Sprintf("%d %d * * * *", m.Second, m.Minute)
	case v1.Daily:
		m := moment(s.Daily)
		fields = fmt.Sprintf("%d %d %d * * *", m.Second, m.Minute, m.Hour)
	case v1.Weekly:
		m := moment(s.Weekly)
		fields = fmt.Sprintf("%d %d %d * * %s", m.Second, m.Minute, m.Hour, cmp.Or(m.DayOfWeek, "sunday")[:3])
	case v1.Monthly:
		m := moment(s.Monthly)
		fields = fmt.Sprintf("%d %d %d %d * *", m.Second, m.Minute, m.Hour, cmp.Or(m.DayOfMonth, 1))
	case v1.Cron:
		fields = "0 " + s.Cron.Expression
	default:
		return nil, invalidf("there is no period %q", s.Period)
	}
	parser := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	schedule, err := parser.Parse(fields)
	if err != nil {
		return nil, invalidf("the schedule: %w", err)
	}
	return schedule, nil
}

// periodFrom returns when the period that begins at since ends; over is true if there is no such period. The last one ends with
// the report.
func periodFrom(spec *v1.ReportSpec, since time.Time) (until time.Time, over bool, err error) {
	if spec.ReportingEnd != nil && !since.Before(spec.ReportingEnd.Time) {
		return time.Time{}, true, nil
	}
	if spec.Schedule == nil {
		return spec.ReportingEnd.UTC(), false, nil
	}
	schedule, err := boundaries(spec.Schedule)
	if err != nil {
		return time.Time{}, false, err
	}
	until = schedule.Next(since.UTC())
	if until.IsZero() {
		return time.Time{}, false, invalidf("the schedule never comes")
	}
	if spec.ReportingEnd != nil && until.After(spec.ReportingEnd.Time) {
		until = spec.ReportingEnd.UTC()
	}
	return until, false, nil
}
