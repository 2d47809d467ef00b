package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/sandbox"
)

func rootCommand(io streams, programs Programs) *cobra.Command {
	root := &cobra.Command{
		Use:   "operator-lab",
		Short: "A sandbox in one binary for people who learn, teach or write Kubernetes operators",
		Long: `operator-lab boots a real Kubernetes control plane (etcd, kube-apiserver, controllers,
scheduler and kubelet, all linked into this one binary), runs operators in it and shows their
reconcile loop. Pods run on simulated nodes, and Services answer. Nothing is downloaded; no
Docker, no cluster, no root.

Start with:  operator-lab run zundoko
Learn with:  operator-lab lesson`,
		Example: `  operator-lab run zundoko                 watch an operator at work, from boot to end
  operator-lab run maintpage               another one, whose pods serve real requests
  operator-lab up --detach                 start a sandbox and leave it running
  operator-lab kubectl get pods -A         use it
  eval "$(operator-lab env)"               let kubectl, helm, your operator… use it
  operator-lab down                        stop it`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		// Anything that is not a verb is a mistake, not an argument.
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageError(suggestion(cmd, args[0]), "unknown command %q", args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(io.in)
	root.SetOut(io.out)
	root.SetErr(io.err)
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: "learn", Title: "See operators at work:"},
		&cobra.Group{ID: "sandbox", Title: "Sandboxes:"},
		&cobra.Group{ID: "develop", Title: "For your own operator:"},
	)
	for _, group := range []struct {
		id       string
		commands []*cobra.Command
	}{
		{"learn", []*cobra.Command{lessonCommand(io), runCommand(io), replayCommand(io)}},
		{"sandbox", []*cobra.Command{
			upCommand(io), downCommand(io), statusCommand(io), listCommand(io), logsCommand(io),
			kubectlCommand(programs), ocCommand(io, programs), etcdctlCommand(programs), etcdutlCommand(programs), channelsCommand(io), trafficCommand(io), membersCommand(io), metricsCommand(io), envCommand(io), proxyCommand(io),
		}},
		{"develop", []*cobra.Command{
			testCommand(io), verifyCommand(io), loadCommand(io), lintCommand(io), scorecardCommand(io), reportCommand(io), newCommand(io), bundleCommand(io), operatorCommand(io), assetsCommand(io),
		}},
		{"", []*cobra.Command{versionCommand(io), manCommand(io), buildCommand()}},
	} {
		for _, cmd := range group.commands {
			cmd.GroupID = group.id
			root.AddCommand(cmd)
		}
	}
	strictHelp(root)
	completeAll(root)
	return root
}

// strictHelp makes cobra's own verbs refuse what they do not know, as all others do.
func strictHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Run = nil
			cmd.RunE = func(_ *cobra.Command, args []string) error {
				about, rest, err := root.Find(args)
				if err != nil || len(rest) > 0 {
					return usageError("see 'operator-lab --help'", "there is no help on %q", strings.Join(args, " "))
				}
				about.InitDefaultHelpFlag() // as running it would
				about.InitDefaultVersionFlag()
				return about.Help()
			}
		case "completion":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				if len(args) > 0 {
					return usageError("use bash, zsh, fish or powershell", "there is no completion for %q", args[0])
				}
				return nil
			}
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

func suggestion(cmd *cobra.Command, word string) string {
	cmd.SuggestionsMinimumDistance = 2
	if names := cmd.SuggestionsFor(word); len(names) > 0 {
		return "did you mean 'operator-lab " + strings.Join(names, "' or 'operator-lab ") + "'?"
	}
	return "see 'operator-lab --help'"
}

// noArgs refuses arguments with a hint.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("see '"+cmd.CommandPath()+" --help'", "%q takes no argument, got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// nameFlag binds --name.
func nameFlag(cmd *cobra.Command, name *string) {
	*name = sandbox.DefaultName
	cmd.Flags().Var((*nameValue)(name), "name", "name of the sandbox; several run side by side")
}

// nameValue is a flag that takes the name of a sandbox.
type nameValue string

func (n *nameValue) String() string { return string(*n) }

func (n *nameValue) Type() string { return "string" }

func (n *nameValue) Set(s string) error {
	*n = nameValue(s)
	return sandbox.CheckName(s)
}

// sandboxNames returns the names of all sandboxes, for completion.
func sandboxNames(*cobra.Command) []string {
	state, err := sandbox.StateDir()
	if err != nil {
		return nil
	}
	records, _ := sandbox.List(state)
	names := make([]string, len(records))
	for i, r := range records {
		names[i] = r.Name
	}
	return names
}

// lookup reads a sandbox's record. If there is none with the name, the error lists the existing ones.
func lookup(name string) (*sandbox.Record, error) {
	state, err := sandbox.StateDir()
	if err != nil {
		return nil, err
	}
	r, err := sandbox.Lookup(state, name)
	if _, explained := errors.AsType[*sandbox.Problem](err); err == nil || explained {
		return r, err
	}
	return nil, notRunning(name)
}

// running is lookup for a sandbox that must be running. Where there is no default sandbox, the only one that runs stands
// for it.
func running(name string) (*sandbox.Record, error) {
	r, err := lookup(name)
	if err != nil && name == sandbox.DefaultName {
		if running := runningNow(); len(running) == 1 {
			return running[0], nil
		}
	}
	if err != nil {
		return nil, err
	}
	if !r.Running || !r.Ready {
		return nil, notRunning(name)
	}
	return r, nil
}

// runningNow returns the sandboxes that can be used.
func runningNow() []*sandbox.Record {
	state, err := sandbox.StateDir()
	if err != nil {
		return nil
	}
	all, _ := sandbox.List(state)
	return slices.DeleteFunc(all, func(r *sandbox.Record) bool { return !r.Running || !r.Ready })
}

func notRunning(name string) error {
	var names []string
	for _, r := range runningNow() {
		names = append(names, r.Name)
	}
	hint := "start it with 'operator-lab up --detach"
	if name != sandbox.DefaultName {
		hint = meant(name, names) + hint + " --name " + name
	}
	hint += "'"
	if len(names) > 0 {
		hint += "; these run, use one with --name: " + strings.Join(names, ", ")
	} else {
		hint += "; 'operator-lab list' shows all"
	}
	return &sandbox.Problem{Err: fmt.Errorf("%w: %s", sandbox.ErrNotRunning, name), Hint: hint}
}
