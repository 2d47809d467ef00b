// Package scenarios holds the scenarios that come with the lab, and the stage they are played on: a lab that loads the
// operators a scenario names, and judges them at its end.
package scenarios

import (
	"embed"
	"io/fs"
)

//go:embed etcd maintpage zundoko
var bundled embed.FS

// Bundled are the scenarios that come with the lab, in folders by operator.
func Bundled() fs.FS { return bundled }
