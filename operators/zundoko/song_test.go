package zundoko_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/zundoko"
	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

const (
	quick = 5 * time.Millisecond
	// inOrder keeps the words of classic in order: they are more than a second apart.
	inOrder = 1100 * time.Millisecond
	short   = "Zun,Zun,Zun,Zun,Doko"
)

func parse(t *testing.T, text string) []v1beta1.Word {
	t.Helper()
	song, err := zundoko.ParseSong(text)
	if err != nil {
		t.Fatal(err)
	}
	return song
}

// TestSong sings the same song with both variants, and counts what it takes.
func TestSong(t *testing.T) {
	t.Parallel()
	const long = "Doko,Zun,Zun,Zun,Zun,Zun,Doko,Zun,Doko,Zun,Zun,Zun,Zun,Doko"
	for name, test := range map[string]struct {
		variant    zundoko.Variant
		interval   time.Duration
		song       string
		writes     func(words int) int
		generation func(words int) int64
	}{
		"hardened":       {zundoko.Hardened, quick, short, func(n int) int { return 2*n + 3 }, func(int) int64 { return 1 }},
		"hardened, long": {zundoko.Hardened, 20 * time.Millisecond, long, func(n int) int { return 2*n + 3 }, func(int) int64 { return 1 }},
		"hardened, fast": {zundoko.Hardened, time.Millisecond, long, func(n int) int { return 2*n + 3 }, func(int) int64 { return 1 }},
		"classic": {
			zundoko.Classic, inOrder, short,
			func(n int) int { return 3*n + 3 }, func(n int) int64 { return int64(2*n + 3) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newTestEnv(t, test.variant)
			env.operate(zundoko.Options{Variant: test.variant, Song: parse(t, test.song)})
			hikawa := env.hikawa(test.interval)
			sandboxtest.Eventually(env.t, "the song is over", func() bool { return env.sung(hikawa) })

			n := strings.Count(test.song, ",") + 1
			if diff := cmp.Diff(test.song, env.lyrics(hikawa.UID)); diff != "" {
				t.Errorf("sang other words (-want +got):\n%s", diff)
			}
			for i, word := range env.words(hikawa.UID) {
				if want := fmt.Sprintf("hikawa-zundoko-%03d", i+1); word.Name != want {
					t.Errorf("word %d is named %s, want %s", i+1, word.Name, want)
				}
			}
			kiyoshi := env.kiyoshi("hikawa")
			env.MustGet(kiyoshi)
			if !metav1.IsControlledBy(kiyoshi, hikawa) || kiyoshi.Spec.Say != "Kiyoshi!" {
				t.Errorf("not the Kiyoshi of this song: %+v", kiyoshi)
			}
			if got := hikawa.Status.NumZundokosSaid; got != n {
				t.Errorf("status counts %d words, want %d", got, n)
			}
			if got, want := hikawa.Generation, test.generation(n); got != want {
				t.Errorf("generation is %d, want %d", got, want)
			}
			env.wantWrites(test.writes(n))
			env.wantQuiet(hikawa)
		})
	}
}

// wantWrites compares the number of all writes so far. The last one can be seen in the world a moment
// before its caller has counted it.
func (env *testEnv) wantWrites(want int) {
	env.t.Helper()
	sandboxtest.Eventually(env.t, "the last write is counted", func() bool { return env.writes.Count("") >= want })
	if got := env.writes.Count(""); got != want {
		env.t.Errorf("took %d writes, want %d: %v", got, want, env.writes.All())
	}
}

// wantQuiet wakes the operator once more, and wants nothing to come of it.
func (env *testEnv) wantQuiet(hikawa *v1beta1.Hikawa) {
	env.t.Helper()
	first, kiyoshi := env.word(hikawa.Name, 1), env.kiyoshi(hikawa.Name)
	env.MustGet(first)
	first.Annotations = map[string]string{"heard": "yes"}
	if err := env.Update(env.t.Context(), first); err != nil {
		env.t.Fatal(err)
	}
	env.MustGet(kiyoshi)
	env.MustGet(hikawa)
	before := []string{hikawa.ResourceVersion, kiyoshi.ResourceVersion, env.lyrics(hikawa.UID)}
	env.othersHadTheirTurn(quick)
	env.MustGet(kiyoshi)
	env.MustGet(hikawa)
	after := []string{hikawa.ResourceVersion, kiyoshi.ResourceVersion, env.lyrics(hikawa.UID)}
	if diff := cmp.Diff(before, after); diff != "" {
		env.t.Errorf("a song that is over was changed (-before +after):\n%s", diff)
	}
}

