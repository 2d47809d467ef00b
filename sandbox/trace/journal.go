//go:build go1.23

package trace

import (
	"slices"
	"sort"
	"sync"
	"time"
)

// chunkSize is the number of events that are stored and forgotten together: large enough to allocate rarely, small
// enough that readers do not notice.
const chunkSize = 512

// Options are the options of a [Journal]. The zero value works.
type Options struct {
	// MaxEvents is the number of events kept; older ones are forgotten and counted. Forgetting works in chunks of 512,
	// so up to that many more may be kept. Default: 200,000.
	MaxEvents int
	// MaxBytes bounds the kept JSON and text, in bytes. Default: 256 MiB.
	MaxBytes int64
	// Product is the version of operator-lab, kept in saved journals. Default: empty.
	Product string
	// Title says what the journal is of, such as "zundoko / hardened", kept in saved journals. Default: empty.
	Title string
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Header describes a journal as a whole.
type Header struct {
	// Format is always [FormatName].
	Format string `json:"format"`
	// Version is the version of the file format.
	Version int `json:"version"`
	// Start is the wall-clock time at which the journal began; the times of events count from it.
	Start time.Time `json:"start"`
	// Product is the version of operator-lab that recorded it.
	Product string `json:"product,omitempty"`
	// Title says what it is of, such as "zundoko / hardened".
	Title string `json:"title,omitempty"`
	// Forgotten is the number of events forgotten before the first one.
	Forgotten int64 `json:"forgotten,omitempty"`
}

// Older reports whether what was made at a time that tells seconds only, as a creationTimestamp does, is older than the journal.
func (h Header) Older(made time.Time) bool {
	return !made.IsZero() && !made.Add(time.Second).After(h.Start)
}

// Stats are the sizes of a journal.
type Stats struct {
	First     int64 // Seq of the oldest event kept; 0 if there are none
	Last      int64 // Seq of the newest event; 0 if there are none
	Events    int   // events kept
	Forgotten int64 // events forgotten because the journal is bounded
	Bytes     int64 // approximate memory of the texts and objects kept, in bytes
}

// chunk holds events that never change once published, so that readers may keep pointers into it without a lock.
type chunk struct {
	events []Event // len grows up to chunkSize; cap is fixed, so it never moves
	bytes  int64
}

// Journal is the ordered record of events. All methods may be called from any goroutine. Append holds a mutex for well
// under a microsecond and never waits for a reader.
type Journal struct {
	opts  Options
	start time.Time

	mu         sync.Mutex
	chunks     []*chunk
	count      int
	bytes      int64
	last       int64
	at         time.Duration // of the newest event
	forgotten  int64
	reconciles int64
	writes     joiner
	listeners  map[chan struct{}]struct{}
}

// New returns an empty journal that starts now.
func New(opts Options) *Journal {
	if opts.MaxEvents <= 0 {
		opts.MaxEvents = 200_000
	}
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = 256 << 20
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Journal{opts: opts, start: opts.Now(), listeners: map[chan struct{}]struct{}{}}
}

// Header returns the journal's header.
func (j *Journal) Header() Header {
	j.mu.Lock()
	defer j.mu.Unlock()
	return Header{
		Format: FormatName, Version: FormatVersion,
		Start: j.start, Product: j.opts.Product, Title: j.opts.Title, Forgotten: j.forgotten,
	}
}

// Elapsed returns the time since the journal's start, as events carry it.
func (j *Journal) Elapsed() time.Duration { return j.opts.Now().Sub(j.start) }

// NewReconcile returns the next number for a reconcile, counting from 1.
func (j *Journal) NewReconcile() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reconciles++
	return j.reconciles
}

// Append adds an event and returns its Seq. The journal keeps e's slices: the caller must not write to them again.
func (j *Journal) Append(e Event) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	// The clock is read under the lock, so that At never runs backwards; another process's time may be a little late.
	if e.At == 0 {
		e.At = j.opts.Now().Sub(j.start)
	}
	begun := e.At - e.Duration
	e.At = max(e.At, j.at)
	e.Seq = j.last + 1
	j.join(&e, begun)
	j.add(e)
	for c := range j.listeners {
		select {
		case c <- struct{}{}:
		default: // its last token was not taken yet
		}
	}
	return e.Seq
}

// add stores an event whose Seq is set. The caller holds the lock.
func (j *Journal) add(e Event) {
	n := len(j.chunks)
	if n == 0 || len(j.chunks[n-1].events) == chunkSize {
		j.chunks = append(j.chunks, &chunk{events: make([]Event, 0, chunkSize)})
		n++
	}
	c := j.chunks[n-1]
	c.events = append(c.events, e)
	size := e.size()
	c.bytes += size
	j.bytes += size
	j.count++
	j.last, j.at = e.Seq, e.At
	if e.Reconcile > j.reconciles {
		j.reconciles = e.Reconcile
	}
	for len(j.chunks) > 1 && (j.count-len(j.chunks[0].events) >= j.opts.MaxEvents || j.bytes > j.opts.MaxBytes) {
		j.count -= len(j.chunks[0].events)
		j.forgotten += int64(len(j.chunks[0].events))
		j.bytes -= j.chunks[0].bytes
		j.chunks[0] = nil
		j.chunks = j.chunks[1:]
	}
}

// Since returns the events after seq, oldest first; Since(0) returns all that are kept. The events are shared with the
// journal: do not write to them.
func (j *Journal) Since(seq int64) []*Event {
	j.mu.Lock()
	views := make([][]Event, 0, 2)
	total := 0
	for _, v := range slices.Backward(j.chunks) {
		events := v.events
		if events[len(events)-1].Seq <= seq {
			break
		}
		from := sort.Search(len(events), func(k int) bool { return events[k].Seq > seq })
		views = append(views, events[from:])
		total += len(events) - from
	}
	j.mu.Unlock()
	out := make([]*Event, 0, total)
	for _, view := range slices.Backward(views) {
		for k := range view {
			out = append(out, &view[k])
		}
	}
	return out
}

// Get returns the event with a Seq, or nil if it is forgotten or does not exist.
func (j *Journal) Get(seq int64) *Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := sort.Search(len(j.chunks), func(i int) bool {
		ev := j.chunks[i].events
		return ev[len(ev)-1].Seq >= seq
	})
	if i == len(j.chunks) {
		return nil
	}
	ev := j.chunks[i].events
	k := sort.Search(len(ev), func(k int) bool { return ev[k].Seq >= seq })
	if k == len(ev) || ev[k].Seq != seq {
		return nil
	}
	return &ev[k]
}

// Stats returns the journal's sizes.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := Stats{Last: j.last, Events: j.count, Forgotten: j.forgotten, Bytes: j.bytes}
	if j.count > 0 {
		s.First = j.chunks[0].events[0].Seq
	}
	return s
}

// Subscribe returns a channel that gets a token when something was appended since the last token was taken, and a
// function that ends the subscription. It is for readers that wait; those that draw frames should poll instead.
func (j *Journal) Subscribe() (changed <-chan struct{}, cancel func()) {
	c := make(chan struct{}, 1)
	j.mu.Lock()
	j.listeners[c] = struct{}{}
	j.mu.Unlock()
	return c, func() {
		j.mu.Lock()
		delete(j.listeners, c)
		j.mu.Unlock()
	}
}
