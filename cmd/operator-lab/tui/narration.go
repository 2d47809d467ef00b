package tui

import (
	"strings"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// narrationBar shows the progress in the lesson if there is one, else that this is
// the past, or why the selected thing happened.
type narrationBar struct{ *state }

// noteFor is the time for which a note of the journal is shown.
const noteFor = 15 * time.Second

func (s narrationBar) draw(r Rect) []row {
	if r.H <= 0 {
		return nil
	}
	if s.guided && s.page.Lesson != "" {
		return s.lessonLines(r)
	}
	var lines []string
	st := plain
	if s.live {
		if e := s.newestNote(); e != nil && s.now-e.At < noteFor {
			lines = append(lines, s.noteText(e))
			st = note
		}
		lines = append(lines, wrap(s.why(s.subject(), s.lang), r.W-2)...)
	} else {
		lines, st = wrap(s.pastText(), r.W-2), accent
		if more := wrap(s.why(s.subject(), s.lang), r.W-2); len(lines) < r.H {
			lines = append(lines, more...)
		}
	}
	rows := make([]row, r.H)
	for i := range min(r.H, len(lines)) {
		line := lines[i]
		if i == r.H-1 && len(lines) > r.H {
			line = s.cutTo(line+" "+lines[i+1], r.W-2)
		}
		rows[i] = text(st, " "+line)
		st = plain
	}
	return rows
}

func (s narrationBar) pastText() string {
	if s.replay {
		return s.t("A recording, as it was at this point. [ ] go on, L goes to the end.",
			"記録のこの時点の状態。[ ] で移動、L で末尾へ。")
	}
	return s.t("This is the past; nothing in the cluster is undone. L returns to now.",
		"過去の表示。クラスターは何も巻き戻っていない。L で現在に戻る。")
}

// lessonLines show the lesson and the task with its boxes, and what is still missing.
func (s narrationBar) lessonLines(r Rect) []row {
	switch {
	case r.H == 1 && s.live:
		out := text(plain, " ")
		out.segs = append(out.segs, s.boxes(0).segs...)
		out.add(plain, " ")
		now := s.lessonNow(r.W - out.width())
		out.segs = append(out.segs, now.segs...)
		return []row{out}
	case s.live:
		now := s.lessonNow(r.W - 1)
		now.segs = append([]seg{{plain, " "}}, now.segs...)
		return []row{s.lessonHead(r.W), now}
	}
	now := s.lessonNow(r.W - 1)
	now.segs = append([]seg{{plain, " "}}, now.segs...)
	return []row{text(accent, " "+s.cutTo(s.pastText(), r.W-2)), now}[:r.H]
}

// lessonHead names lesson and task, with the boxes at the right.
func (s narrationBar) lessonHead(w int) row {
	head := text(title, " "+strings.TrimSpace(s.t("LESSON ", "レッスン ")+s.page.Lesson))
	head.add(plain, "   "+s.page.Task)
	right := s.boxes(w - head.width() - 3)
	if s.page.Done && !noTask(s.state) {
		right = text(loud, " "+s.ok+" "+s.t("DONE", "完了")+" ")
		if noNext(s.state) == "" {
			right.add(plain, "  ").add(tool, "n").add(plain, s.t(" next", " 次へ"))
		}
	}
	room := w - right.width() - 1
	if head.width() > room-1 {
		head = text(title, s.cutTo(head.plain(), room-1))
	}
	head.to(room)
	head.segs = append(head.segs, right.segs...)
	return head
}

// boxes are the boxes of the task, with their texts if that fits.
func (s narrationBar) boxes(room int) row {
	var long, short row
	for i, c := range s.page.Checks {
		box, st := s.checkbox(c)
		if i > 0 {
			long.add(plain, "  ")
		}
		long.add(st, box+" "+c.Text)
		short.add(st, box)
	}
	if long.width() <= room {
		return long
	}
	return short
}

// lessonNow is the one thing to be told of the task now.
func (s narrationBar) lessonNow(w int) row {
	p, st := s.page, plain
	var now, more string
	switch {
	case p.Notice != "" && noTask(s.state):
		now, st, more = "! "+firstParagraph(p.Notice), warn|bold, s.t("n again", "n 再試行")
	case p.Done:
		now, st = s.ok+" "+firstParagraph(p.DoneText), ok
	case p.Notice != "":
		now, st, more = "! "+firstParagraph(p.Notice), warn|bold, s.t("u undo", "u 元に戻す")
	case p.Missing != "":
		now = s.t("Not yet: ", "未達: ") + p.Missing
	case p.Question != "" && p.Answer == "":
		now, more = firstParagraph(p.Question), s.t("a answer", "a 回答")
	default:
		now = firstParagraph(p.Text)
	}
	now = clean(now)
	if more == "" && width(now) > w-1 && s.placed.Pane[LessonPane].Empty() {
		more = s.t("5: all", "5: 全文")
	}
	if more == "" {
		return text(st, s.cutTo(now, w-1))
	}
	more = "  (" + more + ")"
	return *(&row{}).add(st, s.cutTo(now, w-1-width(more))).add(plain, more)
}

// firstParagraph is the beginning of a text in Markdown, on one line. Headings are none.
func firstParagraph(markdown string) string {
	for line := range strings.Lines(Plain(markdown, 0)) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// noteText is a note, or what a fault did.
func (s narrationBar) noteText(e *trace.Event) string {
	if e.Kind == trace.KindFault {
		return s.t("Fault ", "") + trace.FaultText(e, s.lang)
	}
	return s.t("Note: ", "メモ: ") + e.Message
}
