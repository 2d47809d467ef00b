package agent

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/operator-lab/operator-lab/operators/etcd/report"
)

// nobody listens there.
const nobody = "http://127.0.0.1:1"

// B-04: that one of several members is down does not matter.
func TestSaveTakesTheMemberThatHasTheMost(t *testing.T) {
	t.Parallel()
	servers := cluster(t, 1)
	other := cluster(t, 1)[0] // stands for a member that lags behind
	revision := servers[0].put(t, "v")
	volume := t.TempDir()
	result := done(t, "save", "--endpoints="+nobody+","+other.url+","+servers[0].url, "--volume="+volume, "--volume-path=x/b.db")
	if result.Endpoint != servers[0].url || result.Revision != revision || result.EtcdVersion == "" || result.TotalKeys != 1 || result.Kept != 1 {
		t.Errorf("got %+v, want revision %d of %s", result, revision, servers[0].url)
	}
	if !strings.Contains(result.Warning, nobody) {
		t.Errorf("nothing is said of the member that is down: %q", result.Warning)
	}
	data := read(t, filepath.Join(volume, "x/b.db"))
	if int64(len(data)) != result.SizeBytes {
		t.Errorf("the file has %d bytes, said to be %d", len(data), result.SizeBytes)
	}
	if left, _ := filepath.Glob(filepath.Join(volume, "x", "*")); len(left) != 1 {
		t.Errorf("there is more than the backup: %q", left)
	}
	checked := done(t, "check", "--volume="+volume, "--volume-path=x/b.db")
	if checked.SHA256 != result.SHA256 || checked.Revision != revision || checked.TotalKeys != 1 {
		t.Errorf("checked %+v, want what was saved: %+v", checked, result)
	}
}

func TestAnEmptyStoreHasRevision1(t *testing.T) {
	t.Parallel()
	s := cluster(t, 1)[0]
	volume := t.TempDir()
	result := done(t, "save", "--endpoints="+s.url, "--volume="+volume, "--volume-path=b")
	if result.Revision != 1 || result.TotalKeys != 0 {
		t.Errorf("got %+v", result)
	}
	boot(t, done, "--volume="+volume, "--volume-path=b")
}

