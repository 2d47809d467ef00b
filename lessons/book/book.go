// Package book reads lessons: folders with a lesson.yaml, a text per language, and a scenario file per task. It does
// not use a cluster: other packages run the lessons.
package book

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// Language is a language of lessons.
type Language string

// The languages of lessons.
const (
	English  Language = "en"
	Japanese Language = "ja"
)

// Choose returns one of two texts, by the language.
func (l Language) Choose(english, japanese string) string {
	if l == Japanese {
		return japanese
	}
	return english
}

// Languages are the languages that each lesson must have.
var Languages = []Language{English, Japanese}

// Book is a collection of lessons.
type Book struct {
	// Lessons are the lessons in the order of their numbers.
	Lessons []*Lesson
}

// Open reads the lesson folders at the top of a file system, which have names like 07-run-zundoko. The error is
// [format.Problems] with everything that makes lessons unusable; the usable lessons are in the book all the same.
func Open(fsys fs.FS) (*Book, error) {
	places, wrong := foldersIn(fsys)
	return open(places, wrong)
}

// OpenFolders reads folders of the operating system, each of one lesson or of several. The error is like that of
// [Open].
func OpenFolders(paths []string) (*Book, error) {
	places, wrong := foldersAt(paths)
	return open(places, wrong)
}

func open(places []place, wrong format.Problems) (*Book, error) {
	b, more := read(places)
	if wrong = slices.Concat(wrong, more).Sorted(); len(wrong) > 0 {
		return b, wrong
	}
	return b, nil
}

// read reads lessons, without the unusable ones.
func read(places []place) (*Book, format.Problems) {
	b := &Book{}
	var wrong format.Problems
	for _, at := range places {
		l, found := readLesson(at)
		wrong = append(wrong, found...)
		if len(found) == 0 {
			b.Lessons = append(b.Lessons, l)
		}
	}
	slices.SortStableFunc(b.Lessons, func(x, y *Lesson) int { return cmp.Compare(x.Number, y.Number) })
	return b, append(wrong, sameNames(places)...)
}

// UnknownLesson is the error for a name that no lesson has.
type UnknownLesson struct {
	// Name is the requested name.
	Name string
	// Hint suggests a similar name; may be empty.
	Hint string
}

// Error names the unknown lesson.
func (e *UnknownLesson) Error() string { return fmt.Sprintf("there is no lesson %q", e.Name) }

// Find returns the lesson with a name: its number, its ID, or both, such as 7, 07, run-zundoko and 07-run-zundoko. The
// error is an [*UnknownLesson].
func (b *Book) Find(name string) (*Lesson, error) {
	number, err := strconv.Atoi(name)
	isNumber := err == nil
	var known []string
	for _, l := range b.Lessons {
		if isNumber && l.Number == number || !isNumber && (l.ID == name || l.Name() == name) {
			return l, nil
		}
		known = append(known, l.ID)
	}
	if isNumber && len(b.Lessons) > 0 {
		return nil, &UnknownLesson{name, "there are " + numbers(b.Lessons)}
	}
	return nil, &UnknownLesson{name, format.Suggest(name, known)}
}

// numbers lists the numbers of lessons, as in "1-4, 7".
func numbers(lessons []*Lesson) string {
	out := ""
	for i := 0; i < len(lessons); i++ {
		first := lessons[i].Number
		for i+1 < len(lessons) && lessons[i+1].Number == lessons[i].Number+1 {
			i++
		}
		if out != "" {
			out += ", "
		}
		out += strconv.Itoa(first)
		if last := lessons[i].Number; last != first {
			out += "-" + strconv.Itoa(last)
		}
	}
	return out
}

// After returns the lesson that follows another; nil after the last.
func (b *Book) After(l *Lesson) *Lesson {
	for _, next := range b.Lessons {
		if next.Number > l.Number {
			return next
		}
	}
	return nil
}

// Track is a sequence of some of the lessons.
type Track struct {
	// Name is the track's name on the command line.
	Name string
	// Title is its displayed title.
	Title map[Language]string
	// Lessons are the lessons' numbers in order. A book may lack some of them.
	Lessons []int
}

// Tracks are the tracks through the bundled lessons.
var Tracks = []Track{
	{Name: "ten-minutes", Title: map[Language]string{English: "ten minutes", Japanese: "10 分コース"}, Lessons: []int{2, 7, 9, 11}},
	{Name: "author", Title: map[Language]string{English: "author's hour", Japanese: "作者の 1 時間"}, Lessons: []int{7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}},
	{Name: "sre", Title: map[Language]string{English: "SRE hour", Japanese: "SRE の 1 時間"}, Lessons: []int{23, 24, 44, 25, 26, 27, 28, 31, 47}},
	{Name: "packager", Title: map[Language]string{English: "packager's track", Japanese: "パッケージ作者のコース"}, Lessons: []int{32, 33, 43, 34, 39, 40, 41, 42}},
	{Name: "own", Title: map[Language]string{English: "your own operator", Japanese: "自分のオペレーター"}, Lessons: []int{35, 36, 37, 45}},
}

// Track returns the lessons of a track that the book has, in the order of the track; false if there is no such track.
func (b *Book) Track(name string) ([]*Lesson, bool) {
	i := slices.IndexFunc(Tracks, func(t Track) bool { return t.Name == name })
	if i < 0 {
		return nil, false
	}
	var out []*Lesson
	for _, number := range Tracks[i].Lessons {
		if j := slices.IndexFunc(b.Lessons, func(l *Lesson) bool { return l.Number == number }); j >= 0 {
			out = append(out, b.Lessons[j])
		}
	}
	return out, true
}
