package tui

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// longestText is how wide a lesson's text gets at most: longer lines are hard to read.
const longestText = 92

// lesson is the task in full, and what came of it so far.
func (s *scene) lesson(in Rect) pane {
	p := pane{title: s.t("Lesson  ", "レッスン  ") + s.page.Lesson, right: s.lessonKeys()}
	text := s.lessonText(in.W, in.H < roomy)
	p.rows = s.scrolled(LessonPane, text.rows, in.H)
	if below := len(p.rows) - in.H; below > 0 {
		p.foot = s.t("", "あと ") + itoa(below) + s.t(" more lines: pgdn", " 行: pgdn で続き")
	}
	return p
}

// lessonKeys are the keys that matter to the reader.
func (s *scene) lessonKeys() string {
	var keys []string
	if s.noNext() == "" {
		keys = append(keys, s.t("n next", "n 次へ"))
	}
	if s.noQuestion() == "" && !s.page.Done {
		keys = append(keys, s.t("a answer", "a 回答"))
	}
	if s.noHint() == "" && !s.page.Done {
		keys = append(keys, s.t("h hint", "h ヒント"))
	}
	if s.focus == LessonPane && s.placed.Pane[LoopPane].Empty() {
		keys = append(keys, s.t("enter loop", "enter ループ"))
	}
	return strings.Join(keys, "  ")
}

// lessonPart is a part of the lesson pane that a key leads to.
type lessonPart int

const (
	questionPart lessonPart = iota
	hintPart
	solutionPart
	lessonParts
)

// roomy is how many lines there must be before one is spent on looks.
const roomy = 18

// lessonText is all that the lesson pane shows, and where its parts begin and end.
type lessonText struct {
	*scene
	w          int
	tight      bool // no line is left empty that need not be
	rows       []row
	begin, end [lessonParts]int
}

func (s *scene) lessonText(w int, tight bool) lessonText {
	t := lessonText{scene: s, w: w, tight: tight}
	if s.page.Lesson == "" && s.page.Text == "" {
		t.rows = []row{text(dim, s.t("  no lesson here", "  レッスンなし"))}
		return t
	}
	t.head()
	t.markdown(plain, s.page.Text)
	t.part(questionPart, t.question)
	t.checks()
	t.part(hintPart, t.hints)
	t.part(solutionPart, t.solution)
	return t
}

func (t *lessonText) add(r row) { t.rows = append(t.rows, r) }

// gap separates what follows from what is above.
func (t *lessonText) gap() {
	if n := len(t.rows); n > 0 && len(t.rows[n-1].segs) > 0 {
		t.add(row{})
	}
}

// markdown adds a text; what has no colour of its own gets one.
func (t *lessonText) markdown(st style, markdown string) {
	for _, line := range markdownRows(markdown, min(t.w-4, longestText)) {
		r := text(plain, "  ")
		for _, piece := range line.segs {
			if piece.st&colorBits == 0 {
				piece.st |= st
			}
			r.segs = append(r.segs, piece)
		}
		if len(line.segs) == 0 {
			r = row{}
		}
		t.add(r)
	}
}

func (t *lessonText) part(p lessonPart, draw func()) {
	t.begin[p] = len(t.rows)
	draw()
	t.end[p] = len(t.rows)
}

// head is what a look at the pane must tell first: which task it is, whether
// something went wrong, and whether it is done.
func (t *lessonText) head() {
	p := t.page
	if p.Task != "" {
		t.add(text(title, "  "+p.Task))
	}
	if p.Notice != "" {
		t.gap()
		t.markdown(warn|bold, "! "+p.Notice)
	}
	if p.Notice != "" && p.Task != "" {
		t.add(*(&row{}).add(plain, "  ").add(tool, "u").add(plain, t.t(" brings the cluster back to the start of this task", " でクラスターをこのタスクの開始時点に戻す")))
	}
	if t.noTask() && t.noNext() == "" {
		t.add(t.onward())
	}
	if p.Done && !t.noTask() {
		t.gap()
		t.add(text(ok|bold, "  "+t.tick+" "+t.t("Done", "完了")))
		t.markdown(plain, p.DoneText)
		t.gap()
		t.add(t.onward())
		t.add(text(dim, "  "+strings.Repeat(t.border[4], max(0, min(t.w-4, longestText)))))
		return
	}
	if p.Notice != "" || !t.tight {
		t.gap()
	}
}

