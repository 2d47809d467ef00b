package tui

import (
	"maps"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// screen is a small terminal: what a program writes to it can be read as the
// person would see it. It knows what Bubble Tea's renderer sends to an xterm.
type screen struct {
	mu       sync.Mutex
	changed  chan struct{}
	w, h     int
	cells    [][]string // "" is the right half of a wide character
	x, y     int
	top, bot int
	wrapping bool // the next character goes to the next line
	saved    [2]int
	modes    map[int]bool // DEC private modes that were set
	last     string
	pending  []byte
	parser   *ansi.Parser
	unknown  []string
}

// powerOn are the modes of a terminal that nobody has changed: it wraps lines, and shows its cursor.
var powerOn = map[int]bool{7: true, 25: true}

func newScreen(w, h int) *screen {
	s := &screen{changed: make(chan struct{}, 1), modes: maps.Clone(powerOn), parser: ansi.NewParser()}
	s.resize(w, h)
	return s
}

func (s *screen) resize(w, h int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.cells
	s.w, s.h, s.top, s.bot = w, h, 0, h-1
	s.cells = make([][]string, h)
	for y := range s.cells {
		s.cells[y] = blankLine(w)
		if y < len(old) {
			copy(s.cells[y], old[y])
		}
	}
	s.x, s.y = min(s.x, w-1), min(s.y, h-1)
}

func blankLine(w int) []string {
	line := make([]string, w)
	for i := range line {
		line[i] = " "
	}
	return line
}

// Write takes what the program sends.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, b...)
	whole := wholeRunes(s.pending)
	var state byte
	for whole > 0 {
		seq, w, n, next := ansi.DecodeSequence(s.pending[:whole], state, s.parser)
		if next != 0 && n == whole { // not complete yet
			break
		}
		s.one(string(seq), w)
		s.pending, whole = s.pending[n:], whole-n
		state = next
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return len(b), nil
}

// wholeRunes returns how many bytes there are before a last character of which only the beginning is there.
func wholeRunes(b []byte) int {
	for i := max(0, len(b)-utf8.UTFMax+1); i < len(b); i++ {
		if utf8.RuneStart(b[i]) && !utf8.FullRune(b[i:]) {
			return i
		}
	}
	return len(b)
}

func (s *screen) one(seq string, w int) {
	switch {
	case w > 0:
		s.print(seq, w)
	case seq == "\r":
		s.x, s.wrapping = 0, false
	case seq == "\n":
		s.lineFeed()
	case seq == "\b":
		s.x, s.wrapping = max(0, s.x-1), false
	case seq == "\t":
		s.x = min(s.w-1, (s.x/8+1)*8)
	case seq == "\x1bM":
		if s.y == s.top {
			s.scroll(s.top, -1)
		} else {
			s.y = max(0, s.y-1)
		}
	case seq == "\x1b7":
		s.saved = [2]int{s.x, s.y}
	case seq == "\x1b8":
		s.x, s.y = s.saved[0], s.saved[1]
	case strings.HasPrefix(seq, "\x1b["):
		s.control(seq)
	}
}

func (s *screen) print(char string, w int) {
	if s.wrapping {
		s.x, s.wrapping = 0, false
		s.lineFeed()
	}
	if s.x+w > s.w {
		s.x = s.w - w
	}
	s.cells[s.y][s.x] = char
	for i := 1; i < w; i++ {
		s.cells[s.y][s.x+i] = ""
	}
	s.last = char
	s.x += w
	if s.x >= s.w {
		s.x, s.wrapping = s.w-1, s.modes[7]
	}
}

func (s *screen) lineFeed() {
	if s.y == s.bot {
		s.scroll(s.top, 1)
		return
	}
	s.y = min(s.h-1, s.y+1)
}

// scroll moves the lines from one to the bottom of the region up by n.
func (s *screen) scroll(from, n int) {
	for ; n > 0; n-- {
		copy(s.cells[from:s.bot+1], s.cells[from+1:s.bot+1])
		s.cells[s.bot] = blankLine(s.w)
	}
	for ; n < 0; n++ {
		copy(s.cells[from+1:s.bot+1], s.cells[from:s.bot])
		s.cells[from] = blankLine(s.w)
	}
}

func (s *screen) param(i, otherwise int) int {
	n, ok := s.parser.Param(i, otherwise)
	if !ok || n == 0 {
		return otherwise
	}
	return n
}

func (s *screen) clear(y, from, to int) {
	for x := max(0, from); x < min(to, s.w); x++ {
		s.cells[y][x] = " "
	}
}

func (s *screen) control(seq string) {
	cmd := ansi.Cmd(s.parser.Command())
	n := s.param(0, 1)
	if cmd.Prefix() == '?' && (cmd.Final() == 'h' || cmd.Final() == 'l') {
		for _, p := range s.parser.Params() {
			s.mode(p.Param(0), cmd.Final() == 'h')
		}
		return
	}
	if cmd.Prefix() != 0 || cmd.Intermediate() != 0 {
		return // queries and such
	}
	if cmd.Final() != 'm' {
		s.wrapping = false
	}
	switch cmd.Final() {
	case 'A':
		s.y = max(0, s.y-n)
	case 'B', 'e':
		s.y = min(s.h-1, s.y+n)
	case 'C', 'a':
		s.x = min(s.w-1, s.x+n)
	case 'D':
		s.x = max(0, s.x-n)
	case 'G', '`':
		s.x = min(s.w, n) - 1
	case 'd':
		s.y = min(s.h, n) - 1
	case 'H', 'f':
		s.y, s.x = min(s.h, n)-1, min(s.w, s.param(1, 1))-1
	case 'I':
		s.x = min(s.w-1, (s.x/8+n)*8)
	case 'Z':
		s.x = max(0, ((s.x+7)/8-n)*8)
	case 'b':
		for range n {
			s.print(s.last, ansi.StringWidth(s.last))
		}
	default:
		s.edit(cmd.Final(), n, seq)
	}
}

func (s *screen) edit(final byte, n int, seq string) {
	line := s.cells[s.y]
	switch final {
	case 'X':
		s.clear(s.y, s.x, s.x+n)
	case '@':
		copy(line[min(s.w, s.x+n):], line[s.x:])
		s.clear(s.y, s.x, s.x+n)
	case 'P':
		copy(line[s.x:], line[min(s.w, s.x+n):])
		s.clear(s.y, s.w-n, s.w)
	case 'K':
		switch mode, _ := s.parser.Param(0, 0); mode {
		case 0:
			s.clear(s.y, s.x, s.w)
		case 1:
			s.clear(s.y, 0, s.x+1)
		default:
			s.clear(s.y, 0, s.w)
		}
	case 'J':
		s.erase()
	case 'L':
		s.scroll(s.y, -n)
	case 'M':
		s.scroll(s.y, n)
	case 'S':
		s.scroll(s.top, n)
	case 'T':
		s.scroll(s.top, -n)
	case 'r':
		s.top, s.bot = n-1, s.param(1, s.h)-1
		s.x, s.y = 0, 0
	case 'm', 'c', 'n', 'u', 't', 'q', 'h', 'l':
	default:
		s.unknown = append(s.unknown, seq)
	}
}

func (s *screen) erase() {
	from, to := 0, s.h
	switch mode, _ := s.parser.Param(0, 0); mode {
	case 0:
		s.clear(s.y, s.x, s.w)
		from = s.y + 1
	case 1:
		s.clear(s.y, 0, s.x+1)
		to = s.y
	}
	for y := from; y < to; y++ {
		s.cells[y] = blankLine(s.w)
	}
}

// mode notes a mode; the alternate screen begins empty and leaves nothing behind.
func (s *screen) mode(n int, on bool) {
	s.modes[n] = on
	if n == 1049 {
		for y := range s.cells {
			s.cells[y] = blankLine(s.w)
		}
		if !on {
			s.x, s.y = 0, 0
		}
	}
}

// text returns what is seen.
func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, line := range s.cells {
		b.WriteString(strings.TrimRight(strings.Join(line, ""), " ") + "\n")
	}
	return b.String()
}

// clean reports which modes are still as a program set them.
func (s *screen) leftOver() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []int
	for n, on := range s.modes {
		if on != powerOn[n] && n != 2026 {
			out = append(out, n)
		}
	}
	return out
}
