package shell

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// lines calls do with each line until it returns false.
func (p *process) lines(in io.Reader, do func(line string) (goOn bool, err error)) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxText)
	scanner.Split(splitLines)
	for scanner.Scan() {
		if p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		if goOn, err := do(scanner.Text()); err != nil || !goOn {
			return err
		}
	}
	return scanner.Err()
}

// splitLines leaves carriage returns where they are.
func splitLines(data []byte, atEnd bool) (advance int, line []byte, err error) {
	if at := bytes.IndexByte(data, '\n'); at >= 0 {
		return at + 1, data[:at], nil
	}
	if atEnd && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// number parses -n 5 or -5.
func number(argv []string) (n int, fromStart bool, set map[byte]string, names []string, err error) {
	if len(argv) > 1 && len(argv[1]) > 1 && argv[1][0] == '-' && argv[1][1] >= '0' && argv[1][1] <= '9' {
		argv = append([]string{argv[0], "-n", argv[1][1:]}, argv[2:]...)
	}
	set, names, err = flags(argv, "fFq", "nc")
	if err != nil {
		return 0, false, nil, nil, err
	}
	n = 10
	for _, letter := range []byte{'n', 'c'} {
		text, ok := set[letter]
		if !ok {
			continue
		}
		fromStart = strings.HasPrefix(text, "+")
		if n, err = strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(text, "+"), "-")); err != nil {
			return 0, false, nil, nil, fmt.Errorf("invalid number '%s'", text)
		}
	}
	return n, fromStart, set, names, nil
}

func head(p *process, argv []string, s streams) int {
	n, _, set, names, err := number(argv)
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	return p.inputs(argv, names, s, func(_ string, in io.Reader) error {
		if has(set, 'c') {
			return p.copy(s.out, io.LimitReader(in, int64(n)))
		}
		if n == 0 {
			return nil
		}
		count := 0
		return p.lines(in, func(line string) (bool, error) {
			count++
			_, err := fmt.Fprintln(s.out, line)
			return count < n, err
		})
	})
}

// lookAgain is the interval at which tail -f checks for more.
const lookAgain = 200 * time.Millisecond

func tail(p *process, argv []string, s streams) int {
	n, fromStart, set, names, err := number(argv)
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	if has(set, 'c') {
		return problem(s, argv, "%v", unsupported("-c"))
	}
	follow := has(set, 'f') || has(set, 'F')
	code := p.inputs(argv, names, s, func(_ string, in io.Reader) error {
		if err := p.last(s.out, in, n, fromStart); err != nil || !follow {
			return err
		}
		for p.pause(lookAgain) == 0 { // the open file yields more once there is more
			if err := p.copy(s.out, in); err != nil {
				return err
			}
		}
		return p.ctx.Err()
	})
	return code
}

// last writes the last n lines, or those from line n on.
func (p *process) last(out io.Writer, in io.Reader, n int, fromStart bool) error {
	var keep []string
	count := 0
	err := p.lines(in, func(line string) (bool, error) {
		count++
		if fromStart {
			if count < n {
				return true, nil
			}
			_, err := fmt.Fprintln(out, line)
			return true, err
		}
		keep = append(keep, line)
		if len(keep) > n {
			keep = keep[1:]
		}
		return true, nil
	})
	for _, line := range keep {
		if err == nil {
			_, err = fmt.Fprintln(out, line)
		}
	}
	return err
}

func grep(p *process, argv []string, s streams) int {
	set, rest, err := flags(argv, "ivcqEFonlsw", "e")
	if err != nil {
		return problem(s, argv, "%v", err) + 1
	}
	pattern, ok := set['e']
	if !ok {
		if len(rest) == 0 {
			return problem(s, argv, "usage: grep [-ivcqEFonlw] PATTERN [FILE]...") + 1
		}
		pattern, rest = rest[0], rest[1:]
	}
	if has(set, 'F') {
		pattern = regexp.QuoteMeta(pattern)
	}
	if has(set, 'w') {
		pattern = `\b(?:` + pattern + `)\b`
	}
	if has(set, 'i') {
		pattern = "(?i)" + pattern
	}
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return problem(s, argv, "bad regex '%s'", pattern) + 1
	}
	found := false
	code := p.inputs(argv, rest, s, func(name string, in io.Reader) error {
		g := grepper{set: set, expression: expression, out: s.out}
		if len(rest) > 1 {
			g.prefix = name + ":"
		}
		err := p.lines(in, g.line)
		found = found || g.count > 0
		switch {
		case has(set, 'q'):
		case has(set, 'c'):
			fmt.Fprintf(s.out, "%s%d\n", g.prefix, g.count)
		case has(set, 'l') && g.count > 0:
			fmt.Fprintln(s.out, name)
		}
		return err
	})
	switch {
	case code != 0:
		return max(code, 2)
	case found:
		return 0
	}
	return 1
}

type grepper struct {
	set           map[byte]string
	expression    *regexp.Regexp
	out           io.Writer
	prefix        string
	count, number int
}

func (g *grepper) line(line string) (goOn bool, err error) {
	g.number++
	if g.expression.MatchString(line) == has(g.set, 'v') {
		return true, nil
	}
	g.count++
	if has(g.set, 'q') || has(g.set, 'l') {
		return false, nil
	}
	if has(g.set, 'c') {
		return true, nil
	}
	prefix := g.prefix
	if has(g.set, 'n') {
		prefix += strconv.Itoa(g.number) + ":"
	}
	if !has(g.set, 'o') {
		_, err = fmt.Fprintln(g.out, prefix+line)
		return true, err
	}
	for _, part := range g.expression.FindAllString(line, -1) {
		if _, err = fmt.Fprintln(g.out, prefix+part); err != nil {
			return false, err
		}
	}
	return true, nil
}

