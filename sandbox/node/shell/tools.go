package shell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tools returns the commands by name.
func tools() map[string]tool {
	return map[string]tool{
		"sh": sh, "ash": sh, "command": which, "type": which,
		"[": test, "test": test, "true": succeed, "false": fail,
		"echo": echo, "printf": printf, "env": env, "printenv": printenv, "hostname": hostname, "pwd": pwd,
		"sleep": sleep, "date": date, "id": id, "whoami": whoami, "uname": uname, "kill": kill, "ps": ps, "which": which,
		"seq": seq, "yes": yes, "basename": basename, "dirname": dirname, "timeout": timeout, "clear": clearScreen,
		"cat": cat, "ls": ls, "touch": touch, "mkdir": mkdir, "rm": rm, "cp": cp, "mv": mv, "tee": tee, "stat": stat,
		"head": head, "tail": tail, "grep": grep, "wc": wc, "sort": sortLines, "uniq": uniq, "cut": cut, "tr": tr,
		"tar": archiver, "find": find, "xargs": xargs, "sed": sed, "base64": encode, "sha256sum": sha256sum,
		"curl": curl, "wget": wget, "nslookup": nslookup, "getent": getent, "nc": nc,
	}
}

// why returns the system's text for an error about a file.
func why(err error) string {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		text := errno.Error()
		return strings.ToUpper(text[:1]) + text[1:]
	case errors.Is(err, fs.ErrNotExist):
		return "No such file or directory"
	case errors.Is(err, fs.ErrExist):
		return "File exists"
	case errors.Is(err, fs.ErrPermission):
		return "Permission denied"
	}
	if at, is := errors.AsType[*fs.PathError](err); is {
		err = at.Err
	}
	return err.Error()
}

func problem(io streams, argv []string, format string, args ...any) int {
	fmt.Fprintf(io.err, "%s: %s\n", argv[0], fmt.Sprintf(format, args...))
	return 1
}

func succeed(*process, []string, streams) int { return 0 }

func fail(*process, []string, streams) int { return 1 }

func clearScreen(_ *process, _ []string, io streams) int {
	fmt.Fprint(io.out, "\x1b[H\x1b[J")
	return 0
}

func echo(_ *process, argv []string, s streams) int {
	args, end, escapes := argv[1:], "\n", false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		if strings.Contains(args[0], "n") {
			end = ""
		}
		escapes = escapes || strings.Contains(args[0], "e")
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if escapes {
		text = unescape(text)
	}
	if _, err := io.WriteString(s.out, text+end); err != nil {
		return 1
	}
	return 0
}

