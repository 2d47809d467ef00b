package zundoko

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
)

func word(name string, say v1beta1.Word, saidAt time.Time) v1beta1.Zundoko {
	at := metav1.NewMicroTime(saidAt)
	return v1beta1.Zundoko{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.ZundokoSpec{Say: say, SaidAt: &at}}
}

func TestHear(t *testing.T) {
	start := time.Unix(1000, 0)
	p := &pass{hikawa: hikawa("h", "uid")}
	p.hear([]v1beta1.Zundoko{
		word("h-zundoko-004", v1beta1.Zun, start.Add(4*time.Second)),
		word("h-zundoko-002", v1beta1.Doko, start.Add(2*time.Second)),
		word("guest", v1beta1.Doko, start),
		word("h-zundoko-001", v1beta1.Zun, start.Add(time.Second)),
	})
	if got, want := len(p.words), 2; got != want {
		t.Errorf("%d words before the gap, want %d", got, want)
	}
	if p.words[0] != v1beta1.Zun || p.words[1] != v1beta1.Doko {
		t.Errorf("words are %v, not in order", p.words)
	}
	if p.said != 3 || !p.gap {
		t.Errorf("said %d, gap %v, want 3 words with a gap", p.said, p.gap)
	}
	if want := start.Add(2 * time.Second); !p.saidAt.Equal(want) {
		t.Errorf("last said at %v, want %v", p.saidAt, want)
	}
}

func TestPause(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		words  int
		saidAt time.Time
		want   time.Duration
	}{
		"nothing said":       {0, time.Time{}, 0},
		"just said":          {1, now, 500 * time.Millisecond},
		"said a moment ago":  {1, now.Add(-200 * time.Millisecond), 300 * time.Millisecond},
		"said long ago":      {1, now.Add(-time.Hour), 0},
		"said in the future": {1, now.Add(time.Hour), 0},
	} {
		p := &pass{hikawa: hikawa("h", "uid"), words: make([]v1beta1.Word, test.words), saidAt: test.saidAt}
		p.hikawa.Spec.IntervalMillis = 500
		if got := p.pause(now); got != test.want {
			t.Errorf("%s: pause is %v, want %v", name, got, test.want)
		}
	}
}
