package tui

import (
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// lesson is the caller's narration in full: text, tasks, and the hint when asked for.
func (s *scene) lesson(in Rect) pane {
	p := pane{title: s.t("Lesson  ", "レッスン  ") + s.told.Title}
	if s.told.Next {
		p.right = s.t("n next", "n 次へ")
	}
	if s.told.Hint != "" {
		p.right = joinText("  ", p.right, s.t("h hint", "h ヒント"))
	}
	var rows []row
	for _, line := range wrap(s.told.Text, in.W-4) {
		rows = append(rows, text(plain, "  "+line))
	}
	if len(s.told.Tasks) > 0 {
		rows = append(rows, row{}, text(bold, s.t("  Do this", "  やってみよう")))
		for _, task := range s.told.Tasks {
			rows = append(rows, s.taskRows(task, in.W)...)
		}
	}
	if s.hinted && s.told.Hint != "" {
		rows = append(rows, row{}, text(bold, s.t("  Hint", "  ヒント")))
		for _, line := range wrap(s.told.Hint, in.W-4) {
			rows = append(rows, text(plain, "  "+line))
		}
	}
	if s.told.Title == "" && len(rows) <= 1 {
		rows = []row{text(dim, s.t("  no lesson here", "  レッスンなし"))}
	}
	p.rows = s.scrolled(LessonPane, rows, in.H)
	return p
}

func (s *scene) taskRows(task Task, w int) []row {
	box, st := s.untick, plain
	if task.Done {
		box, st = s.tick, ok
	}
	var rows []row
	for i, line := range wrap(task.Text, w-8) {
		lead := "      "
		if i == 0 {
			lead = "  " + box + " "
		}
		rows = append(rows, text(st, lead+line))
	}
	return rows
}

func joinText(sep string, parts ...string) string {
	out := ""
	for _, p := range parts {
		if p == "" {
			continue
		}
		if out != "" {
			out += sep
		}
		out += p
	}
	return out
}

// noteFor is how long a note of the journal is shown.
const noteFor = 15 * time.Second

// narration is what the lines at the bottom say: that this is the past, else
// the lesson, else why the selected thing happened.
func (s *scene) narration(r Rect) []row {
	if r.H <= 0 {
		return nil
	}
	var lines []string
	st := plain
	switch {
	case !s.live:
		lines, st = wrap(s.pastText(), r.W-2), accent
		if more := wrap(s.whyText(), r.W-2); len(lines) < r.H {
			lines = append(lines, more...)
		}
	case s.narrator && s.placed.Pane[LessonPane].Empty() && (s.told.Title != "" || s.told.Text != ""):
		return s.lessonLines(r)
	default:
		if e := s.newestNote(); e != nil && s.now-e.At < noteFor {
			lines = append(lines, s.noteText(e))
			st = note
		}
		lines = append(lines, wrap(s.whyText(), r.W-2)...)
	}
	rows := make([]row, r.H)
	for i := range rows {
		if i < len(lines) {
			line := lines[i]
			if i == r.H-1 && len(lines) > r.H {
				line = s.cutTo(line+" "+lines[i+1], r.W-2)
			}
			lineStyle := st
			if i > 0 {
				lineStyle = plain
			}
			rows[i] = text(lineStyle, " "+line)
		}
	}
	return rows
}

// noteText is a note, or what a fault did.
func (s *scene) noteText(e *trace.Event) string {
	if e.Kind == trace.KindFault {
		return s.t("Fault ", "") + trace.FaultText(e, s.lang)
	}
	return s.t("Note: ", "メモ: ") + e.Message
}

func (s *scene) pastText() string {
	if s.replay {
		return s.t("A recording, as it was at this point. [ ] go on, L goes to the end.",
			"記録のこの時点の状態。[ ] で移動、L で末尾へ。")
	}
	return s.t("This is the past; nothing in the cluster is undone. L returns to now.",
		"過去の表示。クラスターは何も巻き戻っていない。L で現在に戻る。")
}

// lessonLines show the lesson on small screens: its title and tasks, then its text.
func (s *scene) lessonLines(r Rect) []row {
	var head row
	head.add(title, " "+joinText(" ", s.t("LESSON", "レッスン"), s.told.Title))
	for _, task := range s.told.Tasks {
		box, st := s.untick, plain
		if task.Done {
			box, st = s.tick, ok
		}
		head.add(plain, "  ").add(st, box+" "+task.Text)
	}
	lines := wrap(s.told.Text, r.W-2)
	second := row{}
	if len(lines) > 0 {
		line := lines[0]
		if len(lines) > 1 {
			line = s.cutTo(line+" "+lines[1], r.W-2-8) + s.t(" (5: all)", " (5: 全文)")
		}
		second = text(plain, " "+line)
	}
	return []row{head, second}[:min(2, r.H)]
}

// whyText is one sentence about the subject, made of causes.
func (s *scene) whyText() string { return s.why(s.subject(), s.lang) }

// why says why the subject is as it is, in a language.
func (s *scene) why(sub subject, lang trace.Language) string {
	switch {
	case sub.span != nil && (sub.whole || sub.event == nil):
		return s.stateOf(sub.span.First > s.cursor()).WhySpan(sub.span, lang)
	case sub.span != nil:
		return s.stateOf(sub.event.Seq > s.cursor()).Why(sub.event, lang)
	case sub.item != nil:
		if len(sub.item.Events) > 0 {
			return s.state.Why(sub.item.Events[0], lang)
		}
		if sub.item.Requeue != nil {
			return s.state.Why(sub.item.Requeue, lang)
		}
	case sub.object != nil:
		return s.state.WhyObject(sub.object, lang)
	case sub.event != nil:
		return s.state.Why(sub.event, lang)
	}
	if s.state.Seq() == 0 {
		return s.t("Nothing has happened yet.", "まだ何も起きていない。")
	}
	return s.t("Select something to read why it happened.", "何かを選択すると、その理由を表示する。")
}
