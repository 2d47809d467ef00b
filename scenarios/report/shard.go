package report

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Shard is a part of what there is to play, so that several machines share it. The zero value is all of it.
type Shard struct {
	// Index counts from 1 to Count.
	Index int `json:"index"`
	Count int `json:"count"`
}

// ParseShard reads a shard such as 3/8.
func ParseShard(text string) (Shard, error) {
	index, count, _ := strings.Cut(text, "/")
	i, err := strconv.Atoi(index)
	n, errCount := strconv.Atoi(count)
	if errors.Join(err, errCount) != nil || i < 1 || i > n {
		return Shard{}, fmt.Errorf("%q is no shard such as 3/8", text)
	}
	return Shard{i, n}, nil
}

// String returns it as [ParseShard] reads it.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Count) }

// Missing returns the shards that are not there. Shards of another number of shards, one that is there twice, and a report of
// everything are errors.
func Missing(shards []Shard) ([]Shard, error) {
	there := map[Shard]bool{}
	for _, s := range shards {
		switch {
		case s == Shard{}:
			return nil, errors.New("one of them is no shard: it has everything")
		case s.Count != shards[0].Count:
			return nil, fmt.Errorf("%s and %s do not belong together", shards[0], s)
		case there[s]:
			return nil, fmt.Errorf("shard %s is there twice", s)
		}
		there[s] = true
	}
	var missing []Shard
	for i := range shards[0].Count {
		if s := (Shard{i + 1, shards[0].Count}); !there[s] {
			missing = append(missing, s)
		}
	}
	return missing, nil
}

// Merge joins the runs of the shards of a suite into one, with the tests in the order of the shards. Its seed is 0 unless all had the
// same. It also returns the shards that are not there.
func Merge(runs []*Run) (*Run, []Shard, error) {
	shards := make([]Shard, len(runs))
	for i, r := range runs {
		shards[i] = r.Shard
	}
	missing, err := Missing(shards)
	if err != nil {
		return nil, nil, err
	}
	merged := &Run{Name: runs[0].Name, Started: runs[0].Started, Ended: runs[0].Ended}
	for i := range shards[0].Count {
		for _, r := range runs {
			if r.Shard.Index != i+1 {
				continue
			}
			if len(merged.Tests) == 0 {
				merged.Seed = r.Seed
			} else if len(r.Tests) > 0 && r.Seed != merged.Seed {
				merged.Seed = 0
			}
			merged.Tests = append(merged.Tests, r.Tests...)
			if r.Started.Before(merged.Started) {
				merged.Started = r.Started
			}
			if r.Ended.After(merged.Ended) {
				merged.Ended = r.Ended
			}
		}
	}
	return merged, missing, nil
}

// seed says which seed the run had; empty if its shards had several.
func (r *Run) seed() string {
	if r.Seed == 0 {
		return ""
	}
	return fmt.Sprintf(", seed %d", r.Seed)
}
