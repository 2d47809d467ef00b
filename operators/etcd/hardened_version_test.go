package etcd

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

func TestCheckUpgrade(t *testing.T) {
	for _, test := range []struct {
		from, to string
		want     string // empty: it may
	}{
		{"3.1.10", "3.2.13", ""},
		{"3.2.13", "3.2.13", ""},
		{"3.2.13", "3.2.1", ""},
		{"v3.5.0", "3.6.0-rc.1", ""},
		{"3.2.13", "3.1.10", "back to an older minor version"},
		{"3.2.13", "3.4.0", "more than one minor version: go to 3.3 first"},
		{"3.6.0", "4.0.0", "another major version"},
		{"3.2.13", "x.y", "no version"},
		{"3.2.13", "", "no version"},
		{"latest", "3.2.13", ""},
	} {
		err := checkUpgrade(test.from, test.to)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("from %s to %s: %v, want %q", test.from, test.to, err, test.want)
		}
	}
}

func TestOlder(t *testing.T) {
	ordered := []string{"3.1.10", "3.2.2", "3.2.13-rc.0", "3.2.13", "3.10.0", "4.0.0"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := older(a, b); got != (i < j) {
				t.Errorf("%s older than %s: %v", a, b, got)
			}
		}
	}
}

func FuzzParseVersion(f *testing.F) {
	for _, text := range []string{"3.2.13", "v3.6.0-rc.1", "3", "", "99999999999999999999.0.0", "3.2.13\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseVersion(text)
		if err == nil && (v.major < 0 || v.minor < 0 || v.patch < 0) {
			t.Errorf("%q is %+v", text, v)
		}
		if err == nil && (checkUpgrade(text, text) != nil || older(text, text)) {
			t.Errorf("%q cannot stay what it is", text)
		}
	})
}

func FuzzBirth(f *testing.F) {
	f.Add(birth{Life: 1, Token: "a", Formed: true}.String())
	f.Add("{}")
	f.Add("nothing")
	f.Fuzz(func(t *testing.T, text string) {
		cluster := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{BirthAnnotation: text}}}
		b := birthOf(cluster)
		cluster.Annotations[BirthAnnotation] = b.String()
		if again := birthOf(cluster); again != b {
			t.Errorf("%q is read as %+v, and that as %+v", text, b, again)
		}
	})
}

func TestLatestBirth(t *testing.T) {
	record := func(b birth) *v1beta2.EtcdCluster {
		return &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{BirthAnnotation: b.String()}}}
	}
	none, old := record(birth{}), record(birth{Life: 1, Token: "a", Formed: true})
	begun, formed := record(birth{Life: 2, Token: "b"}), record(birth{Life: 2, Token: "b", Formed: true})
	if got := latestBirth(none, old, begun); got.Token != "b" || got.Formed {
		t.Errorf("got %+v", got)
	}
	if got := latestBirth(formed, begun, old); !got.Formed || got.Life != 2 {
		t.Errorf("got %+v", got)
	}
	if got := latestBirth(none, none); got.Token != "" {
		t.Errorf("got %+v", got)
	}
}

// TestTokenFor: an operator that died in between comes to the same token, and to another one for anything else.
func TestTokenFor(t *testing.T) {
	a := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
	b := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{UID: "2"}}
	seen := map[string]bool{}
	for _, token := range []string{
		tokenFor(a, 1, ""), tokenFor(b, 1, ""), tokenFor(a, 2, ""), tokenFor(a, 2, "member/x"), tokenFor(a, 2, "restore/x"),
	} {
		if len(token) != 10 || seen[token] {
			t.Errorf("%q is no token of ten characters of its own", token)
		}
		seen[token] = true
	}
	again := tokenFor(a.DeepCopy(), 1, "")
	if !seen[again] {
		t.Errorf("the same cluster gets another token: %s", again)
	}
}

// TestTorn goes through first members that are lost, and whether the others may wait for them.
func TestTorn(t *testing.T) {
	cluster := newTestCluster("ns")
	cluster.Spec.Size = 3
	const none, waits, runs, ends, leaves = "none", "waits", "runs", "ends", "leaves"
	for _, x := range []struct {
		name   string
		pods   [3]string
		claims bool
		birth  birth
		want   bool
	}{
		{name: "none is made", pods: [3]string{none, none, none}},
		{name: "one is made", pods: [3]string{waits, none, none}},
		{name: "none is let go", pods: [3]string{waits, waits, waits}},
		{name: "one is let go", pods: [3]string{waits, runs, waits}},
		{name: "all run", pods: [3]string{runs, runs, runs}},
		{name: "one is lost", pods: [3]string{runs, none, runs}, want: true},
		{name: "one has ended", pods: [3]string{runs, runs, ends}, want: true},
		{name: "one is deleted", pods: [3]string{leaves, waits, waits}, want: true},
		{name: "only the lost one was let go", pods: [3]string{waits, ends, waits}, want: true},
		{name: "its data are in a claim", pods: [3]string{runs, none, runs}, claims: true},
		{name: "they are a cluster", pods: [3]string{runs, none, runs}, birth: birth{Formed: true}},
		{name: "it begins with data", pods: [3]string{none, none, none}, birth: birth{Source: "restore/1"}},
	} {
		b := x.birth
		b.Life, b.Token = 1, "a"
		if b.Source == "" {
			b.Size = 3
		}
		p := &clusterState{cluster: cluster, birth: b}
		for i, name := range b.firstMembers(cluster) {
			if x.claims {
				p.claims = append(p.claims, memberClaim(claimedCluster(), name, b.Token))
			}
			if x.pods[i] == none {
				continue
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
			switch x.pods[i] {
			case waits:
				pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: BirthAnnotation}}
			case ends:
				pod.Status.Phase = corev1.PodFailed
			case leaves:
				pod.DeletionTimestamp = &metav1.Time{}
			}
			p.members = append(p.members, &member{name: name, pod: pod})
		}
		if got := p.torn(); got != x.want {
			t.Errorf("%s: torn is %v", x.name, got)
		}
		next, why := p.nextBirth()
		if again := why != ""; again != x.want || again && (next.Life != 2 || next.Token == b.Token || next.Size != 3 || next.Formed) {
			t.Errorf("%s: the next birth is %+v, because %q", x.name, next, why)
		}
	}
}

