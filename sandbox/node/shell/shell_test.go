package shell_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/node/rootfs"
	"github.com/operator-lab/operator-lab/sandbox/node/shell"
)

// newContainer has a volume with a file, an image with a file, and a scratch directory.
func newContainer(tb testing.TB) *shell.Container {
	tb.Helper()
	volume := tb.TempDir()
	if err := os.WriteFile(filepath.Join(volume, "key"), []byte("value\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	return &shell.Container{
		Files: rootfs.New(rootfs.Options{
			Scratch: tb.TempDir(),
			Mounts:  []rootfs.Mount{{Path: "/etc/config", Host: volume, ReadOnly: true}},
			File: func(path string) (string, bool) {
				return "one\ntwo\nthree\n", path == "/srv/lines"
			},
		}),
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		},
		Env:      []string{"GREETING=hello world", "EMPTY=", "HOME=/root"},
		Hostname: "web-0", IP: "10.244.1.2", Program: "serve --fast",
	}
}

// run runs a script and returns its output and its exit code.
func run(tb testing.TB, w *shell.Container, script string) (stdout, stderr string, code int) {
	tb.Helper()
	var out, errs bytes.Buffer
	code = w.Run(tb.Context(), []string{"sh", "-c", script}, nil, &out, &errs)
	return out.String(), errs.String(), code
}

