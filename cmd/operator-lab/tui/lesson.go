package tui

import (
	"slices"
	"strings"
)

// lessonPane is pane 5: the task in full, and what came of it so far.
type lessonPane struct{ *state }

// longestText is the maximum width of a lesson's text in cells: longer lines are hard to read.
const longestText = 92

// lessonPart is a part of the lesson pane that a key leads to.
type lessonPart int

const (
	questionPart lessonPart = iota
	hintPart
	solutionPart
	lessonParts
)

// roomy is the minimum number of lines of a pane that has blank lines between its parts.
const roomy = 18

// lessonText is all that the lesson pane shows, and where its parts begin and end.
type lessonText struct {
	*state
	w          int
	tight      bool // no line is left empty that need not be
	rows       []row
	begin, end [lessonParts]int
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

// head adds the task, whether something went wrong, and whether it is done.
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
	if noTask(t.state) && noNext(t.state) == "" {
		t.add(t.onward())
	}
	if p.Done && !noTask(t.state) {
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
	how := t.t(" answers, before you act", " で回答 (操作の前に)")
	if p.Answer != "" {
		how = t.t(" answers again", " で再回答")
	}
	if !p.Done {
		r.add(tool, "a").add(plain, how)
	}
	t.add(r)
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
		t.rows = append(t.rows, wrapped(wait, "  ", t.t("Not yet: ", "まだ: ")+m, min(t.w-4, longestText))...)
	}
}

// hints adds the hints; the part begins at the newest, which was asked for last.
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

func (s lessonPane) draw(in Rect) content {
	p := content{title: s.t("Lesson  ", "レッスン  ") + s.page.Lesson, right: s.keysText()}
	text := s.text(in.W, in.H < roomy)
	p.rows = scrolled(s.state, LessonPane, text.rows, in.H)
	if below := len(p.rows) - in.H; below > 0 {
		lines := " more lines"
		if below == 1 {
			lines = " more line"
		}
		p.foot = s.t(itoa(below)+lines+": pgdn", "あと "+itoa(below)+" 行: pgdn で続き")
	}
	return p
}

// keysText are the keys that matter to the reader.
func (s lessonPane) keysText() string {
	var keys []string
	if noNext(s.state) == "" {
		keys = append(keys, s.t("n next", "n 次へ"))
	}
	if noQuestion(s.state) == "" {
		keys = append(keys, s.t("a answer", "a 回答"))
	}
	if noHint(s.state) == "" && !s.page.Done {
		keys = append(keys, s.t("h hint", "h ヒント"))
	}
	if s.controls.Command != nil && strings.Contains(s.page.Text, "```sh") && !s.page.Done {
		keys = append(keys, s.t("$ command", "$ コマンド"))
	}
	if s.focus == LessonPane && !s.bare() && s.placed.Pane[LoopPane].Empty() {
		keys = append(keys, s.t("enter loop", "enter ループ"))
	}
	return strings.Join(keys, "  ")
}

func (s lessonPane) text(w int, tight bool) lessonText {
	t := lessonText{state: s.state, w: w, tight: tight}
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

// noTask is true between two lessons, when there is nothing to do, to undo or to be told done. n may open the next even so.
func noTask(s *state) bool { return s.page.Task == "" }

// bare reports whether there is a lesson and nothing beside it: it has no operator, and nobody has loaded one.
func (s *state) bare() bool {
	return s.guided && s.page.NoOperator && len(s.index.operators) == 0
}

// move scrolls the text.
func (s lessonPane) move(n int) { s.scrollBy(LessonPane, n) }

// reveal scrolls to a part of the text, no further than needed to see all of it.
func (s lessonPane) reveal(p lessonPart) {
	s.nav().setFocus(LessonPane)
	in := s.layout().Pane[LessonPane].inside()
	t := s.text(in.W, in.H < roomy)
	s.scroll[LessonPane] = min(t.begin[p], max(0, t.end[p]-in.H))
}