// The last change was a deletion, and a compaction took it away: no key tells of it any more.
func TestTheRevisionOfWhatWasCompacted(t *testing.T) {
	t.Parallel()
	s := cluster(t, 1)[0]
	s.put(t, "v")
	r, err := s.client.Delete(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Compact(t.Context(), r.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	result := done(t, "save", "--endpoints="+s.url, "--volume="+t.TempDir(), "--volume-path=b")
	if result.Revision != r.Header.Revision || result.TotalKeys != 0 {
		t.Errorf("got %+v, want revision %d", result, r.Header.Revision)
	}
}

// B-01, through S3, from a member that writes between the backups.
func TestPeriodicBackupsAcrossAPowerOfTen(t *testing.T) {
	t.Parallel()
	s := cluster(t, 1)[0]
	endpoint, credentials := fakeS3(t)
	place := []string{"--s3-path=backups/example/b", "--s3-endpoint=" + endpoint, "--s3-force-path-style", "--s3-credentials=" + credentials}
	var locations []string
	for revision := int64(0); revision < 11; {
		revision = s.put(t, strconv.FormatInt(revision, 10))
		if revision < 8 {
			continue
		}
		result := done(t, append([]string{"save", "--endpoints=" + s.url, "--periodic", "--max-backups=2"}, place...)...)
		if result.Revision != revision {
			t.Errorf("got a backup of revision %d, want %d", result.Revision, revision)
		}
		locations = append(locations, result.Location)
		if want := min(len(locations), 2); result.Kept != want {
			t.Errorf("kept %d, want %d", result.Kept, want)
		}
	}
	for i, location := range locations {
		args := append([]string{"check", "--s3-path=" + location}, place[1:]...)
		if i < len(locations)-2 {
			refused(t, report.ReasonBackupMissing, args...)
			continue
		}
		if got := done(t, args...); got.Revision != int64(8+i) {
			t.Errorf("%s has revision %d", location, got.Revision)
		}
	}
}

func TestWhatCannotBeDone(t *testing.T) {
	t.Parallel()
	s := cluster(t, 1)[0]
	endpoint, credentials := fakeS3(t)
	volume := t.TempDir()
	file := filepath.Join(volume, "file")
	write(t, file, []byte("x"))
	for _, tc := range []struct{ name, reason, says, args string }{
		{"no endpoint", report.ReasonBadRequest, "--endpoints", "save --volume=" + volume + " --volume-path=b"},
		{"endpoint is no URL", report.ReasonBadRequest, "no URL", "save --endpoints=here --volume=" + volume + " --volume-path=b"},
		{"nobody answers", report.ReasonNoEndpoint, nobody, "save --endpoints=" + nobody + " --volume=" + volume + " --volume-path=b"},
		{"no such volume", report.ReasonStorageFailed, "volume", "save --endpoints=" + s.url + " --volume=" + volume + "/none --volume-path=b"},
		{"way out of the volume", report.ReasonBadRequest, "..", "save --endpoints=" + s.url + " --volume=" + volume + " --volume-path=../b"},
		{"absolute path", report.ReasonBadRequest, "path", "save --endpoints=" + s.url + " --volume=" + volume + " --volume-path=/b"},
		{"a file in the way", report.ReasonStorageFailed, "file/b", "save --endpoints=" + s.url + " --volume=" + volume + " --volume-path=file/b"},
		{"no place", report.ReasonBadRequest, "--volume", "save --endpoints=" + s.url},
		{"less than no backups", report.ReasonBadRequest, "-1", "save --max-backups=-1 --endpoints=" + s.url + " --volume=" + volume + " --volume-path=b"},
		{"no such bucket", report.ReasonStorageFailed, "bucket", "save --endpoints=" + s.url + " --s3-path=none/b --s3-force-path-style --s3-endpoint=" + endpoint + " --s3-credentials=" + credentials},
		{"wrong credentials", report.ReasonStorageFailed, "Access Denied", "save --endpoints=" + s.url + " --s3-path=backups/b --s3-force-path-style --s3-endpoint=" + endpoint + " --s3-credentials=" + keysOf(t, "WRONG")},
		{"no credentials", report.ReasonStorageFailed, "Access Denied", "save --endpoints=" + s.url + " --s3-path=backups/b --s3-force-path-style --s3-endpoint=" + endpoint},
		{"S3 is no URL", report.ReasonBadRequest, "no URL", "save --endpoints=" + s.url + " --s3-path=backups/b --s3-endpoint=here"},
		{"no S3 there", report.ReasonStorageFailed, "refused", "save --endpoints=" + s.url + " --s3-path=backups/b --s3-endpoint=" + nobody},
		{"missing in S3", report.ReasonBackupMissing, "no such object", "check --s3-path=backups/none --s3-force-path-style --s3-endpoint=" + endpoint + " --s3-credentials=" + credentials},
		{"missing on the volume", report.ReasonBackupMissing, "none", "check --volume=" + volume + " --volume-path=none"},
		{"a folder", report.ReasonStorageFailed, "no file", "check --volume=" + filepath.Dir(volume) + " --volume-path=" + filepath.Base(volume)},
		{"no time", report.ReasonTimeout, "", "save --timeout=1ns --endpoints=" + s.url + " --volume=" + volume + " --volume-path=b"},
		{"no TLS keys", report.ReasonBadRequest, "TLS", "save --endpoints=https://127.0.0.1:1 --tls-dir=" + volume + " --volume=" + volume + " --volume-path=b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			result := refused(t, tc.reason, strings.Fields(tc.args)...)
			if !strings.Contains(result.Error, tc.says) {
				t.Errorf("does not say %q: %s", tc.says, result.Error)
			}
			if strings.Contains(result.Error, "\n") {
				t.Errorf("more than one line: %q", result.Error)
			}
		})
	}
	if left, err := os.ReadDir(volume); err != nil || len(left) != 1 {
		t.Errorf("something was left on the volume: %v, %v", left, err)
	}
}

func TestWhatIsNoBackup(t *testing.T) {
	t.Parallel()
	s := cluster(t, 1)[0]
	s.put(t, strings.Repeat("v", 100_000))
	volume := t.TempDir()
	done(t, "save", "--endpoints="+s.url, "--volume="+volume, "--volume-path=b")
	whole := read(t, filepath.Join(volume, "b"))
	signed := func(data []byte) []byte {
		sum := sha256.Sum256(data)
		return append(slices.Clone(data), sum[:]...)
	}
	flipped := slices.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, data := range map[string][]byte{
		"empty":                       {},
		"truncated":                   whole[:len(whole)/2],
		"truncated to whole pages":    whole[:4096*4],
		"with a length that could be": whole[:4096*4+32],
		"without its sum":             whole[:len(whole)-32],
		"one bit is another":          flipped,
		"text":                        []byte("this is no backup at all, but it has been called one"),
		"zeros, with a right sum":     signed(make([]byte, 65536)),
		"half, with a right sum":      signed(whole[:4096*2]),
	} {
		t.Run(name, func(t *testing.T) {
			write(t, filepath.Join(volume, "bad"), data)
			refused(t, report.ReasonBackupUnreadable, "check", "--volume="+volume, "--volume-path=bad")
			dir := t.TempDir()
			refused(t, report.ReasonBackupUnreadable, seedArgs(filepath.Join(dir, "data"), "http://m.example:2380", "--volume="+volume, "--volume-path=bad")...)
			if _, err := os.Stat(filepath.Join(dir, "data")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a data directory was made of it: %v", err)
			}
		})
	}
}

func seedArgs(dir, peerURL string, from ...string) []string {
	return append([]string{"seed", "--name=m9", "--peer-url=" + peerURL, "--token=new", "--data-dir=" + dir}, from...)
}

// boot seeds a member and starts it.
func boot(t *testing.T, run func(*testing.T, ...string) report.Result, from ...string) (*server, *embed.Config) {
	t.Helper()
	config := memberConfig(t, "m9", filepath.Join(t.TempDir(), "data"))
	config.InitialClusterToken = "new"
	run(t, seedArgs(config.Dir, config.AdvertisePeerUrls[0].String(), from...)...)
	s := start(t, config)
	s.ready(t)
	return s, config
}

func TestSeedFromABackup(t *testing.T) {
	t.Parallel()
	servers := cluster(t, 3)
	revision := servers[0].put(t, "before")
	volume := t.TempDir()
	saved := done(t, "save", "--endpoints="+servers[0].url, "--volume="+volume, "--volume-path=b")
	after := servers[0].put(t, "after")
	from := []string{"--volume=" + volume, "--volume-path=b", "--sha256=" + saved.SHA256}

	s, config := boot(t, done, from...)
	value, now := s.get(t)
	if value != "before" {
		t.Errorf("the key is %q, want what it was when the backup was taken", value)
	}
	if now <= after {
		t.Errorf("the revision is %d, and was %d already: time went back", now, after)
	}
	members, err := s.client.MemberList(t.Context())
	if err != nil || len(members.Members) != 1 || members.Members[0].Name != "m9" {
		t.Errorf("the members are %v, %v, want m9 alone", members, err)
	}
	// Who watches from a revision of the old world is told that it is gone.
	watched := <-s.client.Watch(t.Context(), "k", clientv3.WithRev(revision+1))
	if !errors.Is(watched.Err(), rpctypes.ErrCompacted) {
		t.Errorf("a watch from revision %d got %+v, %v", revision+1, watched.Events, watched.Err())
	}
	written := s.put(t, "later")
	// A second run, as after a restart of the pod, leaves the data as they are.
	s.stop()
	done(t, seedArgs(config.Dir, config.AdvertisePeerUrls[0].String(), from...)...)
	again := start(t, config)
	again.ready(t)
	if value, _ := again.get(t); value != "later" {
		t.Errorf("after a restart the key is %q", value)
	}

	// The same backup once more: above all that was written after the first time.
	once, _ := boot(t, done, from...)
	if _, now := once.get(t); now <= written {
		t.Errorf("restored a second time, the revision is %d, and was %d already", now, written)
	}
	// And a backup of a restored cluster is one like any other.
	saved = done(t, "save", "--endpoints="+once.url, "--volume="+volume, "--volume-path=c")
	if value, _ := func() (string, int64) {
		s, _ := boot(t, done, "--volume="+volume, "--volume-path=c")
		return s.get(t)
	}(); value != "before" {
		t.Errorf("restored from a backup of what was restored, the key is %q", value)
	}
	if saved.TotalKeys != 1 {
		t.Errorf("the backup is said to have %d keys", saved.TotalKeys)
	}
}

func TestSeedTakesNoOtherBackup(t *testing.T) {
	t.Parallel()
	s := cluster(t, 1)[0]
	volume := t.TempDir()
	first := done(t, "save", "--endpoints="+s.url, "--volume="+volume, "--volume-path=b")
	s.put(t, "v")
	done(t, "save", "--endpoints="+s.url, "--volume="+volume, "--volume-path=b")
	dir := filepath.Join(t.TempDir(), "data")
	refused(t, report.ReasonBackupChanged, seedArgs(dir, "http://m.example:2380", "--volume="+volume, "--volume-path=b", "--sha256="+first.SHA256)...)
}

func TestSeedAfterOneThatWasKilled(t *testing.T) {
	t.Parallel()
	s := cluster(t, 1)[0]
	s.put(t, "v")
	dir := filepath.Join(t.TempDir(), "data")
	left := filepath.Join(dir+".seeding", "data", "member", "snap")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(left, "db"), []byte("half of it"))
	result := done(t, seedArgs(dir, "http://m.example:2380", "--endpoints="+s.url)...)
	if result.TotalKeys != 1 {
		t.Errorf("got %+v", result)
	}
	if _, err := os.Stat(dir + ".seeding"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was left is still there: %v", err)
	}
}

