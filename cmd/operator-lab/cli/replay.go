package cli

import (
	"encoding/json"
	"errors"
	"fmt"
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
	plain  bool
	logs   bool
	format string
	html   string
	look   lookFlags
}

func replayCommand(io streams) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay <file>",
		Short: "Open the journal of an earlier run; needs no cluster",
		Long: `Open the journal of an earlier run: on the screen as it was then, to go back and forth in; as
plain text, as JSON lines, or as one HTML page to send to somebody.`,
		Example: `  operator-lab replay zundoko.jsonl
  operator-lab replay zundoko.jsonl --plain
  operator-lab replay zundoko.jsonl --html zundoko.html`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("every run prints where its journal is", "which file?")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.plain && f.format != "" || f.plain && f.html != "" || f.format != "" && f.html != "" {
				return usageError("leave all but one of them out", "--plain, --format and --html exclude each other")
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
	f.look.bind(flags)
	return cmd
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

func (f replayFlags) show(cmd *cobra.Command, io streams, journal *trace.Journal, report trace.Report, path string) error {
	missing := report.Text(f.look.language())
	if missing != "" && (f.plain || f.format != "" || f.html != "" || !io.terminal()) {
		fmt.Fprintln(io.err, "warning:", missing)
	}
	switch {
	case f.format == "jsonl":
		return journal.Save(io.out)
	case f.format != "":
		return usageError("use --format jsonl, or leave it out", "unknown format %q", f.format)
	case f.html != "":
		return f.writeHTML(journal, report, path)
	case f.plain || !io.terminal():
		printer := trace.NewPrinter(io.out, journal, trace.PrintOptions{
			Language: f.look.language(), Logs: f.logs, Caption: captionOf,
		})
		return errors.Join(printer.Update(), printer.Summary())
	}
	o := f.look.options(io, journal)
	o.Title, o.Replay, o.Notice = path, true, missing
	return tui.Run(cmd.Context(), o)
}

func (f replayFlags) writeHTML(journal *trace.Journal, report trace.Report, path string) (err error) {
	file, err := os.OpenFile(f.html, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return &sandbox.Problem{Err: err, Hint: "name a file that can be written with --html"}
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return trace.WriteHTML(file, journal, trace.HTMLOptions{Language: f.look.language(), Title: filepath.Base(path), Report: report})
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
