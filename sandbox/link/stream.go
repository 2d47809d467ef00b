//go:build go1.23

package link

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// flushPatience is how long the end of a manager waits for a lab that does not read.
const flushPatience = 5 * time.Second

// stream sends events and messages until the connection ends, and then releases what the lab held. It is the only
// goroutine that writes to the connection, so the order of the lines is the order of what happened.
func (l *Link) stream() {
	defer l.end()
	appended, cancel := l.journal.Subscribe()
	defer cancel()
	for {
		var err error
		select {
		case <-appended:
			err = l.writer.Update()
		case <-l.changed:
			err = l.tell(Message{})
		case flushed := <-l.flushes:
			err = l.writer.Update()
			close(flushed)
		case o, open := <-l.orders:
			if !open {
				return
			}
			err = l.tell(Message{Ack: o.ID, Found: l.obey(o), Metrics: l.metrics(o)})
		}
		if err != nil {
			return
		}
	}
}

// tell sends the events so far, and then a message with the state; a message that acknowledges nothing only if the state
// has changed.
func (l *Link) tell(m Message) error {
	m.State = l.state()
	if err := l.writer.Update(); err != nil {
		return err
	}
	if m.Ack == 0 && reflect.DeepEqual(l.told, m.State) {
		return nil
	}
	l.told = m.State
	return l.writer.Send(m)
}

// end releases what the lab held, because nobody could do so any more.
func (l *Link) end() {
	close(l.ended)
	_ = l.conn.Close() // it has failed already, or the lab has closed its end
	l.obey(Order{Do: DoClose})
}

// receive reads the lab's orders until the connection ends.
func (l *Link) receive(in *json.Decoder) {
	defer close(l.orders)
	for {
		var o Order
		if in.Decode(&o) != nil {
			_ = l.conn.Close() // ends a write that the lab does not read
			return
		}
		select {
		case l.orders <- o:
		case <-l.ended:
			return
		}
	}
}

// flush returns when the events so far are sent, or cannot be.
func (l *Link) flush() {
	timeout := time.NewTimer(flushPatience)
	defer timeout.Stop()
	flushed := make(chan struct{})
	select {
	case l.flushes <- flushed:
	case <-l.ended:
		return
	case <-timeout.C:
		return
	}
	select {
	case <-flushed:
	case <-timeout.C:
	}
}

// stateChanged makes the stream look at the state.
func (l *Link) stateChanged() {
	select {
	case l.changed <- struct{}{}:
	default: // it will look anyway
	}
}

// obey carries an order out. It returns the result of a probe.
func (l *Link) obey(o Order) (found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mode = l.mode.After(o.Do)
	for _, m := range l.members {
		do := actions[o.Do]
		if o.Do == DoStep && o.Actor != "" {
			do = func(t *taps.Taps) { t.StepBy(o.Actor) }
		}
		if do != nil {
			do(m.taps)
		}
		if o.Do == DoProbe && m.taps.Probe(o.Controller, trace.Key{Namespace: o.Namespace, Name: o.Name}) {
			return true
		}
	}
	return false
}

// metrics returns the metrics of the process, if the order asks for them.
func (l *Link) metrics(o Order) string {
	if o.Do != DoMetrics {
		return ""
	}
	l.mu.Lock()
	var all []*taps.Taps
	for _, m := range l.members {
		all = append(all, m.taps)
	}
	l.mu.Unlock()
	text, err := taps.Metrics(func(*dto.Metric) bool { return true }, all...)
	if err != nil {
		return ""
	}
	return string(text)
}

// actions are the orders to the loop.
var actions = map[string]func(*taps.Taps){
	DoPause:    (*taps.Taps).Pause,
	DoResume:   (*taps.Taps).Resume,
	DoStep:     (*taps.Taps).Step,
	DoStepCall: (*taps.Taps).StepCall,
	DoHold:     (*taps.Taps).HoldWrites,
	DoRelease:  (*taps.Taps).Release,
	DoClose:    (*taps.Taps).Close,
}

// state returns the state of all managers.
func (l *Link) state() *State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &State{Paused: l.mode.Paused}
	all := true
	for _, m := range l.members {
		names := m.taps.Controllers()
		serving, _ := m.taps.Serving()
		all = all && (serving || len(names) == 0)
		s.Controllers = append(s.Controllers, names...)
	}
	slices.Sort(s.Controllers)
	s.Controllers = slices.Compact(s.Controllers)
	s.Serving = all && len(s.Controllers) > 0
	return s
}