func TestSeedLeavesForeignFoldersAlone(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "letters"), []byte("dear"))
	refused(t, report.ReasonFailed, seedArgs(dir, "http://m.example:2380", "--endpoints="+nobody)...)
	refused(t, report.ReasonBadRequest, "seed", "--data-dir="+dir, "--endpoints="+nobody)
	refused(t, report.ReasonBadRequest, seedArgs(t.TempDir(), "http://m.example:2380")...)
	refused(t, report.ReasonBadRequest, seedArgs(t.TempDir(), "http://m.example:2380", "--endpoints="+nobody, "--volume="+dir, "--volume-path=x")...)
	if string(read(t, filepath.Join(dir, "letters"))) != "dear" {
		t.Error("the letters have changed")
	}
}

// Two of three members are gone for good: the third has no quorum, and still what it had.
func TestSeedFromAMemberWithoutAQuorum(t *testing.T) {
	t.Parallel()
	servers := cluster(t, 3)
	revision := servers[0].put(t, "v")
	for _, s := range servers { // all have it
		if _, got := s.get(t); got < revision {
			t.Fatalf("%s is at revision %d", s.url, got)
		}
	}
	servers[1].stop()
	servers[2].stop()
	s, _ := boot(t, done, "--endpoints="+servers[0].url)
	if value, now := s.get(t); value != "v" || now <= revision {
		t.Errorf("the key is %q at revision %d, want v after %d", value, now, revision)
	}
}

func TestRaiseNeverGoesBack(t *testing.T) {
	at := epoch.Add(1000 * 24 * time.Hour)
	b := backup{Result: report.Result{Revision: 10}, lastKey: 10}
	first := 10 + int64(raise(b, at))
	if later := 10 + int64(raise(b, at.Add(time.Minute))); later <= first+59*perSecond {
		t.Errorf("a minute later it is %d, after %d", later, first)
	}
	future := backup{Result: report.Result{Revision: first}, lastKey: first - 3}
	if back := future.lastKey + int64(raise(future, epoch)); back != first+leap {
		t.Errorf("after the clock went back it is %d, want %d", back, first+leap)
	}
}