func TestScripts(t *testing.T) {
	for _, c := range []struct {
		script, out string
		code        int
	}{
		{`echo hello`, "hello\n", 0},
		{`echo -n hello; echo " world"`, "hello world\n", 0},
		{`echo one # two`, "one\n", 0},
		{"echo one\necho two", "one\ntwo\n", 0},
		{"echo one \\\n two", "one two\n", 0},
		{`exit 3`, "", 3},
		{`false; echo $?`, "1\n", 0},
		{`false`, "", 1},
		{`true && echo yes || echo no`, "yes\n", 0},
		{`false && echo yes || echo no`, "no\n", 0},
		{`! false && echo yes`, "yes\n", 0},
		{`(exit 4); echo $?`, "4\n", 0},
		{`(cd /tmp; pwd); pwd`, "/tmp\n/\n", 0},
		{`{ echo a; echo b; } | wc -l`, "2\n", 0},
		{`echo "$GREETING"`, "hello world\n", 0},
		{`echo '$GREETING'`, "$GREETING\n", 0},
		{`for w in $GREETING; do echo "<$w>"; done`, "<hello>\n<world>\n", 0},
		{`for w in "$GREETING"; do echo "<$w>"; done`, "<hello world>\n", 0},
		{`echo ${MISSING:-nothing} ${GREETING:+something} ${#GREETING}`, "nothing something 11\n", 0},
		{`echo "${MISSING:-a b}" ${EMPTY-set}x`, "a b x\n", 0},
		{`: ${NEW:=made}; echo $NEW`, "made\n", 0},
		{`echo ${MISSING:?is needed}; echo never`, "", 1},
		{`A=1 B=2; echo $A$B`, "12\n", 0},
		{`A=1 printenv A; echo "<$A>"`, "1\n<>\n", 0},
		{`A=1; printenv A || echo not exported`, "not exported\n", 0},
		{`export A=1; sh -c 'echo $A'`, "1\n", 0},
		{`echo $(echo inner; echo more) end`, "inner more end\n", 0},
		{"echo `echo old`", "old\n", 0},
		{`A=$(exit 5); echo $?`, "5\n", 0},
		{`if [ -f /etc/config/key ]; then echo there; else echo missing; fi`, "there\n", 0},
		{`if test 1 -gt 2; then echo a; elif [ a = b ]; then echo b; else echo c; fi`, "c\n", 0},
		{`while true; do echo once; break; done`, "once\n", 0},
		{`until false; do echo once; break; done`, "once\n", 0},
		{`for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done`, "1\n3\n", 0},
		{`for i in 1 2; do for j in 1 2; do break 2; done; echo never; done; echo end`, "end\n", 0},
		{`echo out >/dev/null; echo err >&2; echo both 2>&1`, "both\n", 0},
		{`ls /missing 2>&1 | cat`, "ls: /missing: No such file or directory\n", 0},
		{`echo text > /tmp/f; echo more >> /tmp/f; cat < /tmp/f`, "text\nmore\n", 0},
		{`echo x > /etc/config/new 2>&1 || echo refused`, "refused\n", 0},
		{`cat /etc/config/key`, "value\n", 0},
		{`cat /srv/lines | head -2 | tail -1`, "two\n", 0},
		{`head -n1 /srv/lines; tail -n +3 /srv/lines`, "one\nthree\n", 0},
		{`grep -c t /srv/lines; grep -v one /srv/lines; grep -q four /srv/lines`, "2\ntwo\nthree\n", 1},
		{`grep two /srv/lines && echo found`, "two\nfound\n", 0},
		{`wc -l /srv/lines; wc < /srv/lines`, "3 /srv/lines\n3 3 14\n", 0},
		{`sort -r /srv/lines | tr a-z A-Z | cut -d W -f 1`, "T\nTHREE\nONE\n", 0},
		{`cd /etc/config && ls`, "key\n", 0},
		{`ls /etc/config/*`, "/etc/config/key\n", 0},
		{`echo /etc/config/k* "/etc/config/k*" /none/*`, "/etc/config/key /etc/config/k* /none/*\n", 0},
		{`rm /srv/lines; cat /srv/lines 2>/dev/null || echo gone`, "gone\n", 0},
		{`echo more >> /srv/lines; tail -2 /srv/lines`, "three\nmore\n", 0},
		{`mkdir -p /a/b/c; touch /a/b/c/f; ls /a/b; mv /a/b/c/f /tmp/g; ls /tmp; rm -r /a; ls /a 2>/dev/null || echo no`, "c\ng\nno\n", 0},
		{`cp /etc/config/key /tmp; cat /tmp/key`, "value\n", 0},
		{`hostname; hostname -i; whoami; id -u; pwd`, "web-0\n10.244.1.2\nroot\n0\n/\n", 0},
		{`sh -c 'echo $0 $1 $# "$@"' name a "b c"`, "name a 2 a b c\n", 0},
		{`set -- a b; shift; echo $1`, "b\n", 0},
		{`set -e; false; echo never`, "", 1},
		{`set -e; false || true; if false; then :; fi; echo end`, "end\n", 0},
		{`yes | head -n 2`, "y\ny\n", 0},
		{`yes | true; echo end`, "end\n", 0},
		{`seq 3 | while read n; do echo "<$n>"; done`, "<1>\n<2>\n<3>\n", 0},
		{`printf '%s-%d\n' a 1 b 2`, "a-1\nb-2\n", 0},
		{`exec echo replaced; echo never`, "replaced\n", 0},
		{`eval 'echo a; echo b'`, "a\nb\n", 0},
		{`command -v curl; command -v gcc`, "/bin/curl\n", 1},
		{`missing; echo $?`, "127\n", 0},
		{`/bin/echo hi; /opt/echo hi`, "hi\n", 127},
		{`kill -0 1 && kill 2`, "", 1},
		{`timeout 0.01 sleep infinity; echo $?`, "143\n", 0},
		{`basename /a/b.txt .txt; dirname /a/b.txt`, "b\n/a\n", 0},
		{`env | grep GREETING`, "GREETING=hello world\n", 0},
		{`[ "$GREETING" = "hello world" -a -n x ] && echo yes`, "yes\n", 0},
		{`[ -z "" ] && [ ! -e /nope ] && [ 3 -ge 3 ] && echo yes`, "yes\n", 0},
		{`echo "a\"b\$c"; echo a\ b`, "a\"b$c\na b\n", 0},
		{`true &&
		  echo next`, "next\n", 0},
		{`f() { echo "$1-$#"; return 3; }; f a b; echo $?`, "a-2\n3\n", 0},
		{`f() { local A=in; export B="$A x"; }; A=out; f; echo $A; printenv B`, "out\nin x\n", 0},
		{`case a.txt in *.go) echo go;; *.txt|*.md) echo text;; esac`, "text\n", 0},
		{`echo $((1 + 2 * 3)); i=0; while [ $i -lt 3 ]; do i=$((i+1)); done; echo $i; echo $((i++ + 1)) $i`, "7\n3\n4 4\n", 0},
		{"cat <<EOF\n$GREETING\n  $((1+1))\nEOF", "hello world\n  2\n", 0},
		{"cat <<'EOF'\n$GREETING $$ ~root\nEOF", "$GREETING $$ ~root\n", 0},
		{"cat <<-EOF\n\tone\n\t\ttwo\n\tEOF\n", "one\ntwo\n", 0},
		{`cat <<< "$GREETING"`, "hello world\n", 0},
		{`[[ a = a* && ! -e /nope ]] && echo yes`, "yes\n", 0},
		{`f=/a/b.tar.gz; echo ${f##*/} ${f%.*} ${f%%.*} ${f:3:5}; g='a*b'; echo ${g#a\*}`, "b.tar.gz /a/b.tar /a/b b.tar\nb\n", 0},
		{`A=a\ b\'c; echo "$A"; A=x\\y; echo "$A"; echo a\*b`, "a b'c\nx\\y\na*b\n", 0},
		{`sleep infinity & echo on`, "on\n", 0},
		{`sleep 0.01 & wait; echo end`, "end\n", 0},
		{`trap 'echo bye' EXIT; echo hi; exit 4`, "hi\nbye\n", 4},
		{`set -u; echo $MISSING; echo never`, "", 1},
		{`set -eo pipefail; false | true; echo never`, "", 1},
		{`exec >/tmp/all; echo kept; cat /tmp/all >&2`, "", 0},
		{`echo 'A=sourced; echo $# $1' > /tmp/s; . /tmp/s x y; echo $A`, "2 x\nsourced\n", 0},
		{`echo 'echo script $0 $1' > /tmp/s; sh /tmp/s x`, "script /tmp/s x\n", 0},
		{`N=V; export "$N=a  b" M=c; printenv V M; export $N=x; printenv V`, "a  b\nc\nx\n", 0},
		{`readonly R=1; R=2; echo $R`, "1\n", 0},
		{`printf 'a b  c\nd\\\ne' | while read -r x y; do echo "<$x|$y>"; done`, "<a|b  c>\n<d\\|>\n", 0},
		{`printf 'a:b\nrest\n' | { IFS=: read x y; echo "$y$x"; cat; }`, "ba\nrest\n", 0},
		{`while IFS= read -r l; do echo "<$l>"; done < /srv/lines`, "<one>\n<two>\n<three>\n", 0},
		{`printf "it's; a\rb \$x" | { read -r l; printf '%s' "$l"; }`, "it's; a\rb $x", 0},
		{`echo $(</etc/config/key) "$(cat < /etc/config/key)"`, "value value\n", 0},
		{`while :; do echo y; done | head -n 1; echo end`, "y\nend\n", 0},
		{`echo a{b,c}; ls /none >| /tmp/o 2>&1; wc -l < /tmp/o; echo x &> /tmp/o; cat /tmp/o`, "ab ac\n1\nx\n", 0},
		{`curl() { echo mine; }; curl x; command -v f || echo no`, "mine\nno\n", 0},
		{`echo $$ $0 ${0##*/}`, "7 sh sh\n", 0},

		{
			`mkdir -pv /d/e; mkdir -pv /d/e; echo 1 > /d/e/f; cp -Rv d/ /c; ls -lR /c | wc -l; cd /; rm -rfv c; ls /c`,
			"created directory: '/d/e'\n'd' -> '/c'\n'd/e' -> '/c/e'\n'd/e/f' -> '/c/e/f'\n5\nremoved 'c/e/f'\nremoved 'c/e'\nremoved 'c'\n", 1,
		},
		{`mkdir /d; cp /d /c; cp -R /d /d/e; mv /d /c && ls -d /c`, "/c\n", 0},
		{`cp -t /tmp /srv/lines; ls --frob; head -n`, "", 1},
		{`timeout 5 ls -d /etc; head -c 3 /srv/lines; tail -c 4 /srv/lines; tail -c +13 /srv/lines`, "/etc\noneree\ne\n", 0},
		{`head --lines=1 /srv/lines; cut -d= -f2 <<< a=b; cut -sd: -f1 <<< ab; grep -e one -e two -c /srv/lines`, "one\nb\n2\n", 0},
		{`grep -o 't[wh]\+' /srv/lines; grep -Eo '(w|h)+' /srv/lines; echo 'a|b' | grep 'a|b'`, "tw\nth\nw\nh\na|b\n", 0},

		{
			`cd /tmp; mkdir -p a/b; echo 1 > a/b/f; echo 2 > a/g; tar cf t.tar a; rm -r a; tar xvf t.tar; cat a/b/f a/g; tar tf t.tar a/b`,
			"a/\na/b/\na/b/f\na/g\n1\n2\na/b/\na/b/f\n", 0,
		},
		{
			`tar czf - /etc/config/key 2>&1 >/tmp/t.tgz; tar -xOf /tmp/t.tgz; mkdir /o; tar -C /o -xzf /tmp/t.tgz; cat /o/etc/config/key`,
			"tar: removing leading '/' from member names\nvalue\n", 0,
		},
		{`tar cf - /srv/lines 2>/dev/null | tar xf - -C /tmp --strip-components=1; cat /tmp/lines`, "one\ntwo\nthree\n", 0},
		{`tar cf - /none || tar xf /srv/lines || tar c || tar t -f - < /dev/null`, strings.Repeat("\x00", 1024), 0},

		{
			`mkdir -p /d/e; echo 1 > /d/e/f.txt; touch /d/g; find /d; cd /d; find . -name '*.txt' -o -empty`,
			"/d\n/d/e\n/d/e/f.txt\n/d/g\n./e/f.txt\n./g\n", 0,
		},
		{
			`mkdir -p /d/e; touch /d/e/f /d/g; find /d -mindepth 1 -type d ! -name x; find /d -maxdepth 1 -type f -exec echo '<{}>' \;`,
			"/d/e\n</d/g>\n", 0,
		},
		{`mkdir -p /d/e; touch /d/e/f /d/g; find /d \( -name f -or -iname G \) -exec echo {} +; find /d -delete; ls /d`, "/d/e/f /d/g\n", 1},
		{`mkdir /d; touch '/d/a b'; find /d -type f -print0 | xargs -0 ls; find /d -frob || find /d \( || find /none`, "/d/a b\n", 1},
		{
			`seq 3 | xargs echo; seq 3 | xargs -n2 echo x; echo "a 'b c'" | xargs -I X echo '<X>'; xargs -r echo < /dev/null`,
			"1 2 3\nx 1 2\nx 3\n<a 'b c'>\n", 0,
		},
		{`echo "'a b' c\\ d" | xargs -t printf '<%s>'; echo a | xargs false; echo $?; echo a | xargs missing`, "<a b><c d>123\n", 127},

		{
			`sed 's/t\(.*\)o/[\1&]/' /srv/lines; sed -n '2p' /srv/lines; sed -E '/^t(w|x)+/d;$!s/o/0/g' /srv/lines`,
			"one\n[wtwo]\nthree\ntwo\n0ne\nthree\n", 0,
		},
		{
			`sed -ne '/two/,$p' -e '1=' /srv/lines; sed '2q;y/o/0/' /srv/lines; sed '2c\
changed' /srv/lines | sed '1i first' | sed '$a last'`, "1\ntwo\nthree\n0ne\ntwo\nfirst\none\nchanged\nthree\nlast\n", 0,
		},
		{`cp /srv/lines /tmp/l; sed -i 's|e$|/|;2,3!d' /tmp/l; cat /tmp/l; sed 's/x' /tmp/l || sed 's/a/\1/' /tmp/l || sed '{p}' /tmp/l`, "two\nthre/\n", 1},
		{`sed 's/[a-z]*/x/2;s/b/\n/' <<< 'ab cd'; sed '0p' /tmp || sed 'k' /tmp`, "a\n x\n", 1},

		{
			`base64 /srv/lines; base64 /srv/lines | base64 -d | tail -1; seq 30 | base64 -w 20 | head -1; echo '!' | base64 -d`,
			"b25lCnR3bwp0aHJlZQo=\nthree\nMQoyCjMKNAo1CjYKNwo4\n", 1,
		},
		{
			`cd /tmp; echo hello | tee f | sha256sum; sha256sum f > s; sha256sum -c s; echo x >> f; sha256sum -c s`,
			"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03  -\nf: OK\nf: FAILED\n", 1,
		},
	} {
		out, errs, code := run(t, newContainer(t), c.script)
		if out != c.out || code != c.code {
			t.Errorf("%s\n got %q, code %d (stderr %q)\nwant %q, code %d", c.script, out, code, errs, c.out, c.code)
		}
	}
}

