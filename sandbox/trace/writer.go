//go:build go1.23

package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"unsafe"
)

// FormatName identifies the file format in the header.
const FormatName = "operator-lab-journal"

// FormatVersion is the version of the file format that is written, and the newest that is read.
const FormatVersion = 1

// MaxLine bounds a line of a file, in bytes. An object in the API has at most about 1.5 MiB, and an event may carry two
// of them.
const MaxLine = 16 << 20

// Line is an event as a line of a file.
type Line struct {
	*Event
	// BeforeSeq replaces a Before that is the After of the event with this Seq.
	BeforeSeq int64 `json:"beforeSeq,omitempty"`
}

// trailer is the last line of a complete file.
type trailer struct {
	End  bool  `json:"end"`
	Last int64 `json:"last"`
}

// Writer writes a journal to a file as JSON lines, either as it grows or at once: a header line, a line per event, and
// a last line that marks it as complete. It must be used by one goroutine at a time.
type Writer struct {
	w      *bufio.Writer
	encode func(any) error
	j      *Journal
	seq    int64
	afters map[*byte]int64 // address of an After's first byte -> Seq of its event
	prune  int             // size of afters at which events that the journal has forgotten are looked for
}

// minPrune is the least size of a writer's index of objects at which it is pruned.
const minPrune = 4096

// NewWriter returns a writer and writes the header.
func NewWriter(w io.Writer, j *Journal) (*Writer, error) {
	b := bufio.NewWriterSize(w, 64<<10)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	return NewWriterTo(b, enc.Encode, j)
}

// NewWriterTo returns a writer that encodes a [Header] and each [Line] in another way, into w, and writes the header.
func NewWriterTo(w *bufio.Writer, encode func(any) error, j *Journal) (*Writer, error) {
	out := &Writer{w: w, encode: encode, j: j, afters: map[*byte]int64{}, prune: minPrune}
	if err := out.encode(j.Header()); err != nil {
		return nil, fmt.Errorf("write the journal: %w", err)
	}
	return out, nil
}

// Update writes the events appended since the last Update, and flushes.
func (w *Writer) Update() error {
	for _, e := range w.j.Since(w.seq) {
		if err := w.encode(w.line(e)); err != nil {
			return fmt.Errorf("write the journal: %w", err)
		}
		w.seq = e.Seq
	}
	if err := w.w.Flush(); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// line returns an event's line. An object's Before is usually the After of an earlier event; then the line refers to
// that event, unless the journal has forgotten it, because other bytes may be at the same address by now.
func (w *Writer) line(e *Event) Line {
	if len(e.After) > 0 {
		w.afters[unsafe.SliceData(e.After)] = e.Seq
		w.forget()
	}
	if len(e.Before) == 0 {
		return Line{Event: e}
	}
	first := unsafe.SliceData(e.Before)
	seq, ok := w.afters[first]
	if !ok || seq == e.Seq {
		return Line{Event: e}
	}
	if before := w.j.Get(seq); before == nil || unsafe.SliceData(before.After) != first {
		return Line{Event: e}
	}
	short := *e
	short.Before = nil
	return Line{Event: &short, BeforeSeq: seq}
}

// forget removes the events that the journal has forgotten from afters, whenever that has doubled.
func (w *Writer) forget() {
	if len(w.afters) < w.prune {
		return
	}
	first := w.j.Stats().First
	maps.DeleteFunc(w.afters, func(_ *byte, seq int64) bool { return seq < first })
	w.prune = max(minPrune, 2*len(w.afters))
}

// Close writes the remaining events and the last line. It does not close the file.
func (w *Writer) Close() error {
	if err := w.Update(); err != nil {
		return err
	}
	if err := w.encode(trailer{End: true, Last: w.seq}); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	if err := w.w.Flush(); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// Save writes the whole journal as JSON lines.
func (j *Journal) Save(w io.Writer) error {
	out, err := NewWriter(w, j)
	if err != nil {
		return err
	}
	return out.Close()
}
