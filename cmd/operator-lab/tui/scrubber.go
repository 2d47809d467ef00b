package tui

import (
	"strings"
	"time"
)

// scrubberBar is the whole run on one line, with the cursor in it. Silences of more than a second take no more room than one second.
type scrubberBar struct{ *state }

// barsKey says for what the bars of the scrubber were computed.
type barsKey struct {
	w     int
	first int64
	span  time.Duration
	n     int
}

func (s scrubberBar) draw(in Rect) []row {
	var r row
	left := " " + clock(s.begins()) + " "
	if n := s.index.stats.Forgotten; n > 0 {
		left = " " + itoa(n) + s.t(" forgotten ", " 件忘却 ") + left[1:]
	}
	end := s.index.lastAt()
	right := " " + clock(end) + " "
	label := "#" + itoa(s.hereID()) + s.theme.cursor
	if s.gated() {
		label = s.theme.cursor
	}
	n := in.W - width(left) - width(right)
	if n < width(label)+4 {
		return []row{text(plain, left)}
	}
	r.add(dim, left)
	bars := s.bars(n)
	at := n - 1
	if !s.live {
		at = 0
		if i := s.index.at(s.cursor()); i >= 0 {
			at = s.bucket(s.index.marks[i], n)
		}
	}
	from := min(max(0, at-width(label)+1), n-width(label))
	s.drawBars(&r, bars[:from], false)
	r.add(reverse|bold, label)
	s.drawBars(&r, bars[from+width(label):], !s.live)
	r.add(dim, right)
	return []row{r}
}

func (s scrubberBar) hereID() int64 {
	if reconcile := s.current(); reconcile != nil {
		return reconcile.ID
	}
	return 0
}

func (s scrubberBar) begins() time.Duration {
	if len(s.index.marks) == 0 {
		return 0
	}
	return s.index.marks[0].at
}

// bucket returns the cell of n in which an event lies.
func (s scrubberBar) bucket(m mark, n int) int {
	first, last := s.index.marks[0].along, s.index.marks[len(s.index.marks)-1].along
	if last <= first {
		return n - 1
	}
	return min(max(0, int(int64(m.along-first)*int64(n)/int64(last-first+1))), n-1)
}

// bars returns the sign of each cell. They are kept until the journal grows.
func (s scrubberBar) bars(n int) []byte {
	key := barsKey{n, s.index.stats.First, s.index.lastAt(), len(s.index.marks)}
	if s.memo.barsKey == key && len(s.memo.bars) == n {
		return s.memo.bars
	}
	bars, count := make([]byte, n), make([]int, n)
	best := make([]markKind, n)
	for _, m := range s.index.marks {
		i := s.bucket(m, n)
		count[i]++
		best[i] = max(best[i], m.kind)
	}
	for i := range bars {
		switch {
		case count[i] == 0:
			bars[i] = ' '
		case best[i] == markError:
			bars[i] = '!'
		case best[i] == markReconcile:
			bars[i] = '|'
		case count[i] > 1:
			bars[i] = ':'
		default:
			bars[i] = '.'
		}
	}
	s.memo.barsKey, s.memo.bars = key, bars
	return bars
}

func (s scrubberBar) drawBars(r *row, bars []byte, past bool) {
	for i := 0; i < len(bars); {
		k := i
		for k < len(bars) && bars[k] == bars[i] {
			k++
		}
		sign, st := " ", dim
		switch bars[i] {
		case '!':
			sign, st = s.err, bad
		case '|':
			sign, st = s.theme.reconcile, accent
		case ':':
			sign = s.several
		case '.':
			sign = s.one
		}
		if past {
			st |= faint
		}
		r.add(st, strings.Repeat(sign, k-i))
		i = k
	}
}

// legendBar explains the scrubber's signs.
type legendBar struct{ *state }

func (s legendBar) draw(Rect) []row {
	return []row{text(dim, "       "+s.one+s.t(" one event   ", " 1 件   ")+s.several+s.t(" several   ", " 複数   ")+
		s.theme.reconcile+s.t(" reconcile   ", " reconcile   ")+s.err+s.t(" error   ", " エラー   ")+
		s.theme.cursor+s.t(" you are here", " 現在位置"))}
}
