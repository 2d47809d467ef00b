package zundoko_test

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/zundoko"
	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// servers are one API server for the CRDs of each variant, since both have the same names.
var servers = map[zundoko.Variant]*sandboxtest.Shared[*rest.Config]{
	zundoko.Hardened: share(zundoko.Hardened),
	zundoko.Classic:  share(zundoko.Classic),
}

func share(variant zundoko.Variant) *sandboxtest.Shared[*rest.Config] {
	return sandboxtest.ShareAPIServer(func() ([]*apiextensionsv1.CustomResourceDefinition, error) { return zundoko.CRDs(variant) })
}

func TestMain(m *testing.M) {
	// These tests wait more than they compute, so more of them than there are processors run at once.
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(sandboxtest.Main(m, servers[zundoko.Hardened], servers[zundoko.Classic]))
}

// testEnv is a namespace of a test's own, and the operators that run in it.
type testEnv struct {
	*sandboxtest.Namespace
	t      *testing.T
	writes *sandboxtest.Writes // of the operator to its own kinds
}

// newTestEnv makes a namespace in the API server that has the CRDs of a variant.
func newTestEnv(t *testing.T, crds zundoko.Variant) *testEnv {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), zundoko.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return &testEnv{Namespace: sandboxtest.NewNamespace(t, servers[crds].Get(t), scheme), t: t, writes: sandboxtest.NewWrites(ownResource)}
}

// ownResource returns the resource of a request to the operator's own group, with its subresource; else nothing.
func ownResource(req *http.Request) string {
	_, rest, ok := strings.Cut(req.URL.Path, "/zundokokiyoshi.kaitoy.github.com/v1beta1/namespaces/")
	parts := strings.Split(rest, "/") // namespace, resource, name, subresource
	if !ok || len(parts) < 2 {
		return ""
	}
	if len(parts) > 3 {
		return parts[1] + "/" + parts[3]
	}
	return parts[1]
}

// operate runs an operator in the test's namespace until the returned function, or the end of the test, stops it.
func (env *testEnv) operate(o zundoko.Options) (stop func()) {
	env.t.Helper()
	cfg := rest.CopyConfig(env.Config)
	cfg.Wrap(env.writes.Wrap)
	return env.operateAs(cfg, o)
}

func (env *testEnv) operateAs(cfg *rest.Config, o zundoko.Options) (stop func()) {
	env.t.Helper()
	noGrace := ctrl.Options{GracefulShutdownTimeout: new(time.Duration(0))} // classic sleeps through any
	return env.Run(cfg, noGrace, func(mgr ctrl.Manager) error { return zundoko.SetupWithManager(mgr, o) })
}

// hikawa starts a song of the Hikawa hikawa.
func (env *testEnv) hikawa(interval time.Duration) *v1beta1.Hikawa {
	env.t.Helper()
	hikawa := env.newHikawa("hikawa", interval)
	env.MustCreate(hikawa)
	return hikawa
}

func (env *testEnv) newHikawa(name string, interval time.Duration) *v1beta1.Hikawa {
	return &v1beta1.Hikawa{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: name},
		Spec:       v1beta1.HikawaSpec{IntervalMillis: interval.Milliseconds()},
	}
}

// word is the n-th word by name, to delete for instance.
func (env *testEnv) word(singer string, n int) *v1beta1.Zundoko {
	return &v1beta1.Zundoko{ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: fmt.Sprintf("%s-zundoko-%03d", singer, n)}}
}

func (env *testEnv) kiyoshi(singer string) *v1beta1.Kiyoshi {
	return &v1beta1.Kiyoshi{ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: singer + "-kiyoshi"}}
}

// words are those controlled by a Hikawa, by their names.
func (env *testEnv) words(uid types.UID) []v1beta1.Zundoko {
	env.t.Helper()
	var list v1beta1.ZundokoList
	if err := env.List(env.t.Context(), &list, client.InNamespace(env.Name)); err != nil {
		env.t.Fatalf("list: %v", err)
	}
	// The API server lists by name.
	return slices.DeleteFunc(list.Items, func(word v1beta1.Zundoko) bool {
		owner := metav1.GetControllerOf(&word)
		return owner == nil || owner.UID != uid
	})
}

// lyrics are the words of a Hikawa in a row, as "Zun,Zun,Doko".
func (env *testEnv) lyrics(uid types.UID) string {
	env.t.Helper()
	var text string
	for i, word := range env.words(uid) {
		if i > 0 {
			text += ","
		}
		text += string(word.Spec.Say)
	}
	return text
}

// sung tells whether the status says that the song is over.
func (env *testEnv) sung(hikawa *v1beta1.Hikawa) bool {
	env.t.Helper()
	env.MustGet(hikawa)
	return hikawa.Status.Kiyoshied
}

// othersHadTheirTurn lets the operator say five words for somebody else: what it has not done by then
// about something that happened before, it is not going to do.
func (env *testEnv) othersHadTheirTurn(interval time.Duration) {
	env.t.Helper()
	other := env.newHikawa("", interval)
	other.GenerateName = "other-"
	env.MustCreate(other)
	sandboxtest.Eventually(env.t, "somebody else has five words", func() bool { return len(env.words(other.UID)) >= 5 })
	env.MustDelete(other)
}
