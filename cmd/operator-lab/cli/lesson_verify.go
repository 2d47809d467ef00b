package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/lessons"
	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/session"
	"github.com/operator-lab/operator-lab/lessons/tutor"
	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

type lessonVerifyFlags struct {
	all      bool
	static   bool
	parallel int
	output   string
}

func lessonVerifyCommand(io streams) *cobra.Command {
	f := lessonVerifyFlags{}
	cmd := &cobra.Command{
		Use:   "verify [lesson or folder…]",
		Short: "Check lessons: texts, files, and on a live cluster every check, wrong turn and undo",
		Long: `Check lessons as their author needs it: ids are unique, both languages are complete and in step,
hints are there, code fits, links resolve. Then each lesson is gone through in a sandbox of its
own, as by a learner who makes every mistake: every check fails before the solution and passes
after it, each wrong turn gives its message, and undo brings back the start.`,
		Example: `  operator-lab lesson verify --all
  operator-lab lesson verify run-zundoko
  operator-lab lesson verify ./my-lesson --static`,
		ValidArgsFunction: completeLessons,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), io, args) },
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "all bundled lessons")
	cmd.Flags().BoolVar(&f.static, "static", false, "only read the files, start no cluster")
	cmd.Flags().IntVar(&f.parallel, "parallel", 1, "how many lessons are gone through at a time, each in a sandbox of its own")
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text or json")
	return cmd
}

// verified is the result of one lesson.
type verified struct {
	Lesson   string   `json:"lesson"`
	Number   int      `json:"number"`
	Tasks    int      `json:"tasks"`
	Checks   int      `json:"checks"`
	Wrong    int      `json:"wrongTurns"`
	Undos    int      `json:"undos"`
	Seconds  float64  `json:"seconds"`
	Problems []string `json:"problems"`
	// Missing is a program that the lesson needs and the machine lacks: with --all the lesson is skipped for it.
	Missing string `json:"missing,omitempty"`
}

func (f *lessonVerifyFlags) run(ctx context.Context, io streams, args []string) error {
	if f.output != "text" && f.output != "json" {
		return usageError("use --output text or --output json", "there is no output %q", f.output)
	}
	if f.parallel < 1 {
		return usageError("use --parallel 1 or more", "%d lessons at a time cannot be gone through", f.parallel)
	}
	if len(args) == 0 && !f.all {
		return usageError("name lessons or folders, or use --all", "which lessons?")
	}
	if len(args) > 0 && f.all {
		return usageError("leave one of them out", "--all and names of lessons exclude each other")
	}
	problems, chosen, err := f.read(args)
	if err != nil {
		return err
	}
	wrong := 0
	for _, p := range problems {
		fmt.Fprintln(io.err, problemText(p))
		if !p.Warning {
			wrong++
		}
	}
	if wrong > 0 {
		return usageError("mend them, and look again with --static; lessons/README.md has the format", "%s in the files of the lessons", count(wrong, "mistake"))
	}
	if f.static {
		fmt.Fprintf(io.err, "%s, nothing wrong in their files\n", count(len(chosen), "lesson"))
		if f.output == "json" {
			return printJSON(io.out, onlyRead(chosen))
		}
		return nil
	}
	return f.goThrough(ctx, io, chosen)
}

func problemText(p format.Problem) string {
	text := "error: "
	if p.Warning {
		text = "warning: "
	}
	text += p.Error()
	if p.Hint != "" {
		text += "\n  hint: " + p.Hint
	}
	return text
}

// count formats a number with its noun, in the plural where needed.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// read reads the lessons to verify, and the problems of their files.
func (f *lessonVerifyFlags) read(args []string) ([]format.Problem, []*book.Lesson, error) {
	o := book.Rules{Operator: checkLessonOperator, Lessons: bundledNames()}
	var folders, names []string
	for _, arg := range args {
		if isFolder(arg) {
			folders = append(folders, arg)
		} else {
			names = append(names, arg)
		}
	}
	var problems []format.Problem
	var chosen []*book.Lesson
	if len(folders) > 0 {
		problems = book.LintFolders(folders, o)
		b, _ := book.OpenFolders(folders) // what is wrong is among the problems
		chosen = append(chosen, b.Lessons...)
	}
	if len(names) == 0 && !f.all {
		return problems, chosen, nil
	}
	problems = append(problems, book.Lint(lessons.Bundled(), o)...)
	b, _ := book.Open(lessons.Bundled())
	if f.all {
		return problems, b.Lessons, nil
	}
	for _, name := range names {
		lesson, err := b.Find(name)
		if err != nil {
			return nil, nil, lessonError(err)
		}
		chosen = append(chosen, lesson)
	}
	return problems, chosen, nil
}

// checkLessonOperator returns the problem of an operator that a lesson names; empty if there is none.
func checkLessonOperator(wanted book.Operator) error {
	if wanted.Own() {
		return nil
	}
	op, found := operators.Find(wanted.Name)
	if !found {
		return unknownOperator(wanted.Name)
	}
	_, err := lab.InstanceOf(op, v1alpha1.OperatorSpec{Variant: wanted.Variant, Parameters: wanted.Parameters})
	return err
}

