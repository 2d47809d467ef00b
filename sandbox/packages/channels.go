package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// channels asks the gRPC server of a catalog for all its channels, by package and name.
func channels(ctx context.Context, address string) ([]trace.Channel, error) {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	registry := api.NewRegistryClient(connection)
	stream, err := registry.ListBundles(ctx, &api.ListBundlesRequest{})
	if err != nil {
		return nil, err
	}
	found := map[[2]string]*trace.Channel{}
	for {
		b, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		key := [2]string{b.GetPackageName(), b.GetChannelName()}
		if found[key] == nil {
			found[key] = &trace.Channel{Package: key[0], Name: key[1]}
		}
		found[key].Entries = append(found[key].Entries, trace.ChannelEntry{
			Name: b.GetCsvName(), Version: b.GetVersion(), Replaces: b.GetReplaces(), Skips: b.GetSkips(), SkipRange: b.GetSkipRange(),
		})
	}
	defaults := map[string]string{}
	all := make([]trace.Channel, 0, len(found))
	for _, c := range found {
		if _, known := defaults[c.Package]; !known {
			p, err := registry.GetPackage(ctx, &api.GetPackageRequest{Name: c.Package})
			if err != nil {
				return nil, fmt.Errorf("package %s: %w", c.Package, err)
			}
			defaults[c.Package] = p.GetDefaultChannelName()
		}
		c.Default = c.Name == defaults[c.Package]
		c.Entries = ordered(c.Entries)
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b trace.Channel) int {
		return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// ordered returns the versions of a channel in the order of [trace.Channel]'s Entries.
func ordered(entries []trace.ChannelEntry) []trace.ChannelEntry {
	slices.SortStableFunc(entries, func(a, b trace.ChannelEntry) int {
		x, wrongX := semver.Parse(a.Version)
		y, wrongY := semver.Parse(b.Version)
		if wrongX != nil || wrongY != nil {
			return strings.Compare(b.Name, a.Name)
		}
		return y.Compare(x)
	})
	at := func(name string) int {
		return slices.IndexFunc(entries, func(e trace.ChannelEntry) bool { return e.Name == name })
	}
	left := map[string]bool{} // those that are upgraded to another one
	for _, e := range entries {
		left[e.Replaces] = true
		for _, name := range e.Skips {
			left[name] = true
		}
	}
	var out []trace.ChannelEntry
	for next := slices.IndexFunc(entries, func(e trace.ChannelEntry) bool { return !left[e.Name] }); next >= 0; {
		e := entries[next]
		out, entries = append(out, e), slices.Delete(entries, next, next+1)
		next = at(e.Replaces)
	}
	return append(out, entries...)
}
