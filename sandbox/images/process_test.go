package images_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/usage"
)

// script maps the image app to a shell script.
func script(text string) string {
	text = strings.ReplaceAll(text, "$$", "$$$$") // as Kubernetes wants it
	return "images:\n- name: app\n  command:\n  - sh\n  - -c\n  - |\n    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n  - app\n"
}

func TestAProcessKnowsItsPod(t *testing.T) {
	t.Parallel()
	c, file := catalogue(t, `images:
- name: app
  command: [sh, -c, 'pwd; env; echo "args: $*"; cat "$LAB_ROOT/etc/app.yaml" "$LAB_ROOT/data/x" "$(LAB_ROOT)/etc/config/y"', app]
  args: [not these]
  env: {GREETING: "Hello from $(POD_NAME) $(OWN) $$(OWN)", LISTEN: "$(LAB_HOST):$(LAB_PORT_9000)", MORE: "$(LISTEN)!", OWN2: file}
  files: {/etc/app.yaml: "the file\n", /data/x: hidden by the volume}
`)
	volume := t.TempDir()
	write(t, filepath.Join(volume, "x"), "of a volume\n")
	write(t, filepath.Join(volume, "y"), "of another\n")
	in, log := container(t, "app")
	in.Command, in.Args = []string{"/app"}, []string{"a", "$(OWN)"}
	in.Ports = []int{8080, 9000}
	in.Env = []string{"OWN=mine", "PATH=/nowhere", "OWN2=pod"}
	in.Mounts = []images.Mount{
		{ContainerPath: "/data/inside", HostPath: volume}, {ContainerPath: "/data", HostPath: volume}, {ContainerPath: "/etc/config/", HostPath: volume},
	}
	r := start(t, c, in)
	if code := exit(t, r); code != 0 {
		t.Errorf("it exits with %d", code)
	}
	here, _ := filepath.EvalSymlinks(filepath.Dir(file))
	for _, want := range []string{
		here, "OWN=mine", "GREETING=Hello from pod-1 mine $(OWN)", "OWN2=file",
		"LAB_HOST=127.0.0.1", "LAB_PORT_8080=38080", "LAB_PORT_9000=39000", "PORT=38080", "LISTEN=127.0.0.1:39000", "MORE=127.0.0.1:39000!",
		"LAB_POD=pod-1", "LAB_NAMESPACE=ns", "LAB_POD_IP=10.244.1.5", "LAB_NODE=node-1", "LAB_CONTAINER=main", "LAB_IMAGE=app",
		"HOME=" + in.Dir, "TMPDIR=" + in.Dir, "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + in.Dir + "/kubeconfig",
		"HTTP_PROXY=http://lab:secret@127.0.0.1:3128", "https_proxy=http://lab:secret@127.0.0.1:3128",
		"no_proxy=localhost,127.0.0.1,127.0.0.0/8,::1",
		"args: a $(OWN)", "the file", "of a volume", "of another",
		`operator-lab: the pod's command "/app" is a file of the real image; "sh" of this machine runs instead`,
	} {
		if !strings.Contains("\n"+log.String(), "\n"+want+"\n") {
			t.Errorf("it does not say %q:\n%s", want, log)
		}
	}
	if entries, _ := os.ReadDir(volume); len(entries) != 2 {
		t.Errorf("something was made in a volume: %v", entries)
	}
	if text, ok := lookup(t, c, "app").Program.File("/etc/../etc/app.yaml"); !ok || text != "the file\n" {
		t.Errorf("its file is %q", text)
	}
}

// TestAPortThatIsNotDeclared is told to who asks for it: containerPort is for information only.
func TestAPortThatIsNotDeclared(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, `images:
- {name: app, command: [sh, -c, 'echo "$@"', app], args: ["$(LAB_HOST):$(LAB_PORT_7000)", "$(LAB_PORT_6666)", "$(LAB_PORT_x)", "$(LAB_PORTS)"]}
`)
	in, log := container(t, "app")
	if code := exit(t, start(t, c, in)); code != 0 {
		t.Errorf("it exits with %d", code)
	}
	log.Await(t, "127.0.0.1:37000 $(LAB_PORT_6666) $(LAB_PORT_x) $(LAB_PORTS)")
}

