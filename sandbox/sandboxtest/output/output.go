// Package output collects what programs print during a test. It links nothing of the lab.
package output

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience is how long Await waits. It only matters in tests that fail.
const Patience = 60 * time.Second

// Output is text that was written. The zero value is empty. Its methods may be called from any goroutine.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns everything that was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Await waits until the output contains a text, and fails the test after Patience.
func (o *Output) Await(tb testing.TB, text string) {
	tb.Helper()
	for end := time.Now().Add(Patience); !strings.Contains(o.String(), text); {
		if time.Now().After(end) {
			tb.Fatalf("%q was not printed in %v, but:\n%s", text, Patience, o)
		}
		<-time.After(2 * time.Millisecond)
	}
}
