//go:build !linux

package sandbox

import "os"

// clone would have two files share what they hold until one is written to.
func clone(_, _ *os.File) bool { return false }
