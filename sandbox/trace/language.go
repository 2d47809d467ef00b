package trace

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Language is the language of sentences.
type Language string

// The languages. Anything else counts as English.
const (
	English  Language = "en"
	Japanese Language = "ja"
)

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
func TextWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// wideRanges are the ranges of characters that take two cells.
var wideRanges = [][2]rune{
	{0x1100, 0x115F},
	{0x2E80, 0x303E},
	{0x3041, 0x33FF},
	{0x3400, 0x4DBF},
	{0x4E00, 0x9FFF},
	{0xA000, 0xA4CF},
	{0xA960, 0xA97F},
	{0xAC00, 0xD7A3},
	{0xF900, 0xFAFF},
	{0xFE30, 0xFE6F},
	{0xFF00, 0xFF60},
	{0xFFE0, 0xFFE6},
	{0x1F300, 0x1F64F},
	{0x1F680, 0x1F6FF},
	{0x1F900, 0x1F9FF},
	{0x20000, 0x3FFFD},
}

func runeWidth(r rune) int {
	switch {
	case r < 0x20 || r == 0x7f || r >= 0x300 && r <= 0x36F || r >= 0x200B && r <= 0x200F || r >= 0xFE00 && r <= 0xFE0F:
		return 0
	case r < 0x1100:
		return 1
	}
	for _, w := range wideRanges {
		if r >= w[0] && r <= w[1] {
			return 2
		}
	}
	return 1
}

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

// cut makes a text one line and shortens it to a width in cells, ending in "..." if it was too long.
func cut(s string, width int) string { return clip(oneLine(s), width) }

// clip shortens a line to a width in cells and keeps its blanks.
func clip(s string, width int) string {
	if TextWidth(s) <= width {
		return s
	}
	var b strings.Builder
	n := 3
	for _, r := range s {
		if n += runeWidth(r); n > width {
			break
		}
		b.WriteRune(r)
	}
	return b.String() + "..."
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
		at, n := 0, 0 // position of the last possible break, and the width so far
		for i, r := range s {
			size := runeWidth(r)
			if n += size; n > width {
				if at == 0 {
					at = i
				}
				break
			}
			if r == ' ' || size == 2 {
				at = i + len(string(r))
			}
		}
		lines = append(lines, strings.TrimRight(s[:at], " "))
		s = strings.TrimLeft(s[at:], " ")
	}
	return append(lines, s)
}
