package metering

import "time"

// Clock tells the time of samples and reports.
type Clock interface {
	// Now is the time, in whole seconds or finer.
	Now() time.Time
	// Wait is how long the machine takes for a time of the clock.
	Wait(d time.Duration) time.Duration
}

// rated is a clock that begins at a moment and goes rate times as fast as the machine's.
type rated struct {
	since time.Time
	rate  float64
}

// Now implements [Clock].
func (c rated) Now() time.Time {
	return c.since.Add(time.Duration(float64(time.Since(c.since)) * c.rate))
}

// Wait implements [Clock].
func (c rated) Wait(d time.Duration) time.Duration { return time.Duration(float64(d) / c.rate) }
