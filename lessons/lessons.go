// Package lessons holds the lessons that come with the lab, each in a folder: what it is about, its texts in each
// language, and a scenario file for each task. See the README there for how they are written.
package lessons

import (
	"embed"
	"io/fs"
)

//go:embed [0-9][0-9]-*
var bundled embed.FS

// Bundled are the lessons that come with the lab.
func Bundled() fs.FS { return bundled }
