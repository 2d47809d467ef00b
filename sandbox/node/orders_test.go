package node_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/node"
)

// ordersIn are the orders of a node whose socket and file are in a directory.
func ordersIn(t *testing.T) node.Orders {
	t.Helper()
	dir, err := os.MkdirTemp("", "orders") //nolint:usetesting // t.TempDir is too long a path for a socket in some places
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return node.OrdersOf(dir, 1, filepath.Join(dir, "troubles.json"))
}

// obedient is a runtime that takes orders.
func obedient(t *testing.T, o node.Orders) *node.Runtime {
	t.Helper()
	catalogue, err := images.NewCatalogue("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(catalogue.Close)
	r, err := node.New(node.Options{Name: "node-1", Catalogue: catalogue, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(t.Context()) })
	serve(t, o, r)
	return r
}

func serve(t *testing.T, o node.Orders, r *node.Runtime) {
	t.Helper()
	server, err := o.Serve(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
}

// pull pulls an image and returns what the error says.
func pull(t *testing.T, r *node.Runtime, name string) string {
	t.Helper()
	_, err := r.Images().PullImage(t.Context(), &runtimeapi.ImageSpec{Image: name}, nil, &runtimeapi.PodSandboxConfig{})
	if err == nil {
		return ""
	}
	return err.Error()
}

// has reports whether an image is on the node.
func has(t *testing.T, r *node.Runtime, name string) bool {
	t.Helper()
	status, err := r.Images().ImageStatus(t.Context(), &runtimeapi.ImageSpec{Image: name}, false)
	if err != nil {
		t.Fatal(err)
	}
	return status.GetImage() != nil
}

func noNginx(reason string) []node.Trouble {
	return []node.Trouble{{Match: node.Match{Image: "nginx"}, PullError: reason}}
}

// TestOrders: what is said holds when it was said, for as long as nothing else is said.
func TestOrders(t *testing.T) {
	o := ordersIn(t)
	r := obedient(t, o)
	if said := pull(t, r, "nginx:1.29"); said != "" {
		t.Fatal(said)
	}
	pull(t, r, "httpd")
	if err := o.SetTroubles(t.Context(), noNginx("unauthorized"), []string{"nginx"}); err != nil {
		t.Fatal(err)
	}
	if has(t, r, "nginx:1.29") || !has(t, r, "httpd") {
		t.Error("the node did not forget the image, or another one")
	}
	if said := pull(t, r, "nginx:1.29"); !strings.Contains(said, "unauthorized") {
		t.Errorf("pulling says %q", said)
	}
	if err := o.SetTroubles(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	if said := pull(t, r, "nginx:1.29"); said != "" {
		t.Error(said)
	}
	killed, err := o.Kill(t.Context(), node.Match{}, node.ReasonError)
	if err != nil || len(killed) != 0 {
		t.Errorf("killed were %v, %v; nothing ran", killed, err)
	}
}

// TestOrdersToANodeThatIsDown: it knows when it comes up, and nobody waits for it.
func TestOrdersToANodeThatIsDown(t *testing.T) {
	o := ordersIn(t)
	for range 2 {
		if err := o.Write(noNginx("not found")); err != nil {
			t.Fatal(err)
		}
		if err := o.SetTroubles(t.Context(), noNginx("not found"), nil); err != nil {
			t.Fatal(err)
		}
		if killed, err := o.Kill(t.Context(), node.Match{}, node.ReasonError); err != nil || len(killed) != 0 {
			t.Errorf("killed were %v, %v", killed, err)
		}
		// The second time there is a socket of a node that was killed.
		if said := pull(t, obedient(t, o), "nginx"); !strings.Contains(said, "not found") {
			t.Errorf("pulling says %q", said)
		}
		leave(t, o)
	}
}

// leave leaves a socket that nobody listens on, as a process does that is killed.
func leave(t *testing.T, o node.Orders) {
	t.Helper()
	if err := os.Remove(o.Socket); err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: o.Socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOrdersToANodeThatGoesDown: one that loses its power while it listens needs no answer.
func TestOrdersToANodeThatGoesDown(t *testing.T) {
	o := ordersIn(t)
	listener, err := net.Listen("unix", o.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 10))
			_ = c.Close()
		}
	}()
	for range 20 {
		if err := o.SetTroubles(t.Context(), noNginx("not found"), nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOrdersThatAreDamaged(t *testing.T) {
	o := ordersIn(t)
	if err := os.WriteFile(o.File, []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	catalogue, err := images.NewCatalogue("", "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := node.New(node.Options{Name: "node-1", Catalogue: catalogue, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(t.Context()) })
	if _, err := o.Serve(r); err == nil || !strings.Contains(err.Error(), "troubles.json") {
		t.Errorf("a damaged file: %v", err)
	}
	if _, err := os.Stat(o.Socket); err == nil {
		t.Error("the socket is left")
	}
}

// TestOrdersNobodyAnswers: a node that hangs is an error.
func TestOrdersNobodyAnswers(t *testing.T) {
	o := ordersIn(t)
	listener, err := net.Listen("unix", o.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := o.SetTroubles(ctx, nil, nil); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("a node that hangs: %v", err)
	}
}
