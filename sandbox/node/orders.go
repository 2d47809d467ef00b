package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/images"
)

// Orders sends a node the faults that a sandbox sets. Lasting ones are also in a file, which a node reads before it
// starts its first container. So they apply whether the node is up, coming up or down at that time.
type Orders struct {
	// Socket that the node listens on.
	Socket string
	// File with the troubles of now, for all nodes.
	File string
}

// OrdersOf returns the orders of a node, whose socket is in the given directory.
func OrdersOf(sockets string, index int, file string) Orders {
	return Orders{Socket: filepath.Join(sockets, "orders-"+strconv.Itoa(index)), File: file}
}

// The orders.
const (
	troublesPath = "/troubles"
	killPath     = "/kill"
)

// change is an order to take other troubles than before.
type change struct {
	Troubles []Trouble
	// Forget are patterns of images that must be pulled again.
	Forget []string
}

// killing is an order to kill containers.
type killing struct {
	Match  Match
	Reason string
}

// maxOrder limits the size of an order in bytes; a trouble has a few hundred.
const maxOrder = 4 << 20

// Serve makes a runtime accept orders until it is closed. When it returns, the troubles in the file apply.
func (o Orders) Serve(r *Runtime) (io.Closer, error) {
	if err := os.Remove(o.Socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// A sandbox that cannot connect has written the file before this; one that can is answered after the file was read.
	listener, err := net.Listen("unix", o.Socket)
	if err != nil {
		return nil, fmt.Errorf("take orders: %w", err)
	}
	list, err := o.read()
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	r.SetTroubles(list)
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+troublesPath, func(w http.ResponseWriter, req *http.Request) {
		obey(w, req, func(order change) any {
			r.SetTroubles(order.Troubles)
			r.images.forget(order.Forget)
			return struct{}{}
		})
	})
	mux.HandleFunc("POST "+killPath, func(w http.ResponseWriter, req *http.Request) {
		obey(w, req, func(order killing) any { return r.Kill(order.Match, order.Reason) })
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	return server, nil
}

// obey carries an order out and answers with what came of it.
func obey[Order any](w http.ResponseWriter, req *http.Request, do func(Order) any) {
	var order Order
	if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxOrder)).Decode(&order); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := json.Marshal(do(order))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(answer) // who asked is gone if it fails
}

// forget forgets that images were pulled. Containers keep those they have.
func (im *imageService) forget(patterns []string) {
	im.mu.Lock()
	defer im.mu.Unlock()
	for _, pattern := range patterns {
		for name := range im.pulled {
			if images.Matches(pattern, name) {
				delete(im.pulled, name)
			}
		}
	}
}

// Write writes the troubles for nodes that start from now on. It replaces the file in one step.
func (o Orders) Write(list []Trouble) error {
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.File+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(o.File+".new", o.File)
}

func (o Orders) read() ([]Trouble, error) {
	b, err := os.ReadFile(o.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Trouble
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("read %s: %w", o.File, err)
	}
	return list, nil
}

// SetTroubles sends the node troubles that are in the file already; see [Runtime.SetTroubles]. Images that match a
// pattern of forget are pulled again when they are needed. When it returns, the troubles apply to everything that
// begins on the node, also if the node is down.
func (o Orders) SetTroubles(ctx context.Context, list []Trouble, forget []string) error {
	return o.order(ctx, troublesPath, change{Troubles: list, Forget: forget}, &struct{}{})
}

// Kill makes the node kill containers; see [Runtime.Kill]. A node that is down has none.
func (o Orders) Kill(ctx context.Context, m Match, reason string) (killed []string, err error) {
	return killed, o.order(ctx, killPath, killing{Match: m, Reason: reason}, &killed)
}

// order sends an order and reads the answer. A node that is down, or goes down meanwhile, need not answer.
func (o Orders) order(ctx context.Context, path string, order, answer any) error {
	body, err := json.Marshal(order)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://node"+path, strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	var dialer net.Dialer
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", o.Socket)
		},
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("the node does not answer: %w", ctx.Err())
		}
		if isDown(err) {
			return nil
		}
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	switch {
	case isDown(err):
		return nil
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("the node says: %s", strings.TrimSpace(string(b)))
	}
	return json.Unmarshal(b, answer)
}

// isDown reports whether an error shows that no process serves the socket, or no longer does.
func isDown(err error) bool {
	for _, down := range []error{fs.ErrNotExist, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, down) {
			return true
		}
	}
	return false
}
