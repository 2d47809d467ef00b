package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/catalog"
	"github.com/operator-lab/operator-lab/sandbox"
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
			return f.packages(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
		},
	}
	nameFlag(cmd, &f.name)
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "json; default: text")
	return cmd
}

// olmPackage is a package of a catalog, with what is installed of it.
type olmPackage struct {
	Name string `json:"name"`
	// Catalog is the namespace and the name of its CatalogSource.
	Catalog string `json:"catalog"`
	// Problem says why a package that a Subscription asks for has no channels; empty if it has.
	Problem       string            `json:"problem,omitempty"`
	Channels      []catalog.Channel `json:"channels"`
	Subscriptions []olmSubscription `json:"subscriptions,omitempty"`
}

// olmSubscription says where a Subscription stands.
type olmSubscription struct {
	// Name is with its namespace.
	Name    string `json:"name"`
	Channel string `json:"channel"`
	// Installed is the ClusterServiceVersion that is installed, Phase its phase; empty if none is. Missing says that somebody has
	// deleted it.
	Installed string `json:"installed,omitempty"`
	Phase     string `json:"phase,omitempty"`
	Missing   bool   `json:"missing,omitempty"`
	// Next is the one that is to be installed; empty if there is no other.
	Next string `json:"next,omitempty"`
	// State is that of the Subscription, and Plan its InstallPlan if that waits for approval.
	State string `json:"state,omitempty"`
	Plan  string `json:"plan,omitempty"`
	// Problem says why OLM cannot resolve it; empty if it can.
	Problem string `json:"problem,omitempty"`
}

// catalogPatience limits the questions to one catalog, on this machine.
const catalogPatience = 10 * time.Second

func (f *channelsFlags) run(ctx context.Context, io streams, wanted string) error {
	if f.output != "" && f.output != "json" {
		return usageError("use json, or leave it out", "unknown output format %q", f.output)
	}
	all, silent := f.look(ctx)
	if !slices.ContainsFunc(all, func(p olmPackage) bool { return p.Problem == "" }) {
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
		all = slices.DeleteFunc(all, func(p olmPackage) bool { return p.Name != wanted })
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
		p.draw(io.out)
	}
	return silent
}

// packages returns the names of all packages, for completion.
func (f *channelsFlags) packages(ctx context.Context) (names []string) {
	all, _ := f.look(ctx)
	for _, p := range all {
		names = append(names, p.Name)
	}
	return names
}

// look returns the packages of all catalogs that answer, and an error for those that do not.
func (f *channelsFlags) look(ctx context.Context) ([]olmPackage, error) {
	record, err := running(f.name)
	if err != nil {
		return nil, sandboxError(err)
	}
	box, err := record.Open()
	if err != nil {
		return nil, sandboxError(err)
	}
	quietLibraries()
	all, err := packagesOf(ctx, box.Config())
	if apierrors.IsNotFound(err) { // a list is not found if its kind is not there
		return nil, &sandbox.Problem{Err: fmt.Errorf("the sandbox %s has no OLM", record.Name), Hint: "start one with 'operator-lab up --detach --olm'"}
	}
	return all, err
}

// olmObjects are the objects of OLM in a cluster.
type olmObjects struct {
	sources       v1alpha1.CatalogSourceList
	subscriptions v1alpha1.SubscriptionList
	versions      v1alpha1.ClusterServiceVersionList
	plans         v1alpha1.InstallPlanList
}

