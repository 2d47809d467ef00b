package zundoko_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/zundoko"
	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// sing runs an operator whose songs have fixed words until the end of the test.
func (env *testEnv) sing(variant zundoko.Variant, song string) {
	env.t.Helper()
	env.operate(zundoko.Options{Variant: variant, Song: parse(env.t, song)})
}

// wantSong waits for the end of a song and compares its words.
func (env *testEnv) wantSong(hikawa *v1beta1.Hikawa, song string) {
	env.t.Helper()
	sandboxtest.Eventually(env.t, "the song is over", func() bool { return env.sung(hikawa) })
	if got := env.lyrics(hikawa.UID); got != song {
		env.t.Errorf("sang %s, want %s", got, song)
	}
}

// TestRestartKeepsARandomSong restarts an operator without a seed, deletes some words, and wants the
// same ones back.
func TestRestartKeepsARandomSong(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, zundoko.Hardened)
	stop := env.operate(zundoko.Options{})
	hikawa := env.hikawa(time.Millisecond)
	sandboxtest.Eventually(env.t, "the song is over", func() bool { return env.sung(hikawa) })
	song := env.lyrics(hikawa.UID)
	stop()
	for _, n := range []int{1, 3, hikawa.Status.NumZundokosSaid} { // the first, one amid, the last
		env.MustDelete(env.word("hikawa", n))
	}
	env.operate(zundoko.Options{})
	sandboxtest.Eventually(env.t, "the words are back", func() bool { return len(env.words(hikawa.UID)) == hikawa.Status.NumZundokosSaid })
	env.wantSong(hikawa, song)
}

// TestEveryWriteFailsOnce fails the first attempt of each kind of write.
func TestEveryWriteFailsOnce(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"first word":     `"name":"hikawa-zundoko-001"`,
		"third word":     `"name":"hikawa-zundoko-003"`,
		"Kiyoshi":        `"name":"hikawa-kiyoshi"`,
		"first status":   `"numZundokosSaid":0`,
		"another status": `"numZundokosSaid":3`,
		"last status":    `"kiyoshied":true`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newTestEnv(t, zundoko.Hardened)
			env.writes.FailOnce(text)
			env.sing(zundoko.Hardened, short)
			hikawa := env.hikawa(quick)
			env.wantSong(hikawa, short)
			env.wantConditions(hikawa, metav1.ConditionTrue, metav1.ConditionFalse, v1beta1.ReasonSung)
			if !env.writes.Failed() {
				t.Errorf("nothing failed: there was no write with %s", text)
			}
		})
	}
}

// TestSameNameAgain deletes a Hikawa and makes another of the same name while the words of the first
// are still there, as they are until the garbage collector has come by.
func TestSameNameAgain(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, zundoko.Hardened)
	env.sing(zundoko.Hardened, short)
	first := env.hikawa(quick)
	env.wantSong(first, short)
	env.MustDelete(first)
	second := env.hikawa(quick)
	sandboxtest.Eventually(env.t, "the second one waits", func() bool {
		env.MustGet(second)
		return second.Status.ObservedGeneration > 0 && second.Status.Conditions[0].Reason == v1beta1.ReasonNameTaken
	})
	env.wantConditions(second, metav1.ConditionFalse, metav1.ConditionFalse, v1beta1.ReasonNameTaken)
	if second.Status.NumZundokosSaid != 0 || second.Status.Kiyoshied {
		t.Errorf("the second Hikawa took the song of the first for its own: %+v", second.Status)
	}
	env.deleteAll(&v1beta1.Zundoko{}, &v1beta1.Kiyoshi{})
	env.wantSong(second, short)
}

// TestForeignKiyoshi finds the name of the Kiyoshi taken, and leaves it alone.
func TestForeignKiyoshi(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, zundoko.Hardened)
	foreign := env.kiyoshi("hikawa")
	foreign.Spec.Say = v1beta1.KiyoshiCry
	env.MustCreate(foreign)
	env.sing(zundoko.Hardened, short)
	hikawa := env.hikawa(quick)
	sandboxtest.Eventually(env.t, "a warning", func() bool { return env.Events(v1beta1.ReasonNameTaken) == 1 })
	sandboxtest.Eventually(env.t, "it waits", func() bool {
		env.MustGet(hikawa)
		return len(hikawa.Status.Conditions) > 0 && hikawa.Status.Conditions[0].Reason == v1beta1.ReasonNameTaken
	})
	env.MustGet(foreign)
	if hikawa.Status.Kiyoshied || len(foreign.OwnerReferences) > 0 {
		t.Errorf("a foreign Kiyoshi was adopted: %+v, status %+v", foreign.ObjectMeta, hikawa.Status)
	}
	env.MustDelete(foreign)
	env.wantSong(hikawa, short)
}

// TestDeletionStopsTheSong holds a deleted Hikawa by a finalizer: nothing more is said for it.
func TestDeletionStopsTheSong(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, zundoko.Hardened)
	env.sing(zundoko.Hardened, "Doko")
	hikawa := env.newHikawa("hikawa", 50*time.Millisecond)
	hikawa.Finalizers = []string{"example.com/wait"}
	env.MustCreate(hikawa)
	sandboxtest.Eventually(env.t, "there are words", func() bool { return len(env.words(hikawa.UID)) >= 2 })
	env.MustDelete(hikawa)
	env.othersHadTheirTurn(quick) // a word on its way may still arrive
	before := env.lyrics(hikawa.UID)
	env.othersHadTheirTurn(50 * time.Millisecond)
	if after := env.lyrics(hikawa.UID); after != before {
		t.Errorf("%s became %s after the Hikawa was deleted", before, after)
	}
	env.MustGet(hikawa)
	hikawa.Finalizers = nil
	if err := env.Update(t.Context(), hikawa); err != nil {
		t.Fatal(err)
	}
}

// TestMoreWordsAfterTheEnd raises the number of words of a song that is over.
func TestMoreWordsAfterTheEnd(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, zundoko.Hardened)
	env.sing(zundoko.Hardened, short)
	hikawa := env.hikawa(quick)
	env.wantSong(hikawa, short)
	hikawa.Spec.NumZundokos = 7
	if err := env.Update(t.Context(), hikawa); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(env.t, "there are seven words", func() bool { env.MustGet(hikawa); return hikawa.Status.NumZundokosSaid == 7 })
	env.wantSong(hikawa, short+",Zun,Zun")
	env.wantConditions(hikawa, metav1.ConditionTrue, metav1.ConditionFalse, v1beta1.ReasonSung)
	env.wantQuiet(hikawa)
}

// TestTwoOperators runs two at once, as happens for a moment when a leader is lost.
func TestTwoOperators(t *testing.T) {
	t.Parallel()
	const song = "Doko,Zun,Zun,Zun,Doko,Zun,Zun,Zun,Zun,Doko"
	env := newTestEnv(t, zundoko.Hardened)
	env.sing(zundoko.Hardened, song)
	env.sing(zundoko.Hardened, song)
	hikawa := env.hikawa(quick)
	env.wantSong(hikawa, song)
	env.wantQuiet(hikawa)
}
