package zundoko_test

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/zundoko"
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
			env.allow(variant, cfg.Impersonate.UserName)
			env.operateAs(cfg, zundoko.Options{Variant: variant, Song: parse(t, short)})
			hikawa := env.hikawa("hikawa", quick)
			sandboxtest.Eventually(env.t, "the song is over", func() bool { return env.sung(hikawa) })
			if variant == zundoko.Hardened {
				sandboxtest.Eventually(env.t, "event SongStarted", func() bool { return env.events("SongStarted") == 1 })
				env.MustDelete(env.word("hikawa", 2))
				env.MustDelete(env.kiyoshi("hikawa"))
				sandboxtest.Eventually(env.t, "both are back", func() bool { return env.Exists(env.word("hikawa", 2)) && env.Exists(env.kiyoshi("hikawa")) })
			}
		})
	}
}

// allow binds the cluster role of a variant to a user.
func (env *testEnv) allow(variant zundoko.Variant, user string) {
	env.t.Helper()
	data, err := fs.ReadFile(zundoko.Manifests(), "rbac/"+string(variant)+"/role.yaml")
	if err != nil {
		env.t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	for _, doc := range documents(env.t, data) {
		if doc["kind"] != "ClusterRole" {
			continue
		}
		text, err := yaml.Marshal(doc)
		if err != nil {
			env.t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, role); err != nil {
			env.t.Fatal(err)
		}
	}
	role.Name = user
	env.MustCreate(role)
	env.MustCreate(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
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
				if diff := cmp.Diff(want, env.table(resource)[:2]); diff != "" {
					t.Errorf("kubectl get %s prints other rows (-want +got):\n%s", resource, diff)
				}
			}
			if variant == zundoko.Hardened {
				want := []string{"Name Words Kiyoshi Ready Reason Interval Age", "hikawa-sample 5 true True Sung 1"}
				if diff := cmp.Diff(want, env.table("hikawas")); diff != "" {
					t.Errorf("kubectl get hikawas prints other rows (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// table returns header and rows as the API server prints them, without the age.
func (env *testEnv) table(resource string) []string {
	env.t.Helper()
	clients, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		env.t.Fatal(err)
	}
	data, err := clients.RESTClient().Get().
		AbsPath("/apis/zundokokiyoshi.kaitoy.github.com/v1beta1/namespaces", env.Name, resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		DoRaw(env.t.Context())
	if err != nil {
		env.t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(data, &table); err != nil {
		env.t.Fatal(err)
	}
	var header []string
	for _, column := range table.ColumnDefinitions {
		header = append(header, column.Name)
	}
	rows := []string{strings.Join(header, " ")}
	for _, row := range table.Rows {
		text, err := json.Marshal(row.Cells[:len(row.Cells)-1])
		if err != nil {
			env.t.Fatal(err)
		}
		rows = append(rows, strings.NewReplacer(`"`, "", "[", "", "]", "", ",", " ").Replace(string(text)))
	}
	return rows
}

// TestWrongObjectsAreRefused applies what hardened's CRDs do not allow, and reads the answer.
func TestWrongObjectsAreRefused(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, zundoko.Hardened)

	hikawa := env.newHikawa(strings.Repeat("h", 231), quick)
	env.wantRefused(env.Create(t.Context(), hikawa), "at most 230 characters")
	hikawa = env.newHikawa("hikawa", quick)
	hikawa.Spec.NumZundokos = -1
	env.wantRefused(env.Create(t.Context(), hikawa), "spec.numZundokos")
	hikawa = env.newHikawa("hikawa", quick)
	hikawa.Spec.SayKiyoshi = true
	env.wantRefused(env.Create(t.Context(), hikawa), "spec.sayKiyoshi")
	env.wantRefused(env.Create(t.Context(), hikawa), "remove")

	word := env.word("hikawa", 1)
	word.Spec.Say = "Don"
	env.wantRefused(env.Create(t.Context(), word), `"Zun", "Doko"`)
	word.Spec.Say = "Zun"
	env.MustCreate(word)
	word.Spec.Say = "Doko"
	env.wantRefused(env.Update(t.Context(), word), "a word that was said cannot be changed")

	kiyoshi := env.kiyoshi("hikawa")
	kiyoshi.Spec.Say = "Kiyoshi?"
	env.wantRefused(env.Create(t.Context(), kiyoshi), `"Kiyoshi!"`)
}

func (env *testEnv) wantRefused(err error, because string) {
	env.t.Helper()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), because) {
		env.t.Errorf("got %v, want it refused with %q", err, because)
	}
}

// TestManifestsAreAccepted shows every manifest to a real API server, which checks each field.
func TestManifestsAreAccepted(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, zundoko.Hardened)
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "zundoko-operator-system"}}
	if err := env.Create(t.Context(), home); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	strict := client.WithFieldValidation(client.NewDryRunClient(env.Client), metav1.FieldValidationStrict)
	for _, dir := range []string{"rbac", "rbac/hardened", "rbac/classic", "manager", "samples"} {
		files, err := fs.Glob(zundoko.Manifests(), dir+"/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s (error: %v)", dir, err)
		}
		for _, file := range files {
			data, err := fs.ReadFile(zundoko.Manifests(), file)
			if err != nil {
				t.Fatal(err)
			}
			for _, doc := range documents(t, data) {
				obj := &unstructured.Unstructured{Object: doc}
				if obj.GetKind() == "Hikawa" {
					obj.SetNamespace(env.Name)
				}
				if err := strict.Create(t.Context(), obj); err != nil && !apierrors.IsAlreadyExists(err) {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	}
}
