package zundoko_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/zundoko"
	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
)

// wantSong waits for the end of a song and compares its words.
func (s *stage) wantSong(hikawa *v1beta1.Hikawa, song string) {
	s.t.Helper()
	s.eventually("the song is over", func() bool { return s.sung(hikawa) })
	if got := s.lyrics(hikawa.UID); got != song {
		s.t.Errorf("sang %s, want %s", got, song)
	}
}

// TestRestartInTheMiddle stops the operator several times in one song, which must not show.
func TestRestartInTheMiddle(t *testing.T) {
	t.Parallel()
	const song = "Zun,Doko,Zun,Zun,Zun,Zun,Zun,Doko,Zun,Zun,Zun,Zun,Doko"
	s := newStage(t, zundoko.Hardened)
	hikawa := s.hikawa("hikawa", 20*time.Millisecond)
	for _, words := range []int{1, 4, 9} {
		stop := s.sing(zundoko.Hardened, song)
		s.eventually(fmt.Sprintf("there are %d words", words), func() bool { return len(s.words(hikawa.UID)) >= words })
		stop()
	}
	s.sing(zundoko.Hardened, song)
	s.wantSong(hikawa, song)
}

// TestRestartKeepsARandomSong restarts an operator without a seed, deletes some words, and wants the
// same ones back.
func TestRestartKeepsARandomSong(t *testing.T) {
	t.Parallel()
	s := newStage(t, zundoko.Hardened)
	stop := s.operate(zundoko.Options{})
	hikawa := s.hikawa("hikawa", time.Millisecond)
	s.eventually("the song is over", func() bool { return s.sung(hikawa) })
	song := s.lyrics(hikawa.UID)
	stop()
	for _, n := range []int{1, 3, hikawa.Status.NumZundokosSaid} { // the first, one amid, the last
		s.delete(s.word("hikawa", n))
	}
	s.operate(zundoko.Options{})
	s.eventually("the words are back", func() bool { return len(s.words(hikawa.UID)) == hikawa.Status.NumZundokosSaid })
	s.wantSong(hikawa, song)
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
			s := newStage(t, zundoko.Hardened)
			s.traffic.failOnce(text)
			s.sing(zundoko.Hardened, short)
			hikawa := s.hikawa("hikawa", quick)
			s.wantSong(hikawa, short)
			s.wantConditions(hikawa, metav1.ConditionTrue, metav1.ConditionFalse, v1beta1.ReasonSung)
			if s.traffic.failing != "" {
				t.Errorf("nothing failed: there was no write with %s", text)
			}
		})
	}
}

// TestSameNameAgain deletes a Hikawa and makes another of the same name while the words of the first
// are still there, as they are until the garbage collector has come by.
func TestSameNameAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, zundoko.Hardened)
	s.sing(zundoko.Hardened, short)
	first := s.hikawa("hikawa", quick)
	s.wantSong(first, short)
	s.delete(first)
	second := s.hikawa("hikawa", quick)
	s.eventually("the second one waits", func() bool {
		s.read(second)
		return second.Status.ObservedGeneration > 0 && second.Status.Conditions[0].Reason == v1beta1.ReasonNameTaken
	})
	s.wantConditions(second, metav1.ConditionFalse, metav1.ConditionFalse, v1beta1.ReasonNameTaken)
	if second.Status.NumZundokosSaid != 0 || second.Status.Kiyoshied {
		t.Errorf("the second Hikawa took the song of the first for its own: %+v", second.Status)
	}
	s.deleteAll(&v1beta1.Zundoko{}, &v1beta1.Kiyoshi{})
	s.wantSong(second, short)
}

// TestForeignKiyoshi finds the name of the Kiyoshi taken, and leaves it alone.
func TestForeignKiyoshi(t *testing.T) {
	t.Parallel()
	s := newStage(t, zundoko.Hardened)
	foreign := s.kiyoshi("hikawa")
	foreign.Spec.Say = v1beta1.KiyoshiCry
	s.create(foreign)
	s.sing(zundoko.Hardened, short)
	hikawa := s.hikawa("hikawa", quick)
	s.eventually("a warning", func() bool { return s.events(v1beta1.ReasonNameTaken) == 1 })
	s.eventually("it waits", func() bool {
		s.read(hikawa)
		return len(hikawa.Status.Conditions) > 0 && hikawa.Status.Conditions[0].Reason == v1beta1.ReasonNameTaken
	})
	s.read(foreign)
	if hikawa.Status.Kiyoshied || len(foreign.OwnerReferences) > 0 {
		t.Errorf("a foreign Kiyoshi was adopted: %+v, status %+v", foreign.ObjectMeta, hikawa.Status)
	}
	s.delete(foreign)
	s.wantSong(hikawa, short)
}

// TestDeletionStopsTheSong holds a deleted Hikawa by a finalizer: nothing more is said for it.
func TestDeletionStopsTheSong(t *testing.T) {
	t.Parallel()
	s := newStage(t, zundoko.Hardened)
	s.sing(zundoko.Hardened, "Doko")
	hikawa := s.newHikawa("hikawa", 50*time.Millisecond)
	hikawa.Finalizers = []string{"example.com/wait"}
	s.create(hikawa)
	s.eventually("there are words", func() bool { return len(s.words(hikawa.UID)) >= 2 })
	s.delete(hikawa)
	s.othersHadTheirTurn(quick) // a word on its way may still arrive
	before := s.lyrics(hikawa.UID)
	s.othersHadTheirTurn(50 * time.Millisecond)
	if after := s.lyrics(hikawa.UID); after != before {
		t.Errorf("%s became %s after the Hikawa was deleted", before, after)
	}
	s.read(hikawa)
	hikawa.Finalizers = nil
	if err := s.Update(t.Context(), hikawa); err != nil {
		t.Fatal(err)
	}
}

// TestMoreWordsAfterTheEnd raises the number of words of a song that is over.
func TestMoreWordsAfterTheEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t, zundoko.Hardened)
	s.sing(zundoko.Hardened, short)
	hikawa := s.hikawa("hikawa", quick)
	s.wantSong(hikawa, short)
	hikawa.Spec.NumZundokos = 7
	if err := s.Update(t.Context(), hikawa); err != nil {
		t.Fatal(err)
	}
	s.eventually("there are seven words", func() bool { s.read(hikawa); return hikawa.Status.NumZundokosSaid == 7 })
	s.wantSong(hikawa, short+",Zun,Zun")
	s.wantConditions(hikawa, metav1.ConditionTrue, metav1.ConditionFalse, v1beta1.ReasonSung)
	s.wantQuiet(hikawa)
}

// TestTwoOperators runs two at once, as happens for a moment when a leader is lost.
func TestTwoOperators(t *testing.T) {
	t.Parallel()
	const song = "Doko,Zun,Zun,Zun,Doko,Zun,Zun,Zun,Zun,Doko"
	s := newStage(t, zundoko.Hardened)
	s.sing(zundoko.Hardened, song)
	s.sing(zundoko.Hardened, song)
	hikawa := s.hikawa("hikawa", quick)
	s.wantSong(hikawa, song)
	s.wantQuiet(hikawa)
}
