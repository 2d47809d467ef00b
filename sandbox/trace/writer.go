//go:build go1.23

package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"unsafe"
)

// FormatName identifies the file format in the header.
const FormatName = "operator-lab-journal"

// FormatVersion is the version of the file format that is written, and the newest that is read.
const FormatVersion = 1

// line is an event as a line of a file.
type line struct {
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
	enc    *json.Encoder
	j      *Journal
	seq    int64
	afters map[*byte]int64 // address of an After's first byte -> Seq of its event
}

// NewWriter returns a writer and writes the header.
func NewWriter(w io.Writer, j *Journal) (*Writer, error) {
	b := bufio.NewWriterSize(w, 64<<10)
	out := &Writer{w: b, enc: json.NewEncoder(b), j: j, afters: map[*byte]int64{}}
	out.enc.SetEscapeHTML(false)
	if err := out.enc.Encode(j.Header()); err != nil {
		return nil, fmt.Errorf("write the journal: %w", err)
	}
	return out, nil
}

// Update writes the events appended since the last Update, and flushes.
func (w *Writer) Update() error {
	for _, e := range w.j.Since(w.seq) {
		if err := w.enc.Encode(w.line(e)); err != nil {
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
// that event.
func (w *Writer) line(e *Event) line {
	if len(e.After) > 0 {
		w.afters[unsafe.SliceData([]byte(e.After))] = e.Seq
	}
	if len(e.Before) == 0 {
		return line{Event: e}
	}
	seq, ok := w.afters[unsafe.SliceData([]byte(e.Before))]
	if !ok || seq == e.Seq {
		return line{Event: e}
	}
	short := *e
	short.Before = nil
	return line{Event: &short, BeforeSeq: seq}
}

// Close writes the remaining events and the last line. It does not close the file.
func (w *Writer) Close() error {
	if err := w.Update(); err != nil {
		return err
	}
	if err := w.enc.Encode(trailer{End: true, Last: w.seq}); err != nil {
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