func TestWhatTheShellDoesNotKnowItRefuses(t *testing.T) {
	for _, c := range []struct{ script, says string }{
		{`A=$(sleep 1 &)`, "background job"},
		{`f() { sleep 1 & }`, "background job"},
		{`cat <(echo a)`, "<(…)"},
		{`echo a > >(cat)`, "<(…)"},
		{`cat <<EOF`, `unexpected end of file (expecting "EOF")`},
		{`trap : TERM`, "trap"},
		{`[[ -O a ]]`, "[[ -O ]]"},
		{`[[ -v "" ]]`, "[[ -v ]]"},
		{`echo ${A/b/c}`, "${A"},
		{`A=(1 2)`, "array"},
		{`A[1]=2`, "array"},
		{`echo ${A[1]}`, "${A"},
		{`declare A=1`, "declare"},
		{`getopts a b -a`, "getopts"},
		{`mapfile a`, "mapfile"},
		{`alias a=b`, "alias"},
		{`coproc cat`, "coproc"},
		{`select a in b; do break; done`, "select"},
		{`echo() { :; }`, "function"},
		{`echo $((a[0]++))`, "arithmetic"},
		{`exec 3>/tmp/f`, "file descriptor 3"},
		{`exec {a}>/tmp/f`, "file descriptor {a}"},
		{`echo "open`, "unterminated quoted string"},
		{`if true; then echo`, `unexpected end of file (expecting "fi")`},
		{`echo a | | b`, "syntax error"},
		{`)`, "syntax error"},
		{`eval 'cat <(echo a)'`, "<(…)"},
		{`eval 'if'`, "unexpected end of file"},
		{`. /none`, "can't open '/none'"},
		{"echo '" + strings.Repeat("x", 1<<20) + "'", "a script is longer"},
		{strings.Repeat("(", 1000) + "echo" + strings.Repeat(")", 1000), "too deep"},
		{strings.Repeat("(", 30_000), "too deep"},
	} {
		out, errs, code := run(t, newContainer(t), c.script)
		if code != 2 || !strings.Contains(errs, c.says) || out != "" {
			t.Errorf("%.40s: code %d, stdout %q, stderr %q, want 2 and %q", c.script, code, out, errs, c.says)
		}
	}
}

