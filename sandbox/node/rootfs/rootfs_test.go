package rootfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/node/rootfs"
)

// newView has a ConfigMap as the kubelet makes it, a single file, a directory that can be written to, and a link out of it.
func newView(tb testing.TB) (v *rootfs.View, host string) {
	tb.Helper()
	host = tb.TempDir()
	write := func(name, content string) {
		name = filepath.Join(host, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(host, name)); err != nil {
			tb.Fatal(err)
		}
	}
	write("config/..2024/key", "value")
	link("..2024", "config/..data")
	link("..data/key", "config/key")
	write("hosts", "127.0.0.1 localhost")
	write("data/inner/file", "data")
	write("secret", "of the host")
	link("../secret", "data/out")
	link(filepath.Join(host, "secret"), "data/absolute")
	link("..", "data/up")
	if err := syscall.Mkfifo(filepath.Join(host, "data/pipe"), 0o600); err != nil {
		tb.Fatal(err)
	}
	scratch := filepath.Join(host, "scratch")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		tb.Fatal(err)
	}
	return rootfs.New(rootfs.Options{
		Scratch: scratch,
		Mounts: []rootfs.Mount{
			{Path: "/etc/config", Host: filepath.Join(host, "config"), ReadOnly: true},
			{Path: "/etc/hosts", Host: filepath.Join(host, "hosts")},
			{Path: "/data", Host: filepath.Join(host, "data")},
			{Path: "/data/inner/config/", Host: filepath.Join(host, "config"), ReadOnly: true},
		},
		File: func(path string) (string, bool) { return "of the image", path == "/srv/page" },
	}), host
}

func TestReads(t *testing.T) {
	v, _ := newView(t)
	for path, want := range map[string]string{
		"/etc/config/key":               "value",
		"etc/config/../config/key":      "value",
		"/etc/hosts":                    "127.0.0.1 localhost",
		"/data/inner/file":              "data",
		"/data/inner/config/key":        "value",
		"/srv/page":                     "of the image",
		"/../../srv/page":               "of the image",
		"/data/inner/config/..data/key": "value",
	} {
		if got, err := v.ReadFile(path, 100); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", path, got, err, want)
		}
	}
	for path, want := range map[string]error{
		"/missing":        fs.ErrNotExist,
		"/etc/config":     syscall.EISDIR,
		"/tmp":            syscall.EISDIR,
		"/data":           syscall.EISDIR,
		"/etc/hosts/x":    syscall.ENOTDIR,
		"/data/pipe":      syscall.EACCES,
		"/secret":         fs.ErrNotExist,
		"/data/../secret": fs.ErrNotExist,
	} {
		if _, err := v.ReadFile(path, 100); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}

func TestNothingOfTheHostIsReached(t *testing.T) {
	v, host := newView(t)
	for _, path := range []string{
		"/data/out", "/data/absolute", "/data/up/secret", "/data/../../secret", "/etc/config/../../secret", host + "/secret",
	} {
		if got, err := v.ReadFile(path, 100); err == nil {
			t.Errorf("%s: read %q", path, got)
		}
		if f, err := v.Create(path, false); err == nil {
			_ = f.Close()
		}
		_ = v.Remove(path)
	}
	_, _ = v.ReadDir("/data/up")
	if got, err := os.ReadFile(filepath.Join(host, "secret")); err != nil || string(got) != "of the host" {
		t.Errorf("the host's file is %q, %v", got, err)
	}
}

func TestErrorsSayNothingOfTheHost(t *testing.T) {
	v, host := newView(t)
	_, err := v.Open("/data/nothing")
	if err == nil || strings.Contains(err.Error(), host) || !strings.Contains(err.Error(), "/data/nothing") {
		t.Errorf("got %v", err)
	}
}

