package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

type scorecardFlags struct {
	all     bool
	variant string
	habits  []int
	phases  []int
	toil    bool
	list    bool
	fail    bool
	look    lookFlags // of which there is the language only
	seed    int64
	output  string
}

func scorecardCommand(io streams) *cobra.Command {
	var f scorecardFlags
	cmd := &cobra.Command{
		Use:   "scorecard [flags] <operator>… | <directory>",
		Short: "Judge operators by the seven habits and the five phases, with evidence",
		Long: `Run the bundled scenarios that are evidence of a habit of successful operators or of a phase of
the capability model, and print where an operator stands: what is held, what is not and why, what
is lacking for a reason, and what nothing shows. A phase is reached when it and all before it are
held. Where a bundled operator has no scenario, its manifests and samples are the evidence.

Of etcd it also measures toil: six faults without an operator, and with each variant, or with that
of --variant only. A list of commands is at hand for what does not heal in time. The commands that
were needed are counted, and how long no write was acknowledged meanwhile.

One sandbox is booted, and the scenarios take turns in it. That takes a minute for zundoko, three for
maintpage and twelve for etcd, and longer where much fails, because it is waited for. --habit,
--phase and --toil look at a part.

An operator of your own is named by its directory, such as . or ./my-operator. Evidence are its
manifests, scenarios that are made of its samples (they are reconciled; the operator dies and comes
back; it dies at each of its first writes), and your own scenarios below that directory whose
annotations name habits or phases, or say why one is lacking.

Exit codes: 0 it could be judged, 1 with --fail a habit is not held, or a phase that --phase asks for,
2 the command line is wrong, 3 there is no sandbox, 130 interrupted.

Operators:
` + operatorList(),
		Example: `  operator-lab scorecard zundoko
  operator-lab scorecard zundoko --variant classic --habit 3 --habit 7
  operator-lab scorecard etcd --phase 1,2 --lang ja
  operator-lab scorecard etcd --toil
  operator-lab scorecard --all --list
  operator-lab scorecard ./my-operator`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, own, err := f.check(args)
			if err != nil {
				return err
			}
			return newScoring(io, f, names, own).run(cmd.Context())
		},
		ValidArgsFunction: completeOperatorOrDirectory,
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "all bundled operators, in one sandbox")
	flags.StringVar(&f.variant, "variant", "", "variant of the operators (default: each one's own)")
	flags.IntSliceVar(&f.habits, "habit", nil, fmt.Sprintf("look at these habits only, by number from 1 to %d", format.Habits))
	flags.IntSliceVar(&f.phases, "phase", nil, fmt.Sprintf("look at these phases only, by number from 1 to %d", format.Phases))
	flags.BoolVar(&f.toil, "toil", false, "look at what faults cost only, or besides what --habit and --phase name")
	flags.BoolVar(&f.list, "list", false, "list the scenarios that are evidence instead of running them")
	flags.BoolVar(&f.fail, "fail", false, "exit with 1 when a habit is not held, or a phase of --phase")
	flags.StringVar(&f.look.lang, "lang", "", "language: en or ja (default: that of the locale)")
	flags.Int64Var(&f.seed, "seed", 0, "seed of everything random; 0: another one each time")
	outputFlag(cmd, &f.output)
	return cmd
}

func namesOfOperators() []string {
	var names []string
	for _, op := range operators.All() {
		names = append(names, op.Name)
	}
	return names
}

// check checks the flags and returns the names of the operators, or the directory of one of the user's.
func (f *scorecardFlags) check(args []string) (names []string, own string, err error) {
	if err := checkOutput(f.output); err != nil {
		return nil, "", err
	}
	if err := f.look.check(); err != nil {
		return nil, "", err
	}
	for _, numbered := range []struct {
		flag    string
		numbers []int
		most    int
	}{{"habit", f.habits, format.Habits}, {"phase", f.phases, format.Phases}} {
		for _, n := range numbered.numbers {
			if n < 1 || n > numbered.most {
				return nil, "", usageError(fmt.Sprintf("use a number from 1 to %d", numbered.most), "there is no %s %d", numbered.flag, n)
			}
		}
	}
	if i := slices.IndexFunc(args, isPath); i >= 0 && !f.all {
		if len(args) > 1 {
			return nil, "", usageError("judge it alone", "%s is an operator of your own, and there are others", args[i])
		}
		return nil, args[i], nil
	}
	names, err = f.names(args)
	return names, "", err
}

func (f *scorecardFlags) names(args []string) ([]string, error) {
	switch {
	case f.all && len(args) > 0:
		return nil, usageError("leave one of them out", "--all and %s exclude each other", strings.Join(args, " "))
	case f.all:
		return namesOfOperators(), nil
	case len(args) == 0:
		return nil, usageError("operators: "+operatorNames()+"; or --all", "which operator?")
	}
	if err := checkOperators(args...); err != nil {
		return nil, err
	}
	return slices.Compact(slices.Sorted(slices.Values(args))), nil
}
