//go:build go1.23

package taps

import "runtime"

// goroutineID returns the number of the calling goroutine.
//
// An informer calls a controller's handler, and the handler adds keys to the queue, in one goroutine. If the handler
// has no queue of its own (see giveQueue: a handler of an unknown type), only the goroutine connects the two exactly.
// The runtime reveals the number only in the first line of a stack trace ("goroutine 42 [running]:"), which takes about
// ten microseconds.
func goroutineID() uint64 {
	var buf [32]byte
	n := runtime.Stack(buf[:], false)
	var id uint64
	for _, c := range buf[len("goroutine "):n] {
		if c < '0' || c > '9' {
			break
		}
		id = id*10 + uint64(c-'0')
	}
	return id
}
