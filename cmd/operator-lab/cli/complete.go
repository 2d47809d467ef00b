package cli

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// completeFlags gives the flags of a command and of those below it their completions: flags of one name take the same
// values, unless a command says otherwise.
func completeFlags(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		values := flagValues[f.Name]
		if own, ok := commandValues[cmd.Name()+" --"+f.Name]; ok {
			values = own
		}
		switch {
		case values != nil:
			// An error says that the command has registered a completion of its own.
			_ = cmd.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
				return values(cmd), cobra.ShellCompDirectiveNoFileComp
			})
		case slices.Contains([]string{"duration", "int", "int64", "intSlice", "float64"}, f.Value.Type()):
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		}
	})
	for _, c := range cmd.Commands() {
		completeFlags(c)
	}
}

// values returns what a flag of a command takes.
type values func(*cobra.Command) []string

func oneOf(words ...string) values { return func(*cobra.Command) []string { return words } }

var flagValues = map[string]values{
	"name":     sandboxNames,
	"lang":     oneOf(string(book.English), string(book.Japanese)),
	"output":   oneOf("json"),
	"operator": func(*cobra.Command) []string { return namesOfOperators() },
	"variant":  func(cmd *cobra.Command) []string { return variants(cmd.Name()) },
	"crds-of":  func(*cobra.Command) []string { return operatorsAndVariants() },
	"nodes":    func(*cobra.Command) []string { return numbers(0, sandbox.MaxNodes) },
	"habit":    func(*cobra.Command) []string { return numbers(1, format.Habits) },
	"phase":    func(*cobra.Command) []string { return numbers(1, format.Phases) },
	"track": func(*cobra.Command) []string {
		var names []string
		for _, t := range book.Tracks {
			names = append(names, t.Name+"\t"+t.Title[book.English])
		}
		return names
	},
	"report-format": func(*cobra.Command) []string {
		var names []string
		for _, f := range report.Formats() {
			names = append(names, string(f))
		}
		return names
	},
	"default-compiler":            oneOf("jp", "cel"),
	"deletion-propagation-policy": oneOf("Foreground", "Background", "Orphan"),
}

// commandValues are the values of flags that mean something else in one command.
var commandValues = map[string]values{
	"list --output":   func(cmd *cobra.Command) []string { return listForms(cmd) },
	"verify --output": oneOf("text", "json"),
	"test --output":   oneOf("jsonl", "json"),
	"lint --format":   oneOf(lintFormats...),
	"replay --format": oneOf("jsonl"),
	"assets --print":  oneOf("path", "env"),
	"run --context":   contextsOf,
}

// listForms are the forms of 'list', and of 'lesson list', which has one more.
func listForms(cmd *cobra.Command) []string {
	if cmd.Parent().Name() == "lesson" {
		return []string{"table", "json"}
	}
	return []string{"json"}
}

func numbers(from, to int) []string {
	var out []string
	for n := from; n <= to; n++ {
		out = append(out, fmt.Sprint(n))
	}
	return out
}

// variants returns the variants of an operator, or of all if there is none of this name.
func variants(operator string) []string {
	var names []string
	for _, op := range operators.All() {
		if op.Name != operator && slices.Contains(namesOfOperators(), operator) {
			continue
		}
		entries, _ := fs.ReadDir(op.Manifests, "crds")
		for _, e := range entries {
			if !slices.Contains(names, e.Name()) {
				names = append(names, e.Name())
			}
		}
	}
	return names
}

func operatorsAndVariants() []string {
	var names []string
	for _, op := range namesOfOperators() {
		for _, v := range variants(op) {
			names = append(names, op+"/"+v)
		}
	}
	return names
}

// completeScenarios completes bundled scenarios; shells add the files that are there.
func completeScenarios(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, name := range scenarioNames() {
		if strings.Contains(name, "/") && strings.HasPrefix(name, typed) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveDefault
}

// completeJournals completes the journals that runs have kept, newest first; shells add the files that are there.
func completeJournals(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	state, err := sandbox.StateDir()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	files, _ := filepath.Glob(filepath.Join(state, "journals", "*.jsonl"))
	slices.SortFunc(files, func(a, b string) int { return modified(b).Compare(modified(a)) })
	return files, cobra.ShellCompDirectiveDefault | cobra.ShellCompDirectiveKeepOrder
}
