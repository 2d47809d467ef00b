package etcd

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/operator-lab/operator-lab/operators/etcd/report"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

var noon = metav1.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// ended is an attempt whose pod said something at a time.
func endedAttempt(run string, number int, generation int64, at time.Time, code int32, said string) attempt {
	phase := corev1.PodSucceeded
	if code != 0 {
		phase = corev1.PodFailed
	}
	return attempt{run: run, number: number, generation: generation, pod: &corev1.Pod{Status: corev1.PodStatus{
		Phase: phase,
		ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: "Error", FinishedAt: metav1.NewTime(at), Message: said,
		}}}},
	}}}
}

const wholeBackup = `{"revision":7,"sha256":"ab","location":"b/k","kept":1}`

// B-02: when a backup is due follows from what the API says, and from nothing else.
func TestWhenABackupIsDue(t *testing.T) {
	backup := &v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	backup.Spec.BackupPolicy = &v1beta2.BackupPolicy{BackupIntervalInSecond: 600}
	once := &v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	at := func(after time.Duration) time.Time { return noon.Add(after) }
	failed := `{"error":"e","reason":"NoEndpoint"}`
	ready := func(generation int64, reason string) v1beta2.EtcdBackupStatus {
		return v1beta2.EtcdBackupStatus{LastSuccessDate: &noon, Conditions: []metav1.Condition{{
			Type: ConditionReady, Reason: reason, ObservedGeneration: generation, LastTransitionTime: noon,
		}}}
	}
	for _, tc := range []struct {
		name   string
		backup *v1beta2.EtcdBackup
		known  v1beta2.EtcdBackupStatus
		pods   attempts
		now    time.Duration
		due    bool
		wait   time.Duration
	}{
		{name: "a new one", backup: backup, due: true},
		{name: "not yet", backup: backup, known: ready(2, ReasonBackedUp), now: time.Minute, due: true, wait: 9 * time.Minute},
		{name: "while the operator was away", backup: backup, known: ready(2, ReasonBackedUp), now: time.Hour, due: true, wait: -50 * time.Minute},
		{name: "done once", backup: once, known: ready(2, ReasonBackedUp), now: time.Hour},
		{name: "done, of another spec", backup: once, known: ready(1, ReasonBackedUp), now: time.Hour, due: true},
		{name: "done, and its status was wiped", backup: once, pods: attempts{endedAttempt("2/0", 0, 2, noon.Time, 0, wholeBackup)}, now: time.Hour},
		{name: "failed the first time", backup: once, pods: attempts{endedAttempt("2/0", 0, 2, noon.Time, 1, failed)}, due: true, wait: firstRetry},
		{name: "failed again", backup: once, pods: attempts{endedAttempt("2/0", 3, 2, noon.Time, 1, failed)}, due: true, wait: 16 * time.Second},
		{name: "failed for days", backup: once, pods: attempts{endedAttempt("2/0", 1000, 2, noon.Time, 1, failed)}, due: true, wait: lastRetry},
		{name: "failed with another spec", backup: once, pods: attempts{endedAttempt("1/0", 3, 1, noon.Time, 1, failed)}, due: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &backupPass{backup: tc.backup, known: tc.known, all: tc.pods}
			p.begin()
			p.harvest()
			due, wait := p.due(at(tc.now))
			if due != tc.due || due && max(wait, 0) != max(tc.wait, 0) {
				t.Errorf("due %t in %v, want %t in %v", due, wait, tc.due, tc.wait)
			}
		})
	}
}

func TestWhatAPodSaid(t *testing.T) {
	killed := endedAttempt("", 0, 1, noon.Time, 137, "")
	deadline := attempt{pod: &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded", Message: "Pod was active too long"}}}
	evicted := attempt{pod: &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}}}
	for name, tc := range map[string]struct {
		of           attempt
		reason, says string
	}{
		"done":              {endedAttempt("", 0, 1, noon.Time, 0, wholeBackup), "", ""},
		"failed":            {endedAttempt("", 0, 1, noon.Time, 1, `{"error":"no such bucket","reason":"StorageFailed"}`), report.ReasonStorageFailed, "no such bucket"},
		"killed":            {killed, report.ReasonFailed, "exit code 137"},
		"a panic":           {endedAttempt("", 0, 1, noon.Time, 2, "panic: oh"), report.ReasonFailed, "exit code 2"},
		"well, but nothing": {endedAttempt("", 0, 1, noon.Time, 0, ""), report.ReasonFailed, "no result"},
		"failed, and well":  {endedAttempt("", 0, 1, noon.Time, 1, wholeBackup), report.ReasonFailed, "exit code 1"},
		"too slow":          {deadline, report.ReasonTimeout, "too long"},
		"evicted":           {evicted, report.ReasonFailed, "Evicted"},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.of.result()
			if got.Reason != tc.reason || !strings.Contains(got.Error, tc.says) || (got.Error == "") != (tc.reason == "") {
				t.Errorf("got %+v", got)
			}
			if got.Error != "" && (got.Revision != 0 || got.SHA256 != "") {
				t.Errorf("an error tells of a backup: %+v", got)
			}
		})
	}
}

