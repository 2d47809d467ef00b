package images

import (
	"os"
	"path"
	"path/filepath"
	"strings"
)

// mountOf returns the path on this machine of a path in a volume, by the innermost mount; false if it is in none.
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

// hostPath returns the path on this machine of a path in the container: in a volume, or in the container's own
// directory, where the shell looks, too.
func (c *Container) hostPath(name string) string {
	if host, found := c.mountOf(name); found {
		return host
	}
	return filepath.Join(c.Dir, filepath.FromSlash(path.Clean("/"+name)))
}

// hostFile is hostPath for a file that may be written: it makes the directory, which exists in a real image.
func (c *Container) hostFile(name string) string {
	host := c.hostPath(name)
	if _, mounted := c.mountOf(name); !mounted {
		_ = os.MkdirAll(filepath.Dir(host), 0o700) // otherwise the program reports that there is none
	}
	return host
}

// hostDir returns the path on this machine of a directory of the container. A missing directory becomes the root.
func (c *Container) hostDir(name string) string {
	host := c.hostPath(name)
	if info, err := os.Stat(host); err == nil && info.IsDir() {
		return host
	}
	return c.Dir
}
