//go:build go1.23

package taps

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The names of the metrics' label, and of the metric that the taps' queues do not feed.
const (
	controllerLabel = "controller"
	depthMetric     = "workqueue_depth"
)

// Metrics returns the metrics of the operator's controllers in the text format of Prometheus. Other metrics of this process
// are left out: they may be those of the lab, or of another operator. The metrics of controller-runtime belong to the
// process, so the counters go on counting when the operator is started again.
func (t *Taps) Metrics() ([]byte, error) {
	own := t.Controllers()
	if len(own) == 0 {
		return nil, errors.New("it has no controllers with taps now")
	}
	return Metrics(func(m *dto.Metric) bool {
		return slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool {
			return l.GetName() == controllerLabel && slices.Contains(own, l.GetValue())
		})
	}, t)
}

// Metrics returns the wanted metrics of controller-runtime's registry in the text format of Prometheus, and the lengths of
// the work queues of operators: controller-runtime does not know them, because the queues are the taps'.
func Metrics(wanted func(*dto.Metric) bool, of ...*Taps) ([]byte, error) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather the metrics: %w", err)
	}
	families = append(families, depths(of))
	var text bytes.Buffer
	for _, f := range families {
		f.Metric = slices.DeleteFunc(f.Metric, func(m *dto.Metric) bool { return !wanted(m) })
		if len(f.Metric) == 0 {
			continue
		}
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			return nil, fmt.Errorf("write the metrics: %w", err)
		}
	}
	return text.Bytes(), nil
}

// depths returns the number of keys that are ready in each work queue, named and counted as controller-runtime does it: a
// key that a worker has, and that was added again, counts.
func depths(of []*Taps) *dto.MetricFamily {
	f := &dto.MetricFamily{Name: pointer(depthMetric), Help: pointer("Current depth of workqueue"), Type: dto.MetricType_GAUGE.Enum()}
	for _, t := range of {
		for _, q := range t.allQueues() {
			f.Metric = append(f.Metric, &dto.Metric{
				Label: []*dto.LabelPair{
					{Name: pointer(controllerLabel), Value: pointer(q.name)}, {Name: pointer("name"), Value: pointer(q.name)},
				},
				Gauge: &dto.Gauge{Value: pointer(float64(q.Len()))},
			})
		}
	}
	return f
}

// pointer returns a pointer to a value: programs that are built with an older Go have the taps, too.
func pointer[T any](v T) *T { return &v }
