package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
)

const (
	// readBuffer is the size of the buffers by which a file is read.
	readBuffer = 256 << 10
	// batchSize is how many lines are parsed together.
	batchSize = 256
)

// fileLine is a line of a file, parsed as far as that is possible.
type fileLine struct {
	raw       []byte
	number    int  // from 1
	ended     bool // it has a line end
	event     Event
	beforeSeq int64
	trailer   trailer
}

// parse parses the line. Where that fails, or the line is something else, there is no event: it has no Seq.
func (l *fileLine) parse() {
	in := Line{Event: &l.event}
	if json.Unmarshal(l.raw, &in) != nil || in.Event == nil {
		l.event = Event{}
	}
	if l.beforeSeq = in.BeforeSeq; l.event.Kind == "" && json.Unmarshal(l.raw, &l.trailer) != nil {
		l.trailer = trailer{}
	}
	l.raw = nil
}

// batch are some lines that follow each other.
type batch struct {
	lines  []fileLine
	parsed chan struct{} // closed when they are parsed
	err    error         // ends the file after these lines
}

// read reads lines and has them parsed side by side. The batches come in their order, and have to be taken up to the last.
func read(in *bufio.Reader, number int) <-chan *batch {
	out := make(chan *batch, 2*runtime.GOMAXPROCS(0)) // as many are ahead
	todo := make(chan *batch)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for b := range todo {
				for i := range b.lines {
					b.lines[i].parse()
				}
				close(b.parsed)
			}
		}()
	}
	go func() {
		defer close(out)
		defer close(todo)
		for over := false; !over; {
			b := &batch{lines: make([]fileLine, 0, batchSize), parsed: make(chan struct{})}
			for len(b.lines) < batchSize && !over {
				raw, ended, err := readLine(in)
				if len(raw) > 0 || errors.Is(err, errLongLine) {
					b.lines = append(b.lines, fileLine{raw: raw, number: number, ended: ended})
				}
				number++
				if err != nil && !errors.Is(err, errLongLine) {
					over = true
					if !errors.Is(err, io.EOF) {
						b.err = err
					}
				}
			}
			out <- b
			todo <- b
		}
	}()
	return out
}

// mark is where a line begins.
type mark struct {
	offset int64
	line   int // how many lines are before it
}

// skipOldest moves a file, of which the header has been read, to the first of its lines that the options allow to keep, and
// returns how many it left out. Lines of twice the bytes that are kept are read, as the names of fields are not kept.
func skipOldest(file io.Reader, in *bufio.Reader, o Options) (skipped int, err error) {
	seeker, is := file.(io.ReadSeeker)
	if !is {
		return 0, nil
	}
	begin, err := seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, nil //nolint:nilerr // such as a pipe
	}
	begin -= int64(in.Buffered())
	if _, err := seeker.Seek(begin, io.SeekStart); err != nil {
		return 0, fmt.Errorf("read it again: %w", err)
	}
	marks, end, err := lines(seeker, mark{offset: begin})
	if err != nil {
		return 0, err
	}
	from := marks[0]
	for _, m := range marks[1:] {
		if end.line-from.line <= o.MaxEvents && end.offset-from.offset <= 2*o.MaxBytes {
			break
		}
		from = m
	}
	_, err = seeker.Seek(from.offset, io.SeekStart)
	in.Reset(file)
	return from.line, err
}

// lines returns where some of the lines of a file begin, and where it ends.
func lines(file io.Reader, at mark) (marks []mark, end mark, err error) {
	marks = []mark{at}
	buffer := make([]byte, readBuffer)
	for {
		n, err := file.Read(buffer)
		if newline := bytes.IndexByte(buffer[:n], '\n'); newline >= 0 { // one mark in each buffer is enough
			marks = append(marks, mark{at.offset + int64(newline) + 1, at.line + 1})
			at.line += bytes.Count(buffer[:n], []byte{'\n'})
		}
		at.offset += int64(n)
		if errors.Is(err, io.EOF) {
			return marks, at, nil
		}
		if err != nil {
			return nil, at, err
		}
	}
}

// errLongLine is returned for a line that is longer than any event.
var errLongLine = errors.New("line too long")

// readLine returns the next line without its end, and reports whether it had one. A line that is too long is skipped. At the end of
// the file the error is io.EOF.
func readLine(in *bufio.Reader) (raw []byte, ended bool, err error) {
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if !long {
			raw = append(raw, part...)
		}
		if len(raw) > MaxLine {
			long, raw = true, nil
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && err == nil:
			return nil, true, errLongLine
		case err != nil:
			return raw, false, err
		}
		return raw[:len(raw)-1], true, nil
	}
}