func unescape(text string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\a`, "\a", `\e`, "\x1b", `\033`, "\x1b",
		`\0`, "\x00").Replace(text)
}

// printf knows %s %d %c and %%.
func printf(p *process, argv []string, s streams) int {
	if len(argv) < 2 {
		return problem(s, argv, "usage: printf FORMAT [ARG]...")
	}
	format, args := unescape(argv[1]), argv[2:]
	var text strings.Builder
	for first := true; first || len(args) > 0; first = false {
		before := len(args)
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 == len(format) {
				text.WriteByte(format[i])
				continue
			}
			i++
			if format[i] == '%' {
				text.WriteByte('%')
				continue
			}
			arg := ""
			if len(args) > 0 {
				arg, args = args[0], args[1:]
			}
			switch format[i] {
			case 's':
				text.WriteString(arg)
			case 'b':
				text.WriteString(unescape(arg))
			case 'c':
				text.WriteString(arg[:min(1, len(arg))])
			case 'd', 'i':
				n, err := strconv.Atoi(arg)
				if err != nil && arg != "" {
					return problem(s, argv, "invalid number '%s'", arg)
				}
				text.WriteString(strconv.Itoa(n))
			default:
				return problem(s, argv, "%v", unsupported("%"+format[i:i+1]))
			}
		}
		if len(args) == before || p.ctx.Err() != nil || text.Len() > maxText {
			break
		}
	}
	if _, err := io.WriteString(s.out, text.String()); err != nil {
		return 1
	}
	return 0
}

func env(p *process, argv []string, io streams) int {
	inner := p.child(p.ctx)
	args := argv[1:]
	for len(args) > 0 {
		name, value, assigned := strings.Cut(args[0], "=")
		if !assigned {
			break
		}
		inner.environment[name] = value
		args = args[1:]
	}
	if len(args) > 0 {
		if _, known := p.container.find(args[0]); !known {
			problem(io, argv, "can't execute '%s': No such file or directory", args[0])
			return CodeNotFound
		}
		return inner.execute(args, io)
	}
	for _, e := range inner.list() {
		fmt.Fprintln(io.out, e)
	}
	return 0
}

func printenv(p *process, argv []string, io streams) int {
	if len(argv) == 1 {
		return env(p, argv, io)
	}
	code := 0
	for _, name := range argv[1:] {
		if value, ok := p.environment[name]; ok {
			fmt.Fprintln(io.out, value)
		} else {
			code = 1
		}
	}
	return code
}

func hostname(p *process, argv []string, io streams) int {
	o, err := parse(argv, "i,ip-address f,fqdn s,short")
	if err != nil || len(o.names) > 0 {
		return problem(io, argv, "it can only be shown here")
	}
	if o.has("i") {
		fmt.Fprintln(io.out, p.container.IP)
		return 0
	}
	fmt.Fprintln(io.out, p.container.Hostname)
	return 0
}

func pwd(p *process, _ []string, io streams) int {
	fmt.Fprintln(io.out, p.dir)
	return 0
}

// sleep takes seconds, also with a unit: 1.5, 2m, infinity.
func sleep(p *process, argv []string, io streams) int {
	if len(argv) < 2 {
		return problem(io, argv, "missing operand")
	}
	var total time.Duration
	for _, a := range argv[1:] {
		d, err := duration(a)
		if err != nil {
			return problem(io, argv, "invalid number '%s'", a)
		}
		total = min(total+d, forever)
	}
	return p.pause(total)
}

const forever = 100 * 365 * 24 * time.Hour

func duration(text string) (time.Duration, error) {
	if text == "infinity" || text == "inf" {
		return forever, nil
	}
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	unit := time.Second
	if n := len(text); n > 0 && units[text[n-1]] != 0 {
		unit, text = units[text[n-1]], text[:n-1]
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0) {
		return 0, fmt.Errorf("%q is no duration", text)
	}
	return time.Duration(min(n*float64(unit), float64(forever))), nil
}

// pause waits, or ends with the context.
func (p *process) pause(d time.Duration) int {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return 0
	case <-p.ctx.Done():
		return codeKilled
	}
}

// timeout ends a command after a while.
func timeout(p *process, argv []string, io streams) int {
	o, err := parse(argv, "+")
	if err != nil || len(o.names) < 2 {
		return problem(io, argv, "usage: timeout SECS PROG ARGS")
	}
	d, err := duration(o.names[0])
	if err != nil {
		return problem(io, argv, "invalid number '%s'", o.names[0])
	}
	ctx, cancel := withTimeout(p.ctx, d)
	defer cancel()
	io.in = interruptible(ctx, io.in)
	code := p.child(ctx).execute(o.names[1:], io)
	if ctx.Err() != nil && p.ctx.Err() == nil {
		return 143
	}
	return code
}

func date(_ *process, argv []string, io streams) int {
	now := time.Now().UTC()
	format := "+%a %b %e %H:%M:%S UTC %Y"
	for _, a := range argv[1:] {
		switch {
		case a == "-u":
		case strings.HasPrefix(a, "+"):
			format = a
		default:
			return problem(io, argv, "invalid date '%s'", a)
		}
	}
	replacements := []string{"%%", "%"}
	for letter, layout := range map[string]string{
		"a": "Mon", "b": "Jan", "e": "_2", "H": "15", "M": "04", "S": "05", "Y": "2006", "m": "01", "d": "02",
		"T": "15:04:05", "F": "2006-01-02", "Z": "UTC", "z": "-0700", "N": "000000000", "A": "Monday", "B": "January",
		"R": "15:04", "y": "06", "j": "002", "I": "03", "p": "PM",
	} {
		text := now.Format(layout)
		if letter == "N" {
			text = fmt.Sprintf("%09d", now.Nanosecond())
		}
		replacements = append(replacements, "%"+letter, text)
	}
	replacements = append(replacements, "%s", strconv.FormatInt(now.Unix(), 10))
	fmt.Fprintln(io.out, strings.NewReplacer(replacements...).Replace(format[1:]))
	return 0
}

func id(p *process, argv []string, io streams) int {
	o, err := parse(argv, "u,user g,group n,name")
	if err != nil {
		return problem(io, argv, "%v", err)
	}
	uid, gid := p.container.UID, p.container.GID
	switch {
	case o.has("u") && o.has("n"):
		return whoami(p, argv, io)
	case o.has("u"):
		fmt.Fprintln(io.out, uid)
	case o.has("g"):
		fmt.Fprintln(io.out, gid)
	default:
		fmt.Fprintf(io.out, "uid=%d%s gid=%d%s\n", uid, rootName(uid), gid, rootName(gid))
	}
	return 0
}

func rootName(id int64) string {
	if id == 0 {
		return "(root)"
	}
	return ""
}

func whoami(p *process, argv []string, io streams) int {
	if p.container.UID != 0 {
		return problem(io, argv, "unknown uid %d", p.container.UID)
	}
	fmt.Fprintln(io.out, "root")
	return 0
}

func uname(p *process, argv []string, io streams) int {
	o, err := parse(argv, "a,all s,kernel-name n,nodename")
	if err != nil {
		return problem(io, argv, "%v", err)
	}
	switch {
	case o.has("n"):
		fmt.Fprintln(io.out, p.container.Hostname)
	case o.has("a"):
		fmt.Fprintln(io.out, "operator-lab", p.container.Hostname, "simulated container")
	default:
		fmt.Fprintln(io.out, "operator-lab")
	}
	return 0
}

func seq(p *process, argv []string, s streams) int {
	first, step, last := 1, 1, 0
	var numbers []int
	for _, a := range argv[1:] {
		n, err := strconv.Atoi(a)
		if err != nil {
			return problem(s, argv, "invalid number '%s'", a)
		}
		numbers = append(numbers, n)
	}
	switch len(numbers) {
	case 1:
		last = numbers[0]
	case 2:
		first, last = numbers[0], numbers[1]
	case 3:
		first, step, last = numbers[0], numbers[1], numbers[2]
	default:
		return problem(s, argv, "usage: seq [FIRST [INC]] LAST")
	}
	if step == 0 {
		return problem(s, argv, "the increment must not be 0")
	}
	for n := first; (step > 0 && n <= last || step < 0 && n >= last) && p.ctx.Err() == nil; n += step {
		if _, err := fmt.Fprintln(s.out, n); err != nil {
			return 1
		}
		if step > 0 && n > last-step || step < 0 && n < last-step { // the next would be beyond, or wrap around
			break
		}
	}
	return 0
}

func yes(p *process, argv []string, s streams) int {
	text := "y\n"
	if len(argv) > 1 {
		text = strings.Join(argv[1:], " ") + "\n"
	}
	text = strings.Repeat(text, 1+4096/len(text))
	for p.ctx.Err() == nil {
		if _, err := io.WriteString(s.out, text); err != nil {
			return 1
		}
	}
	return codeKilled
}

func basename(_ *process, argv []string, io streams) int {
	if len(argv) < 2 {
		return problem(io, argv, "missing operand")
	}
	name := strings.TrimRight(argv[1], "/")
	name = name[strings.LastIndexByte(name, '/')+1:]
	if len(argv) > 2 {
		name = strings.TrimSuffix(name, argv[2])
	}
	fmt.Fprintln(io.out, name)
	return 0
}

func dirname(_ *process, argv []string, io streams) int {
	if len(argv) < 2 {
		return problem(io, argv, "missing operand")
	}
	name := strings.TrimRight(argv[1], "/")
	switch at := strings.LastIndexByte(name, '/'); at {
	case -1:
		name = "."
	case 0:
		name = "/"
	default:
		name = name[:at]
	}
	fmt.Fprintln(io.out, name)
	return 0
}

// device reports whether a path is a stream instead of a file.
func device(name string) bool {
	switch name {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/proc/1/fd/1", "/proc/1/fd/2", "/dev/fd/1", "/dev/fd/2":
		return true
	}
	return false
}