// noTask is true between two lessons, when there is nothing to do, to undo or to be told done. n may open the next even so.
func (s *scene) noTask() bool { return s.page.Task == "" }

// onward says what n leads to.
func (t *lessonText) onward() row {
	if t.page.Next == "" {
		return text(bold, "  "+t.t("This was the last task: q leaves.", "これで最後のタスクまで終わりました。q で終了します。"))
	}
	what := t.t(" next: ", " 次: ")
	if t.page.Last {
		what = t.t(" next lesson: ", " 次のレッスン: ")
	}
	return *(&row{}).add(plain, "  ").add(tool, "n").add(plain, what+t.page.Next)
}

func (t *lessonText) question() {
	p := t.page
	if p.Question == "" {
		return
	}
	t.gap()
	t.add(text(bold, "  "+t.t("Question", "質問")))
	t.markdown(plain, p.Question)
	r := text(plain, "  ")
	if p.Answer != "" {
		r.add(plain, t.t("Your answer: ", "あなたの答え: ")).add(bold, p.Answer).add(plain, "   ")
	}
	t.add(*r.add(tool, "a").add(plain, t.t(" answers", " で回答")))
}

func (t *lessonText) checks() {
	if len(t.page.Checks) > 0 {
		t.gap()
		t.add(text(bold, "  "+t.t("To do", "やること")))
	}
	for _, c := range t.page.Checks {
		box, st := t.checkbox(c)
		for i, line := range wrap(c.Text, min(t.w-8, longestText)) {
			lead := "      "
			if i == 0 {
				lead = "  " + box + " "
			}
			t.add(text(st, lead+line))
		}
	}
	named := func(c Task) bool { return !c.Done && c.Text == t.page.Missing }
	if m := t.page.Missing; m != "" && !t.page.Done && !slices.ContainsFunc(t.page.Checks, named) {
		for _, line := range wrap(t.t("Not yet: ", "未達: ")+m, min(t.w-4, longestText)) {
			t.add(text(wait, "  "+line))
		}
	}
}

// hints begin where the newest one does: that is what was asked for.
func (t *lessonText) hints() {
	for i, h := range t.page.Hints {
		t.gap()
		t.begin[hintPart] = len(t.rows)
		heading := t.t("Hint ", "ヒント ") + itoa(i+1)
		if t.page.More && i == len(t.page.Hints)-1 {
			heading += t.t("  (h: another)", "  (h: 次のヒント)")
		}
		t.add(text(bold, "  "+heading))
		t.markdown(plain, h)
	}
}

func (t *lessonText) solution() {
	if t.page.Solution == "" {
		return
	}
	t.gap()
	t.begin[solutionPart] = len(t.rows)
	t.add(text(bold, "  "+t.t("Solution", "解答")))
	t.markdown(plain, t.page.Solution)
}

// checkbox is the box of a check, and how it looks.
func (s *scene) checkbox(c Task) (string, style) {
	if c.Done {
		return s.tick, ok
	}
	return s.untick, plain
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

// narration is what the lines at the bottom say: the lesson if there is one,
// that this is the past, else why the selected thing happened.
func (s *scene) narration(r Rect) []row {
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
		lines = append(lines, wrap(s.whyText(), r.W-2)...)
	} else {
		lines, st = wrap(s.pastText(), r.W-2), accent
		if more := wrap(s.whyText(), r.W-2); len(lines) < r.H {
			lines = append(lines, more...)
		}
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

// lessonLines say where the learner stands, whatever else is looked at: which
// lesson and task with its boxes, and what is still missing.
func (s *scene) lessonLines(r Rect) []row {
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
func (s *scene) lessonHead(w int) row {
	head := text(title, " "+joinText(" ", s.t("LESSON", "レッスン"), s.page.Lesson))
	head.add(plain, "   "+s.page.Task)
	right := s.boxes(w - head.width() - 3)
	if s.page.Done && !s.noTask() {
		right = text(loud, " "+s.ok+" "+s.t("DONE", "完了")+" ")
		if s.noNext() == "" {
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
func (s *scene) boxes(room int) row {
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
func (s *scene) lessonNow(w int) row {
	p, st := s.page, plain
	var now, more string
	switch {
	case p.Notice != "" && s.noTask():
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
