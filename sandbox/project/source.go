package project

import (
	"fmt"
	"os"
	"path/filepath"
)

// Source returns a file of the project by the path that the Line of an event has, and whether it was changed since the newest
// build began.
func (o *Operator) Source(file string) (text string, changed bool, err error) {
	if !filepath.IsLocal(filepath.FromSlash(file)) {
		return "", false, fmt.Errorf("%s is not in the project", file)
	}
	full := filepath.Join(o.options.Project.files().home, filepath.FromSlash(file))
	if !fileExists(full) { // of the program that all Ansible operators have
		full = filepath.Join(o.options.Project.Root, filepath.FromSlash(file))
	}
	info, err := os.Stat(full)
	if err != nil {
		return "", false, err
	}
	raw, err := os.ReadFile(full)
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(raw), info.ModTime().After(o.built), err
}
