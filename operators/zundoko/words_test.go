package zundoko

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
)

// song writes words as the letters z and d.
func song(letters string) []v1beta1.Word {
	var words []v1beta1.Word
	for _, letter := range letters {
		words = append(words, map[rune]v1beta1.Word{'z': v1beta1.Zun, 'd': v1beta1.Doko}[letter])
	}
	return words
}

func hikawa(name string, uid types.UID) *v1beta1.Hikawa {
	return &v1beta1.Hikawa{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid}}
}

func TestEndOfSong(t *testing.T) {
	for letters, want := range map[string]int{
		"":               0,
		"zzzz":           0,
		"zzzzd":          5,
		"dzzzzd":         6,
		"zzzzzd":         0, // a fifth Zun spoils it
		"zzzd":           0,
		"zzdzzd":         0,
		"zzzzzdzzzzd":    11,
		"zzzzdd":         5, // wherever it came
		"zzzzdzzzzd":     5,
		"dddzzzzzzzzd":   0,
		"zzzzzzzzdzzzzd": 14,
	} {
		if got := endOfSong(song(letters)); got != want {
			t.Errorf("endOfSong(%q) = %d, want %d", letters, got, want)
		}
	}
}

// TestLastWordsMatch shows that classic asks the same question, of the end of the song only.
func TestLastWordsMatch(t *testing.T) {
	for letters, want := range map[string]bool{
		"": false, "zzzz": false, "zzzzd": true, "dzzzzd": true, "zzzzzd": false, "zzzzdd": false, "zzzzdzzzzd": true,
	} {
		var words []v1beta1.Zundoko
		for _, word := range song(letters) {
			words = append(words, v1beta1.Zundoko{Spec: v1beta1.ZundokoSpec{Say: word}})
		}
		if got := lastWordsMatch(words); got != want {
			t.Errorf("lastWordsMatch(%q) = %v, want %v", letters, got, want)
		}
	}
}

func TestParseSong(t *testing.T) {
	for text, want := range map[string][]v1beta1.Word{
		"Zun":               song("z"),
		"Zun,Zun,Doko":      song("zzd"),
		" zun , DOKO\t,Zun": song("zdz"),
	} {
		got, err := ParseSong(text)
		if err != nil {
			t.Errorf("ParseSong(%q): %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ParseSong(%q) (-want +got):\n%s", text, diff)
		}
	}
}

func TestParseSongNamesTheBadWord(t *testing.T) {
	for text, want := range map[string][]string{
		"":                  {"word 1", `""`},
		"Zun,Don,Doko":      {"word 2", `"Don"`},
		"Zun,Doko,":         {"word 3", `""`},
		"Zun;Doko":          {"word 1", `"Zun;Doko"`},
		"Zun,Doko,Kiyoshi!": {"word 3", `"Kiyoshi!"`},
	} {
		words, err := ParseSong(text)
		if err == nil {
			t.Errorf("ParseSong(%q) = %v, want an error", text, words)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("ParseSong(%q) says %q, which lacks %q", text, err, part)
			}
		}
	}
}

func FuzzParseSong(f *testing.F) {
	for _, seed := range []string{"", "Zun,Zun,Doko", " zun ,,", "Zun,\x00", "ZUN,doko"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words, err := ParseSong(text)
		if err != nil {
			if words != nil {
				t.Errorf("an error and words: %v", words)
			}
			return
		}
		if want := strings.Count(text, ",") + 1; len(words) != want {
			t.Errorf("%d words, want %d", len(words), want)
		}
		written := make([]string, len(words))
		for i, word := range words {
			written[i] = string(word)
		}
		again, err := ParseSong(strings.Join(written, ","))
		if err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		if diff := cmp.Diff(words, again); diff != "" {
			t.Errorf("reading again differs (-first +second):\n%s", diff)
		}
	})
}

func TestScoreIsAFunctionOfTheNumber(t *testing.T) {
	one, two := hikawa("one", "uid-1"), hikawa("two", "uid-2")
	words := func(s score, singer *v1beta1.Hikawa) string {
		var b strings.Builder
		for n := 200; n > 0; n-- { // backwards: the order of asking must not matter
			b.WriteString(string(s.word(singer, n)))
		}
		return b.String()
	}
	if words(score{seed: 7}, one) != words(score{seed: 7}, hikawa("one", "another-uid")) {
		t.Error("the same seed and name gave two songs")
	}
	if again := words(score{}, one); words(score{}, one) != again {
		t.Error("the same UID gave two songs, so a restart would change the song")
	}
	if words(score{}, one) == words(score{}, hikawa("one", "another-uid")) {
		t.Error("without a seed two Hikawas got the same song")
	}
	if words(score{seed: 7}, one) == words(score{seed: 8}, one) {
		t.Error("two seeds gave the same song")
	}
	if words(score{seed: 7}, one) == words(score{seed: 7}, two) {
		t.Error("two names gave the same song")
	}
	given := score{song: song("zzd")}
	if got := []v1beta1.Word{given.word(one, 1), given.word(one, 3), given.word(one, 4)}; !cmp.Equal(got, song("zdz")) {
		t.Errorf("words 1, 3 and 4 of Zun,Zun,Doko are %v", got)
	}
}

// TestRandomSongsHaveTheExpectedLength compares with theory: a song has 64 words on average. The seed
// is fixed, so that the test is too.
func TestRandomSongsHaveTheExpectedLength(t *testing.T) {
	const songs = 2000
	total := map[string]int{}
	singer := hikawa("singer", "uid")
	for i := range songs {
		total["hardened"] += length(func(n int) v1beta1.Word { return score{seed: int64(i + 1)}.word(singer, n) })
		draw := newStreams(int64(i+1), nil)
		total["classic"] += length(func(int) v1beta1.Word { return draw.next(singer) })
	}
	for variant, words := range total {
		// The standard error of the mean of that many songs is about 1.4.
		if mean := float64(words) / songs; mean < 58 || mean > 70 {
			t.Errorf("%s songs have %.1f words on average, want 64", variant, mean)
		}
	}
}

func length(word func(n int) v1beta1.Word) int {
	var words []v1beta1.Word
	for endOfSong(words) == 0 {
		words = append(words, word(len(words)+1))
	}
	return len(words)
}

func TestStreams(t *testing.T) {
	one := hikawa("one", "uid-1")
	s := newStreams(1, song("zd"))
	draw := func(singer *v1beta1.Hikawa, n int) (words []v1beta1.Word) {
		for range n {
			words = append(words, s.next(singer))
		}
		return words
	}
	if got := draw(one, 3); !cmp.Equal(got, song("zdz")) {
		t.Errorf("drew %v, want the song from the start again at its end", got)
	}
	if got := draw(hikawa("two", "uid-2"), 2); !cmp.Equal(got, song("zd")) {
		t.Errorf("another Hikawa drew %v, want its own song from the start", got)
	}
	if got := draw(hikawa("one", "uid-3"), 2); !cmp.Equal(got, song("zd")) {
		t.Errorf("a later Hikawa of the same name drew %v, want the song from the start", got)
	}
}
