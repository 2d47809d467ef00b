package packages

import (
	"context"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// registry answers as a catalog with the package cafe.
type registry struct {
	api.UnimplementedRegistryServer

	bundles []*api.Bundle
}

func (r registry) ListBundles(_ *api.ListBundlesRequest, stream api.Registry_ListBundlesServer) error {
	for _, b := range r.bundles {
		if err := stream.Send(b); err != nil {
			return err
		}
	}
	return nil
}

func (registry) GetPackage(context.Context, *api.GetPackageRequest) (*api.Package, error) {
	return &api.Package{Name: "cafe", DefaultChannelName: "stable"}, nil
}

// TestChannels has the versions of each channel in the order of their upgrades, in whatever order the catalog names them.
func TestChannels(t *testing.T) {
	t.Parallel()
	bundle := func(channel, version, replaces string, skips ...string) *api.Bundle {
		return &api.Bundle{PackageName: "cafe", ChannelName: channel, CsvName: "cafe.v" + version, Version: version, Replaces: replaces, Skips: skips}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	api.RegisterRegistryServer(server, registry{bundles: []*api.Bundle{
		bundle("stable", "1.0.0", ""), bundle("stable", "1.9.0", ""), bundle("stable", "1.10.0", ""),
		bundle("stable", "2.0.0", "cafe.v1.0.0", "cafe.v1.9.0", "cafe.v1.10.0"),
		bundle("round", "1.0.0", "cafe.v2.0.0"), bundle("round", "2.0.0", "cafe.v1.0.0"),
	}})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	got, err := channels(t.Context(), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	entry := func(version, replaces string, skips ...string) trace.ChannelEntry {
		return trace.ChannelEntry{Name: "cafe.v" + version, Version: version, Replaces: replaces, Skips: skips}
	}
	want := []trace.Channel{
		{Package: "cafe", Name: "round", Entries: []trace.ChannelEntry{entry("2.0.0", "cafe.v1.0.0"), entry("1.0.0", "cafe.v2.0.0")}},
		{Package: "cafe", Name: "stable", Default: true, Entries: []trace.ChannelEntry{
			entry("2.0.0", "cafe.v1.0.0", "cafe.v1.9.0", "cafe.v1.10.0"), entry("1.0.0", ""), entry("1.10.0", ""), entry("1.9.0", ""),
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	server.Stop()
	if _, err := channels(t.Context(), listener.Addr().String()); err == nil {
		t.Error("a catalog that does not answer has channels")
	}
}
