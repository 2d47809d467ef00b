package program

import (
	"os"
	"path"
	"path/filepath"
	"strings"
)

// mountOf is the innermost mount that a path of the container is in, and where in it; false: it is in none.
func (c *Container) mountOf(name string) (host string, found bool) {
	name = path.Clean("/" + name)
	longest := -1
	for _, m := range c.Mounts {
		at := path.Clean("/" + m.ContainerPath)
		rest, in := strings.CutPrefix(name, strings.TrimSuffix(at, "/"))
		if !in || rest != "" && rest[0] != '/' || len(at) < longest { // of two at the same place the later holds
			continue
		}
		longest, host, found = len(at), filepath.Join(m.HostPath, filepath.FromSlash(rest)), true
	}
	return host, found
}

// hostPath is where on this machine a path of the container is: in a volume, or in the container's own directory, where
// the shell looks, too.
func (c *Container) hostPath(name string) string {
	if host, found := c.mountOf(name); found {
		return host
	}
	return filepath.Join(c.Dir, filepath.FromSlash(path.Clean("/"+name)))
}

// hostFile is hostPath for a file that may have to be written: the directory that it is in is there in a real image.
func (c *Container) hostFile(name string) string {
	host := c.hostPath(name)
	if _, mounted := c.mountOf(name); !mounted {
		_ = os.MkdirAll(filepath.Dir(host), 0o700) // or the program says that there is none
	}
	return host
}

// hostDir is a directory of the container on this machine; that of a container which is not there is its root.
func (c *Container) hostDir(name string) string {
	host := c.hostPath(name)
	if info, err := os.Stat(host); err == nil && info.IsDir() {
		return host
	}
	return c.Dir
}