func TestEndsWithItsContext(t *testing.T) {
	reader, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	for _, script := range []string{
		"sleep infinity", "tail -f /dev/null", "while true; do :; done", "yes >/dev/null", "cat", "sleep 100 | cat",
		"tail -f /srv/lines", "for i in 1; do while :; do true; done; done", "seq 1 1000000000000 >/dev/null",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		var errs bytes.Buffer
		if code := newContainer(t).Run(ctx, []string{"sh", "-c", script}, reader, io.Discard, &errs); code == 2 || code == 127 {
			t.Errorf("%s: code %d: %s", script, code, &errs)
		}
		cancel()
	}
}

func TestReadsAScriptFromStdin(t *testing.T) {
	var out bytes.Buffer
	stdin := strings.NewReader("if true\nthen echo one\nfi\ncat\nrest of it\n")
	if code := newContainer(t).Run(t.Context(), []string{"sh"}, stdin, &out, &out); code != 0 || out.String() != "one\nrest of it\n" {
		t.Errorf("got %q, code %d", &out, code)
	}
}

func TestTheTrapOfAScriptFromStdin(t *testing.T) {
	var out bytes.Buffer
	stdin := strings.NewReader("trap 'echo bye' EXIT\necho $0\n(exit 3)\n")
	if code := newContainer(t).Run(t.Context(), []string{"sh"}, stdin, &out, &out); code != 3 || out.String() != "sh\nbye\n" {
		t.Errorf("got %q, code %d", &out, code)
	}
}

