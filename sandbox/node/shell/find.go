package shell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/pattern"

	"github.com/operator-lab/operator-lab/sandbox/node/rootfs"
)

// found is a file that find looks at.
type found struct {
	name string
	rootfs.Info
}

// condition is a part of find's expression: whether a file is meant, or what is done with it.
type condition func(found) (bool, error)

// finder is a find at work.
type finder struct {
	*process
	argv []string
	io   streams
	// rest are the arguments that are not parsed yet, and depth is the number of brackets around them.
	rest  []string
	depth int
	// acts is set if the expression does something with files; otherwise their names are printed.
	acts               bool
	minDepth, maxDepth int
	// deletes is set if directories come after what is in them.
	deletes bool
	code    int
	// many are the commands that are run once for many files, with '-exec … +'.
	many []*gathered
}

// gathered is a command that gets the names of many files.
type gathered struct{ command, names []string }

// find looks for files.
func find(p *process, argv []string, s streams) int {
	f := &finder{process: p, argv: argv, io: s, maxDepth: maxDepth}
	begin := 1 + slices.IndexFunc(argv[1:], func(a string) bool {
		return strings.HasPrefix(a, "-") || a == "!" || a == "("
	})
	if begin == 0 {
		begin = len(argv)
	}
	names := argv[1:begin]
	if len(names) == 0 {
		names = []string{"."}
	}
	f.rest = argv[begin:]
	meant, err := f.parse()
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	for _, name := range names {
		if err := f.search(name, meant); err != nil {
			if p.ctx.Err() != nil {
				return codeKilled
			}
			f.code = problem(s, argv, "%s: %s", name, why(err))
		}
	}
	for _, g := range f.many {
		if len(g.names) > 0 && p.call(argv, append(g.command, g.names...), s) != 0 {
			f.code = 1
		}
	}
	return f.code
}

