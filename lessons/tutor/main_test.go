package tutor_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/tutor"
	"github.com/operator-lab/operator-lab/operators/zundoko"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/lab"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if _, err := sandbox.FindBinary(); err != nil {
		fmt.Fprintf(os.Stderr, "skipping the tests of tutor: %v; 'make test' builds it\n", err)
		return
	}
	os.Exit(m.Run())
}

// patience limits the wait for a condition. It is long because the machine may be busy.
const patience = 90 * time.Second

// fixture is a running lesson.
type fixture struct {
	testing.TB
	*tutor.Tutor
	lab *lab.Lab
	you client.Client
}

// startLesson starts a lesson in a sandbox with zundoko's CRDs.
func startLesson(tb testing.TB, o tutor.Options) *fixture {
	tb.Helper()
	crds, err := zundoko.CRDs(zundoko.Hardened)
	if err != nil {
		tb.Fatal(err)
	}
	var held atomic.Pointer[tutor.Tutor]
	var heard atomic.Pointer[lab.Lab]
	box, err := sandbox.Start(tb.Context(), sandbox.Options{
		Ephemeral: true, CRDs: crds, Operators: []string{"zundoko"},
		OnAudit: func(line []byte) {
			if l, t := heard.Load(), held.Load(); l != nil && t != nil {
				l.Audit(line)
				t.Poke()
			}
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	var programs []lab.Program
	if o.Workshop != nil {
		programs = o.Workshop.Programs()
	}
	l, err := lab.Open(tb.Context(), lab.Options{
		Cluster: box, Programs: programs, Kill: box.Kill, Machines: box.Nodes(),
		Installed: map[string]string{"zundoko": string(zundoko.Hardened)}, Version: "v1",
	})
	if err != nil {
		tb.Fatal(err)
	}
	heard.Store(l)
	tb.Cleanup(func() {
		if err := l.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
		if err := box.Stop(); err != nil {
			tb.Error(err)
		}
	})
	o.Sandbox, o.Lab, o.Kubectl = box, l, kubectl(tb)
	c := &fixture{TB: tb, Tutor: tutor.New(o), lab: l}
	held.Store(c.Tutor)
	scheme := runtime.NewScheme() // a new one, because others read the common one
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		tb.Fatal(err)
	}
	if c.you, err = client.New(box.Config(), client.Options{Scheme: scheme}); err != nil {
		tb.Fatal(err)
	}
	return c
}

// kubectl returns the path of the lab's kubectl.
func kubectl(tb testing.TB) string {
	tb.Helper()
	binary, err := sandbox.FindBinary()
	if err != nil {
		tb.Fatal(err)
	}
	state, err := sandbox.StateDir()
	if err != nil {
		tb.Fatal(err)
	}
	dir, err := sandbox.Assets(state, binary)
	if err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(dir, "kubectl")
}

// song returns the lesson of the tests with changes.
func song(tb testing.TB, changes ...func(fstest.MapFS)) *book.Lesson {
	tb.Helper()
	files := fstest.MapFS{}
	root := os.DirFS(filepath.Join("testdata", "song"))
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, path)
		files[path] = &fstest.MapFile{Data: text}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	for _, change := range changes {
		change(files)
	}
	b, err := book.Open(files)
	if err != nil {
		tb.Fatal(err)
	}
	return b.Lessons[0]
}

// await waits until the view satisfies a condition.
func (c *fixture) await(what string, as func(tutor.View) bool) tutor.View {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	for {
		changed := c.Changed()
		if v := c.View(); as(v) {
			return v
		}
		select {
		case <-changed:
		case <-ctx.Done():
			c.Fatalf("%s: never came; the view is %+v", what, c.View())
		}
	}
}
