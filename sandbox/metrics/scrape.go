package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// answerTime limits how long a target may take.
const answerTime = 3 * time.Second

// upMetric is 1 for a target that answers, else 0.
const upMetric = "up"

// scrape asks all targets, each at the same time as the others, and adds what they tell to the store. Of series only those
// with wanted names are kept.
func scrape(ctx context.Context, c rest.Interface, all []Target, s *Store, at time.Time, wanted func(string) bool) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var asking sync.WaitGroup
	for i := range all {
		t := &all[i]
		if t.Path == "" {
			continue
		}
		asking.Go(func() {
			var samples []Sample
			raw, err := c.Get().AbsPath(t.Path).DoRaw(ctx)
			if err != nil {
				t.Error = why(raw, err)
			} else if samples, err = parse(raw, t.Labels, wanted); err != nil {
				t.Error = why(nil, err)
			}
			up := 0.0
			if t.Up = err == nil; t.Up {
				up = 1
			}
			s.Append(t.source(), at, append(samples, Sample{Labels: series(upMetric, nil, t.Labels), Value: up}))
		})
	}
	asking.Wait()
}

// why says in one line why there is no answer.
func why(raw []byte, err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in " + answerTime.String()
	}
	said := err.Error()
	var status metav1.Status
	if text := strings.TrimSpace(string(raw)); json.Unmarshal(raw, &status) == nil && status.Message != "" { // the API server's own words
		said = status.Message
	} else if text != "" && len(text) < 200 {
		said = text
	}
	return strings.Join(strings.Fields(said), " ")
}

// parse reads the text format of Prometheus.
func parse(raw []byte, target map[string]string, wanted func(string) bool) ([]Sample, error) {
	decoder := &expfmt.SampleDecoder{
		Dec:  expfmt.NewDecoder(strings.NewReader(string(raw)), expfmt.NewFormat(expfmt.TypeTextPlain)),
		Opts: &expfmt.DecodeOptions{},
	}
	var all []Sample
	for {
		var some model.Vector
		err := decoder.Decode(&some)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("its answer is no text of metrics: %w", err)
		}
		for _, one := range some {
			if name := string(one.Metric[model.MetricNameLabel]); wanted(name) {
				all = append(all, Sample{Labels: series(name, one.Metric, target), Value: float64(one.Value)})
			}
		}
	}
}

// series returns the labels of a series of a target. Where both have a label, that of the target wins, and its own is kept as
// exported_…, as in Prometheus.
func series(name string, own model.Metric, target map[string]string) labels.Labels {
	b := labels.NewBuilder(labels.EmptyLabels())
	for label, value := range own {
		if _, taken := target[string(label)]; taken {
			label = model.ExportedLabelPrefix + label
		}
		b.Set(string(label), string(value))
	}
	for label, value := range target {
		b.Set(label, value)
	}
	b.Set(model.MetricNameLabel, name)
	return b.Labels()
}
