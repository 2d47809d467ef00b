package images

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"syscall"
	"time"
)

// serveHTTP answers requests until a signal ends the program. One that asks it to end lets the open requests finish.
func serveHTTP(t *task, c *Container, listener net.Listener, handler http.Handler) int {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	for {
		select {
		case err := <-failed:
			if t.life.Err() == nil {
				fmt.Fprintf(c.Stderr, "operator-lab: %s serves no more: %v\n", c.Image, err)
			}
			return 1
		case <-t.life:
			return killed(syscall.SIGKILL)
		case s := <-t.signals:
			if terminates(s) {
				if err := server.Shutdown(t.life); err != nil && t.life.Err() != nil {
					return killed(syscall.SIGKILL)
				}
				return 0
			}
		}
	}
}
