package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/operator-lab/operator-lab/operators/etcd/report"
	"github.com/operator-lab/operator-lab/operators/etcd/store"
)

// save is the verb that takes a backup.
type save struct {
	members  members
	to       place
	scratch  string
	periodic bool
	keep     int
	clock    clock.PassiveClock
}

func saveCommand() *cobra.Command {
	s := &save{clock: clock.RealClock{}}
	cmd := verb("save", "Take a backup of the member that has the most, and store it", s.do)
	flags := cmd.Flags()
	s.members.flags(flags)
	s.to.flags(flags)
	flags.StringVar(&s.scratch, "scratch", "", "folder with room for a backup (default: the system's for temporary files)")
	flags.BoolVar(&s.periodic, "periodic", false, "one of several: its name ends with _v<revision>_<time>")
	flags.IntVar(&s.keep, "max-backups", 0, "of several keep as many, the newest ones; 0: all")
	return cmd
}

// do takes a snapshot, verifies it, stores it, and only then deletes what is one too many.
func (s *save) do(ctx context.Context, log *slog.Logger) (result report.Result, err error) {
	if s.keep < 0 {
		return result, because(report.ReasonBadRequest, fmt.Errorf("%d backups cannot be kept", s.keep))
	}
	to, name, err := s.to.open()
	if err != nil {
		return result, err
	}
	dir, remove, err := scratch(s.scratch)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	file := filepath.Join(dir, "snapshot.db")
	taken, err := s.members.snapshot(ctx, log, file)
	if err != nil {
		return result, err
	}
	result = taken.Result
	path := name
	if s.periodic {
		name = nameOf(path, version{taken.Revision, s.clock.Now()})
	}
	if err := put(ctx, to, name, file, taken.SizeBytes); err != nil {
		return result, because(report.ReasonStorageFailed, err)
	}
	result.Location, result.Kept = to.Location(name), 1
	if !s.periodic {
		return result, nil
	}
	result.Kept, result.Pruned, err = prune(ctx, log, to, path, name, s.keep)
	if err != nil { // the backup is there, and that is what counts: the next one tries again
		log.Warn("Old backups stay", "error", err)
		result.Warning = errorText([]error{err})
	}
	return result, nil
}

func put(ctx context.Context, to store.Store, name, file string, size int64) error {
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		return err
	}
	return errors.Join(to.Put(ctx, name, f, size), f.Close())
}

// prune deletes the oldest periodic backups of a path until there are as many as are to be kept. What is not exactly
// named as one of them is not touched, and neither is the one that was just made, whatever there is besides: it may be of
// a cluster that began anew, and so have the lowest revision of all.
func prune(ctx context.Context, log *slog.Logger, in store.Store, path, newest string, keep int) (kept, pruned int, err error) {
	objects, err := in.List(ctx, path+"_v")
	if err != nil {
		return 1, 0, fmt.Errorf("find old backups: %w", err)
	}
	type old struct {
		name string
		version
	}
	var olds []old
	for _, object := range objects {
		if v, ok := parseName(path, object.Name); ok && object.Name != newest {
			olds = append(olds, old{object.Name, v})
		}
	}
	slices.SortFunc(olds, func(a, b old) int { return b.compare(a.version) })
	kept = 1 + len(olds)
	if keep == 0 || kept <= keep {
		return kept, 0, nil
	}
	var errs []error
	for _, o := range olds[keep-1:] {
		if err := in.Delete(ctx, o.name); err != nil {
			errs = append(errs, err)
			continue
		}
		log.Info("Deleted an old backup", "name", o.name)
		pruned++
	}
	return kept - pruned, pruned, errors.Join(errs...)
}
