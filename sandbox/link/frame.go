//go:build go1.23

package link

import (
	"bufio"
	"encoding/gob"
	"io"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Frame is what the process sends, by encoding/gob, which costs both ends a sixth of what JSON does: first its journal's header,
// then events and messages. One of its fields is set.
type Frame struct {
	Header  *trace.Header
	Line    trace.Line
	Message *Message
}

// Writer sends the frames of a journal. It must be used by one goroutine at a time.
type Writer struct {
	*trace.Writer
	buffer  *bufio.Writer
	encoder *gob.Encoder
}

// NewWriter returns a writer and sends the header with the first events.
func NewWriter(w io.Writer, j *trace.Journal) (*Writer, error) {
	b := bufio.NewWriterSize(w, 64<<10)
	out := &Writer{buffer: b, encoder: gob.NewEncoder(b)}
	var err error
	out.Writer, err = trace.NewWriterTo(b, func(v any) error {
		if header, is := v.(trace.Header); is {
			return out.encoder.Encode(Frame{Header: &header})
		}
		return out.encoder.Encode(Frame{Line: v.(trace.Line)})
	}, j)
	return out, err
}

// Send sends a message after the events so far.
func (w *Writer) Send(m Message) error {
	if err := w.Update(); err != nil {
		return err
	}
	if err := w.encoder.Encode(Frame{Message: &m}); err != nil {
		return err
	}
	return w.buffer.Flush()
}
