package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// clone has two files share what they hold until one is written to, where the file system can.
func clone(out, in *os.File) bool {
	return unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil
}
