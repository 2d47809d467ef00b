//go:build !linux

package usage

import "errors"

// Processes are the processes of this machine at a moment.
type Processes struct{}

// Look fails: only Linux tells what a process has used without a program that asks.
func Look() (*Processes, error) { return nil, errors.ErrUnsupported }

// OfGroup returns what a process group has used; false: that is not known.
func (*Processes) OfGroup(int) (Used, bool) { return Used{}, false }

// OfTree returns what a process and those below it have used; false: that is not known.
func (*Processes) OfTree(int) (Used, bool) { return Used{}, false }
