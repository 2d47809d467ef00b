package agent

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/operator-lab/operator-lab/operators/etcd/report"
)

// check is the verb that reads a backup, all of it.
type check struct {
	from    place
	scratch string
	clock   clock.PassiveClock
}

func checkCommand() *cobra.Command {
	c := &check{clock: clock.RealClock{}}
	cmd := verb("check", "Read a backup, and try whether a data directory can be made of it", c.do)
	c.from.flags(cmd.Flags())
	cmd.Flags().StringVar(&c.scratch, "scratch", "", "folder with room for it twice (default: the system's for temporary files)")
	return cmd
}

// do also unpacks the backup, into nowhere: what cannot be unpacked is better known before a cluster is replaced by it.
func (c *check) do(ctx context.Context, log *slog.Logger) (result report.Result, err error) {
	dir, remove, err := scratch(c.scratch)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	file := filepath.Join(dir, "snapshot.db")
	location, err := c.from.fetch(ctx, file)
	if err != nil {
		return result, err
	}
	log.Info("Read the backup", "location", location)
	checked, err := verify(file)
	if err != nil {
		return result, err
	}
	trial := identity{name: "trial", peerURL: "http://trial.invalid:2380", token: "trial"}
	if err := unpack(checked, file, filepath.Join(dir, "data"), trial, c.clock.Now()); err != nil {
		return result, because(report.ReasonBackupUnreadable, err)
	}
	checked.Location = location
	return checked.Result, nil
}
