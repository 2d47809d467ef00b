package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/progress"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/scenarios/scorecard"
)

// modules maps the modules of the book to their titles.
var modules = map[string]map[book.Language]string{
	"resources": {book.English: "Resources", book.Japanese: "リソース"},
	"loop":      {book.English: "The loop", book.Japanese: "reconcile ループ"},
	"children":  {book.English: "Real children", book.Japanese: "実体のある子リソース"},
	"packaging": {book.English: "Adapters and packaging", book.Japanese: "アダプターとパッケージング"},
	"etcd":      {book.English: "Full lifecycle: etcd", book.Japanese: "フルライフサイクル: etcd"},
	"own":       {book.English: "Your own operator", book.Japanese: "自分のオペレーター"},
	"insights":  {book.English: "Deep insights and auto pilot", book.Japanese: "可観測性と自動運転"},
}

func moduleTitle(name string, lang book.Language) string {
	if title := modules[name][lang]; title != "" {
		return title
	}
	return name
}

// suggested returns the lesson to go on with: the one where the learner was last, else with the first after it that is not done,
// else with the first of all that is not.
func suggested(c *course, done *progress.File) *book.Lesson {
	all := c.all()
	undone := func(l *book.Lesson) bool {
		n, total := done.Lesson(l)
		return n < total
	}
	last, _ := done.Last()
	from := max(slices.IndexFunc(all, func(l *book.Lesson) bool { return l.ID == last }), 0)
	if i := slices.IndexFunc(all[from:], undone); i >= 0 {
		return all[from+i]
	}
	return all[max(slices.IndexFunc(all, undone), 0)]
}

// tags returns the phase of maturity and the habits of a lesson, such as P1 and H3.
func tags(l *book.Lesson) []string {
	var out []string
	if l.Phase > 0 {
		out = append(out, fmt.Sprintf("P%d", l.Phase))
	}
	for _, h := range l.Habits {
		out = append(out, fmt.Sprintf("H%d", h))
	}
	return out
}

// about explains the tags of a lesson.
func about(l *book.Lesson, in book.Language) string {
	var out []string
	if l.Phase > 0 {
		out = append(out, fmt.Sprintf("P%d: %s", l.Phase, scorecard.PhaseTitle(l.Phase)))
	}
	for _, h := range l.Habits {
		out = append(out, fmt.Sprintf("H%d: %s", h, scorecard.HabitTitle(h, string(in))))
	}
	return strings.Join(out, "  ")
}

func tracksOf(l *book.Lesson) []string {
	var out []string
	for _, t := range book.Tracks {
		if slices.Contains(t.Lessons, l.Number) {
			out = append(out, t.Name)
		}
	}
	return out
}

// pickOptions returns the picker's options: the lessons of the course.
func (l *learner) pickOptions() tui.PickOptions {
	lang := l.language()
	o := tui.PickOptions{
		Language: l.look.language(), ASCII: l.look.ascii, NoColor: l.look.noColor, ForceColor: l.look.color,
		In: l.io.in, Out: l.io.out, Suggested: suggested(l.course, l.progress).ID,
	}
	for _, lesson := range l.course.all() {
		done, total := l.progress.Lesson(lesson)
		item := tui.PickItem{
			ID: lesson.ID, Number: lesson.Number, Title: lesson.Title(lang), Module: moduleTitle(lesson.Module, lang),
			Done: done, Total: total, Tags: tags(lesson), About: about(lesson, lang), Tracks: tracksOf(lesson), Note: firstParagraph(lesson.Intro(lang)),
		}
		if l.progress.Changed(lesson) {
			item.Note = l.Text("It has changed since you did it. ", "完了後に内容が変わりました。") + item.Note
		}
		o.Items = append(o.Items, item)
	}
	for _, t := range book.Tracks {
		switch l.course.along {
		case "":
			o.Tracks = append(o.Tracks, tui.PickTrack{Name: t.Name, Title: t.Title[lang]})
		case t.Name: // there are no others to choose
			o.All = t.Title[lang]
		}
	}
	return o
}

// firstParagraph returns the first paragraph of a Markdown text in one line, as plain text.
func firstParagraph(markdown string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(markdown), "\n\n")
	return strings.Join(strings.Fields(tui.Plain(first, 1000)), " ")
}

type lessonListFlags struct {
	output string
	track  string
	lang   string
}

func lessonListCommand(io streams) *cobra.Command {
	var f lessonListFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the lessons, what they are about, and what you have done",
		Example: `  operator-lab lesson list
  operator-lab lesson list --track sre --output json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return f.run(io) },
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "table or json")
	cmd.Flags().StringVar(&f.track, "track", "", "only those of a track: ten-minutes, author, sre, packager or own")
	cmd.Flags().StringVar(&f.lang, "lang", "", "language: en or ja (default: that of the locale)")
	return cmd
}

// listedLesson is a lesson in the output as JSON.
type listedLesson struct {
	Number  int      `json:"number"`
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Module  string   `json:"module"`
	Phase   int      `json:"phase"`
	Habits  []int    `json:"habits"`
	Sources []string `json:"sources"`
	Tracks  []string `json:"tracks"`
	Tasks   int      `json:"tasks"`
	Done    int      `json:"done"`
	Changed bool     `json:"changed"`
}

func (f *lessonListFlags) run(io streams) error {
	look := lookFlags{lang: f.lang}
	if err := look.check(); err != nil {
		return err
	}
	if f.output != "table" && f.output != "json" {
		return usageError("use --output table or --output json", "there is no output %q", f.output)
	}
	c, err := bundledCourse()
	if err != nil {
		return err
	}
	if err := c.follow(f.track); err != nil {
		return err
	}
	state, err := sandbox.StateDir()
	if err != nil {
		return err
	}
	done, err := openProgress(io, state)
	if err != nil {
		return err
	}
	lang := lessonLanguage(look)
	all := make([]listedLesson, 0, len(c.all()))
	for _, l := range c.all() {
		n, total := done.Lesson(l)
		all = append(all, listedLesson{
			Number: l.Number, ID: l.ID, Title: l.Title(lang), Module: l.Module, Phase: l.Phase, Habits: orEmpty(l.Habits),
			Sources: orEmpty(l.Sources), Tracks: orEmpty(tracksOf(l)), Tasks: total, Done: n, Changed: done.Changed(l),
		})
	}
	if f.output == "json" {
		return printJSON(io.out, all)
	}
	return printLessons(io, all)
}

// orEmpty replaces a nil list by an empty one, which is not null in JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func printLessons(io streams, all []listedLesson) error {
	w := tabwriter.NewWriter(io.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NUMBER\tLESSON\tMODULE\tPHASE\tHABITS\tDONE\tTITLE")
	for _, l := range all {
		habits := make([]string, len(l.Habits))
		for i, h := range l.Habits {
			habits[i] = fmt.Sprint(h)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%d/%d\t%s\n", l.Number, l.ID, l.Module, number(uint64(l.Phase)), cmp.Or(strings.Join(habits, ","), "-"), l.Done, l.Tasks, l.Title)
	}
	return w.Flush()
}