// TestSeedRepeatsTheSong sings each seed twice.
func TestSeedRepeatsTheSong(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	sing := func(seed int64) string {
		env := newTestEnv(t, zundoko.Hardened)
		// Namespace and name count too, so both Hikawas have to have the same.
		defer env.operate(zundoko.Options{Seed: seed})()
		first := env.hikawa(time.Millisecond)
		sandboxtest.Eventually(env.t, "the first song is over", func() bool { return env.sung(first) })
		lyrics := env.lyrics(first.UID)
		env.MustDelete(first)
		env.othersHadTheirTurn(quick) // the deletion was seen: words that go must not look like gaps in a song
		env.deleteAll(&v1beta1.Zundoko{}, &v1beta1.Kiyoshi{})
		second := env.hikawa(time.Millisecond)
		sandboxtest.Eventually(env.t, "the second song is over", func() bool { return env.sung(second) })
		if diff := cmp.Diff(lyrics, env.lyrics(second.UID)); diff != "" {
			t.Errorf("the second time seed %d gave another song (-first +second):\n%s", seed, diff)
		}
		return lyrics
	}
	// One other seed may give the same song by chance: five words make a song, and often do.
	if song := sing(3); song == sing(4) && song == sing(5) && song == sing(6) {
		t.Error("four seeds gave one song")
	}
}

func (env *testEnv) deleteAll(kinds ...client.Object) {
	env.t.Helper()
	for _, kind := range kinds {
		if err := env.DeleteAllOf(env.t.Context(), kind, client.InNamespace(env.Name)); err != nil {
			env.t.Fatal(err)
		}
	}
}

// TestStatusAndEvents looks at what a person would look at.
func TestStatusAndEvents(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, zundoko.Hardened)
	env.operate(zundoko.Options{Song: parse(t, short)})
	hikawa := env.hikawa(time.Hour)
	sandboxtest.Eventually(env.t, "the first word is counted", func() bool { env.MustGet(hikawa); return hikawa.Status.NumZundokosSaid == 1 })
	env.wantConditions(hikawa, metav1.ConditionFalse, metav1.ConditionTrue, v1beta1.ReasonSinging)

	hikawa.Spec.IntervalMillis = 1 // a new wish ends the pause of an hour
	if err := env.Update(t.Context(), hikawa); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(env.t, "the song is over", func() bool { return env.sung(hikawa) })
	env.wantConditions(hikawa, metav1.ConditionTrue, metav1.ConditionFalse, v1beta1.ReasonSung)
	if hikawa.Status.ObservedGeneration != 2 || hikawa.Generation != 2 {
		t.Errorf("observed generation %d of %d, want 2 of 2", hikawa.Status.ObservedGeneration, hikawa.Generation)
	}
	for _, reason := range []string{"SongStarted", "KiyoshiSaid"} {
		sandboxtest.Eventually(env.t, "event "+reason, func() bool { return env.Events(reason) == 1 })
	}
}

func (env *testEnv) wantConditions(hikawa *v1beta1.Hikawa, ready, progressing metav1.ConditionStatus, reason string) {
	env.t.Helper()
	for kind, want := range map[string]metav1.ConditionStatus{v1beta1.ConditionReady: ready, v1beta1.ConditionProgressing: progressing} {
		got := meta.FindStatusCondition(hikawa.Status.Conditions, kind)
		if got == nil || got.Status != want || got.Reason != reason || got.ObservedGeneration != hikawa.Generation {
			env.t.Errorf("condition %s is %+v, want %s because of %s, at generation %d", kind, got, want, reason, hikawa.Generation)
		}
	}
}
