package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// WritePerfetto writes a journal in the JSON format of Chrome's trace events, which ui.perfetto.dev opens.
//
// An operator is a process there, and a worker of one of its controllers a thread: reconciles that run at once are on
// several. The slices of a thread are its reconciles, with their API calls inside; calls that one reconcile makes at once
// are on threads beside it. All others who write are threads of one more process. An arrow leads from the write, or from
// the reconcile that set the timer, to the reconcile that it woke. Faults and notes are instants. The error is w's.
func WritePerfetto(w io.Writer, j *Journal, l Language) error {
	t := NewTimeline(j)
	t.Update()
	p := &perfetto{State: t.Tip(), l: l, processes: map[string]int{}, lanes: map[perfettoThread][]*perfettoLane{}, places: map[int64]perfettoEvent{}, ends: map[int64]perfettoEvent{}}
	p.all(j)
	return p.write(w)
}

// perfettoEvent is one of Chrome's trace events. Times are in microseconds.
type perfettoEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"`
	Time     float64        `json:"ts"`
	Duration *float64       `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	ID       int            `json:"id,omitempty"`
	Binding  string         `json:"bp,omitempty"`
	Scope    string         `json:"s,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// perfettoThread names a kind of thread: of a controller, or of somebody else who writes.
type perfettoThread struct{ process, name string }

// perfettoLane is a thread, and until when it is busy.
type perfettoLane struct {
	process, thread int
	busy            time.Duration
}

type perfetto struct {
	*State
	l         Language
	events    []perfettoEvent
	processes map[string]int
	lanes     map[perfettoThread][]*perfettoLane
	threads   int
	flows     int
	places    map[int64]perfettoEvent // slices of calls, by the Seq of their event
	ends      map[int64]perfettoEvent // slices of reconciles, by their number
}

func (p *perfetto) all(j *Journal) {
	reconciles := p.Reconciles()
	for _, r := range reconciles {
		p.reconcile(r)
	}
	var rest []*Event
	for _, e := range j.Since(0) {
		_, seen := p.places[e.Seq]
		switch {
		case e.Kind == KindCall && !seen && e.IsWrite():
			rest = append(rest, e)
		case e.Kind == KindFault || e.Kind == KindNote || e.Kind == KindOperator:
			p.instant(e)
		}
	}
	slices.SortStableFunc(rest, func(a, b *Event) int { return int((a.At - a.Duration) - (b.At - b.Duration)) })
	for _, e := range rest {
		began := max(0, e.At-e.Duration)
		p.call(e, began, e.At, p.lane(perfettoThread{p.l.pick("others", "その他"), orElse(e.Actor, "?")}, began, e.At))
	}
	for _, r := range reconciles {
		p.causes(r)
	}
}

// reconcile adds the slice of a reconcile, and those of its calls within it.
func (p *perfetto) reconcile(r *Reconcile) {
	ended := max(r.Ended, r.Started)
	if r.Running() {
		ended = max(r.Started, p.At())
	}
	lane := p.lane(perfettoThread{r.Operator, r.Controller}, r.Started, ended)
	args := map[string]any{"key": r.Key.String(), "result": p.OutcomeText(r, p.l), "why": p.WhyReconcile(r, p.l)}
	if r.End != nil && r.End.Error != "" {
		args["error"] = r.End.Error
	}
	p.ends[r.ID] = p.slice(fmt.Sprintf("#%d %s", r.ID, r.Key), "reconcile", r.Started, ended, lane, args)
	inside := &perfettoLane{lane.process, lane.thread, r.Started}
	for _, e := range r.Calls() {
		at := min(max(e.At, r.Started), ended)
		began := min(max(e.At-e.Duration, r.Started), at)
		if on := inside; began >= on.busy {
			on.busy = at
			p.call(e, began, at, on)
		} else {
			p.call(e, began, at, p.lane(perfettoThread{r.Operator, r.Controller + p.l.pick(", calls at once", "、同時の呼び出し")}, began, at))
		}
	}
}

