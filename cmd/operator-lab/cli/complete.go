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
	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/members"
	"github.com/operator-lab/operator-lab/sandbox/metrics"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/verify"
)

// completeAll gives a command and those below it their completions. Flags of one name take the same values, unless a
// command says otherwise. Where a command has none for its arguments, shells offer no files.
func completeAll(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil && !cmd.HasSubCommands() {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		values := flagValues[f.Name]
		if own, ok := commandValues[cmd.Name()+" --"+f.Name]; ok {
			values = own
		}
		switch {
		case values != nil:
			directive := cobra.ShellCompDirectiveNoFileComp
			if f.Name == "parameter" {
				directive |= cobra.ShellCompDirectiveNoSpace // its value follows
			}
			list := slices.Contains([]string{"stringSlice", "strings", "intSlice", "ints"}, f.Value.Type())
			// An error says that the command has registered a completion of its own.
			_ = cmd.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
				if list {
					return next(typed, values(cmd)), directive
				}
				return values(cmd), directive
			})
		case slices.Contains([]string{"duration", "int", "int64", "intSlice", "float64"}, f.Value.Type()):
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		}
	})
	for _, c := range cmd.Commands() {
		completeAll(c)
	}
}

// next completes the last word of a list with commas: with the words that it does not have yet.
func next(typed string, words []string) []string {
	before := typed[:strings.LastIndex(typed, ",")+1]
	var lists []string
	for _, word := range words {
		if !slices.Contains(strings.Split(before, ","), word) {
			lists = append(lists, before+word)
		}
	}
	return lists
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
	"crds-of":  func(*cobra.Command) []string { return operatorsAndDefinitions() },
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
	"only":                        oneOf(verify.FaultNames()...),
	"parameter":                   parameters,
	"controllers":                 oneOf(etcd.Controllers()...),
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

	"verify --context": contextsOf,
	"load --context":   contextsOf,

	"members --cluster":   etcdClusters,
	"metrics --until":     alertsInStates,
	"test --kube-context": contextsOf,
}

// listForms are the forms of 'list', and of 'lesson list', which has one more.
func listForms(cmd *cobra.Command) []string {
	if cmd.Parent().Name() == "lesson" {
		return []string{"table", "json"}
	}
	return []string{"json"}
}

// alertsInStates returns the lab's rules, each in each state.
func alertsInStates(*cobra.Command) []string {
	rules, err := metrics.Bundled()
	if err != nil {
		return nil
	}
	var all []string
	for _, name := range rules.Alerts() {
		for _, state := range metrics.States {
			all = append(all, name+"="+string(state))
		}
	}
	return all
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
		if op.Name == operator {
			return variantsOf(op)
		}
		for _, v := range variantsOf(op) {
			if !slices.Contains(names, v) {
				names = append(names, v)
			}
		}
	}
	return names
}

func variantsOf(op operators.Operator) []string {
	flags := pflag.NewFlagSet(op.Name, pflag.ContinueOnError)
	op.New().Flags(flags)
	variant := flags.Lookup("variant")
	if variant == nil {
		return nil
	}
	if words, ok := variant.Value.(interface{ Choices() []string }); ok {
		return words.Choices()
	}
	return nil
}

// parameters returns the parameters of the operators that the command names, each with its equals sign; those of all
// operators if it names none.
func parameters(cmd *cobra.Command) []string {
	named, err := cmd.Flags().GetStringSlice("operator")
	if err != nil { // it has no such flag: its argument is the operator
		named = cmd.Flags().Args()
	}
	var names []string
	for _, op := range operators.All() {
		if len(named) > 0 && !slices.Contains(named, op.Name) {
			continue
		}
		flags := pflag.NewFlagSet(op.Name, pflag.ContinueOnError)
		op.New().Flags(flags)
		flags.VisitAll(func(f *pflag.Flag) {
			if name := f.Name + "=\t" + f.Usage; f.Name != "variant" && !slices.Contains(names, name) { // the variant has a flag
				names = append(names, name)
			}
		})
	}
	return names
}

// etcdClusters returns the EtcdClusters of the sandbox that --name chooses; none if it does not run.
func etcdClusters(cmd *cobra.Command) []string {
	record, err := running(cmd.Flag("name").Value.String())
	if err != nil {
		return nil
	}
	box, err := record.Open()
	if err != nil {
		return nil
	}
	clusters, err := members.Clusters(cmd.Context(), box.Config())
	if err != nil {
		return nil // a sandbox without such a kind
	}
	var names []string
	for _, c := range clusters {
		names = append(names, c.String())
	}
	return names
}

// operatorsAndDefinitions returns each operator with each set of CRDs that it brings: one for a variant, or a further one.
func operatorsAndDefinitions() []string {
	var names []string
	for _, op := range operators.All() {
		sets, _ := fs.ReadDir(op.Manifests, "crds")
		for _, set := range sets {
			names = append(names, op.Name+"/"+set.Name())
		}
	}
	return names
}

// completeOperatorOrDirectory completes bundled operators; where none has the name, shells offer files. Cobra's directive
// for directories would take the first operator for the directory to look in.
func completeOperatorOrDirectory(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return namesOfOperators(), cobra.ShellCompDirectiveDefault
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