// search looks at a file and at what is below it.
func (f *finder) search(name string, meant condition) error {
	var later []found
	err := f.walk(name, func(at string, info rootfs.Info) error {
		depth := strings.Count(strings.TrimPrefix(strings.TrimPrefix(at, strings.TrimSuffix(name, "/")), "/"), "/") + 1
		if at == name {
			depth = 0
		}
		one := found{at, info}
		switch {
		case depth < f.minDepth:
		case f.deletes:
			later = append(later, one)
		default:
			if _, err := meant(one); err != nil {
				return err
			}
		}
		if depth >= f.maxDepth && info.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	for _, one := range slices.Backward(later) {
		if _, wrong := meant(one); err == nil {
			err = wrong
		}
	}
	return err
}

// parse reads the whole expression.
func (f *finder) parse() (condition, error) {
	all := condition(func(found) (bool, error) { return true, nil })
	if len(f.rest) > 0 {
		var err error
		if all, err = f.either(); err != nil {
			return nil, err
		}
		if len(f.rest) > 0 {
			return nil, fmt.Errorf("unexpected '%s'", f.rest[0])
		}
	}
	if f.acts {
		return all, nil
	}
	return both(all, f.print("\n")), nil
}

// next takes an argument away if it is one of these.
func (f *finder) next(these ...string) bool {
	if len(f.rest) == 0 || !slices.Contains(these, f.rest[0]) {
		return false
	}
	f.rest = f.rest[1:]
	return true
}

// either reads conditions with -o between them.
func (f *finder) either() (condition, error) {
	left, err := f.all()
	for err == nil && f.next("-o", "-or") {
		var right condition
		first := left
		right, err = f.all()
		left = func(one found) (bool, error) {
			if is, err := first(one); is || err != nil {
				return is, err
			}
			return right(one)
		}
	}
	return left, err
}

// all reads conditions that all must hold.
func (f *finder) all() (condition, error) {
	left, err := f.one()
	for err == nil && (f.next("-a", "-and") || len(f.rest) > 0 && !slices.Contains([]string{"-o", "-or", ")"}, f.rest[0])) {
		var right condition
		if right, err = f.one(); err == nil {
			left = both(left, right)
		}
	}
	return left, err
}

func both(left, right condition) condition {
	return func(one found) (bool, error) {
		if is, err := left(one); !is || err != nil {
			return false, err
		}
		return right(one)
	}
}

// one reads one condition.
func (f *finder) one() (condition, error) {
	if f.depth++; f.depth > maxDepth {
		return nil, errors.New("the expression is too deep")
	}
	defer func() { f.depth-- }()
	if len(f.rest) == 0 {
		return nil, errors.New("the expression ends too early")
	}
	word := f.rest[0]
	f.rest = f.rest[1:]
	switch word {
	case "!", "-not":
		inner, err := f.one()
		return func(one found) (bool, error) {
			is, err := inner(one)
			return !is, err
		}, err
	case "(":
		inner, err := f.either()
		if err == nil && !f.next(")") {
			err = errors.New("')' is missing")
		}
		return inner, err
	case "-print":
		return f.act(f.print("\n")), nil
	case "-print0":
		return f.act(f.print("\x00")), nil
	case "-delete":
		f.deletes = true
		return f.act(func(one found) (bool, error) { return f.done(one, f.container.Files.Remove(f.path(one.name))) }), nil
	case "-empty":
		return f.empty, nil
	case "-exec":
		return f.exec()
	}
	test, known := map[string]func(string) (condition, error){
		"-name": func(text string) (condition, error) {
			return matches(text, 0, func(one found) string { return path.Base(one.name) })
		},
		"-iname": func(text string) (condition, error) {
			return matches(text, pattern.NoGlobCase, func(one found) string { return path.Base(one.name) })
		},
		"-path": func(text string) (condition, error) {
			return matches(text, 0, func(one found) string { return one.name })
		},
		"-type": ofType, "-mindepth": f.limit(&f.minDepth), "-maxdepth": f.limit(&f.maxDepth),
	}[word]
	switch {
	case !known:
		return nil, &problemWith{option: word}
	case len(f.rest) == 0:
		return nil, &problemWith{option: word, noValue: true}
	}
	text := f.rest[0]
	f.rest = f.rest[1:]
	return test(text)
}

// act notes that the expression does something.
func (f *finder) act(do condition) condition {
	f.acts = true
	return do
}

func (f *finder) print(end string) condition {
	return func(one found) (bool, error) {
		_, err := io.WriteString(f.io.out, one.name+end)
		return true, err
	}
}

// done reports whether something was done with a file, and tells why not.
func (f *finder) done(one found, err error) (bool, error) {
	if err != nil {
		f.code = problem(f.io, f.argv, "%s: %s", one.name, why(err))
	}
	return err == nil, f.ctx.Err()
}

func (f *finder) empty(one found) (bool, error) {
	if !one.IsDir() {
		return one.Mode.IsRegular() && one.Size == 0, nil
	}
	entries, err := f.container.Files.ReadDir(f.path(one.name))
	return err == nil && len(entries) == 0, nil
}

// limit sets how far below the given files find looks.
func (f *finder) limit(to *int) func(string) (condition, error) {
	return func(text string) (condition, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("invalid number '%s'", text)
		}
		*to = min(n, maxDepth)
		return func(found) (bool, error) { return true, nil }, nil
	}
}

// matches compares a text with a pattern of a shell, in which * stands for slashes, too.
func matches(text string, mode pattern.Mode, of func(found) string) (condition, error) {
	expression, err := pattern.Regexp(text, mode|pattern.EntireString)
	if err != nil {
		return nil, fmt.Errorf("bad pattern '%s'", text)
	}
	compiled, err := compile(expression)
	if err != nil {
		return nil, fmt.Errorf("bad pattern '%s'", text)
	}
	return func(one found) (bool, error) { return compiled.MatchString(of(one)), nil }, nil
}

func ofType(text string) (condition, error) {
	kind, known := map[string]fs.FileMode{"f": 0, "d": fs.ModeDir, "l": fs.ModeSymlink, "c": fs.ModeDevice | fs.ModeCharDevice}[text]
	if !known {
		return nil, fmt.Errorf("unknown type '%s'", text)
	}
	return func(one found) (bool, error) { return one.Mode.Type() == kind, nil }, nil
}

// exec reads a command up to ';', which is run for each file, or up to '{} +', which is run for all.
func (f *finder) exec() (condition, error) {
	end := slices.IndexFunc(f.rest, func(a string) bool { return a == ";" })
	plus := slices.Index(f.rest, "+")
	if plus > 0 && f.rest[plus-1] == "{}" && (end < 0 || plus < end) {
		g := &gathered{command: slices.Clip(f.rest[:plus-1])}
		f.rest = f.rest[plus+1:]
		f.many = append(f.many, g)
		if len(g.command) == 0 {
			return nil, &problemWith{option: "-exec", noValue: true}
		}
		return f.act(func(one found) (bool, error) {
			g.names = append(g.names, one.name)
			return true, nil
		}), nil
	}
	if end < 1 {
		return nil, errors.New("-exec needs a command with ';' or '{} +' at its end")
	}
	command := f.rest[:end]
	f.rest = f.rest[end+1:]
	return f.act(func(one found) (bool, error) {
		var argv []string
		for _, a := range command {
			argv = append(argv, strings.ReplaceAll(a, "{}", one.name))
		}
		return f.call(f.argv, argv, f.io) == 0, f.ctx.Err()
	}), nil
}

// call runs a command for another one, without its input.
func (p *process) call(caller, argv []string, s streams) int {
	if _, known := p.container.find(argv[0]); !known {
		problem(s, caller, "%s: No such file or directory", argv[0])
		return CodeNotFound
	}
	s.in = strings.NewReader("")
	return p.child(p.ctx).execute(slices.Clone(argv), s)
}

// maxArguments is how many arguments xargs and find give to one command at most.
const maxArguments = 5000

// xargs runs a command with arguments that it reads.
func xargs(p *process, argv []string, s streams) int {
	o, err := parse(argv, "+0,null n,max-args: I,replace: r,no-run-if-empty t,verbose")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	size := maxArguments
	if text, given := o.value("n"); given {
		if size, err = strconv.Atoi(text); err != nil || size < 1 {
			return problem(s, argv, "invalid number '%s'", text)
		}
	}
	input, err := io.ReadAll(io.LimitReader(s.in, maxText+1))
	if err == nil && len(input) > maxText {
		err = errTooLong
	}
	mark, replaces := o.value("I")
	var words []string
	if err == nil {
		words, err = arguments(string(input), o.has("0"), replaces)
	}
	if err != nil {
		return problem(s, argv, "%s", why(err))
	}
	command := o.names
	if len(command) == 0 {
		command = []string{"echo"}
	}
	if len(words) == 0 && (o.has("r") || replaces) {
		return 0
	}
	if replaces {
		size = 1
	}
	code := 0
	for first := true; (first || len(words) > 0) && p.ctx.Err() == nil; first = false {
		these := words[:min(size, len(words))]
		words = words[len(these):]
		full := slices.Concat(command, these)
		if replaces {
			full = slices.Clone(command)
			for i := range full {
				full[i] = strings.ReplaceAll(full[i], mark, these[0])
			}
		}
		if o.has("t") {
			fmt.Fprintln(s.err, strings.Join(full, " "))
		}
		switch p.call(argv, full, s) {
		case 0:
		case CodeNotFound:
			return CodeNotFound
		default:
			code = 123
		}
	}
	if p.ctx.Err() != nil {
		return codeKilled
	}
	return code
}

// arguments splits a text at zero bytes; by lines; or at white space, with the quotes of a shell.
func arguments(text string, zeros, lines bool) ([]string, error) {
	if zeros || lines {
		end := "\n"
		if zeros {
			end = "\x00"
		}
		all := strings.Split(strings.TrimSuffix(text, end), end)
		return slices.DeleteFunc(all, func(a string) bool { return a == "" && (lines || len(text) == 0) }), nil
	}
	var all []string
	var word strings.Builder
	begun, quote := false, rune(0)
	escaped := false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case quote != 0 && r == '\n':
			return nil, errors.New("a quote is not closed in its line")
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\\':
			escaped, begun = true, true
		case r == '"' || r == '\'':
			quote, begun = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if begun {
				all = append(all, word.String())
				word.Reset()
			}
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if begun {
		all = append(all, word.String())
	}
	return all, nil
}