func TestTexts(t *testing.T) {
	var text [2 << 20]byte
	w := newContainer(t)
	big, err := w.Files.Create("/big", false)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = big.Write(text[:])
	_ = big.Close()
	if out, errs, code := run(t, w, `A=$(cat /big); echo end`); code == 0 && out == "end\n" && errs == "" {
		t.Errorf("2 MiB went into a variable: %q", errs)
	}
	for _, script := range []string{
		`A=xxxxxxxx; while A=$A$A; do :; done`, `A=xxxxxxxx; while A+=$A; do :; done`, `A=x; while :; do A="$A${A:-}"; done`,
		`A=x; while :; do unset B; : ${B:=$A$A}; A=$B; done`, `A=x; while :; do for A in "$A$A"; do :; done; done`,
		`A=x; while :; do export A=$A$A; done`, `A=x; while :; do eval 'A=$A$A'; done`, `set -- x; while :; do set -- "$@" "$@"; done`,
		`B=$(seq 1000); A=$(while :; do echo $B; done); exit 1`, `f() { f "$@" "$@"; }; f x`, `f() { f; }; f`, `A='eval "$A"'; eval "$A"`,
		`echo '. /tmp/s' > /tmp/s; . /tmp/s`, `echo 'sh /tmp/s' > /tmp/s; sh /tmp/s`, `A=$(yes); exit 1`,
	} {
		_, errs, code := run(t, w, script)
		if code == 0 || !strings.Contains(errs, "too long") && !strings.Contains(errs, "longer") && !strings.Contains(errs, "in each other") {
			t.Errorf("%s: code %d, %.200q", script, code, errs)
		}
	}
}

