package images

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// Life is what a node tells the lab about a container of an operator whose program is about to begin, or such a program that runs in
// no pod about itself. The program waits for the lab's first [Order]. Then the node sends a [Report] of what happens, the last one
// when the program has ended, and closes the connection; if the lab closes it before, the program is killed, because its API server
// was the lab's gate.
type Life struct {
	// Operator is the operator's name, and Tapped says that its program is built with the taps.
	Operator string
	Tapped   bool
	// ID is that of the container; Pod and Namespace are those of its pod.
	ID, Pod, Namespace string
	// APIServer is the URL of the API server. Token and CA are the files with the token of the pod's service account and the API
	// server's authority.
	APIServer, Token, CA string
	// Kubeconfig has the credentials of a program that runs in no pod; then Pod and the three above are empty.
	Kubeconfig string `json:",omitempty"`
}

// Order is what the lab has done to a program in a pod: the first one lets it begin, each other one sends it a signal.
type Order struct {
	// Env are variables for the program, of the form NAME=value.
	Env []string
	// Note is a line for the container's log; empty: none.
	Note string `json:",omitempty"`
	// Listens says in the first order that the lab takes what the program prints.
	Listens bool `json:",omitempty"`
	// Signal is sent to the program; 0: none.
	Signal syscall.Signal `json:",omitempty"`
	// Drain asks for all that the program has printed until now, by a number that the report about it repeats; 0: nothing is asked.
	Drain int64 `json:",omitempty"`
}

// Report is what a node tells the lab of a program in a pod.
type Report struct {
	// Printed is what the program has printed, if the lab listens.
	Printed []byte `json:",omitempty"`
	// Drained is the number of an order: all that the program had printed before it was told.
	Drained int64 `json:",omitempty"`
	// Ended says that the program has ended, with an exit code.
	Ended bool `json:",omitempty"`
	Code  int  `json:",omitempty"`
}

// reporter sends reports to the lab. What it writes is what the program prints.
type reporter struct {
	mu sync.Mutex
	to *json.Encoder
}

func (r *reporter) report(what Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.to.Encode(what) // it fails if the lab has gone
}

func (r *reporter) Write(p []byte) (int, error) {
	r.report(Report{Printed: p})
	return len(p), nil
}

// call tells the lab of the operator's new life in a container, and returns the connection. It returns nil if there is no lab, or
// nothing that it could see: the pod cannot reach the API server.
func (l *Life) call(c *Container) net.Conn {
	if l == nil || c.Lab == "" {
		return nil
	}
	token, ca, err := accountFiles(c)
	if err != nil {
		return nil
	}
	life := *l
	life.ID, life.Pod, life.Namespace = c.ID, c.Pod, c.Namespace
	life.APIServer, life.Token, life.CA = c.APIServer, token, ca
	return life.Tell(c.Lab)
}

// Tell tells the lab whose file is given of the life, and returns the connection; nil if there is no lab.
func (l Life) Tell(lab string) net.Conn {
	conn := dialLab(lab)
	if conn != nil && json.NewEncoder(conn).Encode(l) != nil {
		_ = conn.Close()
		return nil
	}
	return conn
}

// dialLab connects to the lab whose file is given; nil if there is none, or it was killed.
func dialLab(file string) net.Conn {
	socket, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	conn, err := net.Dial("unix", string(socket))
	if err != nil {
		return nil
	}
	return conn
}

// AwaitLab returns when there is a lab at the file, or with an error if that cannot be watched.
func AwaitLab(file string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close() //nolint:errcheck // it was only read
	if err := watcher.Add(filepath.Dir(file)); err != nil {
		return err
	}
	for {
		if conn := dialLab(file); conn != nil {
			return conn.Close()
		}
		for changed := false; !changed; {
			select {
			case e := <-watcher.Events:
				changed = e.Name == file
			case _, changed = <-watcher.Errors: // it may have missed something
			}
		}
	}
}

// beginSeen starts a program in a container once the lab says so, and obeys the lab until the program has ended.
func beginSeen(c *Container, conn net.Conn, start func(c *Container, env []string) (Running, error)) Running {
	var first Order
	to := &reporter{to: json.NewEncoder(conn)}
	ready := make(chan struct{})
	r := later(c, ready, func() (Running, error) {
		if first.Note != "" {
			fmt.Fprintf(c.Stderr, "operator-lab: %s\n", first.Note)
		}
		in := *c
		if first.Listens {
			in.Stdout, in.Stderr = io.MultiWriter(c.Stdout, to), io.MultiWriter(c.Stderr, to)
		}
		return start(&in, first.Env)
	})
	go func() {
		in := json.NewDecoder(conn)
		err := in.Decode(&first)
		if err == nil {
			close(ready)
		}
		for err == nil {
			var o Order
			if err = in.Decode(&o); err != nil {
				break
			}
			if o.Signal != 0 {
				r.Signal(o.Signal)
			}
			if o.Drain != 0 {
				r.drain()
				to.report(Report{Drained: o.Drain})
			}
		}
		r.Signal(syscall.SIGKILL)
	}()
	go func() {
		<-r.Done()
		to.report(Report{Ended: true, Code: r.Code()})
		_ = conn.Close()
	}()
	return r
}
