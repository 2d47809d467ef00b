package metrics

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// Store keeps the newest samples of series in memory, for queries of Prometheus' engine. All methods may be called from any
// goroutine.
type Store struct {
	keep time.Duration

	mu     sync.RWMutex
	series map[string]*stored // by their labels
	// last are the series that the newest sample of each source had.
	last map[string]map[string]*stored
}

var _ storage.Queryable = (*Store)(nil)

// stored is one series. Samples are replaced, never changed, because queries read them without the lock.
type stored struct {
	labels  labels.Labels
	samples points
}

// NewStore returns a store that forgets samples after some time.
func NewStore(keep time.Duration) *Store {
	return &Store{keep: keep, series: map[string]*stored{}, last: map[string]map[string]*stored{}}
}

// Sample is a value of a series.
type Sample struct {
	Labels labels.Labels
	Value  float64
}

// Append adds what a source tells at a moment. Series that it told before and does not any more end here, as in Prometheus:
// queries do not see them from now on. A source that tells nothing at all is forgotten.
func (s *Store) Append(source string, at time.Time, samples []Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, told := at.UnixMilli(), map[string]*stored{}
	for _, sample := range samples {
		key := string(sample.Labels.Bytes(nil))
		if told[key] != nil {
			continue // told twice: the first one counts
		}
		one := s.series[key]
		if one == nil {
			one = &stored{labels: sample.Labels}
			s.series[key] = one
		}
		told[key] = one
		s.add(one, point{now, sample.Value})
	}
	for key, one := range s.last[source] {
		if told[key] == nil {
			s.add(one, point{now, stale})
		}
	}
	s.last[source] = told
	if len(told) == 0 {
		delete(s.last, source)
	}
}

// stale marks the end of a series.
var stale = math.Float64frombits(value.StaleNaN)

// add adds a sample, unless it is not newer than the last one, and forgets old ones. The caller holds the lock.
func (s *Store) add(one *stored, p point) {
	if n := len(one.samples); n > 0 && one.samples[n-1].at >= p.at {
		return
	}
	oldest := p.at - s.keep.Milliseconds()
	if n := len(one.samples); n > 0 && one.samples[0].at < oldest && n == cap(one.samples) {
		from, _ := slices.BinarySearchFunc(one.samples, oldest, func(p point, t int64) int { return int(p.at - t) })
		one.samples = append(make(points, 0, 2*(n-from)+1), one.samples[from:]...)
	}
	one.samples = append(one.samples, p)
}

// Forget forgets series that ended before the time for which samples are kept.
func (s *Store) Forget(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := at.Add(-s.keep).UnixMilli()
	for key, one := range s.series {
		if one.samples[len(one.samples)-1].at < oldest {
			delete(s.series, key)
		}
	}
}

// Len returns the number of series that are kept.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.series)
}

// Querier is part of [storage.Queryable].
func (s *Store) Querier(from, to int64) (storage.Querier, error) {
	return &querier{store: s, from: from, to: to}, nil
}

// querier answers queries about a span of time, in milliseconds.
type querier struct {
	store    *Store
	from, to int64
}

// Select is part of [storage.Querier].
func (q *querier) Select(_ context.Context, sorted bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	q.store.mu.RLock()
	defer q.store.mu.RUnlock()
	found := &seriesSet{at: -1}
	for _, one := range q.store.series {
		if slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) }) {
			continue
		}
		compare := func(p point, t int64) int { return int(p.at - t) }
		first, _ := slices.BinarySearchFunc(one.samples, q.from, compare)
		end, _ := slices.BinarySearchFunc(one.samples, q.to+1, compare)
		if first == end {
			continue
		}
		samples := one.samples[first:end]
		found.series = append(found.series, &storage.SeriesEntry{
			Lset:             one.labels,
			SampleIteratorFn: func(chunkenc.Iterator) chunkenc.Iterator { return storage.NewListSeriesIterator(samples) },
		})
	}
	if sorted {
		slices.SortFunc(found.series, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	}
	return found
}

// LabelValues is part of [storage.LabelQuerier]; the engine asks for none.
func (q *querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames is part of [storage.LabelQuerier]; the engine asks for none.
func (q *querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Close is part of [storage.LabelQuerier].
func (q *querier) Close() error { return nil }

// seriesSet is a list of series as queries read it.
type seriesSet struct {
	series []storage.Series
	at     int
}

// Next is part of [storage.SeriesSet].
func (s *seriesSet) Next() bool { s.at++; return s.at < len(s.series) }

// At is part of [storage.SeriesSet].
func (s *seriesSet) At() storage.Series { return s.series[s.at] }

// Err is part of [storage.SeriesSet].
func (s *seriesSet) Err() error { return nil }

// Warnings is part of [storage.SeriesSet].
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// point is a sample; at is in milliseconds.
type point struct {
	at    int64
	value float64
}

var _ chunks.Sample = point{}

// T is part of [chunks.Sample].
func (p point) T() int64 { return p.at }

// ST is part of [chunks.Sample].
func (p point) ST() int64 { return 0 }

// F is part of [chunks.Sample].
func (p point) F() float64 { return p.value }

// H is part of [chunks.Sample].
func (p point) H() *histogram.Histogram { return nil }

// FH is part of [chunks.Sample].
func (p point) FH() *histogram.FloatHistogram { return nil }

// Type is part of [chunks.Sample].
func (p point) Type() chunkenc.ValueType { return chunkenc.ValFloat }

// Copy is part of [chunks.Sample].
func (p point) Copy() chunks.Sample { return p }

// points are the samples of a series, from old to new.
type points []point

var _ storage.Samples = points{}

// Get is part of [storage.Samples].
func (p points) Get(i int) chunks.Sample { return p[i] }

// Len is part of [storage.Samples].
func (p points) Len() int { return len(p) }