// What the interpreter would panic at, or crash the whole program in a goroutine of its own.
func TestSurvives(t *testing.T) {
	for _, script := range []string{
		`shift -1`, `break -1`, `unset ''`, `unset 'a[0]'`, `''`, `A=$(printf '\377'); echo ${A#$A}`, `A=; echo $((A++)) $(($A=1))`,
		`case x in $(printf '\377')) ;; esac`, "printf '\xff' | { read A; echo ${A#$A} ${A%%$A}; }", "echo ${A#\xff}", `[ -t 0 ]`, `read`,
		`command`, `builtin`, `command command`, `exec`, `. ''`, `trap`, `trap -`, `set -`, `set +`, `set -o`, `wait g1`, `export =`,
		`export ''`, `local x`, `cd ''`, `read ''`, `eval`, `exit x`, `return`, `$(printf '\0')status`,
	} {
		for _, wrapped := range []string{script, "{ " + script + "\n} | cat", "(" + script + "\n) & wait"} {
			run(t, newContainer(t), wrapped)
		}
	}
}

// web is a container in which http://web:8080 is served.
func web(t *testing.T) *shell.Container {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s %s\n", r.Method, r.URL, r.Header.Get("X-Test"))
	})
	mux.HandleFunc("/post", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s\n", r.Method, body)
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusServiceUnavailable) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/there", http.StatusFound) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	w := newContainer(t)
	w.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		switch host, _, _ := net.SplitHostPort(address); {
		case host == "unknown":
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		case address != "web:8080":
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		}
		var d net.Dialer
		return d.DialContext(ctx, network, server.Listener.Addr().String())
	}
	w.Lookup = func(_ context.Context, name string) ([]string, error) {
		if name == "web" {
			return []string{"10.96.0.5"}, nil
		}
		return nil, errors.New("no such host")
	}
	return w
}

