package members

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pass lets time pass, which is virtual.
func pass(d time.Duration) { <-time.After(d) }

// TestMeter: writes are acknowledged but for some time. The gap counts from the last one before to the first one after, also when it had
// begun before the meter was reset, and only once.
func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Meter{news: make(chan struct{}, 1)}
		good := func() { m.add(Write{Sent: time.Now()}) }
		bad := func() { m.add(Write{Sent: time.Now(), Err: errors.New("no quorum")}) }
		lap := func(want time.Duration) {
			t.Helper()
			got := make(chan time.Duration)
			go func() {
				longest, err := m.Lap(t.Context())
				if err != nil {
					t.Error(err)
				}
				got <- longest
			}()
			synctest.Wait()
			select {
			case d := <-got:
				t.Errorf("it did not wait for another write: %v", d)
			default:
			}
			pass(100 * time.Millisecond)
			good()
			if d := <-got; d != want {
				t.Errorf("%v, want %v", d, want)
			}
		}
		bad() // there is no cluster yet
		pass(time.Hour)
		good()
		pass(50 * time.Millisecond)
		good()
		lap(100 * time.Millisecond)
		pass(2 * time.Second)
		m.Reset() // it has begun before
		bad()
		pass(time.Second)
		bad()
		good()
		lap(3 * time.Second)
		lap(100 * time.Millisecond)
	})
}

// TestMeterWithoutAWrite: a write that began before it was asked says nothing, and the reason of the last failure is told.
func TestMeterWithoutAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Meter{news: make(chan struct{}, 1)}
		began := time.Now()
		pass(time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.AfterFunc(100*time.Millisecond, func() { m.add(Write{Sent: began, Latency: time.Since(began)}) })
		time.AfterFunc(200*time.Millisecond, func() { m.add(Write{Sent: time.Now(), Err: errors.New("no quorum")}) })
		if d, err := m.Lap(ctx); err == nil || !strings.Contains(err.Error(), "no quorum") {
			t.Errorf("%v, %v", d, err)
		}
	})
}
