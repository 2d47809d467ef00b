package metrics

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// Signal is one of the four golden signals of something, as an expression of PromQL.
type Signal struct {
	// Of says what it is a signal of: operator or etcd.
	Of string `json:"of"`
	// Name: latency, traffic, errors or saturation.
	Name string `json:"signal"`
	// Title says what is shown, Unit in what: seconds, perSecond, count or ratio.
	Title string `json:"title"`
	Unit  Unit   `json:"unit"`
	// Expr is the expression.
	Expr string `json:"expr"`
}

// Unit of a signal.
type Unit string

// The units.
const (
	Seconds   Unit = "seconds"
	PerSecond Unit = "perSecond"
	Count     Unit = "count"
	Ratio     Unit = "ratio"
)

// window stands for the time over which rates are taken.
const window = "$window"

// Signals are the signals that are shown.
var Signals = []Signal{
	{operatorJob, "latency", "time of a reconcile, p99", Seconds, `histogram_quantile(0.99, sum by (operator, namespace, pod, controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket[$window])))`},
	{operatorJob, "traffic", "reconciles", PerSecond, `sum by (operator, namespace, pod, controller) (rate(controller_runtime_reconcile_total[$window]))`},
	{operatorJob, "errors", "failed reconciles", PerSecond, `sum by (operator, namespace, pod, controller) (rate(controller_runtime_reconcile_errors_total[$window]))`},
	{operatorJob, "saturation", "keys that wait in the queue", Count, `sum by (operator, namespace, pod, controller) (workqueue_depth{controller!=""})`},
	{etcdJob, "latency", "sync of the log to disk, p99", Seconds, `histogram_quantile(0.99, sum by (namespace, pod, le) (rate(etcd_disk_wal_fsync_duration_seconds_bucket[$window])))`},
	{etcdJob, "traffic", "requests", PerSecond, `sum by (namespace, pod) (rate(grpc_server_handled_total[$window]))`},
	{etcdJob, "errors", "failed requests", PerSecond, `sum by (namespace, pod) (rate(grpc_server_handled_total{grpc_code=~"Unknown|DeadlineExceeded|ResourceExhausted|FailedPrecondition|Internal|Unavailable|DataLoss"}[$window]))`},
	{etcdJob, "saturation", "database, of its quota", Ratio, `sum by (namespace, pod) (etcd_mvcc_db_total_size_in_bytes / etcd_server_quota_backend_bytes)`},
}

// Plot is what a signal was over some time.
type Plot struct {
	Signal
	Lines []Line `json:"lines"`
}

// Line is a plot's line: of one controller, or of one member.
type Line struct {
	// Name is made of the labels that tell it from the plot's other lines.
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
	Points []Point           `json:"points"`
}

// Point is a value at a moment. A moment without a value has no point: nothing happened that could be measured.
type Point struct {
	At    time.Time `json:"at"`
	Value float64   `json:"value"`
}

// Now returns the line's value at a moment, and whether there is one.
func (l Line) Now(at time.Time) (float64, bool) {
	if n := len(l.Points); n > 0 && !l.Points[n-1].At.Before(at.Truncate(time.Millisecond)) {
		return l.Points[n-1].Value, true
	}
	return 0, false
}

// plot evaluates a signal. Rates are those over the given time.
func (s Signal) plot(ctx context.Context, e *Engine, from *Store, span, step, over time.Duration, at time.Time) (Plot, error) {
	at = at.Truncate(time.Millisecond)
	begin := at.Add(-span / step * step)
	matrix, err := e.Between(ctx, from, strings.ReplaceAll(s.Expr, window, model.Duration(over).String()), begin, at, step)
	if err != nil {
		return Plot{}, fmt.Errorf("evaluate the %s of %s: %w", s.Name, s.Of, err)
	}
	p := Plot{Signal: s, Lines: []Line{}}
	if len(matrix) == 0 {
		return p, nil
	}
	for _, one := range matrix {
		line := Line{Labels: one.Metric.Map(), Points: []Point{}}
		for _, f := range one.Floats {
			if !math.IsNaN(f.F) && !math.IsInf(f.F, 0) {
				line.Points = append(line.Points, Point{time.UnixMilli(f.T), f.F})
			}
		}
		p.Lines = append(p.Lines, line)
	}
	slices.SortFunc(p.Lines, func(a, b Line) int { return slices.Compare(namesOf(a), namesOf(b)) })
	all := make([][]string, len(p.Lines))
	for i, line := range p.Lines {
		all[i] = namesOf(line)
	}
	shared := 0 // of the first words
	for shared+1 < len(all[0]) && !slices.ContainsFunc(all, func(words []string) bool { return !slices.Equal(words[:shared+1], all[0][:shared+1]) }) {
		shared++
	}
	for i, words := range all {
		p.Lines[i].Name = strings.Join(slices.DeleteFunc(words[shared:], func(word string) bool { return word == "" }), " ")
	}
	return p, nil
}

// namesOf returns the words of a line's name, from what it has in common with others to what it has not; the same number of
// them for each line of a plot.
func namesOf(l Line) []string {
	words := []string{l.Labels["namespace"], l.Labels["pod"]}
	if l.Labels["pod"] == "" {
		words = []string{"", l.Labels[operatorLabel]}
	}
	if c, has := l.Labels["controller"]; has {
		words = append(words, c)
	}
	return words
}

// names returns the names of the metrics in expressions; all is true if any could be meant.
func names(expressions []string) (found map[string]bool, all bool) {
	found = map[string]bool{}
	for _, source := range expressions {
		expr, err := language.ParseExpr(strings.ReplaceAll(source, window, "1m"))
		if err != nil {
			return nil, true
		}
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			if v, is := n.(*parser.VectorSelector); is {
				found[v.Name] = true
				all = all || v.Name == ""
			}
			return nil
		})
	}
	return found, all
}

// back returns how far back an expression looks.
func back(source string) (longest time.Duration) {
	expr, err := language.ParseExpr(source)
	if err != nil {
		return 0
	}
	parser.Inspect(expr, func(n parser.Node, path []parser.Node) error {
		v, is := n.(*parser.VectorSelector)
		if !is {
			return nil
		}
		far := v.OriginalOffset
		for _, around := range path {
			switch around := around.(type) {
			case *parser.MatrixSelector:
				far += around.Range
			case *parser.SubqueryExpr:
				far += around.Range + around.OriginalOffset
			}
		}
		longest = max(longest, far)
		return nil
	})
	return longest
}
