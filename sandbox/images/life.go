package images

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"syscall"
)

// Life is what a node tells the lab about a container of an operator whose program is about to begin. The program waits for the
// lab's first [Order]. When it has ended, the node sends an [Ending] and closes the connection; if the lab closes it before, the
// program is killed, because its API server was the lab's gate.
type Life struct {
	// Operator is the operator's name, and Tapped says that its program is built with the taps.
	Operator string
	Tapped   bool
	// ID is that of the container; Pod and Namespace are those of its pod.
	ID, Pod, Namespace string
	// APIServer is the URL of the API server. Token and CA are the files with the token of the pod's service account and the API
	// server's authority.
	APIServer, Token, CA string
}

// Order is what the lab has done to a program in a pod: the first one lets it begin, each other one sends it a signal.
type Order struct {
	// Env are variables for the program, of the form NAME=value.
	Env []string
	// Note is a line for the container's log; empty: none.
	Note string
	// Signal is sent to the program.
	Signal syscall.Signal
}

// Ending says that a program has ended.
type Ending struct{ Code int }

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
	socket, err := os.ReadFile(c.Lab)
	if err != nil {
		return nil
	}
	conn, err := net.Dial("unix", string(socket))
	if err != nil {
		return nil // the lab was killed
	}
	life := *l
	life.ID, life.Pod, life.Namespace = c.ID, c.Pod, c.Namespace
	life.APIServer, life.Token, life.CA = c.APIServer, token, ca
	if json.NewEncoder(conn).Encode(life) != nil {
		_ = conn.Close()
		return nil
	}
	return conn
}

// beginSeen starts a program once the lab says so, and obeys the lab until the program has ended.
func beginSeen(c *Container, conn net.Conn, start func(env []string) (Running, error)) Running {
	var first Order
	ready := make(chan struct{})
	r := later(c, ready, func() (Running, error) {
		if first.Note != "" {
			fmt.Fprintf(c.Stderr, "operator-lab: %s\n", first.Note)
		}
		return start(first.Env)
	})
	go func() {
		in := json.NewDecoder(conn)
		err := in.Decode(&first)
		if err == nil {
			close(ready)
		}
		for err == nil {
			var o Order
			if err = in.Decode(&o); err == nil {
				r.Signal(o.Signal)
			}
		}
		r.Signal(syscall.SIGKILL)
	}()
	go func() {
		<-r.Done()
		_ = json.NewEncoder(conn).Encode(Ending{Code: r.Code()}) // it fails if the lab has gone
		_ = conn.Close()
	}()
	return r
}
