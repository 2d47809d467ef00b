package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

type replayFlags struct {
	plain    bool
	logs     bool
	format   string
	html     string
	perfetto string
	look     lookFlags
}

func replayCommand(io streams) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay <file>",
		Short: "Open the journal of an earlier run; needs no cluster",
		Long: `Open the journal of an earlier run: on the screen as it was then, to go back and forth in; as
plain text, as JSON lines, as one HTML page to send to somebody, or as a trace for
https://ui.perfetto.dev: a lane for each worker, its reconciles with their API calls inside, and
arrows from causes to effects.`,
		Example: `  operator-lab replay zundoko.jsonl
  operator-lab replay zundoko.jsonl --plain
  operator-lab replay zundoko.jsonl --html zundoko.html
  operator-lab replay zundoko.jsonl --perfetto zundoko.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("every run prints where its journal is", "which file?")
			}
			return nil
		},
		ValidArgsFunction: completeJournals,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.forms() > 1 {
				return usageError("leave all but one of them out", "--plain, --format, --html and --perfetto exclude each other")
			}
			if err := f.look.check(); err != nil {
				return err
			}
			journal, report, err := openJournal(args[0])
			if err != nil {
				return err
			}
			return f.show(cmd, io, journal, report, args[0])
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.plain, "plain", false, "print plain text also on a terminal")
	flags.BoolVar(&f.logs, "logs", false, "print the operator's log lines too (plain)")
	flags.StringVar(&f.format, "format", "", "jsonl: print the events as JSON lines")
	flags.StringVar(&f.html, "html", "", "write one self-contained HTML page to this file")
	flags.StringVar(&f.perfetto, "perfetto", "", "write a trace for https://ui.perfetto.dev to this file")
	f.look.bind(flags)
	return cmd
}

// forms counts the flags that say how the journal is shown.
func (f replayFlags) forms() int {
	n := 0
	for _, set := range []bool{f.plain, f.format != "", f.html != "", f.perfetto != ""} {
		if set {
			n++
		}
	}
	return n
}

// openJournal reads a file as far as it can be read, and says what is missing.
func openJournal(path string) (*trace.Journal, trace.Report, error) {
	file, err := os.Open(path)
	if err != nil {
		hint := "name the file of a journal"
		if errors.Is(err, fs.ErrNotExist) {
			hint = "every run prints where its journal is"
		}
		return nil, trace.Report{}, usageError(hint, "open the journal: %w", err)
	}
	defer func() { _ = file.Close() }()
	journal, report, err := trace.Load(file, trace.Options{})
	if err != nil {
		return nil, report, usageError("journals are made by 'operator-lab run'", "read %s: %w", path, err)
	}
	return journal, report, nil
}

func (f replayFlags) show(cmd *cobra.Command, out streams, journal *trace.Journal, report trace.Report, path string) error {
	missing := report.Text(f.look.language())
	if missing != "" && (f.forms() > 0 || !out.terminal()) {
		fmt.Fprintln(out.err, "warning:", missing)
	}
	switch {
	case f.format == "jsonl":
		return journal.Save(out.out)
	case f.format != "":
		return usageError("use --format jsonl, or leave it out", "unknown format %q", f.format)
	case f.html != "":
		return writeTo(f.html, "--html", func(w io.Writer) error {
			return trace.WriteHTML(w, journal, trace.HTMLOptions{Language: f.look.language(), Title: cmp.Or(journal.Header().Title, filepath.Base(path)), Report: report})
		})
	case f.perfetto != "":
		return writeTo(f.perfetto, "--perfetto", func(w io.Writer) error { return trace.WritePerfetto(w, journal, f.look.language()) })
	case f.plain || !out.terminal():
		printer := trace.NewPrinter(out.out, journal, trace.PrintOptions{
			Language: f.look.language(), Logs: f.logs, Caption: captionOf,
		})
		return errors.Join(printer.Update(), printer.Summary())
	}
	o := f.look.options(out, journal)
	o.Title, o.Replay, o.Notice = cmp.Or(journal.Header().Title, path), true, missing
	recorded := journal.Header().Product
	o.Code = bundledSource(recorded != version() || recorded == unreleased)
	return tui.Run(cmd.Context(), o)
}

// writeTo writes the file that a flag names.
func writeTo(name, flag string, write func(io.Writer) error) (err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return &sandbox.Problem{Err: err, Hint: "name a file that can be written with " + flag}
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return write(file)
}

// captionOf returns the caption of an object by any of the bundled operators: a journal does not say whose it is.
func captionOf(kind string, object json.RawMessage) string {
	for _, op := range operators.All() {
		if caption := op.New().Demo().Caption(kind, object); caption != "" {
			return caption
		}
	}
	return ""
}