func TestTheNetwork(t *testing.T) {
	for _, c := range []struct {
		script, out, errs string
		code              int
	}{
		{`curl -s http://web:8080/x?y=1 -H 'X-Test: yes'`, "GET /x?y=1 yes\n", "", 0},
		{`curl web:8080`, "GET / \n", "", 0},
		{`curl -sSf http://web:8080/broken`, "", "curl: (22) The requested URL returned error: 503\n", 22},
		{`curl -s -o /dev/null -w '%{http_code}\n' http://web:8080/broken`, "503\n", "", 0},
		{`curl -X PUT -d a=1 -d b=2 http://web:8080/post`, "PUT a=1&b=2\n", "", 0},
		{`curl -sL web:8080/moved`, "GET /there \n", "", 0},
		{`curl -sI web:8080/moved | head -1`, "HTTP/1.1 302 Found\r\n", "", 0},
		{`curl http://unknown/`, "", "curl: (6) Could not resolve host: unknown\n", 6},
		{`curl -s http://web:1/ || echo $?`, "7\n", "", 0},
		{`curl -s -m 0.02 http://web:8080/slow`, "", "", 28},
		{`curl -o /tmp/page web:8080/page; cat /tmp/page`, "GET /page \n", "", 0},
		{`curl ftp://web`, "", "curl: (1) Protocol \"ftp\" not supported\n", 1},
		{`curl --frobnicate x`, "", "curl: option --frobnicate: is unknown\n", 2},
		{`wget -qO- http://web:8080/y`, "GET /y \n", "", 0},
		{`wget -q -O /tmp/f web:8080/z && cat /tmp/f`, "GET /z \n", "", 0},
		{`wget -qO- http://unknown/`, "", "wget: bad address 'unknown'\n", 1},
		{`wget -qO- http://web:1/`, "", "wget: can't connect to remote host (web): Connection refused\n", 1},
		{`wget -q --spider http://web:8080/broken`, "", "wget: server returned error: HTTP/1.1 503 Service Unavailable\n", 1},
		{`nc -z web 8080 && echo open; nc -z web 1`, "open\n", "nc: web (web:1): Connection refused\n", 1},
		{`nslookup web`, "Name:\tweb\nAddress: 10.96.0.5\n", "", 0},
		{`nslookup nope`, "** server can't find nope: NXDOMAIN\n\n", "", 1},
		{`getent hosts web; getent hosts nope`, "10.96.0.5       web\n", "", 2},
	} {
		out, errs, code := run(t, web(t), c.script)
		if out != c.out || errs != c.errs || code != c.code {
			t.Errorf("%s\n got %q, stderr %q, code %d\nwant %q, stderr %q, code %d", c.script, out, errs, code, c.out, c.errs, c.code)
		}
	}
}

