package shell_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Nothing of this machine is seen, run or changed.
func TestNothingOfTheHostIsReached(t *testing.T) {
	host := t.TempDir()
	t.Setenv("TMPDIR", host)
	t.Setenv("HOME", host)
	t.Setenv("SECRET", "of the host")
	t.Setenv("PATH", host)
	for name, content := range map[string]string{
		"secret": "of the host", "program": "#!/bin/sh\necho of the host", "script": "echo of the host",
		"sh-interp-0": "of the host",
	} {
		if err := os.WriteFile(filepath.Join(host, name), []byte(content), 0o700); err != nil { //nolint:gosec // it could run
			t.Fatal(err)
		}
	}
	t.Chdir(host)
	for _, c := range []struct{ script, out string }{
		{`cat HOST/secret || cat < HOST/secret || cat secret`, ""},
		{`echo $(<HOST/secret)`, "\n"},
		{`. HOST/script`, ""},
		{`source ./script`, ""},
		{`PATH=HOST; . script`, ""},
		{`PATH=HOST; source script`, ""},
		{`sh HOST/script; cd HOST; ls`, "bin\ndev\netc\nhome\nopt\nproc\nroot\nrun\nsbin\nsrv\nsys\ntmp\nusr\nvar\n"},
		{`[ -e HOST/secret ] || [[ -f HOST/secret ]] || test -d HOST || echo no`, "no\n"},
		{`[[ -x HOST/program || HOST/secret -nt /etc || HOST -ef HOST ]] || echo no`, "no\n"},
		{`echo HOST/* *rogram`, "HOST/* *rogram\n"},
		{`HOST/program; ./program; program; exec HOST/program`, ""},
		{`PATH=HOST; program; command program; exec program`, ""},
		{`export PATH=HOST; env program; timeout 1 program`, ""},
		{`command -v HOST/program; command -V program; type HOST/program; which program; type -p program; hash program`, ""},
		{`command command -v HOST/program; builtin type program; builtin command -v program`, ""},
		{`pwd -P; pwd; echo $PWD; cd; pwd; unset HOME; cd; pwd`, "/\n/\n/\n/root\n/root\n"},
		{`builtin pwd -P; command pwd -P; cd -P / && pwd`, "/\n/\n"},
		{`pushd HOST; dirs; popd; echo $DIRSTACK`, "/\n"},
		{`echo "$SECRET" "$HOME" "$UID" ~; env | grep -c -v -e GREETING`, " /root 0 /root\n2\n"},
		{`unset HOME; echo ~ ~/x`, "~ ~/x\n"},
		{`echo $$ "$$" ${$} $(echo $PPID)`, "7 7 7 0\n"},
		{`echo ~root ~root/x ~daemon`, "~root ~root/x ~daemon\n"},
		{`echo ~root | cat; (echo ~root) | cat; echo ~root & wait`, "~root\n~root\n~root\n"},
		{`A=~root; echo $A | cat; export B=~root C; echo $B | cat`, "~root\n~root\n"},
		{`{ A=~root; echo $A; export B=~root; echo $B; } | cat`, "~root\n~root\n"},
		{`{ echo ${X:-~root}; for i in ~root; do echo $i; done; } | cat`, "~root\n~root\n"},
		{`x='A=~root'; { export $x; echo $A; export "B=~root"; echo $B; } | cat`, "~root\n~root\n"},
		{`{ readonly "C=~root"; echo $C; } | cat`, "~root\n"},
		{`f() { local "A=~root"; echo $A; }; f | cat`, "~root\n"},
		{`eval 'echo ~root | cat'; eval "echo ~root" | cat; eval eval echo \~root | cat`, "~root\n~root\n~root\n"},
		{`echo 'echo ~root | cat' > /tmp/s; . /tmp/s; sh /tmp/s; trap 'echo ~root | cat' EXIT`, "~root\n~root\n~root\n"},
		{`{ [ "~root" = /root ] || echo no; [[ ~root = /root ]] || echo no; } | cat`, "no\nno\n"},
		{`{ case ~root in /root) ;; *) echo no;; esac; } | cat`, "no\n"},
		{`{ cat < ~root/x; echo a > ~root; } 2>/dev/null | cat; cat ./~root`, "a\n"},
		{"cat <<E | cat\n~root $$\nE\n", "~root 7\n"},
		{`cat <<< ~root | cat`, "~root\n"},
		{"{ echo `echo ~root` $(echo ~root) \"$(echo ~root)\"; } | cat", "~root ~root ~root\n"},
		{`{ unset 'a[$(echo ~root)]'; command eval 'echo ~root'; builtin eval 'echo ~root'; } | cat`, "~root\n~root\n"},
		{`shopt -s expand_aliases; alias x='echo ~root'`, ""},
		{`cat <(echo a)`, ""},
		{`TMPDIR=HOST; cat HOST/sh-interp-0; cat < HOST/sh-interp-0; echo changed > HOST/sh-interp-0`, ""},
		{`export TMPDIR=HOST; sh -c 'cat < HOST/sh-interp-0; . HOST/sh-interp-0'`, ""},
		{`echo a > /tmp/sh-interp-1; cat < /tmp/sh-interp-1; cat < //tmp/sh-interp-1`, "a\na\n"},
		{`echo a > //sh-interp-2; ls / | grep sh-`, "sh-interp-2\n"},
		{`mkdir -p HOST; echo mine > HOST/secret; cat < HOST/secret`, "mine\n"},
		{`echo a > program; rm -f secret; ls program`, "program\n"},
		{`echo $(</dev/null); cat < /dev/stdin; echo a > /dev/stdout; echo b > /dev/tty`, "\na\n"},
		{`tar cf - HOST | tar tf -; tar xf HOST/secret; cd HOST; find HOST; sed p HOST/secret; base64 HOST/secret; sha256sum HOST/secret`, ""},
		{`find / -name secret; find / -exec HOST/program \;; echo a | xargs HOST/program; sed -i s/of/x/ HOST/secret; tar cf HOST/new /tmp`, ""},
		{`umask 000; ulimit -n 1; kill -9 $PPID; kill -9 $$; times; jobs; fg; bg; disown; suspend; history; fc`, ""},
		{`$(printf '\000')source x; "$(printf '\000status 0')" || echo refused`, "refused\n"},
	} {
		w := newContainer(t)
		script := strings.ReplaceAll(c.script, "HOST", host)
		out, errs, code := run(t, w, script)
		if want := strings.ReplaceAll(c.out, "HOST", host); out != want {
			t.Errorf("%s\n got %q, code %d (stderr %q)\nwant %q", script, out, code, errs, want)
		}
		if strings.Contains(out+errs, "of the host") {
			t.Errorf("%s\nshows what is not the container's: %q, %q", script, out, errs)
		}
	}
	entries, err := os.ReadDir(host)
	if err != nil || len(entries) != 4 {
		t.Errorf("what is here has changed: %v, %v", entries, err)
	}
	for _, e := range entries {
		if content, err := os.ReadFile(filepath.Join(host, e.Name())); err != nil || !strings.Contains(string(content), "of the host") {
			t.Errorf("%s is now %q, %v", e.Name(), content, err)
		}
	}
}

