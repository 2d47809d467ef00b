package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// TextOptions are the options of a [Text] sink. The zero value works.
type TextOptions struct {
	// Color enables colours; every colour only repeats what a word says. Default: no colours.
	Color bool
	// Quiet omits everything but failures and the summary.
	Quiet bool
	// Verbose shows every operation when it ends, with its complete output.
	Verbose bool
	// Path shortens the name of a file for people. Default: names are not changed.
	Path func(file string) string
	// Replay returns the command line that opens a journal. Default: 'operator-lab replay' and the file.
	Replay func(journal string) string
	// Rerun is the command line that runs the failed tests again. Default: none is shown.
	Rerun string
}

// Text reports a run to people: a line when a test begins and when it ends, all details of a failed test, and a
// summary. The lines of concurrent tests are not interleaved: what belongs together is written at once.
type Text struct {
	o     TextOptions
	paint paint

	mu    sync.Mutex
	w     io.Writer
	names int // width of the column with the names of tests
	err   error
}

var _ Sink = (*Text)(nil)

// The bounds of the width of the column with the names of tests; longer names stick out.
const (
	narrowest = 24
	widest    = 48
)

// NewText returns a sink that writes to w.
func NewText(w io.Writer, o TextOptions) *Text {
	if o.Path == nil {
		o.Path = func(file string) string { return file }
	}
	if o.Replay == nil {
		o.Replay = func(journal string) string { return "operator-lab replay " + journal }
	}
	return &Text{o: o, paint: paint(o.Color), w: w, names: narrowest}
}

// Err returns the first error of the writer.
func (x *Text) Err() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

// BeginRun writes how many tests there are to run.
func (x *Text) BeginRun(r *Run) {
	x.mu.Lock()
	for _, t := range r.Tests {
		x.names = min(max(x.names, len([]rune(t.Name))), widest)
	}
	x.mu.Unlock()
	if !x.o.Quiet && len(r.Tests) > 0 {
		var p page
		p.line("running %s, seed %d", counted(len(r.Tests), "test"), r.Seed)
		x.write(&p)
	}
}

// BeginTest writes that a test begins, unless it is skipped.
func (x *Text) BeginTest(t *Test) {
	if x.o.Quiet || t.Skipped || t.Unfinished {
		return
	}
	var p page
	p.line("%s  %s", x.paint.dim("run "), clean(t.Name))
	x.write(&p)
}

// BeginStep writes the name of the step, if verbose.
func (x *Text) BeginStep(t *Test, s *Step) {
	if !x.o.Verbose {
		return
	}
	var p page
	p.line("      %s %s", x.paint.dim(clean(t.Name)+" |"), x.paint.bold(stepLine(s)))
	x.write(&p)
}

// BeginOperation writes nothing: an operation is written when it ends.
func (x *Text) BeginOperation(*Test, *Step, *Operation) {}

// EndOperation writes the operation, if verbose.
func (x *Text) EndOperation(t *Test, _ *Step, o *Operation) {
	if !x.o.Verbose {
		return
	}
	p := page{indent: "      " + x.paint.dim(clean(t.Name)+" |") + "   "}
	x.operation(&p, o, narrowest)
	p.output(o.Output, 0)
	x.write(&p)
}

// EndStep writes nothing.
func (x *Text) EndStep(*Test, *Step) {}

// EndTest writes the result of the test, with all details if it failed.
func (x *Text) EndTest(t *Test) {
	status := t.Status()
	if x.o.Quiet && status != Failed {
		return
	}
	var p page
	p.line("%s", x.verdict(t, status))
	if status == Failed {
		x.failed(&p, t)
	}
	p.indent = "      "
	for _, s := range t.Steps {
		if c := s.Toil; c != nil {
			p.line("toil %-13s  %2d by hand, %d decided, %.1fs without a write", c.Fault, c.Actions, c.Decisions, c.Outage)
		}
	}
	for _, note := range t.Notes {
		p.line("%s %s", x.paint.yellow("note"), clean(note))
	}
	x.write(&p)
}

// verdict returns the line of a finished test.
func (x *Text) verdict(t *Test, status Status) string {
	x.mu.Lock()
	name := fmt.Sprintf("%-*s", x.names, clean(t.Name))
	x.mu.Unlock()
	switch status {
	case Failed:
		return x.paint.red("FAIL") + "  " + x.paint.bold(name) + "  " + seconds(took(t.Started, t.Ended))
	case Skipped:
		return strings.TrimRight(x.paint.yellow("skip")+"  "+name+"  "+clean(t.SkipReason), " ")
	case NotRun:
		return x.paint.yellow("left") + "  " + name + "  the run ended before it did"
	}
	return x.paint.green("pass") + "  " + name + "  " + seconds(took(t.Started, t.Ended))
}

// EndRun writes the summary.
func (x *Text) EndRun(r *Run) {
	var p page
	c := r.Counts()
	if !x.o.Quiet || c.Failed > 0 {
		p.line("")
	}
	p.line("%s in %s%s", x.counts(c), seconds(took(r.Started, r.Ended)), r.seed())
	if slow := slowest(r.Tests); slow != "" && !x.o.Quiet {
		p.line("%-8s %s", "slowest", slow)
	}
	word := "failed"
	for _, t := range r.Tests {
		if t.Status() == Failed {
			p.line("%-8s %s  %s", word, clean(t.Name), x.place(cmp.Or(t.File, t.Folder), t.Line))
			word = ""
		}
	}
	if c.Failed > 0 && x.o.Rerun != "" {
		p.line("%-8s %s", "again", x.o.Rerun)
	}
	x.write(&p)
}

func (x *Text) counts(c Counts) string {
	passed, failed := fmt.Sprintf("%d passed", c.Passed), fmt.Sprintf("%d failed", c.Failed)
	if c.Passed > 0 && c.Failed == 0 {
		passed = x.paint.green(passed)
	}
	if c.Failed > 0 {
		failed = x.paint.red(failed)
	}
	text := passed + ", " + failed + fmt.Sprintf(", %d skipped", c.Skipped)
	if c.NotRun > 0 {
		text += ", " + x.paint.yellow(fmt.Sprintf("%d not run", c.NotRun))
	}
	return text
}

// slowest names up to three tests that took longest, if there are several.
func slowest(tests []*Test) string {
	var ran []*Test
	for _, t := range tests {
		if took(t.Started, t.Ended) > 0 && !t.Skipped {
			ran = append(ran, t)
		}
	}
	if len(ran) < 2 {
		return ""
	}
	slices.SortStableFunc(ran, func(a, b *Test) int {
		return cmp.Compare(took(b.Started, b.Ended), took(a.Started, a.Ended))
	})
	var names []string
	for _, t := range ran[:min(3, len(ran))] {
		names = append(names, clean(t.Name)+" "+seconds(took(t.Started, t.Ended)))
	}
	return strings.Join(names, ", ")
}

// place returns a position in a file for people.
func (x *Text) place(file string, line int) string {
	if file == "" {
		return ""
	}
	file = clean(x.o.Path(file))
	if line > 0 {
		return fmt.Sprintf("%s:%d", file, line)
	}
	return file
}

func (x *Text) write(p *page) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		_, x.err = io.WriteString(x.w, p.String())
	}
}

// seconds formats a duration for people.
func seconds(d time.Duration) string {
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.2fs", d.Seconds())
}

// counted returns a number and a noun, in the plural if necessary.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
