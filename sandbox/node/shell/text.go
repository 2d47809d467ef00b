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
func number(argv []string) (n int, fromStart bool, o options, err error) {
	if len(argv) > 1 && len(argv[1]) > 1 && argv[1][0] == '-' && argv[1][1] >= '0' && argv[1][1] <= '9' {
		argv = append([]string{argv[0], "-n", argv[1][1:]}, argv[2:]...)
	}
	o, err = parse(argv, "f,follow F q,quiet n,lines: c,bytes:")
	if err != nil {
		return 0, false, o, err
	}
	n = 10
	for _, letter := range []string{"n", "c"} {
		text, ok := o.value(letter)
		if !ok {
			continue
		}
		fromStart = strings.HasPrefix(text, "+")
		if n, err = strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(text, "+"), "-")); err != nil || n < 0 {
			return 0, false, o, fmt.Errorf("invalid number '%s'", text)
		}
	}
	return n, fromStart, o, nil
}

func head(p *process, argv []string, s streams) int {
	n, _, o, err := number(argv)
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	return p.inputs(argv, o.names, s, func(_ string, in io.Reader) error {
		if o.has("c") {
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
	n, fromStart, o, err := number(argv)
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	last := p.last
	if o.has("c") {
		last = p.lastBytes
	}
	follow := o.has("f", "F")
	code := p.inputs(argv, o.names, s, func(_ string, in io.Reader) error {
		if err := last(s.out, in, n, fromStart); err != nil || !follow {
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

// lastBytes writes the last n bytes, or those from byte n on.
func (p *process) lastBytes(out io.Writer, in io.Reader, n int, fromStart bool) error {
	if fromStart {
		if err := p.copy(io.Discard, io.LimitReader(in, int64(max(n, 1)-1))); err != nil {
			return err
		}
		return p.copy(out, in)
	}
	if n > maxSorted {
		return errTooLong
	}
	var keep []byte
	buffer := make([]byte, 32<<10)
	for {
		if p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		got, err := in.Read(buffer)
		keep = append(keep, buffer[:got]...)
		keep = keep[max(0, len(keep)-n):]
		if errors.Is(err, io.EOF) {
			_, err := out.Write(keep)
			return err
		}
		if err != nil {
			return err
		}
	}
}

func grep(p *process, argv []string, s streams) int {
	o, err := parse(argv, "i,ignore-case v,invert-match c,count q,quiet,silent E,extended-regexp F,fixed-strings o,only-matching n,line-number l,files-with-matches s,no-messages w,word-regexp e,regexp:")
	if err != nil {
		return problem(s, argv, "%v", err) + 1
	}
	patterns := o.values["e"]
	if len(patterns) == 0 {
		if len(o.names) == 0 {
			return problem(s, argv, "usage: grep [-ivcqEFonlsw] PATTERN [FILE]...") + 1
		}
		patterns, o.names = o.names[:1], o.names[1:]
	}
	patterns = slices.Clone(patterns)
	for i, one := range patterns {
		switch {
		case o.has("F"):
			patterns[i] = regexp.QuoteMeta(one)
		case !o.has("E"):
			patterns[i] = basic(one)
		}
	}
	pattern := strings.Join(patterns, "|")
	if o.has("w") {
		pattern = `\b(?:` + pattern + `)\b`
	}
	if o.has("i") {
		pattern = "(?i)" + pattern
	}
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return problem(s, argv, "bad regex '%s'", pattern) + 1
	}
	if o.has("s") {
		s.err = io.Discard
	}
	found := false
	code := p.inputs(argv, o.names, s, func(name string, in io.Reader) error {
		g := grepper{o: o, expression: expression, out: s.out}
		if len(o.names) > 1 {
			g.prefix = name + ":"
		}
		err := p.lines(in, g.line)
		found = found || g.count > 0
		switch {
		case o.has("q"):
		case o.has("c"):
			fmt.Fprintf(s.out, "%s%d\n", g.prefix, g.count)
		case o.has("l") && g.count > 0:
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
	o             options
	expression    *regexp.Regexp
	out           io.Writer
	prefix        string
	count, number int
}

func (g *grepper) line(line string) (goOn bool, err error) {
	g.number++
	if g.expression.MatchString(line) == g.o.has("v") {
		return true, nil
	}
	g.count++
	if g.o.has("q") || g.o.has("l") {
		return false, nil
	}
	if g.o.has("c") {
		return true, nil
	}
	prefix := g.prefix
	if g.o.has("n") {
		prefix += strconv.Itoa(g.number) + ":"
	}
	if !g.o.has("o") {
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
	o, err := parse(argv, "l,lines w,words c,bytes")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	return p.inputs(argv, o.names, s, func(name string, in io.Reader) error {
		var c counter
		if err := p.copy(&c, in); err != nil {
			return err
		}
		var columns []string
		for _, one := range []struct {
			letter string
			n      int
		}{{"l", c.lines}, {"w", c.words}, {"c", c.bytes}} {
			if len(o.values) == 0 || o.has(one.letter) {
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
	o, err := parse(argv, "r,reverse n,numeric-sort u,unique")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	var all []string
	size := 0
	code := p.inputs(argv, o.names, s, func(_ string, in io.Reader) error {
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
		if o.has("n") {
			if d := leadingNumber(a) - leadingNumber(b); d != 0 {
				order = 1
				if d < 0 {
					order = -1
				}
			}
		}
		if o.has("r") {
			return -order
		}
		return order
	})
	if o.has("u") {
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
	o, err := parse(argv, "c,count")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	before, count := "", 0
	flush := func() error {
		if count == 0 {
			return nil
		}
		prefix := ""
		if o.has("c") {
			prefix = fmt.Sprintf("%7d ", count)
		}
		_, err := fmt.Fprintln(s.out, prefix+before)
		return err
	}
	return p.inputs(argv, o.names, s, func(_ string, in io.Reader) error {
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
	o, err := parse(argv, "s,only-delimited d,delimiter: f,fields:")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	delimiter := "\t"
	if d, ok := o.value("d"); ok {
		delimiter = d
	}
	var wanted []int
	fields, _ := o.value("f")
	for text := range strings.SplitSeq(fields, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || delimiter == "" {
			return problem(s, argv, "it needs -f with a list of numbers")
		}
		wanted = append(wanted, n)
	}
	return p.inputs(argv, o.names, s, func(_ string, in io.Reader) error {
		return p.lines(in, func(line string) (bool, error) {
			fields := strings.Split(line, delimiter)
			var chosen []string
			for _, n := range wanted {
				if n <= len(fields) {
					chosen = append(chosen, fields[n-1])
				}
			}
			switch {
			case len(fields) > 1:
			case o.has("s"):
				return true, nil
			default:
				chosen = fields
			}
			_, err := fmt.Fprintln(s.out, strings.Join(chosen, delimiter))
			return true, err
		})
	})
}

// tr knows sets of single characters and ranges, and -d.
func tr(p *process, argv []string, s streams) int {
	o, err := parse(argv, "d,delete")
	if err != nil || len(o.names) != 2 && (!o.has("d") || len(o.names) != 1) {
		return problem(s, argv, "usage: tr [-d] SET1 [SET2]")
	}
	from := characters(o.names[0])
	var to []byte
	if !o.has("d") {
		if to = characters(o.names[1]); len(to) == 0 {
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
