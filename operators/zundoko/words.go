package zundoko

import (
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
)

// zunsBeforeDoko is the number of Zun in a row, no fewer and no more, after which a Doko ends the song.
const zunsBeforeDoko = 4

// ParseSong reads a list of words separated by commas, as in "Zun,Zun,Doko". Space around a word and
// upper or lower case do not matter. The error names the first bad word and its position.
func ParseSong(s string) ([]v1beta1.Word, error) {
	var song []v1beta1.Word
	for i, text := range strings.Split(s, ",") {
		switch text = strings.TrimSpace(text); {
		case strings.EqualFold(text, string(v1beta1.Zun)):
			song = append(song, v1beta1.Zun)
		case strings.EqualFold(text, string(v1beta1.Doko)):
			song = append(song, v1beta1.Doko)
		default:
			return nil, fmt.Errorf("word %d of the song is %q, want %s or %s", i+1, text, v1beta1.Zun, v1beta1.Doko)
		}
	}
	return song, nil
}

// endOfSong returns the number of the word, counted from 1, with which the song is complete for the
// first time, or 0 if it is not.
func endOfSong(words []v1beta1.Word) int {
	zuns := 0
	for i, word := range words {
		if word == v1beta1.Zun {
			zuns++
			continue
		}
		if zuns == zunsBeforeDoko {
			return i + 1
		}
		zuns = 0
	}
	return 0
}

// score knows every word of every song without remembering any: a word depends on nothing but the
// seed or the given song, whose song it is, and its number. So a word said twice, because the first
// time was not known to have worked, is the same word.
type score struct {
	seed int64
	song []v1beta1.Word
}

// word returns the n-th word, counted from 1, of a Hikawa.
func (s score) word(hikawa client.Object, n int) v1beta1.Word {
	if len(s.song) > 0 {
		return s.song[(n-1)%len(s.song)]
	}
	// Without a seed every Hikawa gets a song of its own, which the UID gives: unlike the time at
	// which the operator started, it is still the same after a restart in the middle of the song.
	singer := string(hikawa.GetUID())
	if s.seed != 0 {
		singer = client.ObjectKeyFromObject(hikawa).String()
	}
	// A cryptographic hash only because one bit of it is as good as any other.
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %d", s.seed, singer, n))
	if sum[0]&1 == 0 {
		return v1beta1.Zun
	}
	return v1beta1.Doko
}

// Song returns the words of the hardened operator, of a seed other than 0, for a Hikawa that asks for no minimum of them.
func Song(seed int64, hikawa client.Object) (song []v1beta1.Word) {
	for endOfSong(song) == 0 {
		song = append(song, score{seed: seed}.word(hikawa, len(song)+1))
	}
	return song
}

// streams hold one sequence of words for each Hikawa. A word drawn is gone, whether or not saying it
// worked: that is how the classic operator draws.
type streams struct {
	seed int64
	song []v1beta1.Word

	mu   sync.Mutex
	byID map[types.NamespacedName]*stream
}

type stream struct {
	uid    types.UID
	random *rand.Rand
	drawn  int
}

func newStreams(seed int64, song []v1beta1.Word) *streams {
	return &streams{seed: seed, song: song, byID: map[types.NamespacedName]*stream{}}
}

// next draws the next word of a Hikawa. Another Hikawa of the same name starts at the beginning.
func (s *streams) next(hikawa client.Object) v1beta1.Word {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(hikawa)
	st := s.byID[key]
	if st == nil || st.uid != hikawa.GetUID() {
		name := fnv.New64a()
		_, _ = name.Write([]byte(key.String())) // a hash in memory: it cannot fail
		st = &stream{uid: hikawa.GetUID(), random: rand.New(rand.NewPCG(uint64(s.seed), name.Sum64()))}
		s.byID[key] = st
	}
	st.drawn++
	if len(s.song) > 0 {
		return s.song[(st.drawn-1)%len(s.song)]
	}
	if st.random.IntN(10) > 4 {
		return v1beta1.Doko
	}
	return v1beta1.Zun
}

// forget drops the words of a Hikawa that is gone.
func (s *streams) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, key)
}