func TestSignals(t *testing.T) {
	w := newContainer(t)
	var got []syscall.Signal
	w.Signal = func(s syscall.Signal) { got = append(got, s) }
	if _, errs, code := run(t, w, "kill 1; kill -HUP 1; kill -s USR1 1; kill -2 1; kill -9 1"); code != 0 {
		t.Fatal(code, errs)
	}
	want := []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGINT} // SIGKILL has no effect within
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// FuzzTar extracts anything: nothing is made outside the container, and no link leads out of it.
func FuzzTar(f *testing.F) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, h := range []tar.Header{
		{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o700},
		{Name: "d/f", Typeflag: tar.TypeReg, Mode: 0o755},
		{Name: "../out", Typeflag: tar.TypeReg},
		{Name: "/etc/x", Typeflag: tar.TypeReg},
		{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "d"},
		{Name: "l/f", Typeflag: tar.TypeReg},
		{Name: "m", Typeflag: tar.TypeSymlink, Linkname: "../../.."},
		{Name: "m/out", Typeflag: tar.TypeReg},
		{Name: "n", Typeflag: tar.TypeSymlink, Linkname: "/tmp"},
		{Name: "h", Typeflag: tar.TypeLink, Linkname: "../../out"},
		{Name: "p", Typeflag: tar.TypeFifo},
	} {
		if err := w.WriteHeader(&h); err != nil {
			f.Fatal(err)
		}
	}
	_ = w.Close()
	f.Add(archive.Bytes())
	f.Add([]byte{0x1f, 0x8b, 8})
	f.Fuzz(func(t *testing.T, archive []byte) {
		outer := t.TempDir()
		scratch := filepath.Join(outer, "scratch")
		if err := os.Mkdir(scratch, 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // a sparse file may be of any size
		defer cancel()
		c := &shell.Container{Files: rootfs.New(rootfs.Options{Scratch: scratch})}
		c.Run(ctx, []string{"tar", "-xvf", "-", "-C", "/tmp"}, bytes.NewReader(archive), io.Discard, io.Discard)
		if entries, err := os.ReadDir(outer); err != nil || len(entries) != 1 {
			t.Errorf("outside there is %v, %v", entries, err)
		}
		err := filepath.WalkDir(scratch, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type()&fs.ModeSymlink != 0 {
				if to, _ := os.Readlink(name); !filepath.IsLocal(to) {
					t.Errorf("%s leads to %s", name, to)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func FuzzScript(f *testing.F) {
	for _, s := range []string{
		`echo "a $B ${C:-d}" | cat > /tmp/f && (cd /; ls) || { true; }`, `if a; then b; elif c; then d; else e; fi`,
		"for i in 1 2; do echo $i; done; while false; do :; done", "a=`b`; c=$(d 'e' \"f\")", `\`, `$`, `${`, `"`, `echo *[`,
		`! ! x`, `>`, `2>&1`, `a&>b`, `$@ "$@" $#`, "yes | head", `cd ..; pwd`, `[ a = b -o ! c ]`, `{ >a0 & }`,
		"f() { local a=$1; return $((a + 1)); }; f 2; case $? in [0-9]*) ;; esac", "cat <<-'A' <<B\n\ta\nA\n$b\nB\n",
		`[[ a =~ b && ( -n c || d < e ) ]]; ((a++)); for ((i=0; i<2; i++)); do echo ${a:1:2}; done`, `A+=$A; echo ${A#"*"} ${A^^}`,
		`export "A=$B" C; readonly D; eval "$A"; . /srv/lines; trap 'echo' EXIT`, `sleep 1 & wait; set -ux -- a; shift 2; exec > /tmp/f`,
		`echo ~root $(<f) {1..3} $'\x00' $"a"; read -r a b <<< "c"`, "unset a; command -v b; : ${c:?d}; ! echo ${#} ${@:1}",
		`sed -nE '1,/t(w|x)+/s/[a-z]\(b\)/&\1/2gp;$!d;y/a/b/' /srv/lines | sed 'a x\' -e '2q'`, `base64 -w3 /srv/lines | base64 -di; sha256sum -c /srv/lines`,
		`find / \( -name '[a-c]*' -o ! -type d \) -maxdepth 2 -exec ls -ld {} + -empty | xargs -n1 -I{} echo "'{} a\ b"`, `tar czvf - /etc | tar -tv --strip-components=1; cp -Rpv /etc /tmp; ls -lRh`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		w := newContainer(t)
		w.Run(ctx, []string{"sh", "-c", script}, strings.NewReader("input\n"), io.Discard, io.Discard)
		// In a pipe the interpreter has goroutines of its own, and nobody could take care of what makes them panic.
		w.Run(ctx, []string{"sh", "-c", "{ " + script + "\n} | cat"}, nil, io.Discard, io.Discard)
	})
}