func TestWrites(t *testing.T) {
	v, host := newView(t)
	put := func(path, text string, appending bool) error {
		f, err := v.Create(path, appending)
		if err != nil {
			return err
		}
		_, err = f.Write([]byte(text))
		return errors.Join(err, f.Close())
	}
	for _, path := range []string{"/tmp/new", "/data/new", "/etc/hosts", "/new", "/srv/page"} {
		if err := put(path, "new", false); err != nil {
			t.Error(err)
		}
		if got, err := v.ReadFile(path, 100); err != nil || string(got) != "new" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if got, _ := os.ReadFile(filepath.Join(host, "data/new")); string(got) != "new" {
		t.Error("what is written to a volume is not in it")
	}
	for path, want := range map[string]error{
		"/etc/config/new":   syscall.EROFS,
		"/no/such/dir/file": fs.ErrNotExist,
		"/tmp":              syscall.EISDIR,
		"/data/pipe":        syscall.EACCES,
	} {
		if err := put(path, "x", false); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if err := v.Remove("/srv/page"); err != nil {
		t.Error(err)
	}
	if _, err := v.Open("/srv/page"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed file of the image: %v", err)
	}
	if err := v.Remove("/data"); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("removing a mount: %v", err)
	}
}

func TestLinks(t *testing.T) {
	v, host := newView(t)
	f, err := v.Create("/data/script", false)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if err := errors.Join(v.Chmod("/data/script", 0o755), v.Symlink("script", "/data/made")); err != nil {
		t.Fatal(err)
	}
	if is, err := v.Lstat("/data/made"); err != nil || is.Link != "script" || is.IsDir() {
		t.Errorf("the link is %+v, %v", is, err)
	}
	if is, err := v.Stat("/data/made"); err != nil || is.Mode != 0o755 || is.Name != "made" {
		t.Errorf("it leads to %+v, %v", is, err)
	}
	if err := v.Symlink("script", "/data/made"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second one: %v", err)
	}
	for _, to := range []string{"/etc/passwd", "../x", "a/../../x", "..", ""} {
		if err := v.Symlink(to, "/data/away"); !errors.Is(err, syscall.EPERM) {
			t.Errorf("a link to %q: %v", to, err)
		}
	}
	if err := v.Symlink("x", "/etc/config/l"); !errors.Is(err, syscall.EROFS) {
		t.Errorf("in a volume that is only read: %v", err)
	}
	if err := v.Chmod("/etc/config/key", 0o777); !errors.Is(err, syscall.EROFS) {
		t.Errorf("permissions in a volume that is only read: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Join(host, "data")); err != nil || strings.Contains(fmt.Sprint(entries), "away") {
		t.Errorf("there is %v, %v", entries, err)
	}
}

func TestReadOnly(t *testing.T) {
	v := rootfs.New(rootfs.Options{Scratch: t.TempDir(), ReadOnly: true})
	if _, err := v.Create("/tmp/x", false); !errors.Is(err, syscall.EROFS) {
		t.Error(err)
	}
	if err := v.Mkdir("/x"); !errors.Is(err, syscall.EROFS) {
		t.Error(err)
	}
}

func TestLists(t *testing.T) {
	v, _ := newView(t)
	for path, want := range map[string][]string{
		"/etc":        {"config", "hosts"},
		"/etc/config": {"..2024", "..data", "key"},
		"/data/inner": {"file"}, // the mount below it has no directory of its own there
		"/tmp":        {},
	} {
		list, err := v.ReadDir(path)
		if err != nil {
			t.Error(err)
		}
		names := []string{}
		for _, e := range list {
			names = append(names, e.Name)
		}
		if path == "/data/inner" {
			want = []string{"config", "file"}
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s: %v, want %v", path, names, want)
		}
	}
	if _, err := v.ReadDir("/etc/hosts"); !errors.Is(err, syscall.ENOTDIR) {
		t.Error(err)
	}
}

// FuzzPath looks for a path that leads to the host's file, or beyond the directories that are mounted.
func FuzzPath(f *testing.F) {
	for _, p := range []string{
		"/data/out", "/data/up/secret", "/data/absolute", "../../secret", "/etc/hosts/../../secret", "/data/./inner//file",
		"/etc/config/..data/../../secret", "\x00", "/data/up/up/up", "/data/up/data/up/secret", "",
	} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, path string) {
		v, host := newView(t)
		if got, err := v.ReadFile(path, 100); err == nil && string(got) == "of the host" {
			t.Fatalf("%q leads out", path)
		}
		if w, err := v.Create(path, true); err == nil {
			_, _ = w.Write([]byte("x"))
			_ = w.Close()
		}
		_ = v.Mkdir(path)
		_ = v.Remove(path)
		_, _ = v.ReadDir(path)
		if got, err := os.ReadFile(filepath.Join(host, "secret")); err != nil || string(got) != "of the host" {
			t.Fatalf("%q changed the host's file: %q, %v", path, got, err)
		}
		entries, err := os.ReadDir(host)
		if err != nil || len(entries) != 5 {
			t.Fatalf("%q changed the host's directory: %v, %v", path, entries, err)
		}
	})
}
