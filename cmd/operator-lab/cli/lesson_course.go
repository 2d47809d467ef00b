package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operator-lab/operator-lab/lessons"
	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/operators"
)

// course is a list of lessons for a learner: the bundled ones or those of a folder, all of them or those of a track.
type course struct {
	*book.Book
	track []*book.Lesson // nil: all
	along string         // the name of the track that is kept to; empty: none
}

// bundledCourse returns the bundled lessons.
func bundledCourse() (*course, error) {
	b, err := book.Open(lessons.Bundled())
	if err != nil {
		return nil, usageError("see 'operator-lab lesson verify'", "the bundled lessons: %w", err)
	}
	return &course{Book: b}, nil
}

// folderCourse returns the lessons in folders of an author.
func folderCourse(paths ...string) (*course, error) {
	b, err := book.OpenFolders(paths)
	if err != nil {
		return nil, usageError("see all that is wrong with 'operator-lab lesson verify "+shellQuote(strings.Join(paths, " "))+"'", "%w", err)
	}
	return &course{Book: b}, nil
}

// isFolder reports whether an argument is a folder of lessons rather than the name of a lesson.
func isFolder(arg string) bool {
	info, err := os.Stat(arg)
	return strings.ContainsRune(arg, filepath.Separator) || err == nil && info.IsDir()
}

// choose returns the lesson that an argument names, and its course.
func choose(arg, track string) (*course, *book.Lesson, error) {
	if isFolder(arg) {
		c, err := folderCourse(arg)
		if err != nil {
			return nil, nil, err
		}
		if len(c.Lessons) == 0 {
			return nil, nil, usageError("write one with 'operator-lab new lesson'", "there is no lesson in %s", arg)
		}
		return c, c.Lessons[0], nil
	}
	c, err := bundledCourse()
	if err != nil {
		return nil, nil, err
	}
	if err := c.follow(track); err != nil {
		return nil, nil, err
	}
	lesson, err := c.Find(arg)
	return c, lesson, lessonError(err)
}

// lessonError adds the hint to the error of a lesson that does not exist.
func lessonError(err error) error {
	unknown, is := errors.AsType[*book.UnknownLesson](err)
	if !is {
		return err
	}
	hint := unknown.Hint
	if hint != "" && !strings.HasSuffix(hint, "?") {
		hint += ";"
	}
	return usageError(strings.TrimSpace(hint+" 'operator-lab lesson list' shows all"), "%w", err)
}

// follow leaves only the lessons of a track, in its order.
func (c *course) follow(track string) error {
	if track == "" {
		return nil
	}
	lessons, found := c.Track(track)
	if !found {
		var names []string
		for _, t := range book.Tracks {
			names = append(names, t.Name)
		}
		return usageError(meant(track, names)+"tracks: "+strings.Join(names, ", "), "there is no track %q", track)
	}
	c.track, c.along = lessons, track
	return nil
}

// all returns the lessons of the course in order.
func (c *course) all() []*book.Lesson {
	if c.track != nil {
		return c.track
	}
	return c.Lessons
}

// After is the lesson that follows another in the course; nil after the last.
func (c *course) After(l *book.Lesson) *book.Lesson {
	if c.track == nil {
		return c.Book.After(l)
	}
	for i, one := range c.track {
		if one == l && i+1 < len(c.track) {
			return c.track[i+1]
		}
	}
	return nil
}

// typesOf returns what adds the types of a lesson's operators to a scheme.
func typesOf(l *book.Lesson) []func(*runtime.Scheme) error {
	var out []func(*runtime.Scheme) error
	for _, wanted := range l.Operators {
		if op, found := operators.Find(wanted.Name); found {
			out = append(out, op.AddToScheme)
		}
	}
	return out
}

// lessonNumber returns the number and the title of a lesson, such as "7  Run zundoko".
func lessonNumber(number int, title string) string { return fmt.Sprintf("%d  %s", number, title) }
