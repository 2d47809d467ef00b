package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/operator-lab/operator-lab/operators/etcd/report"
)

// identity of the first member of a cluster.
type identity struct{ name, peerURL, token string }

// seed is the verb that makes the data directory of a first member, of a backup or of what another member has.
type seed struct {
	from    place
	members members
	who     identity
	sha256  string
	dataDir string
	clock   clock.PassiveClock
}

func seedCommand() *cobra.Command {
	s := &seed{clock: clock.RealClock{}}
	cmd := verb("seed", "Make the data directory of the first member of a cluster, of a backup or of another member", s.do)
	flags := cmd.Flags()
	s.from.flags(flags)
	s.members.flags(flags)
	flags.StringVar(&s.who.name, "name", "", "name of the member")
	flags.StringVar(&s.who.peerURL, "peer-url", "", "its peer URL")
	flags.StringVar(&s.who.token, "token", "", "token of the new cluster")
	flags.StringVar(&s.sha256, "sha256", "", "take no other backup than the one with this sum")
	flags.StringVar(&s.dataDir, "data-dir", "", "the data directory; one that is there already is left as it is")
	return cmd
}

// do works beside the data directory and moves what it made to its place in one step: one that is there is whole, so
// a second run, after the first was killed at any moment, either finds it or begins anew.
func (s *seed) do(ctx context.Context, log *slog.Logger) (result report.Result, err error) {
	if s.who.name == "" || s.who.peerURL == "" || s.who.token == "" || s.dataDir == "" {
		return result, because(report.ReasonBadRequest, errors.New("--name, --peer-url, --token and --data-dir are needed"))
	}
	if s.from.given() == (len(s.members.endpoints) > 0) {
		return result, because(report.ReasonBadRequest, errors.New("either a backup or --endpoints are needed"))
	}
	there, err := filled(s.dataDir)
	if err != nil {
		return result, err
	}
	if there {
		log.Info("There are data already", "folder", s.dataDir)
		return report.Result{Location: s.dataDir}, nil
	}
	beside := s.dataDir + ".seeding"
	if err := errors.Join(os.RemoveAll(beside), os.MkdirAll(beside, 0o700)); err != nil {
		return result, fmt.Errorf("make room beside the data: %w", err)
	}
	file := filepath.Join(beside, "snapshot.db")
	found, err := s.fetch(ctx, log, file)
	if err != nil {
		return result, err
	}
	data := filepath.Join(beside, "data")
	if err := unpack(found, file, data, s.who, s.clock.Now()); err != nil {
		return result, because(report.ReasonBackupUnreadable, err)
	}
	if err := os.Rename(data, s.dataDir); err != nil {
		return result, fmt.Errorf("move the data to their place: %w", err)
	}
	return found.Result, errors.Join(syncDir(filepath.Dir(s.dataDir)), os.RemoveAll(beside))
}

func (s *seed) fetch(ctx context.Context, log *slog.Logger, file string) (backup, error) {
	if !s.from.given() {
		return s.members.snapshot(ctx, log, file)
	}
	location, err := s.from.fetch(ctx, file)
	if err != nil {
		return backup{}, err
	}
	digest, _, err := sum(file)
	if err != nil {
		return backup{}, err
	}
	if s.sha256 != "" && digest != s.sha256 {
		return backup{}, because(report.ReasonBackupChanged,
			fmt.Errorf("%s is not the backup that was checked: its SHA-256 is %s, that one's was %s", location, digest, s.sha256))
	}
	found, err := verify(file)
	found.Location = location
	return found, err
}

// filled tells whether a data directory has data.
func filled(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(entries) == 0) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for data: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "member")); err != nil {
		return false, fmt.Errorf("%s is neither empty nor a data directory of etcd: %w", dir, err)
	}
	return true, nil
}

// unpack makes a data directory of a snapshot, in which the member is alone.
func unpack(b backup, file, to string, who identity, now time.Time) error {
	err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath:        file,
		Name:                who.name,
		OutputDataDir:       to,
		PeerURLs:            []string{who.peerURL},
		InitialCluster:      who.name + "=" + who.peerURL,
		InitialClusterToken: who.token,
		RevisionBump:        raise(b, now),
		MarkCompacted:       true,
	})
	if err != nil {
		return fmt.Errorf("make a data directory of the backup: %w", err)
	}
	return nil
}

const (
	// leap is by how much a revision is raised at least: more than a cluster writes between two backups.
	leap = 1_000_000_000
	// perSecond is how many revisions a cluster writes in a second at the very most.
	perSecond = 100_000
)

// epoch is before any cluster began that this operator looks after.
var epoch = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)

// raise returns by how much the revision of a backup is to be raised, so that it is above any that the cluster can have
// had since, also when the same backup was restored before and much was written then. No revision is ever above what
// perSecond makes of the time, unless a clock went back; then leap has to do.
func raise(b backup, now time.Time) uint64 {
	target := max(b.Revision+leap, now.Sub(epoch).Milliseconds()*perSecond/1000)
	return uint64(target - b.lastKey)
}

// syncDir brings the names in a directory to the disk.
func syncDir(dir string) error {
	f, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
