package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// proxyPod returns a proxy that serves.
func proxyPod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i))},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

// TestProxiesFollowTheLoad goes through how many proxies there are while the requests of clients become more and fewer.
func TestProxiesFollowTheLoad(t *testing.T) {
	policy := &v1beta2.ProxyPolicy{Min: 1, Max: 4, RequestsPerSecond: 100, ScaleDownAfter: metav1.Duration{Duration: 10 * time.Second}}
	type look struct {
		rate float64 // of all proxies; negative: one does not answer
		want int32
	}
	for name, looks := range map[string][]look{
		"up at once":                      {{0, 1}, {50, 1}, {250, 3}, {250, 3}},
		"a tenth more does not count":     {{0, 1}, {109, 1}, {111, 2}, {219, 2}},
		"not above max":                   {{0, 1}, {10000, 4}, {math.MaxFloat64 / 4, 4}},
		"down after ten seconds":          {{0, 1}, {250, 3}, {0, 3}, {0, 3}, {0, 3}, {0, 3}, {0, 3}, {0, 1}, {0, 1}},
		"down to the highest of these":    {{0, 1}, {350, 4}, {0, 4}, {150, 4}, {0, 4}, {0, 4}, {0, 4}, {0, 2}, {0, 2}, {0, 1}},
		"up and down does not flap":       {{0, 1}, {250, 3}, {0, 3}, {250, 3}, {0, 3}, {250, 3}, {0, 3}, {250, 3}, {0, 3}},
		"one that does not answer: as is": {{0, 1}, {250, 3}, {-1, 3}, {-1, 3}, {-1, 3}, {-1, 3}, {-1, 3}, {-1, 3}, {-1, 3}, {-1, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			var load proxyLoad
			now, has := time.Unix(1000, 0), int32(1)
			taken := map[types.UID]float64{}
			for i, l := range looks {
				now = now.Add(proxyInterval)
				var pods []*corev1.Pod
				for n := range has {
					pods = append(pods, proxyPod(int(n)))
				}
				load.look(t.Context(), now, pods, func(_ context.Context, pod *corev1.Pod) (float64, error) {
					if l.rate < 0 {
						return 0, errors.New("it does not answer")
					}
					taken[pod.UID] += l.rate / float64(has) * proxyInterval.Seconds()
					return taken[pod.UID], nil
				})
				load.look(t.Context(), now.Add(proxyInterval/4), pods, func(context.Context, *corev1.Pod) (float64, error) {
					t.Error("an event has it look too early")
					return 0, nil
				})
				was := has
				if has = load.wants(now, has, policy); has != l.want {
					t.Errorf("look %d: %v requests a second and %d proxies become %d, not %d", i, l.rate, was, has, l.want)
				}
			}
		})
	}
}

// TestANewLifeScalesDownLate: an operator that has just started has not seen that fewer proxies sufficed, and keeps to min and max.
func TestANewLifeScalesDownLate(t *testing.T) {
	policy := &v1beta2.ProxyPolicy{Min: 2, Max: 4, RequestsPerSecond: 100, ScaleDownAfter: metav1.Duration{Duration: 3 * time.Second}}
	var load proxyLoad
	now := time.Unix(1000, 0)
	if n := load.wants(now, 3, policy); n != 3 {
		t.Errorf("before it has looked: %d", n)
	}
	if n := load.wants(now, 9, policy); n != 4 {
		t.Errorf("above max: %d", n)
	}
	if n := load.wants(now, 1, policy); n != 2 {
		t.Errorf("below min: %d", n)
	}
	for i, want := range []int32{3, 3, 3, 2} {
		load.look(t.Context(), now, []*corev1.Pod{proxyPod(1)}, func(context.Context, *corev1.Pod) (float64, error) { return 5, nil })
		if n := load.wants(now, 3, policy); n != want {
			t.Errorf("look %d: %d, not %d", i, n, want)
		}
		now = now.Add(proxyInterval)
	}
}