// Nothing stays when a script has ended: also what is in the background, and who writes what nobody reads.
func TestNothingStays(t *testing.T) {
	w := newContainer(t)
	run(t, w, "true") // what is made once
	before := runtime.NumGoroutine()
	for _, script := range []string{
		"sleep infinity & sleep infinity &", "yes | head -n 1", "(sleep infinity & ) | cat", "yes | { read a; yes | true; }",
		"head -n 1 < /srv/lines; cat <<< a | true", "while sleep 0.001; do echo; done & sleep 0.01", "cat < /dev/stdin & cat",
		"exec < /srv/lines; read a", "timeout 0.01 sleep 1", "exec > /tmp/f; sleep infinity | sleep infinity & exit 3",
		"true | sleep infinity & exec sleep 0.001", "trap 'sleep infinity &' EXIT", "A=$(yes | head -n 3)",
	} {
		run(t, w, script)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		var out bytes.Buffer
		w.Run(ctx, []string{"sh", "-c", script}, strings.NewReader("a\nb\n"), &out, &out)
		cancel()
		_, _ = io.Copy(io.Discard, &out) // nobody writes to it any more
	}
	deadline := time.After(patience)
	for runtime.NumGoroutine() > before {
		select {
		case <-deadline:
			var stacks [1 << 16]byte
			t.Fatalf("goroutines: %d before, now %d\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks[:], true)])
		default:
			runtime.Gosched()
		}
	}
}
