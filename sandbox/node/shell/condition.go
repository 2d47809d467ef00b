package shell

import (
	"fmt"
	"strconv"
)

// test is [ … ]: 0 is true, 1 is false, 2 is neither.
func test(p *process, argv []string, io streams) int {
	args := argv[1:]
	if argv[0] == "[" {
		if len(args) == 0 || args[len(args)-1] != "]" {
			fmt.Fprintln(io.err, "sh: [: missing ]")
			return 2
		}
		args = args[:len(args)-1]
	}
	t := &tester{p: p, args: args}
	result, err := t.any()
	if err == nil && len(t.args) > 0 {
		err = fmt.Errorf("%s: unexpected operator", t.args[0])
	}
	if err != nil {
		fmt.Fprintf(io.err, "sh: %s: %v\n", argv[0], err)
		return 2
	}
	if result {
		return 0
	}
	return 1
}

type tester struct {
	p    *process
	args []string
}

func (t *tester) next() string {
	one := t.args[0]
	t.args = t.args[1:]
	return one
}

func (t *tester) take(what string) bool {
	if len(t.args) > 0 && t.args[0] == what {
		t.args = t.args[1:]
		return true
	}
	return false
}

func (t *tester) any() (bool, error) {
	if len(t.args) == 0 {
		return false, nil
	}
	result, err := t.all()
	for err == nil && t.take("-o") {
		var right bool
		right, err = t.all()
		result = result || right
	}
	return result, err
}

func (t *tester) all() (bool, error) {
	result, err := t.one()
	for err == nil && t.take("-a") {
		var right bool
		right, err = t.one()
		result = result && right
	}
	return result, err
}

func (t *tester) one() (bool, error) {
	not := false
	for len(t.args) > 1 && t.take("!") {
		not = !not
	}
	if len(t.args) == 0 {
		return false, fmt.Errorf("argument expected")
	}
	result, err := t.primary()
	return result != not, err
}

func (t *tester) primary() (bool, error) {
	if len(t.args) >= 3 {
		if compare := comparison(t.args[1]); compare != nil {
			left, _, right := t.next(), t.next(), t.next()
			return compare(left, right)
		}
	}
	if len(t.args) >= 2 && len(t.args[0]) == 2 && t.args[0][0] == '-' {
		if unary := t.unary(t.args[0][1]); unary != nil {
			t.next()
			return unary(t.next()), nil
		}
	}
	return t.next() != "", nil
}

func comparison(operator string) func(a, b string) (bool, error) {
	switch operator {
	case "=", "==":
		return func(a, b string) (bool, error) { return a == b, nil }
	case "!=":
		return func(a, b string) (bool, error) { return a != b, nil }
	}
	numbers, ok := map[string]func(a, b int) bool{
		"-eq": func(a, b int) bool { return a == b }, "-ne": func(a, b int) bool { return a != b },
		"-lt": func(a, b int) bool { return a < b }, "-le": func(a, b int) bool { return a <= b },
		"-gt": func(a, b int) bool { return a > b }, "-ge": func(a, b int) bool { return a >= b },
	}[operator]
	if !ok {
		return nil
	}
	return func(left, right string) (bool, error) {
		a, err := strconv.Atoi(left)
		if err != nil {
			return false, fmt.Errorf("%s: bad number", left)
		}
		b, err := strconv.Atoi(right)
		if err != nil {
			return false, fmt.Errorf("%s: bad number", right)
		}
		return numbers(a, b), nil
	}
}

func (t *tester) unary(operator byte) func(string) bool {
	file := t.p.container.Files
	switch operator {
	case 'n':
		return func(s string) bool { return s != "" }
	case 'z':
		return func(s string) bool { return s == "" }
	case 'e', 'r', 'w':
		return func(s string) bool {
			_, err := t.p.stat(s)
			return err == nil
		}
	case 'f':
		return func(s string) bool {
			info, err := file.Stat(t.p.path(s))
			return err == nil && info.Mode.IsRegular()
		}
	case 'd':
		return func(s string) bool {
			info, err := file.Stat(t.p.path(s))
			return err == nil && info.IsDir()
		}
	case 's':
		return func(s string) bool {
			info, err := file.Stat(t.p.path(s))
			return err == nil && info.Size > 0
		}
	case 'x':
		return func(s string) bool {
			_, ok := t.p.container.find(s)
			return ok
		}
	}
	return nil
}