// bundledNames returns the names of the bundled lessons, which other lessons may refer to.
func bundledNames() []string {
	b, _ := book.Open(lessons.Bundled()) // what is wrong with them is told when they are verified
	var names []string
	for _, l := range b.Lessons {
		names = append(names, l.ID)
	}
	return names
}

// goThrough verifies lessons, several at a time, and prints the result of each. Those that need programs come first: they build
// something, and take longest.
func (f *lessonVerifyFlags) goThrough(ctx context.Context, io streams, chosen []*book.Lesson) error {
	results := make([]verified, len(chosen))
	slots := make(chan struct{}, f.parallel)
	var work sync.WaitGroup
	var telling sync.Mutex
	order := make([]int, len(chosen))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(chosen[b].Needs) - len(chosen[a].Needs) })
	for _, i := range order {
		slots <- struct{}{}
		lesson := chosen[i]
		work.Go(func() {
			defer func() { <-slots }()
			if ctx.Err() != nil {
				return
			}
			fmt.Fprintf(io.err, "going through %s\n", lesson.Name())
			if missing := session.Missing(lesson); f.all && missing != "" {
				results[i] = verified{Lesson: lesson.ID, Number: lesson.Number, Problems: []string{}, Missing: missing}
			} else {
				results[i] = verifyLesson(ctx, io, lesson)
			}
			telling.Lock()
			defer telling.Unlock()
			if f.output == "text" && ctx.Err() == nil {
				results[i].tell(io)
			}
		})
	}
	work.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if f.output == "json" {
		if err := printJSON(io.out, results); err != nil {
			return err
		}
	}
	return f.conclude(io, results)
}

// onlyRead returns the results of lessons whose files were only read; their counts are zero.
func onlyRead(chosen []*book.Lesson) []verified {
	out := make([]verified, len(chosen))
	for i, lesson := range chosen {
		out[i] = verified{Lesson: lesson.ID, Number: lesson.Number, Problems: []string{}}
	}
	return out
}

func (v verified) tell(io streams) {
	state := "pass"
	switch {
	case v.Missing != "":
		fmt.Fprintf(io.out, "skip  %02d %-28s it needs %s, which is not in the PATH\n", v.Number, v.Lesson, v.Missing)
		return
	case len(v.Problems) > 0:
		state = "FAIL"
	}
	fmt.Fprintf(io.out, "%s  %02d %-28s %s, %s, %s, %s (%.1fs)\n", state, v.Number, v.Lesson,
		count(v.Tasks, "task"), count(v.Checks, "check"), count(v.Wrong, "wrong turn"), count(v.Undos, "undo"), v.Seconds)
	for _, p := range v.Problems {
		fmt.Fprintf(io.out, "      %s\n", p)
	}
}

// conclude prints the totals.
func (f *lessonVerifyFlags) conclude(io streams, results []verified) error {
	var sum verified
	failed, skipped := 0, 0
	for _, r := range results {
		if r.Missing != "" {
			skipped++
		}
		sum.Tasks, sum.Checks, sum.Wrong, sum.Undos = sum.Tasks+r.Tasks, sum.Checks+r.Checks, sum.Wrong+r.Wrong, sum.Undos+r.Undos
		if len(r.Problems) > 0 {
			failed++
		}
	}
	if f.output == "text" {
		if skipped > 0 {
			fmt.Fprintf(io.out, "%s skipped\n", count(skipped, "lesson"))
		}
		fmt.Fprintf(io.out, "%s, %s: %s failed before the solution and passed after it, %s gave their message, %s brought back the start\n",
			count(len(results)-skipped, "lesson"), count(sum.Tasks, "task"), count(sum.Checks, "check"), count(sum.Wrong, "wrong turn"), count(sum.Undos, "undo"))
	}
	if failed > 0 {
		return fmt.Errorf("%d of %s failed", failed, count(len(results), "lesson"))
	}
	return nil
}

// verifyLesson verifies one lesson in a sandbox of its own.
func verifyLesson(ctx context.Context, io streams, lesson *book.Lesson) verified {
	out := verified{Lesson: lesson.ID, Number: lesson.Number, Problems: []string{}}
	began := time.Now()
	verdict, err := goThroughLesson(ctx, io, lesson)
	out.Seconds = time.Since(began).Seconds()
	if verdict != nil {
		out.Tasks, out.Checks, out.Wrong, out.Undos = verdict.Tasks, verdict.Checks, verdict.Wrong, verdict.Undos
		out.Problems = append(out.Problems, verdict.Problems...)
	}
	if err != nil {
		out.Problems = append(out.Problems, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return out
}

func goThroughLesson(ctx context.Context, io streams, lesson *book.Lesson) (*tutor.Verdict, error) {
	o, err := sessionOptions(io)
	if err != nil {
		return nil, err
	}
	return session.Verify(ctx, o, lesson)
}
