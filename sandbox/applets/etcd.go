package applets

import (
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdctl/v3/ctlv3"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
	"go.etcd.io/etcd/pkg/v3/cobrautl"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/operator-lab/operator-lab/sandbox/network/names"
)

// walSegment is the size in bytes that etcd gives a new write-ahead log file. Its default of 64 MiB is allocated on
// disk at every start; a lab writes a few MiB in its life and copies whole data directories.
const walSegment = 4 << 20

func prepareEtcd() {
	wal.SegmentSizeBytes = walSegment
	if os.Getenv("LAB_POD") != "" { // in a pod, where names are resolved by the cluster
		names.Answer()
	}
}

// Etcdctl is upstream's etcdctl on os.Args.
func Etcdctl() int {
	cobra.EnablePrefixMatching = true // as upstream; see Main
	ctlv3.MustStart()
	return 0
}

// Etcdutl is upstream's etcdutl on os.Args: its commands, put together as in its main package, which cannot be linked.
func Etcdutl() int {
	cobra.EnablePrefixMatching = true // as upstream
	prepareEtcd()                     // restoring a snapshot writes a log file
	root := &cobra.Command{Use: "etcdutl", Short: "An administrative command line tool for etcd3."}
	root.PersistentFlags().StringVarP(&etcdutl.OutputFormat, "write-out", "w", "simple",
		"set the output format (fields, json, protobuf, simple, table)")
	root.AddCommand(
		etcdutl.NewDefragCommand(), etcdutl.NewSnapshotCommand(), etcdutl.NewHashKVCommand(), etcdutl.NewVersionCommand(),
		etcdutl.NewCompletionCommand(), etcdutl.NewMigrateCommand(),
	)
	root.SetHelpTemplate(`{{.UsageString}}`)
	if err := root.Execute(); err != nil {
		cobrautl.ExitWithError(cobrautl.ExitError, err)
	}
	return 0
}
