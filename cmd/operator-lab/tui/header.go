package tui

import (
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// quietAfter is how long nothing must have happened for the loop to be called quiet.
const quietAfter = time.Second

// modeWord is the one thing that must be legible from across a room.
func (s *scene) modeWord() (string, style) {
	mode := s.state.Mode()
	switch {
	case !s.live:
		return s.t("<< REWIND", "<< 巻き戻し"), past
	case s.replay:
		return s.t("REPLAY", "再生"), past
	case mode.Paused && s.held() == nil && len(s.state.Running()) > 0:
		return s.t("|| STEPPING", "|| ステップ実行中"), alarm
	case mode.Paused:
		return s.t("|| PAUSED", "|| 一時停止"), alarm
	case s.quiet():
		return s.t("QUIET", "静止"), loud
	}
	return s.t("LIVE", "ライブ"), loud
}

// quiet reports whether nothing runs, nothing waits, and nothing happened for a while.
func (s *scene) quiet() bool {
	return len(s.state.Running()) == 0 && len(s.state.Queue()) == 0 && s.now-s.state.Worked() > quietAfter && s.state.Seq() > 0
}

// held returns a reconcile whose write is held, or nil.
func (s *scene) held() *trace.Span {
	for _, span := range s.state.Running() {
		if span.Held != nil {
			return span
		}
	}
	return nil
}

// header is the first line: what runs, the mode, and where the cursor stands.
func (s *scene) header() row {
	var left, right row
	left.add(plain, " ")
	if s.w >= 100 && s.title != "" {
		left.add(title, "operator-lab").add(plain, "  ")
	}
	left.add(accent, orElse(s.title, "operator-lab"))
	word, st := s.modeWord()
	right.add(st, " "+word+" ")
	right.add(plain, " "+s.position())
	if s.w >= 100 {
		right.add(plain, s.place())
		if s.controls.Facts != "" {
			right.add(dim, "   "+s.controls.Facts)
		}
		if s.w >= 160 && len(s.index.operators) > 1 {
			right.add(dim, "   "+itoa(len(s.index.operators))+s.t(" operators", " オペレーター"))
		}
		when := s.t("   up ", "   経過 ")
		if !s.live {
			when = s.t("   at ", "   時刻 ")
		}
		right.add(plain, when+clock(s.now)+" ")
	} else {
		right.add(plain, "  "+clock(s.now)+" ")
	}
	room := s.w - right.width()
	if left.width() > room-1 {
		left = text(accent, " "+s.cutTo(orElse(s.title, "operator-lab"), room-2))
	}
	left.to(room)
	left.segs = append(left.segs, right.segs...)
	return left
}

// position says at which reconcile of how many the cursor is.
func (s *scene) position() string {
	newest := int64(0)
	if n := len(s.index.spans); n > 0 {
		newest = s.index.spans[n-1].ID
	}
	here := newest
	if !s.live {
		here = 0
		if i := spanAt(s.index.spans, s.cursor()); i >= 0 {
			here = s.index.spans[i].ID
		}
		if span := s.span(); span != nil && span.First <= s.cursor() {
			here = span.ID
		}
	}
	return "#" + itoa(here) + "/" + itoa(newest)
}

// place says in words what holds the loop up, where there is room.
func (s *scene) place() string {
	mode := s.index.timeline.Tip().Mode()
	switch held := s.held(); {
	case !s.live && mode.Paused:
		return s.t("   the loop is paused", "   ループは一時停止中")
	case !s.live && !s.replay:
		return s.t("   the loop goes on", "   ループは進行中")
	case !s.live:
		return ""
	case s.replay:
		return s.t("   at the end", "   末尾")
	case held != nil:
		return s.t("   a write is held", "   書き込みを保留中")
	case mode.Paused:
		return s.t("   for ", "   停止から ") + age(s.now-mode.Since)
	}
	return ""
}
