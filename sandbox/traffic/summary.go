package traffic

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Summary adds up answers. The zero value is ready to use. It keeps the latency of every request: eight bytes each.
type Summary struct {
	// Requests is the number of requests, answered or failed.
	Requests int
	// Failed is the number of requests that did not succeed; see [Answer.OK].
	Failed int
	// Texts counts the answers by [Answer.Text]. Beyond a hundred different texts, the rest is counted under
	// [OtherTexts].
	Texts map[string]int
	// LongestGap is the longest time without a success: between two successes, from the first request to the first
	// success, or from the last success to the last failure.
	LongestGap time.Duration

	latencies []time.Duration
	success   time.Time // the last, or the first request
}

// OtherTexts is the key in [Summary.Texts] for answers beyond the first hundred different ones.
const OtherTexts = "(other answers)"

// manyTexts is the number of different answers that are counted separately.
const manyTexts = 100

// Add adds an answer. Answers must be added in the order in which they came.
func (s *Summary) Add(a Answer) {
	s.Requests++
	s.latencies = append(s.latencies, a.Latency)
	if s.success.IsZero() {
		s.success = a.Sent
	}
	came := a.Sent.Add(a.Latency)
	s.LongestGap = max(s.LongestGap, came.Sub(s.success))
	if a.OK() {
		s.success = came
	} else {
		s.Failed++
	}
	if s.Texts == nil {
		s.Texts = map[string]int{}
	}
	text := a.Text()
	if _, known := s.Texts[text]; !known && len(s.Texts) >= manyTexts {
		text = OtherTexts
	}
	s.Texts[text]++
}

// Percentile returns the latency that p percent of the requests did not exceed; 0 without requests.
func (s *Summary) Percentile(p int) time.Duration {
	if len(s.latencies) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.latencies))
	rank := (len(sorted)*p + 99) / 100 // the nearest rank
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Print writes the summary in a few lines, the most frequent answer first.
func (s *Summary) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d requests, %d failed\n", s.Requests, s.Failed)
	if err != nil || s.Requests == 0 {
		return err
	}
	texts := slices.SortedFunc(maps.Keys(s.Texts), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Texts[b], s.Texts[a]), cmp.Compare(a, b))
	})
	for _, text := range texts {
		if _, err := fmt.Fprintf(w, "%8d  %s\n", s.Texts[text], text); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "latency p50 %v, p99 %v; longest time without a success %v\n",
		round(s.Percentile(50)), round(s.Percentile(99)), round(s.LongestGap))
	return err
}

// round rounds a duration to about three digits.
func round(d time.Duration) time.Duration {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond)
	case d < time.Second:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(10 * time.Millisecond)
}
