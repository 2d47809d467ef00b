package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/packages"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

type channelsFlags struct {
	name   string
	output string
}

func channelsCommand(io streams) *cobra.Command {
	var f channelsFlags
	cmd := &cobra.Command{
		Use:   "channels [flags] [package]",
		Short: "Draw the channels of OLM's packages, and where Subscriptions stand in them",
		Long: `Ask the catalogs of a sandbox with OLM for their channels, and draw each: its head first, below it
what that replaces, and so on, and then what is skipped. A version with a filled circle is
installed by a Subscription, which is named beside it with the phase of the ClusterServiceVersion;
the version that it would come to next is marked, too, with the InstallPlan that waits for approval.
A Subscription to a package or catalog that is not there stands by itself, with what OLM says of it.`,
		Example: `  operator-lab up --detach --olm
  operator-lab channels
  operator-lab channels zundoko`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("leave it out to see all", "%q takes one package, got %d", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), io, strings.Join(args, ""))
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return f.names(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
		},
	}
	nameFlag(cmd, &f.name)
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "json; default: text")
	return cmd
}

func (f *channelsFlags) run(ctx context.Context, io streams, wanted string) error {
	if f.output != "" && f.output != "json" {
		return usageError("use json, or leave it out", "unknown output format %q", f.output)
	}
	all, silent := f.look(ctx)
	if !slices.ContainsFunc(all, func(p trace.Package) bool { return p.Problem == "" }) {
		silent = cmp.Or[error](silent, &sandbox.Problem{
			Err: errors.New("no catalog has a package"), Hint: "'operator-lab kubectl get catalogsources -A' shows the catalogs",
		})
	}
	if len(all) == 0 {
		return silent
	}
	if wanted != "" {
		names := make([]string, len(all))
		for i, p := range all {
			names[i] = p.Name
		}
		all = slices.DeleteFunc(all, func(p trace.Package) bool { return p.Name != wanted })
		if len(all) == 0 {
			return cmp.Or(silent, usageError(meant(wanted, names)+"'operator-lab channels' shows all packages", "no catalog has a package %q", wanted))
		}
	}
	if f.output == "json" {
		return errors.Join(json.NewEncoder(io.out).Encode(all), silent)
	}
	for i, p := range all {
		if i > 0 {
			fmt.Fprintln(io.out)
		}
		for _, line := range p.Drawing(trace.English) {
			fmt.Fprintln(io.out, line)
		}
	}
	return silent
}

// names returns the names of all packages, for completion.
func (f *channelsFlags) names(ctx context.Context) (names []string) {
	all, _ := f.look(ctx)
	for _, p := range all {
		names = append(names, p.Name)
	}
	return names
}

// look returns the packages of all catalogs that answer, and an error for those that do not.
func (f *channelsFlags) look(ctx context.Context) ([]trace.Package, error) {
	record, err := running(f.name)
	if err != nil {
		return nil, sandboxError(err)
	}
	box, err := record.Open()
	if err != nil {
		return nil, sandboxError(err)
	}
	quietLibraries()
	all, err := packages.Of(ctx, box.Config())
	if apierrors.IsNotFound(err) { // a list is not found if its kind is not there
		return nil, &sandbox.Problem{Err: fmt.Errorf("the sandbox %s has no OLM", record.Name), Hint: "start one with 'operator-lab up --detach --olm'"}
	}
	if errors.Is(err, packages.ErrSilent) {
		err = &sandbox.Problem{Err: err, Hint: "was the sandbox started with --olm? 'operator-lab logs' has what opm says"}
	}
	return all, err
}
