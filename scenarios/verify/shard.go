package verify

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/operator-lab/operator-lab/scenarios/report"
)

// isOf reports whether a shard plays the plan. That goes by the plan alone, since an operator may write more often in one run than in
// another. Pairs are of the shard that chose them.
func (p *Plan) isOf(s report.Shard) bool {
	if s.Count == 0 || p.both != nil {
		return true
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.String()))
	return int(h.Sum32()%uint32(s.Count)) == s.Index-1
}

// Merge joins the reports of the shards of one exploration. A finding of several shards is one. It also returns the shards that are not
// there.
func Merge(reports []*Report) (*Report, []report.Shard, error) {
	shards := make([]report.Shard, len(reports))
	for i, r := range reports {
		if shards[i] = r.Shard; r.Scenario != reports[0].Scenario {
			return nil, nil, fmt.Errorf("they are of other scenarios: %s and %s", reports[0].Scenario, r.Scenario)
		}
	}
	missing, err := report.Missing(shards)
	if err != nil {
		return nil, nil, err
	}
	merged := &Report{Scenario: reports[0].Scenario, File: reports[0].File, Findings: []Finding{}}
	at := map[[2]string]int{}
	for _, r := range reports {
		merged.Writes = max(merged.Writes, r.Writes)
		merged.Kinds = append(merged.Kinds, r.Kinds...)
		for _, p := range r.Plans {
			i, known := at[[2]string{p.Fault, p.At}]
			switch {
			case !known:
				at[[2]string{p.Fault, p.At}] = len(merged.Plans)
				merged.Plans = append(merged.Plans, p)
			case merged.Plans[i].Result == Elsewhere:
				merged.Plans[i] = p
			}
		}
		for _, f := range r.Findings {
			merged.find(f)
		}
	}
	slices.Sort(merged.Kinds)
	merged.Kinds = slices.Compact(merged.Kinds)
	order := append(FaultNames(), pairName)
	slices.SortStableFunc(merged.Plans, func(a, b PlanResult) int {
		return cmp.Compare(slices.Index(order, a.Fault), slices.Index(order, b.Fault))
	})
	merged.count()
	return merged, missing, nil
}

// find adds a finding, or what else has shown it.
func (r *Report) find(f Finding) {
	i := slices.IndexFunc(r.Findings, func(known Finding) bool { return known.Signature == f.Signature })
	if i < 0 {
		r.Findings = append(r.Findings, f)
		return
	}
	known := &r.Findings[i]
	if f.Steady && !known.Steady {
		f, *known = *known, f
	}
	known.Also = append(known.Also, append([]string{f.Plan}, f.Also...)...)
}
