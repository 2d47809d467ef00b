package remote

import (
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/link"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// run is one run of the process. Its fields below conn are guarded by the lock of its taps.
type run struct {
	*Taps
	conn net.Conn

	done    chan struct{} // closed when the run is over
	over    bool
	orders  int64 // number of orders given
	pending map[int64]chan<- link.Message
	state   link.State
	arrived chan struct{} // closed when the next event has arrived; nil if nobody waits

	offset  time.Duration   // to add to the process's times for the lab's
	last    int64           // Seq of the newest event, in the process's journal
	seqs    seqs            // of the process's events in the lab's journal
	numbers numbers         // of the process's reconciles in the lab's journal
	started map[string]bool // the managers that began and did not end, by name
	open    map[trace.QueueKey]opened
}

// opened is a reconcile that has begun and not ended. A key is reconciled by one worker at a time.
type opened struct {
	id     int64 // its number in the lab's journal
	remote int64 // its number in the process's journal
	start  int64 // Seq of its newest event that can cause others, in the lab's journal
	at     time.Duration
}

func newRun(t *Taps, conn net.Conn) *run {
	return &run{
		Taps: t, conn: conn, done: make(chan struct{}),
		pending: map[int64]chan<- link.Message{}, numbers: numbers{of: map[int64]int64{}},
		started: map[string]bool{}, open: map[trace.QueueKey]opened{},
	}
}

// Errors of frames that an honest process does not send.
var (
	errHeader  = errors.New("the first one is not the header of a journal that this operator-lab knows")
	errNothing = errors.New("neither an event nor a message")
	errLong    = fmt.Errorf("it is longer than %d MiB", trace.MaxLine>>20)
	errNumber  = errors.New("a number that cannot be")
	errName    = errors.New("an event of another operator")
	errAck     = errors.New("an acknowledgement of what was not ordered")
)

// receive reads frames until the connection ends.
func (r *run) receive() error {
	part := &bounded{Reader: r.conn}
	in := gob.NewDecoder(part)
	for n := 1; ; n++ {
		part.left = trace.MaxLine
		var f link.Frame
		err := in.Decode(&f)
		switch {
		case ended(err):
			return nil
		case err == nil && n == 1:
			err = r.header(f.Header)
		case err == nil:
			err = r.frame(f)
		}
		if err != nil {
			return fmt.Errorf("frame %d: %w", n, err)
		}
	}
}

// bounded is a reader of at most so many bytes, until left is set again.
type bounded struct {
	io.Reader
	left int
}

// Read is part of io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLong
	}
	n, err := b.Reader.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// ended reports whether an error only says that the connection has ended: the process did, or Serve's caller closed it.
func ended(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, os.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// header takes the first frame.
func (r *run) header(h *trace.Header) error {
	if h == nil || h.Format != trace.FormatName || h.Version != trace.FormatVersion {
		return errHeader
	}
	r.offset = h.Start.Sub(r.journal.Header().Start)
	return nil
}

// frame takes one more frame.
func (r *run) frame(f link.Frame) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case f.Line.Event != nil && f.Message == nil:
		return r.event(f.Line)
	case f.Message != nil && f.Message.State != nil && f.Line.Event == nil:
		return r.message(*f.Message)
	}
	return errNothing
}

// message takes the state, and an acknowledgement to who waits for it.
func (r *run) message(m link.Message) error {
	r.state = *m.State
	r.notify()
	if m.Ack == 0 {
		return nil
	}
	answer := r.pending[m.Ack]
	if answer == nil {
		return errAck
	}
	delete(r.pending, m.Ack)
	answer <- m
	return nil
}

// event appends an event of the process to the lab's journal, with the lab's numbers.
func (r *run) event(in trace.Line) error {
	e := *in.Event
	if e.Seq <= r.last || e.Cause >= e.Seq || in.BeforeSeq >= e.Seq || min(e.At, time.Duration(e.Reconcile), time.Duration(e.Cause)) < 0 || e.Kind == "" {
		return errNumber
	}
	if !r.ours(e.Operator) {
		return errName
	}
	if lost := e.Seq - r.last - 1; lost > 0 {
		r.lost(lost)
	}
	seq := e.Seq
	r.last = seq
	if r.repeats(&e) {
		r.seqs.put(seq, 0)
	} else {
		r.translate(&e, in.BeforeSeq)
		r.note(&e, in.Reconcile, r.put(seq, e))
	}
	r.wake()
	return nil
}