// call adds the slice of a call.
func (p *perfetto) call(e *Event, began, ended time.Duration, lane *perfettoLane) {
	args := map[string]any{"object": e.Object.String(), "namespace": e.Object.Namespace, "source": string(e.Source), "resourceVersion": e.ResourceVersion}
	if e.Error != "" {
		args["error"] = e.Error
	}
	p.places[e.Seq] = p.slice(e.Verb+" "+e.Object.String(), "call", began, ended, lane, args)
}

// slice adds a slice. A nested one must not be drawn beyond the one around it, so none has a length of its own invention.
func (p *perfetto) slice(name, category string, began, ended time.Duration, lane *perfettoLane, args map[string]any) perfettoEvent {
	length := micro(ended) - micro(began)
	e := perfettoEvent{Name: name, Category: category, Phase: "X", Time: micro(began), Duration: &length, Process: lane.process, Thread: lane.thread, Args: args}
	p.events = append(p.events, e)
	return e
}

func micro(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// instant marks a moment on all threads.
func (p *perfetto) instant(e *Event) {
	name := e.Message
	switch e.Kind {
	case KindFault:
		name = FaultText(e, p.l)
	case KindOperator:
		name = orElse(e.Operator, e.Actor) + " " + e.Verb
	}
	p.events = append(p.events, perfettoEvent{Name: name, Category: string(e.Kind), Phase: "i", Time: micro(e.At), Scope: "g"})
}

// causes adds the arrows to a reconcile.
func (p *perfetto) causes(r *Reconcile) {
	for _, w := range p.Wakes(r) {
		var from perfettoEvent
		var known bool
		switch {
		case w.Write != nil:
			from, known = p.places[w.Write.Seq]
		case w.Requeue != nil:
			from, known = p.ends[w.Requeue.Reconcile]
		}
		if !known {
			continue
		}
		to := p.ends[r.ID]
		p.flows++
		arrow := perfettoEvent{Name: p.l.pick("cause", "原因"), Category: "cause", Phase: "s", Time: from.Time, Process: from.Process, Thread: from.Thread, ID: p.flows}
		p.events = append(p.events, arrow)
		arrow.Phase, arrow.Binding, arrow.Time, arrow.Process, arrow.Thread = "f", "e", to.Time, to.Process, to.Thread
		p.events = append(p.events, arrow)
	}
}

// lane returns a thread of a kind that is free at a time, and takes it until another; if none is, a new one.
func (p *perfetto) lane(of perfettoThread, began, ended time.Duration) *perfettoLane {
	for _, lane := range p.lanes[of] {
		if lane.busy <= began {
			lane.busy = ended
			return lane
		}
	}
	process, ok := p.processes[of.process]
	if !ok {
		process = len(p.processes) + 1
		p.processes[of.process] = process
		p.named("process_name", of.process, process, 0)
	}
	p.threads++
	lane := &perfettoLane{process, p.threads, ended}
	p.lanes[of] = append(p.lanes[of], lane)
	p.named("thread_name", fmt.Sprintf("%s %d", of.name, len(p.lanes[of])), process, p.threads)
	return lane
}

// named names a process or a thread.
func (p *perfetto) named(what, name string, process, thread int) {
	p.events = append(p.events, perfettoEvent{Name: what, Phase: "M", Process: process, Thread: thread, Args: map[string]any{"name": name}})
}

// write writes an event in a line.
func (p *perfetto) write(w io.Writer) error {
	out := bufio.NewWriter(w)
	_, _ = out.WriteString(`{"displayTimeUnit":"ms","traceEvents":[`)
	for i, e := range p.events {
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("write the trace: %w", err)
		}
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_ = out.WriteByte('\n')
		_, _ = out.Write(line)
	}
	_, _ = out.WriteString("\n]}\n")
	if err := out.Flush(); err != nil { // the first error of all
		return fmt.Errorf("write the trace: %w", err)
	}
	return nil
}
