package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// reports are all that is told of a run.
type reports struct {
	sink report.Tee
	// errors of the sinks, once the run is over.
	errs []func() error
	// file of the report, empty without one.
	file   string
	format report.Format
}

// openReports opens what a run is told to. What cannot be written is found out now, not after an hour of tests.
func (t *suite) openReports() (*reports, error) {
	r := &reports{}
	commands := t.io.out
	if t.output == "jsonl" {
		lines := report.NewLines(t.io.out)
		r.sink, r.errs = append(r.sink, lines), append(r.errs, lines.Err)
		commands = t.io.err // GitHub reads commands there too
	} else {
		text := report.NewText(t.io.out, report.TextOptions{
			Color: t.look.colors(t.io), Quiet: t.quiet, Verbose: t.verbose, Path: shortPath,
			Replay: func(journal string) string { return "operator-lab replay " + shellQuote(journal) },
			Rerun:  t.again(t.flags, t.seed),
		})
		r.sink, r.errs = append(r.sink, text), append(r.errs, text.Err)
	}
	if t.github {
		o := report.GitHubOptions{Commands: commands, Workspace: os.Getenv("GITHUB_WORKSPACE")}
		var summary *os.File
		if path := os.Getenv("GITHUB_STEP_SUMMARY"); path != "" {
			var err error
			if summary, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
				return nil, usageError("set GITHUB_STEP_SUMMARY to a file that can be written, or unset it", "open the summary for GitHub: %w", err)
			}
			o.Summary = summary
		}
		github := report.NewGitHub(o)
		r.sink = append(r.sink, github)
		r.errs = append(r.errs, func() error {
			if summary == nil {
				return github.Err()
			}
			return errors.Join(github.Err(), summary.Close())
		})
	}
	return r, r.openFile(t.configuration.Spec.Report)
}

// openFile finds out whether the report can be written.
func (r *reports) openFile(o *format.ReportOptions) (err error) {
	if o == nil || o.Format == "" {
		return nil
	}
	if r.format, err = report.ParseFormat(string(o.Format)); err != nil {
		return usageError("use "+formatNames(), "%w", err)
	}
	name := o.Name
	if name == "" {
		name = reportName
	}
	r.file = r.format.File(o.Path, name)
	hint := "name a file that can be written with --report-path and --report-name"
	if err := os.MkdirAll(filepath.Dir(r.file), 0o755); err != nil {
		return usageError(hint, "write the report: %w", err)
	}
	_, err = os.Stat(r.file)
	isNew := errors.Is(err, os.ErrNotExist)
	if err := canWrite(r.file); err != nil {
		return usageError(hint, "write the report: %w", err)
	}
	if isNew {
		return os.Remove(r.file) // it is there when there is something in it
	}
	return nil
}

// save writes the report and returns what could not be told.
func (r *reports) save(run *report.Run) error {
	var errs []error
	if r.file != "" {
		if err := r.format.Save(r.file, run); err != nil {
			errs = append(errs, fmt.Errorf("write the report: %w", err))
		}
	}
	for _, err := range r.errs {
		errs = append(errs, err())
	}
	return errors.Join(errs...)
}

// colors reports whether text on standard output is to have colours.
func (f *lookFlags) colors(io streams) bool {
	if f.color || f.noColor {
		return f.color
	}
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(io.out)
}
