package runner

import (
	"context"
	"time"
)

// Most conditions hold soon: the first looks come quickly, and further ones cost the API server little.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = 100 * time.Millisecond
)

// poll calls do at once and then with growing pauses, until it is done or fails. When the context ends, poll returns
// the context's error.
func poll(ctx context.Context, do func(context.Context) (bool, error)) error {
	pause := firstPause
	for {
		done, err := do(ctx)
		if done || err != nil {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(pause*3/2, longestPause)
	}
}

// sleep waits, and returns an error if the context ends before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// outlive returns a context that lasts for some time after ctx has ended, for work that must be finished.
func outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	go func() {
		select {
		case <-longer.Done():
			return
		case <-ctx.Done():
		}
		if sleep(longer, d) == nil {
			cancel(context.Cause(ctx))
		}
	}()
	return longer, func() { cancel(context.Canceled) }
}
