package catalog

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
)

// Channel is a channel of a package: the order in which versions of an operator replace each other.
type Channel struct {
	// Package and Name are those of the package and of the channel.
	Package string `json:"package"`
	Name    string `json:"name"`
	// Default says that a Subscription that names no channel follows this one.
	Default bool `json:"default"`
	// Entries are the versions: the head, which nothing replaces, what it replaces, and so on; then the others, the newest first.
	Entries []Entry `json:"entries"`
}

// Entry is a version of an operator in a channel.
type Entry struct {
	// Name is that of its ClusterServiceVersion.
	Name string `json:"name"`
	// Version is a semantic version; may be empty.
	Version string `json:"version,omitempty"`
	// Replaces is the version that is upgraded to this one; empty if none is.
	Replaces string `json:"replaces,omitempty"`
	// Skips are versions that are upgraded to this one as well, and to which nothing is upgraded any more.
	Skips []string `json:"skips,omitempty"`
	// SkipRange is a range of versions that are upgraded to this one as well, as in "<1.0.0"; empty if there is none.
	SkipRange string `json:"skipRange,omitempty"`
}

// Channels asks the gRPC server of a catalog for all its channels, by package and name.
func Channels(ctx context.Context, address string) ([]Channel, error) {
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
	found := map[[2]string]*Channel{}
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
			found[key] = &Channel{Package: key[0], Name: key[1]}
		}
		found[key].Entries = append(found[key].Entries, Entry{b.GetCsvName(), b.GetVersion(), b.GetReplaces(), b.GetSkips(), b.GetSkipRange()})
	}
	defaults := map[string]string{}
	all := make([]Channel, 0, len(found))
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
	slices.SortFunc(all, func(a, b Channel) int {
		return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// ordered returns the versions of a channel in the order of [Channel.Entries].
func ordered(entries []Entry) []Entry {
	slices.SortStableFunc(entries, func(a, b Entry) int {
		x, wrongX := semver.Parse(a.Version)
		y, wrongY := semver.Parse(b.Version)
		if wrongX != nil || wrongY != nil {
			return strings.Compare(b.Name, a.Name)
		}
		return y.Compare(x)
	})
	at := func(name string) int {
		return slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
	}
	left := map[string]bool{} // those that are upgraded to another one
	for _, e := range entries {
		left[e.Replaces] = true
		for _, name := range e.Skips {
			left[name] = true
		}
	}
	var out []Entry
	for next := slices.IndexFunc(entries, func(e Entry) bool { return !left[e.Name] }); next >= 0; {
		e := entries[next]
		out, entries = append(out, e), slices.Delete(entries, next, next+1)
		next = at(e.Replaces)
	}
	return append(out, entries...)
}
