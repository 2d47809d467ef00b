package book

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// place is the folder of a lesson.
type place struct {
	// FS is the content of the folder.
	fs.FS
	// base is the file system in which the folder was given; nil for the operating system's.
	base fs.FS
	// folder is the folder's path in base, as it was given.
	folder string
	// name is the last element of the folder's path.
	name string
}

// file returns the path of a file of the folder, in base, as it is shown to people.
func (p place) file(name string) string {
	if p.base != nil {
		return path.Join(p.folder, name)
	}
	return filepath.Join(p.folder, name)
}

// folderName matches the name of a lesson's folder: its number and its ID, which cannot be mistaken for a number.
var folderName = regexp.MustCompile(`^([0-9]{2})-([a-z][a-z0-9]*(?:-[a-z0-9]+)*)$`)

// nearlyNamed matches names that are treated as a lesson's folder, even if they are not correct.
var nearlyNamed = regexp.MustCompile(`^[0-9]+[-_]`)

// split returns the number and the id in the name of a folder.
func split(name string) (number int, id string, ok bool) {
	m := folderName.FindStringSubmatch(name)
	if m == nil {
		return 0, "", false
	}
	number, _ = strconv.Atoi(m[1]) // it is two digits
	return number, m[2], true
}

const metadataFile = "lesson.yaml"

// isLesson reports whether a folder is meant to be a lesson.
func isLesson(folder fs.FS, name string) bool {
	if nearlyNamed.MatchString(name) {
		return true
	}
	_, err := fs.Stat(folder, metadataFile)
	return err == nil
}

// newLessonHint is the hint for a missing lesson.
const newLessonHint = "operator-lab new lesson writes one to begin with"

// foldersIn finds the lessons at the top of a file system.
func foldersIn(fsys fs.FS) ([]place, format.Problems) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, format.Problems{{Message: "lessons cannot be looked for: " + plain(err)}}
	}
	var out []place
	for _, e := range entries {
		sub, err := fs.Sub(fsys, e.Name())
		if err == nil && e.IsDir() && isLesson(sub, e.Name()) {
			out = append(out, place{FS: sub, base: fsys, folder: e.Name(), name: e.Name()})
		}
	}
	if len(out) == 0 {
		return nil, format.Problems{{Message: "there is no lesson", Hint: newLessonHint}}
	}
	return out, nil
}

// foldersAt finds the lessons at paths of the operating system.
func foldersAt(paths []string) ([]place, format.Problems) {
	var (
		out   []place
		wrong format.Problems
	)
	for _, p := range paths {
		found, problem := foldersOf(p)
		if problem != nil {
			wrong = append(wrong, *problem)
		}
		out = append(out, found...)
	}
	return out, wrong
}

// foldersOf finds the lessons of one folder: the folder itself, or those in it.
func foldersOf(folder string) ([]place, *format.Problem) {
	problem := func(message, hint string) *format.Problem {
		return &format.Problem{File: folder, Message: message, Hint: hint}
	}
	info, err := os.Stat(folder)
	switch {
	case err != nil:
		return nil, problem(plain(err), "name folders that have lessons in them")
	case !info.IsDir():
		return nil, problem("is a file, not a folder", "a lesson is a folder: name it, or one with several lessons in it")
	}
	if at, err := placeAt(folder); err == nil && isLesson(at, at.name) {
		return []place{at}, nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, problem(plain(err), "")
	}
	var out []place
	for _, e := range entries {
		at, err := placeAt(filepath.Join(folder, e.Name()))
		if err == nil && e.IsDir() && isLesson(at, at.name) {
			out = append(out, at)
		}
	}
	if len(out) == 0 {
		return nil, problem("there is no lesson in it", newLessonHint)
	}
	return out, nil
}

// placeAt returns a folder of the operating system. Its name is the real one even if it is given as "." or "..".
func placeAt(folder string) (place, error) {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return place{}, err
	}
	return place{FS: os.DirFS(folder), folder: folder, name: filepath.Base(abs)}, nil
}

// plain returns the text of an error without the path, which the reader is told anyway.
func plain(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}
