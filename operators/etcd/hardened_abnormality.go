package etcd

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// Reasons of the condition Abnormal of an EtcdCluster.
const (
	ReasonSlowAnswers    = "SlowAnswers"
	ReasonSlowLog        = "SlowLog"
	ReasonProposalsFail  = "ProposalsFail"
	ReasonLearning       = "Learning"
	ReasonNormal         = "Normal"
	ReasonNothingToJudge = "NothingToJudge"
)

const (
	// What is normal is known after so many looks, and so many in a row have to be otherwise before anything is said.
	learningLooks = 10
	looksInARow   = 3
	// How much an average follows each look.
	followsNormal   = 0.1
	followsAbnormal = 0.01
	// The metrics of members that are looked at: how long it took to write the log, and the proposals that failed.
	fsyncSeconds    = "etcd_disk_wal_fsync_duration_seconds"
	failedProposals = "etcd_server_proposals_failed_total"
)

// signals are what members are compared in. Less than the least is never abnormal, however little is normal.
var signals = [...]struct {
	reason, label string
	least         float64
	text          func(value float64) string
}{
	{ReasonSlowAnswers, "answer", 0.02, func(v float64) string { return "takes " + inMilliseconds(v) + " to answer" }},
	{ReasonSlowLog, "log", 0.02, func(v float64) string { return "takes " + inMilliseconds(v) + " to write its log" }},
	{ReasonProposalsFail, "proposals", 0.5, func(v float64) string { return fmt.Sprintf("has %.1f proposals a second that fail", v) }},
}

func inMilliseconds(seconds float64) string { return fmt.Sprintf("%.1f ms", seconds*1000) }

// habit holds what is normal for a member in one thing: first the median of what was seen while that was learned, then an average that
// follows, slowly where it is abnormal, so that what lasts becomes normal.
type habit struct {
	learning []float64
	average  float64
	inARow   int // looks that were otherwise than abnormal says
	abnormal bool
	told     string // what was seen when it became abnormal
}

// see takes in a value that was looked at.
func (h *habit) see(value, factor, least float64, text func(float64) string) {
	if !h.learned() {
		h.learning = append(h.learning, value)
		h.average = slices.Sorted(slices.Values(h.learning))[len(h.learning)/2]
		return
	}
	out := value > max(h.average*factor, least)
	if out == h.abnormal {
		h.inARow = 0
	} else if h.inARow++; h.inARow == looksInARow {
		h.abnormal, h.inARow = out, 0
		h.told = fmt.Sprintf("%s; normally it %s", text(value), text(h.average))
	}
	weight := followsNormal
	if out {
		weight = followsAbnormal
	}
	h.average += (value - h.average) * weight
}

func (h *habit) learned() bool { return len(h.learning) == learningLooks }

// habits are those of one member, and what its counters were at the last look. They begin anew with each life of the operator.
type habits struct {
	at           time.Time
	of           [len(signals)]habit
	sum, count   float64 // of the times it took to write the log, in seconds
	failed       float64
	haveCounters bool
}

// look compares a member with what is normal for it: how long it took to answer, and its counters since the last look.
func (h *habits) look(now time.Time, took time.Duration, families map[string]*dto.MetricFamily, factor float64) {
	see := func(i int, value float64) { h.of[i].see(value, factor, signals[i].least, signals[i].text) }
	see(0, took.Seconds())
	if families != nil {
		sum, count := 0.0, 0.0
		for _, m := range families[fsyncSeconds].GetMetric() {
			sum, count = sum+m.GetHistogram().GetSampleSum(), count+float64(m.GetHistogram().GetSampleCount())
		}
		failed := total(families[failedProposals])
		if passed := now.Sub(h.at).Seconds(); h.haveCounters && count >= h.count && failed >= h.failed && passed > 0 { // it is the same process
			if count > h.count {
				see(1, (sum-h.sum)/(count-h.count))
			}
			see(2, (failed-h.failed)/passed)
		}
		h.sum, h.count, h.failed = sum, count, failed
	}
	h.haveCounters = families != nil
	h.at = now
}

// judge compares the members with what is normal for each of them, if spec.abnormality asks for it.
func (r *hardenedMembers) judge(ctx context.Context, p *clusterPass) error {
	key := client.ObjectKeyFromObject(p.cluster)
	policy := p.cluster.Spec.Abnormality
	if policy == nil {
		forgetAbnormality(key)
		return nil
	}
	p.lookAgain(min(policy.Interval.Duration, steadyInterval))
	abnormalityMetrics()
	conns := r.etcds.of(p)
	var group sync.WaitGroup
	for _, m := range p.members {
		if !m.healthy() || m.pod == nil {
			delete(conns.habits, m.name) // another process will answer, or has much to catch up with
			m.habits = nil
			continue
		}
		if m.habits == nil {
			m.habits = &habits{}
			conns.habits[m.name] = m.habits
		}
		if p.now.Sub(m.habits.at) < policy.Interval.Duration*9/10 {
			continue // an event has brought this pass
		}
		group.Go(func() {
			// A member that does not tell is judged by its answers alone.
			families, _ := r.etcds.metrics(ctx, "http://"+net.JoinHostPort(m.pod.Status.PodIP, strconv.Itoa(metricsPort))+"/metrics")
			m.habits.look(p.now, m.took, families, float64(policy.Factor))
		})
	}
	group.Wait()
	forgetAbnormality(key) // also members that are gone
	for _, m := range p.members {
		for i, s := range signals {
			if m.habits != nil {
				value := map[bool]float64{true: 1}[m.habits.of[i].abnormal]
				abnormalityGauge.WithLabelValues(key.Namespace, key.Name, m.name, s.label).Set(value)
			}
		}
	}
	return nil
}

// abnormal returns the condition Abnormal.
func (p *clusterState) abnormal() v1beta2.ClusterCondition {
	c := v1beta2.ClusterCondition{Type: v1beta2.ConditionAbnormal, Status: metav1.ConditionUnknown, Reason: ReasonNothingToJudge, Message: "no member answers"}
	var texts []string
	for _, m := range p.members {
		if m.habits == nil {
			continue
		}
		if c.Reason == ReasonNothingToJudge {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, ReasonNormal, "the members are as they usually are"
		}
		if !m.habits.of[0].learned() && len(texts) == 0 {
			c.Status, c.Reason, c.Message = metav1.ConditionUnknown, ReasonLearning, "what is normal for the members is being learned"
		}
		for i, s := range signals {
			if h := m.habits.of[i]; h.abnormal {
				texts = append(texts, m.name+" "+h.told)
				if len(texts) == 1 {
					c.Status, c.Reason = metav1.ConditionTrue, s.reason
				}
				c.Message = strings.Join(texts, "; ")
			}
		}
	}
	return c
}

var abnormalityGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "etcd_operator_member_abnormal", Help: "Whether a member is not as it usually is, by what was looked at: 1 or 0.",
}, []string{"namespace", "cluster", "member", "signal"})

// abnormalityMetrics registers the metric, once for all managers of the process.
var abnormalityMetrics = sync.OnceFunc(func() { metrics.Registry.MustRegister(abnormalityGauge) })

// forgetAbnormality takes the metrics of a cluster away.
func forgetAbnormality(cluster types.NamespacedName) {
	abnormalityGauge.DeletePartialMatch(prometheus.Labels{"namespace": cluster.Namespace, "cluster": cluster.Name})
}