func claimedCluster() *v1beta2.EtcdCluster {
	cluster := newTestCluster("ns")
	cluster.Spec.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}
	return cluster
}

// TestKept: what the cluster may have to go back to stays until the first members answer, and nothing else.
func TestKept(t *testing.T) {
	formed := birth{Life: 1, Token: "a", Formed: true}
	of := func(token string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{TokenLabel: token}}}
	}
	for _, x := range []struct {
		name      string
		birth     birth
		kept, not string
	}{
		{"a restore", birth{Life: 3, Token: "c", Source: "restore/1", Before: formed.String()}, "a", "b"},
		{"a restore without a record of before", birth{Life: 3, Token: "c", Source: "restore/1"}, "a", ""},
		{"begun anew", birth{Life: 3, Token: "c", Size: 3}, "", "a"},
		{"begun anew without data", birth{Life: 3, Token: "c", Size: 3, Before: formed.String()}, "a", "b"},
		{"formed", birth{Life: 3, Token: "c", Formed: true, Before: formed.String()}, "", "a"},
	} {
		p := &clusterState{cluster: newTestCluster("ns"), birth: x.birth}
		if x.kept != "" && !p.isKept(of(x.kept)) {
			t.Errorf("%s: what is of %s is not kept", x.name, x.kept)
		}
		if x.not != "" && p.isKept(of(x.not)) {
			t.Errorf("%s: what is of %s is kept", x.name, x.not)
		}
	}
}

// TestGivenUp: a life that has not begun gives way to the one before when its reason is gone, and comes back to all of it.
func TestGivenUp(t *testing.T) {
	before := birth{Life: 3, Token: "a", Source: "restore/1", Restored: "1", Formed: true}
	cluster := &v1beta2.EtcdCluster{}
	restore := &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{UID: "2"}}
	for _, x := range []struct {
		name     string
		birth    birth
		approved string
		restore  *v1beta2.EtcdRestore
		want     bool
	}{
		{name: "a restore that is wanted", birth: birth{Source: "restore/2"}, restore: restore},
		{name: "a restore that was deleted", birth: birth{Source: "restore/2"}, want: true},
		{name: "another restore", birth: birth{Source: "restore/0"}, restore: restore, want: true},
		{name: "a member that is approved", birth: birth{Source: "member/x"}, approved: "x"},
		{name: "an approval that was taken back", birth: birth{Source: "member/x"}, want: true},
		{name: "an approval of another member", birth: birth{Source: "member/x"}, approved: "y", want: true},
		{name: "nothing", birth: birth{Source: Nothing}},
		{name: "too late", birth: birth{Source: "restore/2", Formed: true}},
	} {
		x.birth.Life, x.birth.Token, x.birth.Before, x.birth.Approved = 4, "b", before.before(), "backup/b@7"
		cluster.Annotations = map[string]string{v1beta2.RecoverAnnotation: x.approved}
		p := &clusterState{cluster: cluster, birth: x.birth, restore: x.restore}
		if got := p.givenUp(); got != x.want {
			t.Errorf("%s: given up is %v", x.name, got)
		}
		next, _ := p.backToBefore()
		want := before
		want.Approved = x.birth.Approved // an approval of a backup is used up
		if want.Life = 5; next != want {
			t.Errorf("%s: it goes back to %+v, want %+v", x.name, next, want)
		}
		if again := (birth{Life: 5, Before: x.birth.Before}).before(); again != before.before() {
			t.Errorf("%s: one that was never formed hides the one before: %s", x.name, again)
		}
		p.birth.Before = ""
		if p.givenUp() {
			t.Errorf("%s: there is nothing to go back to", x.name)
		}
	}
}

// TestBacksUp: of which cluster an EtcdBackup is, its endpoints tell.
func TestBacksUp(t *testing.T) {
	cluster := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "db"}}
	for endpoint, want := range map[string]bool{
		"http://db-client:2379":                      true,
		"http://db-client.a:2379":                    true,
		"https://db-client.a.svc:2379":               true,
		"https://db-client.a.svc.cluster.local:2379": true,
		"http://db-x1.db.a.svc:2379":                 true,
		"http://db-client.b.svc:2379":                false,
		"http://db-client.b:2379":                    false,
		"http://other-client.a.svc:2379":             false,
		"http://db-x1.db.b.svc:2379":                 false,
		"http://10.0.0.1:2379":                       false,
		"http://db-client.a.example.com:2379":        false,
	} {
		backup := &v1beta2.EtcdBackup{Spec: v1beta2.EtcdBackupSpec{EtcdEndpoints: []string{endpoint}}}
		if got := backsUp(backup, cluster); got != want {
			t.Errorf("%s: it is a backup of the cluster: %v", endpoint, got)
		}
	}
}
