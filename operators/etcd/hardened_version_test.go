package etcd

import (
	"strings"
	"testing"

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