// listOLM lists them, without asking the API server first which kinds it has: if it has no OLM, the error is NotFound.
func listOLM(ctx context.Context, config *rest.Config) (*olmObjects, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.KnownTypes(v1alpha1.SchemeGroupVersion) {
		mapper.Add(v1alpha1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	all := &olmObjects{}
	for _, list := range []client.ObjectList{&all.sources, &all.subscriptions, &all.versions, &all.plans} {
		if err := c.List(ctx, list); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// packagesOf returns the packages of a cluster's catalogs, and those that a Subscription asks for, by name.
func packagesOf(ctx context.Context, config *rest.Config) ([]olmPackage, error) {
	olm, err := listOLM(ctx, config)
	if err != nil {
		return nil, err
	}
	var all []olmPackage
	var silent error               // of the last of those that do not answer
	without := map[string]string{} // why a catalog has no package but those found, by its name
	for _, source := range olm.sources.Items {
		name := source.Namespace + "/" + source.Name
		channels, err := channelsOf(ctx, &source)
		if err != nil {
			silent = &sandbox.Problem{
				Err:  fmt.Errorf("the catalog %s does not answer: %w", name, err),
				Hint: "was the sandbox started with --olm? 'operator-lab logs' has what opm says",
			}
			without[name] = "the catalog does not answer"
			continue
		}
		without[name] = "the catalog has no such package"
		for _, channel := range channels {
			if n := len(all); n == 0 || all[n-1].Name != channel.Package || all[n-1].Catalog != name {
				all = append(all, olmPackage{Name: channel.Package, Catalog: name})
			}
			p := &all[len(all)-1]
			p.Channels = append(p.Channels, channel)
		}
	}
	for _, s := range olm.subscriptions.Items {
		if s.Spec == nil {
			continue
		}
		source := s.Spec.CatalogSourceNamespace + "/" + s.Spec.CatalogSource
		i := slices.IndexFunc(all, func(p olmPackage) bool { return p.Name == s.Spec.Package && p.Catalog == source })
		if i < 0 {
			i = len(all)
			all = append(all, olmPackage{
				Name: s.Spec.Package, Catalog: source, Channels: []catalog.Channel{},
				Problem: cmp.Or(without[source], "there is no such catalog"),
			})
		}
		all[i].Subscriptions = append(all[i].Subscriptions, all[i].standing(&s, olm.versions.Items, olm.plans.Items))
	}
	slices.SortStableFunc(all, func(a, b olmPackage) int { return strings.Compare(a.Name, b.Name) })
	return all, silent
}

// channelsOf asks a catalog for its channels, at the address that the catalog-operator uses.
func channelsOf(ctx context.Context, source *v1alpha1.CatalogSource) ([]catalog.Channel, error) {
	address := source.Spec.Address
	if state := source.Status.GRPCConnectionState; state != nil {
		address = cmp.Or(state.Address, address)
	}
	if address == "" {
		return nil, errors.New("it has no address")
	}
	ctx, cancel := context.WithTimeout(ctx, catalogPatience)
	defer cancel()
	return catalog.Channels(ctx, address)
}

// standing returns where a Subscription to the package stands.
func (p *olmPackage) standing(s *v1alpha1.Subscription, versions []v1alpha1.ClusterServiceVersion, plans []v1alpha1.InstallPlan) olmSubscription {
	at := olmSubscription{
		Name: s.Namespace + "/" + s.Name, Channel: s.Spec.Channel, Installed: s.Status.InstalledCSV, State: string(s.Status.State),
	}
	if i := slices.IndexFunc(p.Channels, func(c catalog.Channel) bool { return c.Default }); at.Channel == "" && i >= 0 {
		at.Channel = p.Channels[i].Name
	}
	if s.Status.CurrentCSV != s.Status.InstalledCSV {
		at.Next = s.Status.CurrentCSV
	}
	at.Missing = at.Installed != ""
	for i := range versions {
		if v := &versions[i]; v.Namespace == s.Namespace && v.Name == at.Installed {
			at.Phase, at.Missing = string(v.Status.Phase), false
		}
	}
	for i := range plans {
		if plan := &plans[i]; plan.Namespace == s.Namespace && plan.Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval &&
			at.Next != "" && slices.Contains(plan.Spec.ClusterServiceVersionNames, at.Next) {
			at.Plan = plan.Name
		}
	}
	for _, condition := range s.Status.Conditions {
		if condition.Type == v1alpha1.SubscriptionResolutionFailed && condition.Status == "True" {
			at.Problem = oneLine(condition.Message)
		}
	}
	return at
}

// draw draws the channels, and what Subscriptions have installed of them.
func (p *olmPackage) draw(out io.Writer) {
	fmt.Fprintf(out, "package %s of the catalog %s\n", p.Name, p.Catalog)
	if p.Problem != "" {
		fmt.Fprintln(out, "  "+p.Problem)
	}
	for _, channel := range p.Channels {
		heading := "  channel " + channel.Name
		if channel.Default {
			heading += ", the default"
		}
		fmt.Fprintln(out, heading)
		p.drawChannel(out, channel)
	}
	for _, s := range p.Subscriptions {
		if text := s.elsewhere(p); text != "" {
			fmt.Fprintf(out, "  Subscription %s: %s\n", s.Name, text)
		}
	}
}

// drawChannel draws the versions of a channel, one below the other, with a line from each to the one that it replaces.
func (p *olmPackage) drawChannel(out io.Writer, channel catalog.Channel) {
	width := 0
	for _, e := range channel.Entries {
		width = max(width, len(e.Name))
	}
	for i, e := range channel.Entries {
		mark, line := "○", " "
		if i+1 < len(channel.Entries) && channel.Entries[i+1].Name == e.Replaces {
			line = "│"
		}
		var notes []string
		for _, s := range p.Subscriptions {
			switch {
			case s.Channel != channel.Name:
			case s.Installed == e.Name:
				mark = "●"
				notes = append(notes, s.phase()+", by Subscription "+s.Name)
			case s.Next == e.Name:
				notes = append(notes, s.next())
			}
		}
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("    %s %-*s  %s", mark, width, e.Name, strings.Join(notes, "; ")), " "))
		if from := upgradedFrom(e); from != "" {
			fmt.Fprintf(out, "    %s %*s  %s\n", line, width, "", from)
		}
	}
}

// elsewhere says of a Subscription what stands beside no version of its channel; empty if there is nothing.
func (s *olmSubscription) elsewhere(p *olmPackage) string {
	if s.Problem != "" {
		return s.Problem
	}
	for _, channel := range p.Channels {
		if channel.Name == s.Channel && slices.ContainsFunc(channel.Entries, func(e catalog.Entry) bool { return e.Name == cmp.Or(s.Installed, s.Next) }) {
			return ""
		}
	}
	installed := s.Installed + " is installed"
	if s.Missing {
		installed = s.Installed + " was installed, and is deleted"
	}
	switch {
	case s.Installed != "" && len(p.Channels) == 0:
		return installed
	case s.Installed != "":
		return installed + "; the channel " + s.Channel + " does not have it"
	case s.Channel == "":
		return "nothing is installed yet"
	}
	return "nothing of the channel " + s.Channel + " is installed yet"
}

// phase says how the installed version is.
func (s *olmSubscription) phase() string {
	if s.Missing {
		return "deleted"
	}
	return cmp.Or(s.Phase, "no phase yet")
}

// next says of a version that it is the next one for a Subscription, and what it waits for.
func (s *olmSubscription) next() string {
	text := "next for Subscription " + s.Name
	switch {
	case s.Plan != "":
		return text + ": InstallPlan " + s.Plan + " waits for approval"
	case s.State != "":
		return text + ": " + s.State
	}
	return text
}

// upgradedFrom says which versions are upgraded to one; empty if none is.
func upgradedFrom(e catalog.Entry) string {
	var parts []string
	if e.Replaces != "" {
		parts = append(parts, "replaces "+e.Replaces)
	}
	if len(e.Skips) > 0 {
		parts = append(parts, "skips "+strings.Join(e.Skips, " and "))
	}
	if e.SkipRange != "" {
		parts = append(parts, "skipRange "+e.SkipRange)
	}
	return strings.Join(parts, ", ")
}