func wc(p *process, argv []string, s streams) int {
	set, names, err := flags(argv, "lwc", "")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	return p.inputs(argv, names, s, func(name string, in io.Reader) error {
		var c counter
		if err := p.copy(&c, in); err != nil {
			return err
		}
		var columns []string
		for _, one := range []struct {
			letter byte
			n      int
		}{{'l', c.lines}, {'w', c.words}, {'c', c.bytes}} {
			if len(set) == 0 || has(set, one.letter) {
				columns = append(columns, strconv.Itoa(one.n))
			}
		}
		if name != "-" {
			columns = append(columns, name)
		}
		fmt.Fprintln(s.out, strings.Join(columns, " "))
		return nil
	})
}

type counter struct {
	lines, words, bytes int
	inWord              bool
}

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += len(p)
	for _, b := range p {
		if b == '\n' {
			c.lines++
		}
		space := b == ' ' || b == '\n' || b == '\t' || b == '\r'
		if !space && !c.inWord {
			c.words++
		}
		c.inWord = !space
	}
	return len(p), nil
}

// maxSorted is the maximum number of bytes to sort.
const maxSorted = 16 << 20

func sortLines(p *process, argv []string, s streams) int {
	set, names, err := flags(argv, "rnu", "")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	var all []string
	size := 0
	code := p.inputs(argv, names, s, func(_ string, in io.Reader) error {
		return p.lines(in, func(line string) (bool, error) {
			if size += len(line) + 16; size > maxSorted {
				return false, errTooLong
			}
			all = append(all, line)
			return true, nil
		})
	})
	slices.SortStableFunc(all, func(a, b string) int {
		order := strings.Compare(a, b)
		if has(set, 'n') {
			if d := leadingNumber(a) - leadingNumber(b); d != 0 {
				order = 1
				if d < 0 {
					order = -1
				}
			}
		}
		if has(set, 'r') {
			return -order
		}
		return order
	})
	if has(set, 'u') {
		all = slices.Compact(all)
	}
	for _, line := range all {
		fmt.Fprintln(s.out, line)
	}
	return code
}

func leadingNumber(text string) float64 {
	text = strings.TrimSpace(text)
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == '.' || end == 0 && text[end] == '-') {
		end++
	}
	n, _ := strconv.ParseFloat(text[:end], 64)
	return n
}

func uniq(p *process, argv []string, s streams) int {
	set, names, err := flags(argv, "c", "")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	before, count := "", 0
	flush := func() error {
		if count == 0 {
			return nil
		}
		prefix := ""
		if has(set, 'c') {
			prefix = fmt.Sprintf("%7d ", count)
		}
		_, err := fmt.Fprintln(s.out, prefix+before)
		return err
	}
	return p.inputs(argv, names, s, func(_ string, in io.Reader) error {
		err := p.lines(in, func(line string) (bool, error) {
			if count > 0 && line == before {
				count++
				return true, nil
			}
			err := flush()
			before, count = line, 1
			return true, err
		})
		return errors.Join(err, flush())
	})
}

// cut knows -d and -f, with single numbers and lists of them.
func cut(p *process, argv []string, s streams) int {
	set, names, err := flags(argv, "s", "df")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	delimiter := "\t"
	if d, ok := set['d']; ok {
		delimiter = d
	}
	var wanted []int
	for text := range strings.SplitSeq(set['f'], ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || delimiter == "" {
			return problem(s, argv, "it needs -f with a list of numbers")
		}
		wanted = append(wanted, n)
	}
	return p.inputs(argv, names, s, func(_ string, in io.Reader) error {
		return p.lines(in, func(line string) (bool, error) {
			fields := strings.Split(line, delimiter)
			var chosen []string
			for _, n := range wanted {
				if n <= len(fields) {
					chosen = append(chosen, fields[n-1])
				}
			}
			if len(fields) == 1 {
				chosen = fields
			}
			_, err := fmt.Fprintln(s.out, strings.Join(chosen, delimiter))
			return true, err
		})
	})
}

// tr knows sets of single characters and ranges, and -d.
func tr(p *process, argv []string, s streams) int {
	set, rest, err := flags(argv, "d", "")
	if err != nil || len(rest) != 2 && (!has(set, 'd') || len(rest) != 1) {
		return problem(s, argv, "usage: tr [-d] SET1 [SET2]")
	}
	from := characters(rest[0])
	var to []byte
	if !has(set, 'd') {
		if to = characters(rest[1]); len(to) == 0 {
			return problem(s, argv, "SET2 must not be empty")
		}
	}
	return p.inputs(argv, nil, s, func(_ string, in io.Reader) error {
		return p.copy(translator{s.out, from, to}, in)
	})
}

func characters(set string) []byte {
	text := []byte(unescape(set))
	var all []byte
	for i := 0; i < len(text); i++ {
		if i+2 < len(text) && text[i+1] == '-' && text[i] <= text[i+2] {
			for b := int(text[i]); b <= int(text[i+2]); b++ {
				all = append(all, byte(b))
			}
			i += 2
			continue
		}
		all = append(all, text[i])
	}
	return all
}

type translator struct {
	out      io.Writer
	from, to []byte
}

func (t translator) Write(p []byte) (int, error) {
	changed := make([]byte, 0, len(p))
	for _, b := range p {
		at := slices.Index(t.from, b)
		switch {
		case at < 0:
			changed = append(changed, b)
		case len(t.to) > 0:
			changed = append(changed, t.to[min(at, len(t.to)-1)])
		}
	}
	if _, err := t.out.Write(changed); err != nil {
		return 0, err
	}
	return len(p), nil
}
