package tui

import (
	"slices"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// freshFor is how long an answer that is another one than before is marked.
const freshFor = 5 * time.Second

// asked reports whether somebody asks a URL. It looks at the newest state, so that nothing moves when you go back.
func (s *scene) asked() bool { return len(s.index.timeline.Tip().Traffic()) > 0 }

// traffic is what those who ask a URL get: the last answer, and how many there were. Of several URLs it is the one that
// was asked last.
func (s *scene) traffic(w int) row {
	all := s.state.Traffic()
	if len(all) == 0 {
		return text(dim, s.t(" HTTP  nobody has asked yet", " HTTP  まだ要求はない"))
	}
	t := slices.MaxFunc(all, func(a, b trace.Traffic) int { return int(a.Last.Seq - b.Last.Seq) })

	var right row
	if w >= 100 {
		right.add(dim, s.cutTo(t.URL, w/3)+"   ")
	}
	right.add(plain, itoa(t.OK)+s.t(" ok  ", " 成功  "))
	failed := plain
	if t.Failed > 0 {
		failed = bad
	}
	right.add(failed, itoa(t.Failed)+s.t(" failed ", " 失敗 "))

	var r row
	name, st, sign := dim|bold, plain, s.ok
	switch {
	case t.Last.Error != "":
		name, st, sign = alarm, bad, s.failing
	case t.Before != nil && s.now-t.Since.At < freshFor:
		name, st, sign = stage, accent, s.arrow
	}
	r.add(plain, " ").add(name, "HTTP").add(st, " "+s.fit(sign, 2)+" ")
	r.add(st, s.cutTo(s.state.TrafficLine(t.Last), w-right.width()-r.width()-1))
	r.to(w - right.width())
	r.segs = append(r.segs, right.segs...)
	return r
}
