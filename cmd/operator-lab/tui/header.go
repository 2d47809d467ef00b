package tui

import (
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// headerBar is the first line: the title, the mode, and the position of the cursor.
type headerBar struct{ *state }

// quietAfter is the time without events after which the loop is called quiet.
const quietAfter = time.Second

// modeWord returns the mode in a word or two.
func (s headerBar) modeWord() (string, style) {
	mode := s.snapshot.Mode()
	switch {
	case !s.live:
		return s.t("<< REWIND", "<< 巻き戻し"), past
	case s.replay:
		return s.t("REPLAY", "再生"), past
	case s.downMode() != nil:
		return s.downWord(*s.downMode()), alarm
	case mode.Paused && s.held() == nil && len(s.snapshot.Running()) > 0:
		return s.t("|| STEPPING", "|| ステップ実行中"), alarm
	case mode.Paused:
		return s.t("|| PAUSED", "|| 一時停止"), alarm
	case s.quiet():
		return s.t("QUIET", "静止"), loud
	}
	return s.t("LIVE", "ライブ"), loud
}

// quiet reports whether nothing runs, nothing waits, and nothing happened for a while.
func (s *state) quiet() bool {
	return len(s.snapshot.Running()) == 0 && len(s.snapshot.Queue()) == 0 && s.now-s.snapshot.Worked() > quietAfter && s.begun()
}

// begun reports whether an operator has begun. A journal need not say so: then what the operator did does.
func (s *state) begun() bool {
	return s.snapshot.Begun() || len(s.index.reconciles) > 0 || s.gated()
}

// downMode returns the mode of an operator that is shown and whose program does not run; nil if there is none.
func (s *state) downMode() *trace.Mode {
	for _, operator := range s.index.operators {
		if mode := s.snapshot.ModeOf(operator); mode.Down && s.shows(operator) {
			return &mode
		}
	}
	return nil
}

// downWord says that an operator's program does not run, and when it comes back.
func (s headerBar) downWord(mode trace.Mode) string {
	left := mode.Back - s.now
	switch {
	case !mode.Crashed:
		return s.t("STOPPED", "停止中")
	case left > 0:
		return s.t("CRASHED, back in ", "クラッシュ、復帰まで ") + age(left)
	}
	return s.t("CRASHED, starts again", "クラッシュ、再起動中")
}

// name says what is shown, and how much is seen of it. The title is of the demo, and says nothing of one of several operators without
// taps.
func (s headerBar) name() string {
	level := s.level()
	if level != "" && s.operator != "" && len(s.index.operators) > 1 {
		return s.operator + level
	}
	return orElse(s.title, "operator-lab") + level
}

func (s headerBar) draw(r Rect) []row {
	var left, right row
	left.add(plain, " ")
	if r.W >= 100 && s.title != "" {
		left.add(title, "operator-lab").add(plain, "  ")
	}
	left.add(accent, s.name())
	if !s.bare() {
		word, st := s.modeWord()
		right.add(st, " "+word+" ")
		right.add(plain, " "+s.position())
	}
	if r.W >= 100 {
		if !s.bare() {
			right.add(plain, s.place())
		}
		if s.controls.Facts != "" {
			right.add(dim, "   "+s.controls.Facts)
		}
		if r.W >= 160 && len(s.index.operators) > 1 {
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
	room := r.W - right.width()
	if left.width() > room-1 {
		left = text(accent, " "+s.cutTo(s.name(), room-2))
	}
	left.to(room)
	left.segs = append(left.segs, right.segs...)
	return []row{left}
}

// position says at which reconcile of how many the cursor is.
func (s headerBar) position() string {
	if s.gated() {
		return itoa(len(s.loop().requests())) + s.t(" lines", " 行")
	}
	newest := int64(0)
	if n := len(s.index.reconciles); n > 0 {
		newest = s.index.reconciles[n-1].ID
	}
	here := newest
	if !s.live {
		here = 0
		if i := reconcileAt(s.index.reconciles, s.cursor()); i >= 0 {
			here = s.index.reconciles[i].ID
		}
		if reconcile := s.reconcile(); reconcile != nil && reconcile.First <= s.cursor() {
			here = reconcile.ID
		}
	}
	return "#" + itoa(here) + s.t(" of ", "/") + itoa(newest)
}

// place says in words what holds the loop.
func (s headerBar) place() string {
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
		if !held.Held.IsWrite() {
			return s.t("   a read waits", "   読み取りが待機中")
		}
		return s.t("   a write is held", "   書き込みを保留中")
	case mode.Paused:
		return s.t("   for ", "   停止から ") + age(s.now-mode.Since)
	}
	return ""
}
