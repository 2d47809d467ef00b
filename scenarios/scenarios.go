// Package scenarios holds the bundled scenarios, and the hooks with which the runner runs them in a lab: they load the
// operators that a scenario names, and check the oracles at its end.
package scenarios

import (
	"embed"
	"io/fs"
)

//go:embed etcd maintpage metering tomcat visitors zundoko
var bundled embed.FS

// Bundled returns the bundled scenarios, in folders by operator.
func Bundled() fs.FS { return bundled }