// TestWhatAContainerUses is known of processes, by all of their group, and not of functions.
func TestWhatAContainerUses(t *testing.T) {
	t.Parallel()
	if _, err := usage.Look(); err != nil {
		t.Skip("this system does not tell what processes use:", err)
	}
	c, _ := catalogue(t, `images:
- {name: app, command: [sh, -c, 'sh -c "while :; do :; done" & wait']}
- {name: late, command: [sleep, "3600"], startDelay: 10ms}
- {name: page, page: Hello}
`)
	in, _ := container(t, "app")
	r := start(t, c, in)
	eventually(t, "time on a processor, and memory", func() bool {
		group, own := images.ProcessesOf(r)
		all, err := usage.Look()
		if err != nil || !own {
			t.Fatal(own, err)
		}
		of, found := all.OfGroup(group)
		within, _ := all.OfTree(os.Getpid())
		return found && of.CPU > 0 && of.Resident > 100_000 && within.CPU >= of.CPU && within.Resident > of.Resident
	})
	group, _ := images.ProcessesOf(r)
	r.Signal(syscall.SIGKILL)
	exit(t, r)
	if all, err := usage.Look(); err != nil {
		t.Error(err)
	} else if of, found := all.OfGroup(group); found {
		t.Errorf("after its end it uses %+v", of)
	}
	in, _ = container(t, "late")
	r = start(t, c, in)
	eventually(t, "the late one", func() bool {
		_, own := images.ProcessesOf(r)
		return own
	})
	in, _ = container(t, "page")
	if _, own := images.ProcessesOf(start(t, c, in)); own {
		t.Error("a function is said to be processes")
	}
}

func TestHowProcessesEnd(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		script string
		signal syscall.Signal // after it has said ready
		code   int
		log    string
	}{
		"at once":                {script: "exit 0"},
		"with a code":            {script: "echo bye; exit 7", code: 7, log: "bye\n"},
		"by its own hand":        {script: "kill -KILL $$", code: 137},
		"by SIGTERM":             {script: "echo ready; exec sleep 3600", signal: syscall.SIGTERM, code: 143},
		"well by SIGTERM":        {script: "trap 'echo caught; exit 0' TERM; echo ready; while :; do sleep 0.01; done", signal: syscall.SIGTERM, log: "caught"},
		"by SIGKILL only":        {script: "trap '' TERM; echo ready; while :; do sleep 0.01; done", signal: syscall.SIGKILL, code: 137},
		"with a child":           {script: "sleep 3600 & echo ready; exit 3", code: 3},
		"with a child in a pipe": {script: "(trap '' TERM HUP; sleep 3600; echo never) & echo last; exit 4", code: 4, log: "last\n"},
		"on both streams":        {script: "echo out; echo err >&2", log: "err\n"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			c, _ := catalogue(t, script(x.script))
			in, log := container(t, "app")
			r := start(t, c, in)
			if x.signal != 0 {
				log.Await(t, "ready")
				r.Signal(x.signal)
			}
			if code := exit(t, r); code != x.code {
				t.Errorf("it exits with %d, want %d", code, x.code)
			}
			if !strings.Contains(log.String(), x.log) || strings.Contains(log.String(), "never") {
				t.Errorf("its log is %q", log)
			}
			r.Signal(syscall.SIGKILL) // after the end
			r.Signal(syscall.SIGTERM)
		})
	}
}

func TestACommandThatIsNotThere(t *testing.T) {
	t.Parallel()
	c, file := catalogue(t, `images:
- {name: path, command: [no-such-program]}
- {name: file, command: [./no-such-file]}
- {name: folder, command: [/]}
- {name: plain, command: [./images.yaml]}
- {name: dir, command: [sh], workingDir: /no/such/dir}
- {name: port, command: [sh]}
`)
	dir := filepath.Dir(file)
	for image, want := range map[string]string{
		"path":   `exec: "no-such-program": executable file not found in $PATH`,
		"file":   fmt.Sprintf(`exec: "%s/no-such-file": stat %s/no-such-file: no such file or directory`, dir, dir),
		"folder": `exec: "/": is a directory`,
		"plain":  fmt.Sprintf(`exec: "%s/images.yaml": permission denied`, dir),
		"dir":    `workingDir: stat /no/such/dir: no such file or directory`,
		"port":   `port 6666: address already in use`,
	} {
		in, _ := container(t, image)
		if image == "port" {
			in.Ports = []int{6666}
		}
		if _, err := lookup(t, c, image).Program.Start(in); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", image, err, want)
		}
	}
}

