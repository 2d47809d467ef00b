// Package packages reads which packages the catalogs of the Operator Lifecycle Manager (OLM) have, and where Subscriptions stand in
// their channels. The command channels draws them, and a run with OLM records them in its journal.
package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// catalogPatience limits the questions to one catalog, on this machine.
const catalogPatience = 10 * time.Second

// Objects are the objects of OLM in a cluster.
type Objects struct {
	Sources       v1alpha1.CatalogSourceList
	Subscriptions v1alpha1.SubscriptionList
	Versions      v1alpha1.ClusterServiceVersionList
	Plans         v1alpha1.InstallPlanList
}

// List lists them, without asking the API server first which kinds it has: if it has no OLM, the error is NotFound.
func List(ctx context.Context, config *rest.Config) (*Objects, error) {
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
	all := &Objects{}
	for _, list := range []client.ObjectList{&all.Sources, &all.Subscriptions, &all.Versions, &all.Plans} {
		if err := c.List(ctx, list); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ErrSilent is in the error for a catalog that cannot be asked.
var ErrSilent = errors.New("does not answer")

// Of returns the packages of a cluster's catalogs, and those that a Subscription asks for, by name. Beside an error that has
// [ErrSilent] are those that are known.
func Of(ctx context.Context, config *rest.Config) ([]trace.Package, error) {
	olm, err := List(ctx, config)
	if err != nil {
		return nil, err
	}
	var all []trace.Package
	var silent error               // of the last of those that do not answer
	without := map[string]string{} // why a catalog has no package but those found, by its name
	for _, source := range olm.Sources.Items {
		name := source.Namespace + "/" + source.Name
		channels, err := channelsOf(ctx, &source)
		if err != nil {
			silent = fmt.Errorf("the catalog %s %w: %w", name, ErrSilent, err)
			without[name] = "the catalog does not answer"
			continue
		}
		without[name] = "the catalog has no such package"
		for _, channel := range channels {
			if n := len(all); n == 0 || all[n-1].Name != channel.Package || all[n-1].Catalog != name {
				all = append(all, trace.Package{Name: channel.Package, Catalog: name})
			}
			p := &all[len(all)-1]
			p.Channels = append(p.Channels, channel)
		}
	}
	for _, s := range olm.Subscriptions.Items {
		if s.Spec == nil {
			continue
		}
		source := s.Spec.CatalogSourceNamespace + "/" + s.Spec.CatalogSource
		i := slices.IndexFunc(all, func(p trace.Package) bool { return p.Name == s.Spec.Package && p.Catalog == source })
		if i < 0 {
			i = len(all)
			all = append(all, trace.Package{
				Name: s.Spec.Package, Catalog: source, Channels: []trace.Channel{},
				Problem: cmp.Or(without[source], "there is no such catalog"),
			})
		}
		all[i].Subscriptions = append(all[i].Subscriptions, standing(&all[i], &s, olm.Versions.Items, olm.Plans.Items))
	}
	slices.SortStableFunc(all, func(a, b trace.Package) int { return strings.Compare(a.Name, b.Name) })
	return all, silent
}

// channelsOf asks a catalog for its channels, at the address that the catalog-operator uses.
func channelsOf(ctx context.Context, source *v1alpha1.CatalogSource) ([]trace.Channel, error) {
	address := source.Spec.Address
	if state := source.Status.GRPCConnectionState; state != nil {
		address = cmp.Or(state.Address, address)
	}
	if address == "" {
		return nil, errors.New("it has no address")
	}
	ctx, cancel := context.WithTimeout(ctx, catalogPatience)
	defer cancel()
	return channels(ctx, address)
}

// standing returns where a Subscription to the package stands.
func standing(p *trace.Package, s *v1alpha1.Subscription, versions []v1alpha1.ClusterServiceVersion, plans []v1alpha1.InstallPlan) trace.Subscription {
	at := trace.Subscription{
		Name: s.Namespace + "/" + s.Name, Channel: s.Spec.Channel, Installed: s.Status.InstalledCSV, State: string(s.Status.State),
	}
	if i := slices.IndexFunc(p.Channels, func(c trace.Channel) bool { return c.Default }); at.Channel == "" && i >= 0 {
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
			at.Problem = strings.Join(strings.Fields(condition.Message), " ")
		}
	}
	return at
}
