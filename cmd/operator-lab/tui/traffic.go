package tui

import (
	"slices"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// trafficBar shows the last answer of the URL that was asked last, and how many answers there were.
type trafficBar struct{ *state }

// freshFor is the time for which a changed answer is marked.
const freshFor = 5 * time.Second

func (s trafficBar) draw(in Rect) []row {
	if in.Empty() {
		return nil
	}
	all := s.snapshot.Traffic()
	if len(all) == 0 {
		return []row{text(dim, s.t(" HTTP  nobody has asked yet", " HTTP  まだリクエストはない"))}
	}
	t := slices.MaxFunc(all, func(a, b trace.Traffic) int { return int(a.Last.Seq - b.Last.Seq) })

	var right row
	if in.W >= 100 {
		right.add(dim, s.cutTo(t.URL, in.W/3)+"   ")
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
	r.add(st, s.cutTo(s.snapshot.TrafficLine(t.Last), in.W-right.width()-r.width()-1))
	r.to(in.W - right.width())
	r.segs = append(r.segs, right.segs...)
	return []row{r}
}
