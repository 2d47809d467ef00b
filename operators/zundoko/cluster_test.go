package zundoko_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/operators/zundoko"
	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestRoleSuffices sings a song and repairs it as a user who may do what the role of each variant says
// and nothing else.
func TestRoleSuffices(t *testing.T) {
	t.Parallel()
	for _, variant := range zundoko.Variants() {
		t.Run(string(variant), func(t *testing.T) {
			t.Parallel()
			env := newTestEnv(t, variant)
			cfg := rest.CopyConfig(env.Config)
			cfg.Impersonate.UserName = env.Name + "-singer"
			env.Allow(zundoko.Manifests(), "rbac/"+string(variant)+"/role.yaml", cfg.Impersonate.UserName)
			env.operateAs(cfg, zundoko.Options{Variant: variant, Song: parse(t, short)})
			hikawa := env.hikawa(quick)
			sandboxtest.Eventually(env.t, "the song is over", func() bool { return env.sung(hikawa) })
			if variant == zundoko.Hardened {
				sandboxtest.Eventually(env.t, "event SongStarted", func() bool { return env.Events("SongStarted") == 1 })
				env.MustDelete(env.word("hikawa", 2))
				env.MustDelete(env.kiyoshi("hikawa"))
				sandboxtest.Eventually(env.t, "both are back", func() bool { return env.Exists(env.word("hikawa", 2)) && env.Exists(env.kiyoshi("hikawa")) })
			}
		})
	}
}

// TestListing asks for what kubectl get prints.
func TestListing(t *testing.T) {
	t.Parallel()
	for _, variant := range zundoko.Variants() {
		t.Run(string(variant), func(t *testing.T) {
			t.Parallel()
			env := newTestEnv(t, variant)
			env.sing(variant, short)
			sample, err := zundoko.Sample()
			if err != nil {
				t.Fatal(err)
			}
			sample.Namespace, sample.Spec.IntervalMillis = env.Name, 1
			env.MustCreate(sample)
			sandboxtest.Eventually(env.t, "the song is over", func() bool { return env.sung(sample) })
			for resource, want := range map[string][]string{
				"zundokos": {"Name Say Age", "hikawa-sample-zundoko-001 Zun"},
				"kiyoshis": {"Name Say Age", "hikawa-sample-kiyoshi Kiyoshi!"},
			} {
				if diff := cmp.Diff(want, env.Table(v1beta1.GroupVersion.WithResource(resource))[:2]); diff != "" {
					t.Errorf("kubectl get %s prints other rows (-want +got):\n%s", resource, diff)
				}
			}
			if variant == zundoko.Hardened {
				want := []string{"Name Words Kiyoshi Ready Reason Interval Age", "hikawa-sample 5 true True Sung 1"}
				if diff := cmp.Diff(want, env.Table(v1beta1.GroupVersion.WithResource("hikawas"))); diff != "" {
					t.Errorf("kubectl get hikawas prints other rows (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestWrongObjectsAreRefused applies what hardened's CRDs do not allow, and reads the answer.
func TestWrongObjectsAreRefused(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, zundoko.Hardened)

	hikawa := env.newHikawa(strings.Repeat("h", 231), quick)
	sandboxtest.WantInvalid(t, env.Create(t.Context(), hikawa), "at most 230 characters")
	hikawa = env.newHikawa("hikawa", quick)
	hikawa.Spec.NumZundokos = -1
	sandboxtest.WantInvalid(t, env.Create(t.Context(), hikawa), "spec.numZundokos")
	hikawa = env.newHikawa("hikawa", quick)
	hikawa.Spec.SayKiyoshi = true
	sandboxtest.WantInvalid(t, env.Create(t.Context(), hikawa), "spec.sayKiyoshi")
	sandboxtest.WantInvalid(t, env.Create(t.Context(), hikawa), "remove")

	word := env.word("hikawa", 1)
	word.Spec.Say = "Don"
	sandboxtest.WantInvalid(t, env.Create(t.Context(), word), `"Zun", "Doko"`)
	word.Spec.Say = "Zun"
	env.MustCreate(word)
	word.Spec.Say = "Doko"
	sandboxtest.WantInvalid(t, env.Update(t.Context(), word), "a word that was said cannot be changed")

	kiyoshi := env.kiyoshi("hikawa")
	kiyoshi.Spec.Say = "Kiyoshi?"
	sandboxtest.WantInvalid(t, env.Create(t.Context(), kiyoshi), `"Kiyoshi!"`)
}

// TestManifestsAreAccepted shows every manifest to a real API server, which checks each field.
func TestManifestsAreAccepted(t *testing.T) {
	t.Parallel()
	newTestEnv(t, zundoko.Hardened).WantAccepted(zundoko.Manifests(), "zundoko-operator-system",
		"rbac", "rbac/hardened", "rbac/classic", "manager", "samples")
}
