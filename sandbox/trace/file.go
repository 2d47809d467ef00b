package trace

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Errors of [Load] for a file that is not a readable journal.
var (
	// ErrNotJournal: the file does not begin with a journal's header.
	ErrNotJournal = errors.New("not a journal of operator-lab")
	// ErrVersion: the file was written by a version of operator-lab that this one does not know.
	ErrVersion = errors.New("unknown version of the journal format")
)

// Report says what of a file could not be read. The zero value means that everything could.
type Report struct {
	// Forgotten is the number of events that had been forgotten before the file was written.
	Forgotten int64
	// Dropped is the number of the file's oldest events that did not fit into memory.
	Dropped int64
	// Damaged is the number of lines that could not be read; FirstDamaged is the number of the first such line.
	Damaged, FirstDamaged int
	// Missing is the number of events missing between the first and the last.
	Missing int64
	// Open reports that the end of the journal is missing: the file is truncated, or the run that wrote it ended
	// abruptly.
	Open bool
}

// Complete reports whether nothing is missing.
func (r Report) Complete() bool { return r == Report{} }

// Text describes what is missing; empty if nothing is.
func (r Report) Text(l Language) string {
	var out string
	add := func(n int64, english, japanese string) {
		if n > 0 {
			if out != "" {
				out += l.pick("; ", "、")
			}
			out += fmt.Sprintf(l.pick(english, japanese), n)
		}
	}
	add(r.Forgotten, "the oldest %d events had been forgotten when it was saved", "保存時点で古いイベント %d 件が失われていた")
	add(r.Dropped, "the oldest %d events are left out because it is too large", "大きすぎるため古いイベント %d 件を省いた")
	add(int64(r.Damaged), "%d lines are damaged", "%d 行が壊れている")
	add(r.Missing, "%d events are missing", "イベント %d 件が欠けている")
	if r.Open {
		if out != "" {
			out += l.pick("; ", "、")
		}
		out += l.pick("the end is missing", "末尾が欠けている")
	}
	return out
}

// Load reads a saved journal. It reads as much as possible and reports what is missing; it fails only if the file is
// not a journal, is of an unknown version, or cannot be read. The options bound what is kept.
func Load(r io.Reader, o Options) (*Journal, Report, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	first, _, err := readLine(in)
	if err != nil && (!errors.Is(err, io.EOF) || len(first) == 0) {
		if errors.Is(err, io.EOF) || errors.Is(err, errLongLine) {
			return nil, Report{}, ErrNotJournal
		}
		return nil, Report{}, fmt.Errorf("read the journal: %w", err)
	}
	var h Header
	if json.Unmarshal(first, &h) != nil || h.Format != FormatName {
		return nil, Report{}, ErrNotJournal
	}
	if h.Version < 1 || h.Version > FormatVersion {
		return nil, Report{}, fmt.Errorf("%w: it is version %d, written by operator-lab %s; this one reads version 1 to %d",
			ErrVersion, h.Version, orElse(h.Product, "of an unknown version"), FormatVersion)
	}
	j := New(o)
	j.start, j.opts.Product, j.opts.Title, j.forgotten = h.Start, h.Product, h.Title, max(0, h.Forgotten)
	l := loader{j: j, report: Report{Forgotten: j.forgotten, Open: true}, number: 1}
	if err := l.events(in); err != nil {
		return nil, l.report, fmt.Errorf("read the journal: %w", err)
	}
	l.report.Dropped = j.forgotten - l.report.Forgotten
	return j, l.report, nil
}

// loader reads a file's events.
type loader struct {
	j      *Journal
	report Report
	number int // number of the line
	first  int64
}

func (l *loader) events(in *bufio.Reader) error {
	for {
		raw, ended, err := readLine(in)
		l.number++
		switch {
		case errors.Is(err, errLongLine):
			l.damaged()
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
		if len(raw) > 0 {
			l.line(raw, ended)
		}
		if err != nil { // the end
			return nil //nolint:nilerr // it is io.EOF, see above
		}
	}
}

// line reads one line. An invalid line without a line end is not counted as damaged: the file is truncated there.
func (l *loader) line(raw []byte, ended bool) {
	var t trailer
	if json.Unmarshal(raw, &t) == nil && t.End {
		l.report.Open = false
		if n := t.Last - l.j.last; n > 0 && l.first > 0 {
			l.report.Missing += n
		}
		return
	}
	var e Event
	in := Line{Event: &e}
	if json.Unmarshal(raw, &in) != nil || in.Event == nil || e.Seq <= l.j.last || e.Kind == "" || e.At < 0 {
		if ended {
			l.damaged()
		}
		return
	}
	if l.first == 0 {
		l.first = e.Seq
	} else {
		l.report.Missing += e.Seq - l.j.last - 1
	}
	if in.BeforeSeq > 0 {
		if b := l.j.Get(in.BeforeSeq); b != nil {
			e.Before = b.After
		}
	}
	l.j.load(e)
}

func (l *loader) damaged() {
	l.report.Damaged++
	if l.report.FirstDamaged == 0 {
		l.report.FirstDamaged = l.number
	}
}

// load adds an event with the Seq and time from the file.
func (j *Journal) load(e Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.add(e)
}

// errLongLine is returned for a line that is longer than any event.
var errLongLine = errors.New("line too long")

// readLine returns the next line without its end, and whether it had one. A
// line that is too long is skipped. At the end of the file the error is io.EOF.
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

// Duration returns the time from the journal's start to its newest event.
func (j *Journal) Duration() time.Duration {
	if e := j.Get(j.Stats().Last); e != nil {
		return e.At
	}
	return 0
}
