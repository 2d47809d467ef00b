package trace

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// Language is the language of sentences.
type Language string

// The languages. Anything else counts as English.
const (
	English  Language = "en"
	Japanese Language = "ja"
)

// Choose returns one of two texts.
func (l Language) Choose(english, japanese string) string {
	if l == Japanese {
		return japanese
	}
	return english
}

// LanguageOf returns the language of a locale such as "ja_JP.UTF-8"; English for all but Japanese.
func LanguageOf(locale string) Language {
	if strings.HasPrefix(locale, "ja") {
		return Japanese
	}
	return English
}

// pick returns the text for the language.
func (l Language) pick(english, japanese string) string {
	if l == Japanese {
		return japanese
	}
	return english
}

// FormatDuration formats a duration for people, with three digits at most, such as 0.4ms, 3ms, 500ms, 2.56s, 1m30s.
func FormatDuration(d time.Duration) string {
	switch {
	case d == math.MinInt64: // cannot be negated; only a crafted journal contains it
		return "-" + FormatDuration(math.MaxInt64)
	case d < 0:
		return "-" + FormatDuration(-d)
	case d == 0:
		return "0s"
	case d < 100*time.Microsecond:
		return "<0.1ms"
	case d < 9950*time.Microsecond:
		return trimZero(fmt.Sprintf("%.1f", d.Seconds()*1e3)) + "ms"
	case d < 999500*time.Microsecond:
		return fmt.Sprintf("%.0fms", d.Seconds()*1e3)
	case d < 9995*time.Millisecond:
		return trimZero(fmt.Sprintf("%.2f", d.Seconds())) + "s"
	case d < 59950*time.Millisecond:
		return trimZero(fmt.Sprintf("%.1f", d.Seconds())) + "s"
	}
	s := d.Round(time.Second).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// trimZero removes trailing zeros after the point.
func trimZero(s string) string {
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// TextWidth returns the number of cells that a text takes in a terminal: two for wide characters of East Asian scripts
// and emoji, none for combining marks. Characters of ambiguous width count as one.
func TextWidth(s string) int { return displaywidth.String(s) }

// pad appends blanks up to a width in cells.
func pad(s string, width int) string {
	if n := width - TextWidth(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// padLeft prepends blanks up to a width in cells.
func padLeft(s string, width int) string {
	if n := width - TextWidth(s); n > 0 {
		return strings.Repeat(" ", n) + s
	}
	return s
}

// saidWidth limits an error or a log line in a sentence. It is meant to be there as a whole: who has less room cuts the sentence.
const saidWidth = 1000

// said makes what a program said part of a sentence.
func said(s string) string { return cut(s, saidWidth) }

// cut makes a text one line and shortens it to a width in cells, ending in "..." if it was too long.
func cut(s string, width int) string { return clip(oneLine(s), width) }

// clip shortens a line to a width in cells and keeps its blanks.
func clip(s string, width int) string {
	if TextWidth(s) <= width {
		return s
	}
	var b strings.Builder
	n := 3
	for g := displaywidth.StringGraphemes(s); g.Next(); {
		if n += g.Width(); n > width {
			break
		}
		b.WriteString(g.Value())
	}
	return b.String() + "..."
}

// ended ends a text with a full stop, unless it has an end: what others write, such as the note of a scenario, often has.
func ended(s string, l Language) string {
	if last, _ := utf8.DecodeLastRuneInString(s); strings.ContainsRune(".!?。！？…", last) {
		return s
	}
	return s + l.pick(".", "。")
}

// oneLine joins the lines of a text and replaces characters that would disturb a terminal.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

// fold breaks a line into lines of a width in cells, at blanks and after wide characters.
func fold(s string, width int) []string {
	var lines []string
	for TextWidth(s) > width {
		at, end, n := 0, 0, 0 // position of the last possible break; position and width so far
		for g := displaywidth.StringGraphemes(s); g.Next(); {
			if n += g.Width(); n > width {
				break
			}
			end += len(g.Value())
			if g.Value() == " " || g.Width() == 2 {
				at = end
			}
		}
		if at == 0 {
			at = end
		}
		lines = append(lines, strings.TrimRight(s[:at], " "))
		s = strings.TrimLeft(s[at:], " ")
	}
	return append(lines, s)
}