// TestAbnormal goes through what is said of a member whose answers take these times, in milliseconds.
func TestAbnormal(t *testing.T) {
	normal := func(n int) (ms []float64) {
		for i := range n {
			ms = append(ms, 10+float64(i%3))
		}
		return ms
	}
	for name, test := range map[string]struct {
		takes  []float64
		reason string
	}{
		"nothing is known yet":           {normal(9), ReasonLearning},
		"as usual":                       {normal(30), ReasonNormal},
		"slow from the beginning":        {[]float64{500, 510, 500, 500, 505, 500, 500, 510, 500, 500, 500, 505}, ReasonNormal},
		"three slow ones in a row":       {append(normal(12), 100, 110, 90), ReasonSlowAnswers},
		"whatever the first one took":    {append([]float64{900}, append(normal(12), 100, 110, 90)...), ReasonSlowAnswers},
		"two are not enough":             {append(normal(12), 100, 110, 10, 100, 110), ReasonNormal},
		"twice as slow is not abnormal":  {append(normal(12), 22, 22, 22, 22, 22), ReasonNormal},
		"it takes three to be normal":    {append(normal(12), 100, 100, 100, 10, 10), ReasonSlowAnswers},
		"normal again":                   {append(normal(12), 100, 100, 100, 10, 10, 10), ReasonNormal},
		"what lasts becomes what is so":  {append(normal(12), repeat(100, 60)...), ReasonNormal},
		"though not before a good while": {append(normal(12), repeat(100, 20)...), ReasonSlowAnswers},
		"quicker than one would see":     {append(repeat(0.1, 12), repeat(5, 5)...), ReasonNormal},
	} {
		t.Run(name, func(t *testing.T) {
			h := &habits{}
			now := time.Unix(1000, 0)
			for _, ms := range test.takes {
				now = now.Add(time.Second)
				h.look(now, time.Duration(ms*float64(time.Millisecond)), nil, 3)
			}
			p := &clusterState{members: []*member{{name: "example-1", habits: h}}}
			if c := p.abnormal(); c.Reason != test.reason {
				t.Errorf("it is %s, not %s: %s", c.Reason, test.reason, c.Message)
			}
		})
	}
	p := &clusterState{members: []*member{{name: "example-1"}}}
	if c := p.abnormal(); c.Status != metav1.ConditionUnknown || c.Reason != ReasonNothingToJudge {
		t.Errorf("no member is looked at, and it is %+v", c)
	}
}

func repeat(value float64, times int) (all []float64) {
	for range times {
		all = append(all, value)
	}
	return all
}

// TestAbnormalCounters goes through what is said of a member by its metrics.
func TestAbnormalCounters(t *testing.T) {
	counters := func(logs, logSeconds, failed float64) map[string]*dto.MetricFamily {
		count := uint64(logs)
		return map[string]*dto.MetricFamily{
			fsyncSeconds:    {Metric: []*dto.Metric{{Histogram: &dto.Histogram{SampleCount: &count, SampleSum: &logSeconds}}}},
			failedProposals: {Metric: []*dto.Metric{{Counter: &dto.Counter{Value: &failed}}}},
		}
	}
	for name, test := range map[string]struct {
		logs, each, failed float64 // since the look before, for the last three of twenty
		again              bool    // the process of the member has begun anew meanwhile
		reason, message    string
	}{
		"as usual":             {logs: 10, each: 0.010, reason: ReasonNormal},
		"nothing was written":  {reason: ReasonNormal},
		"a slow disk":          {logs: 10, each: 0.100, reason: ReasonSlowLog, message: "example-1 takes 100.0 ms to write its log; normally it takes 11.8 ms to write its log"},
		"proposals fail":       {logs: 10, each: 0.010, failed: 4, reason: ReasonProposalsFail},
		"one fails now, then":  {logs: 10, each: 0.010, failed: 0.4, reason: ReasonNormal},
		"its process is a new": {logs: 10, each: 0.010, again: true, reason: ReasonNormal},
	} {
		t.Run(name, func(t *testing.T) {
			h := &habits{}
			now := time.Unix(1000, 0)
			var logs, seconds, failed float64
			for i := range 20 {
				now = now.Add(time.Second)
				if i < 17 {
					logs, seconds = logs+10, seconds+10*0.010
				} else {
					if test.again && i == 17 {
						logs, seconds, failed = 0, 0, 0
					}
					logs, seconds, failed = logs+test.logs, seconds+test.logs*test.each, failed+test.failed
				}
				h.look(now, time.Millisecond, counters(logs, seconds, failed), 3)
			}
			c := (&clusterState{members: []*member{{name: "example-1", habits: h}}}).abnormal()
			if c.Reason != test.reason || test.message != "" && c.Message != test.message {
				t.Errorf("it is %s, not %s: %s", c.Reason, test.reason, c.Message)
			}
		})
	}
}
