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
// not a journal, is of an unknown version, or cannot be read. The options bound what is kept; of a file, which can be read
// twice, the oldest events that do not fit are counted and not read.
func Load(r io.Reader, o Options) (*Journal, Report, error) {
	in := bufio.NewReaderSize(r, readBuffer)
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
	l := loader{j: j, report: Report{Forgotten: j.forgotten, Open: true}}
	skipped, err := skipOldest(r, in, j.opts)
	if err == nil {
		j.forgotten += int64(skipped)
		err = l.events(in, 2+skipped)
	}
	if err != nil {
		return nil, l.report, fmt.Errorf("read the journal: %w", err)
	}
	l.report.Dropped = j.forgotten - l.report.Forgotten
	return j, l.report, nil
}

// loader takes in a file's events, in their order.
type loader struct {
	j      *Journal
	report Report
	first  int64
}

// events takes in what is left of a file, from the line with a number on.
func (l *loader) events(in *bufio.Reader, number int) error {
	for b := range read(in, number) {
		<-b.parsed
		for i := range b.lines {
			l.line(&b.lines[i])
		}
		if b.err != nil {
			return b.err
		}
	}
	return nil
}

// line takes in one line. An invalid line without a line end is not counted as damaged: the file is truncated there.
func (l *loader) line(line *fileLine) {
	if line.trailer.End {
		l.report.Open = false
		if n := line.trailer.Last - l.j.last; n > 0 && l.first > 0 {
			l.report.Missing += n
		}
		return
	}
	e := line.event
	if e.Seq <= l.j.last || e.Kind == "" || e.At < 0 {
		if line.ended {
			l.damaged(line.number)
		}
		return
	}
	if l.first == 0 {
		l.first = e.Seq
	} else {
		l.report.Missing += e.Seq - l.j.last - 1
	}
	if line.beforeSeq > 0 {
		if b := l.j.Get(line.beforeSeq); b != nil {
			e.Before = b.After
		}
	}
	l.j.load(e)
}

func (l *loader) damaged(number int) {
	l.report.Damaged++
	if l.report.FirstDamaged == 0 {
		l.report.FirstDamaged = number
	}
}

// load adds an event with the Seq and time from the file.
func (j *Journal) load(e Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.add(e)
}

// Duration returns the time from the journal's start to its newest event.
func (j *Journal) Duration() time.Duration {
	if e := j.Get(j.Stats().Last); e != nil {
		return e.At
	}
	return 0
}
