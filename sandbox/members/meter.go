package members

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// Meter writes to a cluster all the time, and measures for how long no write is acknowledged. Before the first one that is, nothing is
// measured.
type Meter struct {
	stop func()
	news chan struct{} // has something when a write has ended since it was last looked at

	mu  sync.Mutex
	sum WriteSum
	// begun is when the newest write began that was acknowledged; problem is why the last one was not that failed.
	begun   time.Time
	problem string
}

// Measure begins to write. The end of ctx does not end it; [Meter.Stop] does.
func Measure(ctx context.Context, w Writer) *Meter {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	m := &Meter{news: make(chan struct{}, 1)}
	var writing sync.WaitGroup
	writing.Go(func() { _ = w.Run(ctx, m.add) }) // it ends by being cancelled
	m.stop = func() { cancel(); writing.Wait() }
	return m
}

// Stop ends the writes.
func (m *Meter) Stop() { m.stop() }

// add adds the outcome of a write.
func (m *Meter) add(w Write) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sum.Add(w)
	switch {
	case w.Err != nil:
		m.problem = w.Problem()
	case w.Sent.After(m.begun):
		m.begun = w.Sent
	}
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// Reset forgets what was measured so far.
func (m *Meter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reset()
}

// reset begins anew. The time since the last acknowledged write goes on.
func (m *Meter) reset() { m.sum = WriteSum{OK: min(m.sum.OK, 1), acknowledged: m.sum.acknowledged} }

// Lap waits for a write that begins from now on to be acknowledged, and returns the longest time from one acknowledged write to the next
// since the last Reset or Lap. A time that had begun before that counts in full.
func (m *Meter) Lap(ctx context.Context) (time.Duration, error) {
	for since := time.Now(); ; {
		if longest, problem, is := m.since(since); is {
			return longest, nil
		} else if ctx.Err() != nil {
			return 0, fmt.Errorf("no write is acknowledged: %s", cmp.Or(problem, "there is no answer yet"))
		}
		select {
		case <-ctx.Done():
		case <-m.news:
		}
	}
}

// since returns what was measured if a write that began after a time was acknowledged; if none was, why the last one failed.
func (m *Meter) since(began time.Time) (longest time.Duration, problem string, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.begun.After(began) {
		return 0, m.problem, false
	}
	longest = m.sum.Longest
	m.reset()
	return longest, "", true
}
