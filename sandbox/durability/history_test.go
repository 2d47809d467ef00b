package durability_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// history records the requests of clients and their answers. Its methods may be called from any goroutine.
type history struct {
	began time.Time
	mu    sync.Mutex
	all   []porcupine.Operation
	sums  summary
}

// summary counts a history.
type summary struct {
	// Acknowledged counts acknowledged writes, Reads counts reads with an answer, and Unknown counts writes with an
	// unknown outcome.
	Acknowledged, Reads, Unknown int
	// LongestGap is the longest time between two acknowledged writes.
	LongestGap time.Duration

	lastWrite time.Duration
}

// newHistory begins a history.
func newHistory() *history { return &history{began: time.Now()} }

// request is one operation on a key.
type request struct {
	write      bool
	key, value string
}

// answer is the result of a read; empty if the key does not exist.
type answer struct{ value string }

// never is the end of an operation that may happen at any later time, or not at all.
const never = int64(math.MaxInt64)

// now returns the time since the history began. It is not affected when the clock is set.
func (h *history) now() time.Duration { return time.Since(h.began) }

// wrote records a write. One that was not acknowledged may happen at any later time, or never.
func (h *history) wrote(client int, key, value string, began time.Duration, acknowledged bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ended := never
	if acknowledged {
		now := h.now()
		ended = int64(now)
		h.sums.Acknowledged++
		if h.sums.Acknowledged > 1 {
			h.sums.LongestGap = max(h.sums.LongestGap, now-h.sums.lastWrite)
		}
		h.sums.lastWrite = now
	} else {
		h.sums.Unknown++
	}
	h.all = append(h.all, porcupine.Operation{
		ClientId: client, Input: request{true, key, value}, Call: int64(began), Output: answer{}, Return: ended,
	})
}

// read records a read with an answer. A read without one is not recorded.
func (h *history) read(client int, key, value string, began time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sums.Reads++
	h.all = append(h.all, porcupine.Operation{
		ClientId: client, Input: request{false, key, ""}, Call: int64(began), Output: answer{value}, Return: int64(h.now()),
	})
}

// summary counts the history.
func (h *history) summary() summary {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sums
}

// keys are all that were used.
func (h *history) keys() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := map[string]bool{}
	for _, o := range h.all {
		seen[o.Input.(request).key] = true
	}
	var keys []string
	for key := range seen {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Check judges the history, and returns why it is not linearizable: in words, and as a page in a new file of dir (empty:
// the directory for temporary files) that shows it. It gives up after a time, which is an error too.
func (h *history) Check(patience time.Duration, dir string) error {
	h.mu.Lock()
	all := slices.Clone(h.all)
	h.mu.Unlock()
	parts := partition(all)
	for _, part := range parts {
		key := part[0].Input.(request).key
		switch porcupine.CheckOperationsTimeout(register, part, patience) {
		case porcupine.Ok:
		case porcupine.Unknown:
			return fmt.Errorf("key %s: no verdict on %d operations within %v", key, len(part), patience)
		case porcupine.Illegal:
			picture, err := draw(part, patience, dir)
			return errors.Join(fmt.Errorf("key %s: its history is not linearizable (shown in %s):\n%s", key, picture, tell(part)), err)
		}
	}
	return nil
}

// draw writes a page that shows the history of one key, and returns its name.
func draw(part []porcupine.Operation, patience time.Duration, dir string) (string, error) {
	f, err := os.CreateTemp(dir, "durability-*.html")
	if err != nil {
		return "no file", err
	}
	_, info := porcupine.CheckOperationsVerbose(register, part, patience)
	return f.Name(), errors.Join(f.Close(), porcupine.VisualizePath(register, info, f.Name()))
}

// register is a key: a read returns what the last write wrote.
var register = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		r := input.(request)
		if r.write {
			return true, r.value
		}
		return output.(answer).value == state.(string), state
	},
	DescribeOperation: func(input, output any) string { return describe(input.(request), output.(answer)) },
}

func describe(r request, a answer) string {
	if r.write {
		return fmt.Sprintf("write %q", r.value)
	}
	return fmt.Sprintf("read %q", a.value)
}

// partition splits the history by key: keys are independent of each other.
func partition(all []porcupine.Operation) [][]porcupine.Operation {
	byKey := map[string][]porcupine.Operation{}
	var keys []string
	for _, o := range all {
		key := o.Input.(request).key
		if byKey[key] == nil {
			keys = append(keys, key)
		}
		byKey[key] = append(byKey[key], o)
	}
	parts := make([][]porcupine.Operation, 0, len(keys))
	for _, key := range keys {
		parts = append(parts, byKey[key])
	}
	return parts
}

// tell formats the history of one key.
func tell(part []porcupine.Operation) string {
	var text []byte
	for _, o := range part {
		ended := "never answered"
		if o.Return != never {
			ended = fmt.Sprintf("answered %v", time.Duration(o.Return).Round(time.Microsecond))
		}
		text = fmt.Appendf(text, "  client %d: %s, asked %v, %s\n", o.ClientId, describe(o.Input.(request), o.Output.(answer)),
			time.Duration(o.Call).Round(time.Microsecond), ended)
	}
	return string(text)
}
