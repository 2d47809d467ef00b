package load

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/operator-lab/operator-lab/scenarios/report"
)

// Merge joins the reports of the shards of one measurement, with one report for each variant. It also returns the shards that are not
// there.
func Merge(shards [][]*Report) (merged []*Report, missing []report.Shard, err error) {
	byName := map[string][]*Report{}
	var names []string
	for _, reports := range shards {
		for _, r := range reports {
			if byName[r.title()] == nil {
				names = append(names, r.title())
			}
			byName[r.title()] = append(byName[r.title()], r)
		}
	}
	for _, name := range names {
		r, lacks, err := merge(byName[name])
		if err != nil {
			return nil, nil, err
		}
		merged, missing = append(merged, r), append(missing, lacks...)
	}
	slices.SortFunc(missing, func(a, b report.Shard) int { return cmp.Compare(a.Index, b.Index) })
	return merged, slices.Compact(missing), nil
}

// merge joins the reports of the shards of one variant.
func merge(reports []*Report) (*Report, []report.Shard, error) {
	first := reports[0]
	shards := make([]report.Shard, len(reports))
	all := &Report{Operator: first.Operator, Variant: first.Variant, Kind: first.Kind, Changes: first.Changes, OwnProcess: true}
	for i, r := range reports {
		if shards[i] = r.Shard; r.Kind != first.Kind || r.Changes != first.Changes {
			return nil, nil, fmt.Errorf("of %s they have measured different things: %d changes of a %s, and %d of a %s",
				first.title(), first.Changes, first.Kind, r.Changes, r.Kind)
		}
		for _, s := range r.Sizes {
			s.Shard = r.Shard.Index
			all.Sizes = append(all.Sizes, s)
			if !s.Settled && r.Unsettled == "" {
				all.Notes = append(all.Notes, fmt.Sprintf("shard %s was ended with %s: its figures are too low, and more sizes may be missing", r.Shard, ofKind(s.Objects, all.Kind)))
			}
		}
		for _, note := range r.Notes {
			if !slices.Contains(all.Notes, note) {
				all.Notes = append(all.Notes, note)
			}
		}
		all.OwnProcess = all.OwnProcess && r.OwnProcess
		all.Unsettled = cmp.Or(all.Unsettled, r.Unsettled)
		all.Missed += r.Missed
	}
	missing, err := report.Missing(shards)
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(all.Sizes, func(a, b *Size) int { return cmp.Compare(a.Objects, b.Objects) })
	for i, s := range all.Sizes {
		if i > 0 && s.Objects == all.Sizes[i-1].Objects {
			return nil, nil, fmt.Errorf("shards %d and %d have both measured %s", all.Sizes[i-1].Shard, s.Shard, ofKind(s.Objects, all.Kind))
		}
	}
	all.conclude()
	return all, missing, nil
}