// B-03: what the schema of today refuses is no reason to fall over it, where the definition is an older one.
func TestProblemsOfASpec(t *testing.T) {
	good := func() *v1beta2.EtcdBackupSpec {
		return &v1beta2.EtcdBackupSpec{
			EtcdEndpoints: []string{"http://m:2379"}, StorageType: v1beta2.StorageS3, S3: &v1beta2.S3Source{Path: "b/k"},
		}
	}
	if problem := backupProblem(good()); problem != "" {
		t.Fatal(problem)
	}
	for name, change := range map[string]func(*v1beta2.EtcdBackupSpec){
		"no endpoints":   func(s *v1beta2.EtcdBackupSpec) { s.EtcdEndpoints = nil },
		"no URL":         func(s *v1beta2.EtcdBackupSpec) { s.EtcdEndpoints = []string{"m:2379"} },
		"two in one":     func(s *v1beta2.EtcdBackupSpec) { s.EtcdEndpoints = []string{"http://m:2379,http://n:2379"} },
		"unknown type":   func(s *v1beta2.EtcdBackupSpec) { s.StorageType = "ABS" },
		"no type":        func(s *v1beta2.EtcdBackupSpec) { s.StorageType = "" },
		"no block":       func(s *v1beta2.EtcdBackupSpec) { s.S3 = nil },
		"no other block": func(s *v1beta2.EtcdBackupSpec) { s.StorageType = v1beta2.StorageVolume },
		"no key":         func(s *v1beta2.EtcdBackupSpec) { s.S3.Path = "b" },
		"negative":       func(s *v1beta2.EtcdBackupSpec) { s.BackupPolicy = &v1beta2.BackupPolicy{MaxBackups: -1} },
		"out of the volume": func(s *v1beta2.EtcdBackupSpec) {
			s.StorageType, s.PersistentVolumeClaim = v1beta2.StorageVolume, &v1beta2.VolumeSource{ClaimName: "c", Path: "a/../../b"}
		},
		"no claim": func(s *v1beta2.EtcdBackupSpec) {
			s.StorageType, s.PersistentVolumeClaim = v1beta2.StorageVolume, &v1beta2.VolumeSource{Path: "a"}
		},
		"the volume itself": func(s *v1beta2.EtcdBackupSpec) {
			s.StorageType, s.PersistentVolumeClaim = v1beta2.StorageVolume, &v1beta2.VolumeSource{ClaimName: "c", Path: "./."}
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := good()
			change(spec)
			p := &backupPass{backup: &v1beta2.EtcdBackup{Spec: *spec}}
			p.begin()
			if err := (&hardenedBackups{clock: clock.RealClock{}}).act(context.WithoutCancel(t.Context()), p); err != nil {
				t.Fatal(err)
			}
			if p.verdict == nil || p.verdict.Reason != ReasonSpecInvalid || p.status.Reason == "" || p.status.Succeeded {
				t.Errorf("got %+v, %+v", p.verdict, p.status)
			}
		})
	}
}

func TestRestoreIsWantedOnce(t *testing.T) {
	cluster := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
	good := func() *v1beta2.EtcdRestore {
		r := &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "u"}}
		r.Spec.EtcdCluster.Name = "c"
		r.Status = v1beta2.EtcdRestoreStatus{SHA256: "ab", Conditions: []metav1.Condition{{Type: ConditionChecked, Status: metav1.ConditionTrue}}}
		return r
	}
	if !restoreWanted(good(), cluster) {
		t.Error("a checked restore is not wanted")
	}
	copied := good()
	copied.Annotations = map[string]string{RestoredAnnotation: "of an earlier one"}
	if !restoreWanted(copied, cluster) {
		t.Error("a copy of a restore that is done is not wanted")
	}
	for name, change := range map[string]func(*v1beta2.EtcdRestore){
		"not checked":   func(r *v1beta2.EtcdRestore) { r.Status.Conditions[0].Status = metav1.ConditionFalse },
		"nothing known": func(r *v1beta2.EtcdRestore) { r.Status = v1beta2.EtcdRestoreStatus{} },
		"no sum":        func(r *v1beta2.EtcdRestore) { r.Status.SHA256 = "" },
		"done":          func(r *v1beta2.EtcdRestore) { r.Annotations = map[string]string{RestoredAnnotation: "u"} },
		"Ready": func(r *v1beta2.EtcdRestore) {
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: ConditionReady, Status: metav1.ConditionTrue})
		},
		"another cluster":   func(r *v1beta2.EtcdRestore) { r.Spec.EtcdCluster.Name = "d" },
		"another namespace": func(r *v1beta2.EtcdRestore) { r.Namespace = "m" },
		"being deleted":     func(r *v1beta2.EtcdRestore) { r.DeletionTimestamp = &noon },
	} {
		r := good()
		change(r)
		if restoreWanted(r, cluster) {
			t.Errorf("%s, and wanted", name)
		}
	}
	restored := cluster.DeepCopy()
	restored.Status.RestoredFrom = "u"
	if restoreWanted(good(), restored) {
		t.Error("wanted twice")
	}
}
