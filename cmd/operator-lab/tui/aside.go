package tui

import (
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// whyBar is the sentence that says why what is selected happened, what it did and what follows.
type whyBar struct{ *state }

func (s whyBar) lines() []string { return wrap(s.why(s.subject(), s.lang), max(1, s.w-2)) }

func (s whyBar) draw(r Rect) []row {
	lines := s.lines()
	if len(lines) > r.H && r.H > 0 {
		lines = append(lines[:r.H-1:r.H-1], s.cutForWords(lines[r.H-1]+" "+lines[r.H], r.W-2))
	}
	rows := make([]row, len(lines))
	for i, line := range lines {
		rows[i] = text(bold, " "+line)
	}
	return rows
}

// cutForWords shortens a text to w cells, and names the key that shows all of it.
func (s *state) cutForWords(text string, w int) string {
	all := s.t("  (w: all)", "  (w: 全文)")
	return s.cutTo(text, w-width(all)) + all
}

// asideBar shows the progress in the lesson if there is one, else what is to be told beside the sentence: that this is the
// past, what the demo does next, and what was noted last.
type asideBar struct{ *state }

// remark is one thing that is told beside the sentence.
type remark struct {
	st   style
	text string
}

// remarks returns what is to be told, most important first.
func (s asideBar) remarks() []remark {
	var out []remark
	switch deed := s.deed(); {
	case !s.live:
		out = append(out, remark{accent, s.pastText()})
	case deed != "":
		out = append(out, remark{note, s.t("g does what comes next: ", "g で次へ: ") + deed})
	}
	e, a := s.newestNote(), s.aftermath()
	told := func() { out = append(out, remark{note, clock(e.At) + " " + s.noteText(e)}) }
	if e != nil && a != nil && e.Seq > a.Break.Seq {
		told()
	}
	if a != nil {
		out = append(out, remark{note, clock(a.Break.At) + " " + a.Text(s.lang)})
	}
	if e != nil && (a == nil || e.Seq < a.Break.Seq) {
		told()
	}
	return out
}

func (s asideBar) draw(r Rect) []row {
	if r.H <= 0 {
		return nil
	}
	if s.guided && s.page.Lesson != "" {
		return s.lessonLines(r)
	}
	remarks := s.remarks()
	var rows []row
	for i, remark := range remarks {
		lines := wrap(remark.text, r.W-2)
		if room := max(1, r.H-len(rows)-(len(remarks)-1-i)); len(lines) > room {
			lines = append(lines[:room-1:room-1], s.cutForWords(lines[room-1]+" "+lines[room], r.W-2))
		}
		for _, line := range lines {
			rows = append(rows, text(remark.st, " "+line))
		}
	}
	return rows[:min(len(rows), r.H)]
}

func (s asideBar) pastText() string {
	if s.replay {
		return s.t("A recording, as it was at this point. [ ] go on, L goes to the end.",
			"記録のこの時点の状態。[ ] で移動、L で末尾へ。")
	}
	return s.t("This is the past; nothing in the cluster is undone. L returns to now.",
		"過去の表示。クラスターは何も巻き戻っていない。L で現在に戻る。")
}

// lessonLines show the lesson and the task with its boxes, what is still missing, and where there is room the newest note.
func (s asideBar) lessonLines(r Rect) []row {
	rows := s.taskLines(r)
	if e := s.newestNote(); e != nil && r.H > len(rows) {
		told := clock(e.At) + " " + s.noteText(e)
		if width(told) > r.W-2 {
			told = s.cutForWords(told, r.W-2)
		}
		rows = append(rows, text(note, " "+told))
	}
	return rows
}

// taskLines show the lesson and the task with its boxes, and what is still missing.
func (s asideBar) taskLines(r Rect) []row {
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
	return []row{text(accent, " "+s.cutTo(s.pastText(), r.W-2)), now}[:min(2, r.H)]
}

// lessonHead names lesson and task, with the boxes at the right.
func (s asideBar) lessonHead(w int) row {
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
func (s asideBar) boxes(room int) row {
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
func (s asideBar) lessonNow(w int) row {
	p, st, rest := s.page, plain, false
	var now, more string
	switch {
	case p.Done && (p.Notice == "" || !noTask(s.state)):
		now, rest = firstParagraph(p.DoneText)
		now, st = s.ok+" "+now, ok
	case p.Notice != "":
		now, rest = firstParagraph(p.Notice)
		now, st, more = "! "+now, warn|bold, s.t("u undo", "u 元に戻す")
		if noTask(s.state) {
			more = s.t("n again", "n 再試行")
		}
	case p.Missing != "":
		now = s.t("Not yet: ", "まだ: ") + p.Missing
	case p.Question != "" && p.Answer == "":
		now, _ = firstParagraph(p.Question)
		more = s.t("a answer", "a 回答")
	default:
		now, rest = firstParagraph(p.Text)
	}
	now = clean(now)
	if more == "" && (rest || width(now) > w-1) && s.placed.Pane[LessonPane].Empty() {
		more = s.t("5: all", "5: 全文")
	}
	if more == "" {
		return text(st, s.cutTo(now, w-1))
	}
	more = "  (" + more + ")"
	return *(&row{}).add(st, s.cutTo(now, w-1-width(more))).add(plain, more)
}

// firstParagraph is the beginning of a text in Markdown, on one line, and whether there is more of it. Headings are none.
func firstParagraph(markdown string) (first string, more bool) {
	for _, row := range render(markdown, 0, false) {
		switch line := strings.TrimSpace(row.plain()); {
		case line == "":
		case first == "":
			first = line
		default:
			return first, true
		}
	}
	return first, false
}

// noteText is a note, or what a fault did.
func (s asideBar) noteText(e *trace.Event) string {
	if e.Kind == trace.KindFault {
		return s.t("Fault ", "") + trace.FaultText(e, s.lang)
	}
	return s.t("Note: ", "メモ: ") + e.Message
}

// noted reports whether a lesson has a note to show. It looks at the newest state, so that nothing moves when you go back.
func (s *state) noted() bool {
	return s.guided && slices.ContainsFunc(s.index.notes, func(e *trace.Event) bool { return e.Kind == trace.KindNote })
}
