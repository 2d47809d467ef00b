package applets

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/operator-framework/operator-registry/pkg/api"
	fbccache "github.com/operator-framework/operator-registry/pkg/cache"
	"github.com/operator-framework/operator-registry/pkg/configmap"
	registry "github.com/operator-framework/operator-registry/pkg/server"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"k8s.io/component-base/cli"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/catalog"
	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// opm serves a file-based catalog, as 'opm serve' does, by upstream's servers and cache. Upstream's command listens on all
// addresses of the machine, and may write /etc/nsswitch.conf.
func opm() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	cmd := &cobra.Command{Use: "opm", Short: "Serve catalogs of the Operator Lifecycle Manager", SilenceUsage: true}
	var address, cache string
	var bundled bool
	serve := &cobra.Command{
		Use: "serve <directory>", Short: "Serve the file-based catalog in a directory", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if bundled {
				if err := writeCatalog(args[0]); err != nil {
					return err
				}
			}
			return serveCatalog(ctx, args[0], cache, address)
		},
	}
	serve.Flags().StringVar(&address, "address", "127.0.0.1:50051", "address to serve gRPC at")
	serve.Flags().StringVar(&cache, "cache-dir", "", "directory of the catalog's index, which is made anew")
	serve.Flags().BoolVar(&bundled, "bundled", false, "write the catalog of the bundled operators into the directory first")
	cmd.AddCommand(serve, extraction())
	return cli.Run(cmd)
}

// extraction returns the command 'opm alpha bundle extract', with which OLM's unpack Job puts a bundle into a ConfigMap. Upstream's
// is in a package that needs cgo. The API server is that of $KUBECONFIG.
func extraction() *cobra.Command {
	var dir, namespace, name string
	var limit uint64
	var compress bool
	extract := &cobra.Command{
		Use: "extract", Short: "Put the bundle in a directory into a ConfigMap", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return configmap.NewConfigMapLoader(name, namespace, filepath.Clean(dir)+"/", compress, "").Populate(limit)
		},
	}
	flags := extract.Flags()
	flags.StringVarP(&dir, "manifestsdir", "m", "/", "directory with the bundle")
	flags.StringVarP(&namespace, "namespace", "n", "", "namespace of the ConfigMap")
	flags.StringVarP(&name, "configmapname", "c", "", "name of the ConfigMap, which is there")
	flags.BoolVarP(&compress, "gzip", "z", false, "compress its data")
	flags.Uint64VarP(&limit, "datalimit", "l", 1<<20, "how many bytes of data it may have")
	bundle, alpha := &cobra.Command{Use: "bundle"}, &cobra.Command{Use: "alpha"}
	bundle.AddCommand(extract)
	alpha.AddCommand(bundle)
	return alpha
}

// writeCatalog writes the catalog of the bundled operators.
func writeCatalog(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "catalog.json"))
	if err != nil {
		return err
	}
	return errors.Join(catalog.Write(f, operators.All()), f.Close())
}

func serveCatalog(ctx context.Context, dir, cache, address string) error {
	// An opm that was killed has not closed its cache. What is in it is open to the group, whatever the umask says.
	if err := errors.Join(os.RemoveAll(cache), os.MkdirAll(cache, 0o700)); err != nil {
		return err
	}
	log := logrus.NewEntry(logrus.New())
	store, err := fbccache.New(cache, fbccache.WithLog(log))
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	if err := fbccache.LoadOrRebuild(ctx, store, os.DirFS(dir)); err != nil {
		return fmt.Errorf("read the catalog %s: %w", dir, err)
	}
	listener, err := (&net.ListenConfig{Control: sharePort}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	grpcServer := grpc.NewServer()
	api.RegisterRegistryServer(grpcServer, registry.NewRegistryServer(store))
	api.RegisterExperimentalRegistryServer(grpcServer, registry.NewExperimentalRegistryServer(store))
	health.RegisterHealthServer(grpcServer, registry.NewHealthServer())
	context.AfterFunc(ctx, grpcServer.GracefulStop)
	log.WithField("address", address).Info("serving the catalog ", dir)
	guard.Ready()
	return grpcServer.Serve(listener)
}

// sharePort lets a socket be bound to a port that the sandbox has reserved.
func sharePort(_, _ string, c syscall.RawConn) error {
	var err error
	failed := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
	return errors.Join(failed, err)
}