// counter is a log that only counts.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func TestAFloodIsCopied(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, script("head -c 50000000 /dev/zero; echo end >&2"))
	in, log := container(t, "app")
	out := &counter{}
	in.Stdout = out
	if code := exit(t, start(t, c, in)); code != 0 || out.n != 50_000_000 || log.String() != "end\n" {
		t.Errorf("it exits with %d after %d bytes: %s", code, out.n, log)
	}
	endless, _ := catalogue(t, script("exec yes"))
	in, _ = container(t, "app")
	in.Stdout = &counter{}
	r := start(t, endless, in)
	r.Signal(syscall.SIGKILL)
	if code := exit(t, r); code != 137 {
		t.Errorf("it exits with %d", code)
	}
}

func TestAProcessReadsItsInput(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, script("read a; echo got $a; cat"))
	in, log := container(t, "app")
	reader, writer := io.Pipe()
	in.Stdin = reader
	r := start(t, c, in)
	fmt.Fprintln(writer, "one")
	log.Await(t, "got one")
	fmt.Fprintln(writer, "two")
	_ = writer.Close()
	if code := exit(t, r); code != 0 || log.String() != "got one\ntwo\n" {
		t.Errorf("%d %q", code, log)
	}
	// Nobody writes, and it ends nevertheless; without an input there is an end at once.
	reader, _ = io.Pipe()
	in, _ = container(t, "app")
	in.Stdin = reader
	quick, _ := catalogue(t, script("exit 5"))
	if code := exit(t, start(t, quick, in)); code != 5 {
		t.Errorf("it exits with %d", code)
	}
	in, _ = container(t, "app")
	none, _ := catalogue(t, script("cat; exit 6"))
	if code := exit(t, start(t, none, in)); code != 6 {
		t.Errorf("it exits with %d", code)
	}
}

// stubborn does not want to end, and has a child in a session of its own.
const stubborn = `
trap '' HUP INT TERM QUIT
if command -v setsid >/dev/null; then
	setsid sh -c 'trap "" HUP INT TERM; echo $$ >session; while :; do sleep 1; done' >/dev/null 2>&1 &
	while [ ! -s session ]; do sleep 0.01; done
fi
(trap '' HUP INT TERM; while :; do sleep 1; done) &
echo $! >child
echo $$ >self
while :; do sleep 1; done`

// pids waits until that is there, and returns its processes.
func pids(t *testing.T, dir string) (out []int) {
	t.Helper()
	names := []string{"self", "child"}
	if runtime.GOOS == "linux" {
		names = append(names, "session")
	}
	for _, name := range names {
		eventually(t, name, func() bool {
			text, _ := os.ReadFile(filepath.Join(dir, name))
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err == nil && strings.HasSuffix(string(text), "\n") {
				out = append(out, pid)
				return true
			}
			return false
		})
	}
	return out
}

// alive reports whether a process does anything yet.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ") // nobody has asked for its exit code
}

func TestSIGKILLLeavesNoProcess(t *testing.T) {
	t.Parallel()
	c, file := catalogue(t, script(stubborn))
	in, _ := container(t, "app")
	r := start(t, c, in)
	all := pids(t, filepath.Dir(file))
	r.Signal(syscall.SIGTERM)
	r.Signal(syscall.SIGKILL)
	if code := exit(t, r); code != 137 {
		t.Errorf("it exits with %d", code)
	}
	for _, pid := range all {
		eventually(t, fmt.Sprintf("the end of process %d of %v", pid, all), func() bool { return !alive(pid) })
	}
	again, file := catalogue(t, script(stubborn))
	in, _ = container(t, "app")
	r = start(t, again, in)
	all = pids(t, filepath.Dir(file))
	again.Close()
	exit(t, r)
	for _, pid := range all {
		eventually(t, fmt.Sprintf("the end of process %d of %v with its catalogue", pid, all), func() bool { return !alive(pid) })
	}
	in, _ = container(t, "app")
	if _, err := lookup(t, again, "app").Program.Start(in); err == nil {
		t.Error("a catalogue that is closed starts a process")
	}
}

func TestNoProcessOutlivesTheNodeHoweverItEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "images.yaml"), script(stubborn))
	node := exec.Command(os.Args[0])
	node.Env = append(os.Environ(), childVariable+"="+dir)
	stdin, err := node.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	all := pids(t, dir)
	if err := node.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	_ = node.Wait()
	for _, pid := range all {
		eventually(t, fmt.Sprintf("the end of process %d of %v", pid, all), func() bool { return !alive(pid) })
	}
}
