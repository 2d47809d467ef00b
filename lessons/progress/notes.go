package progress

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// version is the version of the file format.
const version = 1

// Limits that files written by this package never exceed.
const (
	longestFile = 1 << 20
	longestWord = 200
)

// header explains the file to people who open it.
const header = `# What is done of the lessons of operator-lab. 'operator-lab lesson' reads and writes this file; change it when none
# runs. Remove a line, and the task is to be done again; remove the file, and all are.
#   last <lesson> <task>                  where you were
#   done <lesson> <task> <when> <digest>  done, in the lesson as it was then: it has another digest when it changes
`

// notes is the content of a file.
type notes struct {
	// last is the lesson and the task where the learner was last.
	last [2]string
	// done are the done tasks, the latest last. Unknown lessons are kept, because another version may know them.
	done []note
}

// note is a task that is done.
type note struct {
	lesson, task string
	when         time.Time
	digest       string
}

// find returns the index of a done task; -1 if it is not done.
func (n *notes) find(lesson, task string) int {
	return slices.IndexFunc(n.done, func(d note) bool { return d.lesson == lesson && d.task == task })
}

// write formats a file.
func (n *notes) write() []byte {
	var out bytes.Buffer
	_, _ = fmt.Fprintf(&out, "%sversion %d\n", header, version)
	if n.last != [2]string{} {
		_, _ = fmt.Fprintf(&out, "last %s %s\n", n.last[0], n.last[1])
	}
	for _, d := range n.done {
		_, _ = fmt.Fprintf(&out, "done %s %s %s %s\n", d.lesson, d.task, d.when.UTC().Format(time.RFC3339), d.digest)
	}
	return out.Bytes()
}

// parse parses a file: all valid lines, and the problem of the first invalid one. A file of another version is not
// parsed.
func parse(data []byte) (notes, *Damaged) {
	if len(data) > longestFile {
		return notes{}, &Damaged{Line: 1, Reason: fmt.Sprintf("is larger than %d MiB", longestFile>>20)}
	}
	var (
		n     notes
		wrong *Damaged
	)
	bad := func(line int, reason string) {
		if wrong == nil {
			wrong = &Damaged{Line: line, Reason: reason}
		}
	}
	versioned := false
	for i, l := range strings.Split(string(data), "\n") {
		fields := strings.Fields(l)
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		if fields[0] == "version" {
			versioned = true
			if reason := otherVersion(fields); reason != "" {
				return notes{}, &Damaged{Line: i + 1, Reason: reason}
			}
			continue
		}
		if reason := n.line(fields); reason != "" {
			bad(i+1, reason)
		} else if !versioned {
			bad(i+1, "the version is missing before this line")
		}
	}
	if !versioned {
		bad(1, "the version is missing")
	}
	return n, wrong
}

// otherVersion describes the problem of the line with the version; empty if there is none.
func otherVersion(fields []string) string {
	if len(fields) != 2 {
		return "a version is one number"
	}
	switch v, err := strconv.Atoi(fields[1]); {
	case err != nil || v < 1:
		return fmt.Sprintf("%s is no version", quote(fields[1]))
	case v > version:
		return fmt.Sprintf("version %d is of a newer operator-lab: this one knows version %d", v, version)
	}
	return ""
}

// line parses one line, and describes its problem; empty if there is none.
func (n *notes) line(fields []string) string {
	for _, w := range fields {
		if len(w) > longestWord || !printable(w) {
			return "damaged: " + quote(w)
		}
	}
	switch {
	case fields[0] == "last" && len(fields) == 3:
		n.last = [2]string{fields[1], fields[2]}
	case fields[0] == "done" && len(fields) == 5:
		when, err := time.Parse(time.RFC3339, fields[3])
		if err != nil {
			return quote(fields[3]) + " is no time"
		}
		if i := n.find(fields[1], fields[2]); i >= 0 { // the later line counts
			n.done = slices.Delete(n.done, i, i+1)
		}
		n.done = append(n.done, note{fields[1], fields[2], when.UTC(), fields[4]})
	case fields[0] == "last" || fields[0] == "done":
		return "a line with " + fields[0] + " has other fields"
	default:
		return quote(fields[0]) + " is not known"
	}
	return ""
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// quote quotes and shortens an arbitrary word.
func quote(s string) string {
	const most = 40
	if runes := []rune(s); len(runes) > most {
		return strconv.Quote(string(runes[:most])) + "…"
	}
	return strconv.Quote(s)
}