// ours reports whether a name is that of a manager of this operator.
func (r *run) ours(name string) bool {
	n, found := strings.CutPrefix(name, r.operator+"-")
	_, err := strconv.ParseUint(n, 10, 16)
	return name == r.operator || found && err == nil
}

// lost records that events are missing, because the process made more than it could send.
func (r *run) lost(n int64) {
	r.journal.Append(trace.Event{
		Kind: trace.KindNote, Operator: r.operator, Actor: r.operator,
		Message: fmt.Sprintf("%d events are missing: the operator made more than the lab could take", n),
	})
}

// repeats reports whether an event only says of the loop's mode what the journal says already, as a new process does of
// the mode that it begins in.
func (r *run) repeats(e *trace.Event) bool {
	if e.Kind != trace.KindControl {
		return false
	}
	is := r.shown[e.Operator]
	was := is
	switch e.Verb {
	case trace.VerbPause:
		is.Paused = true
	case trace.VerbResume:
		is.Paused = false
	case trace.VerbHoldWrites:
		is.HoldWrites = true
	case trace.VerbSendWrites:
		is.HoldWrites = false
	default:
		return false
	}
	r.shown[e.Operator] = is
	return is == was
}

// translate gives an event the lab's numbers and time.
func (r *run) translate(e *trace.Event, beforeSeq int64) {
	e.Cause = r.seqs.get(e.Cause)
	if e.Kind == trace.KindDequeue && e.Reconcile > 0 {
		r.numbers.add(e.Reconcile, r.journal.NewReconcile())
	}
	e.Reconcile = r.numbers.of[e.Reconcile]
	e.At = max(1, min(r.offset+e.At, r.journal.Elapsed()))
	if before := r.journal.Get(r.seqs.get(beforeSeq)); before != nil {
		e.Before = before.After
	}
}

// put appends an event and remembers its number.
func (r *run) put(remote int64, e trace.Event) (local int64) {
	local = r.journal.Append(e)
	r.seqs.put(remote, local)
	if remote%forgetEvery == 0 {
		r.seqs.forget(r.journal.Stats().First)
	}
	return local
}

// note keeps account of what has begun and not ended. The event has the lab's numbers; remote is the process's number of
// its reconcile.
func (r *run) note(e *trace.Event, remote, seq int64) {
	key := trace.QueueKey{Operator: e.Operator, Controller: e.Controller, Key: e.Key}
	switch e.Kind {
	case trace.KindOperator:
		r.started[e.Operator] = e.Verb == trace.VerbStart
	case trace.KindDequeue:
		if old, ok := r.open[key]; ok { // its end was lost
			r.abortReconcile(key, old)
			r.numbers.ended(old.remote)
		}
		r.open[key] = opened{id: e.Reconcile, remote: remote, start: seq, at: e.At}
	case trace.KindStart:
		if o, ok := r.open[key]; ok && o.id == e.Reconcile {
			o.start = seq
			r.open[key] = o
		}
	case trace.KindEnd:
		if r.open[key].id == e.Reconcile {
			delete(r.open, key)
		}
		r.numbers.ended(remote)
	}
}

// abort records the ends that the process could not record: of its reconciles and of its managers. The caller holds the
// lock.
func (r *run) abort() {
	keys := slices.SortedFunc(maps.Keys(r.open), func(a, b trace.QueueKey) int { return cmp.Compare(r.open[a].id, r.open[b].id) })
	for _, key := range keys {
		r.abortReconcile(key, r.open[key])
	}
	for _, name := range sortedKeys(r.started) {
		if r.started[name] {
			r.journal.Append(trace.Event{Kind: trace.KindOperator, Operator: name, Actor: name, Verb: trace.VerbStop})
		}
	}
}

// abortReconcile records the end of a reconcile whose worker has ended without a result.
func (r *run) abortReconcile(key trace.QueueKey, o opened) {
	r.journal.Append(trace.Event{
		Kind: trace.KindEnd, Operator: key.Operator, Actor: key.Operator, Controller: key.Controller, Key: key.Key,
		Reconcile: o.id, Cause: o.start, Outcome: trace.OutcomeAborted, Duration: r.journal.Elapsed() - o.at,
	})
}

// next returns a channel that is closed when the next event has arrived, or the run is over. The caller holds the lock.
func (r *run) next() <-chan struct{} {
	if r.arrived == nil {
		r.arrived = make(chan struct{})
	}
	return r.arrived
}

// wake wakes those who wait for the next event. The caller holds the lock.
func (r *run) wake() {
	if r.arrived != nil {
		close(r.arrived)
		r.arrived = nil
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
