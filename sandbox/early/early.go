// Package early gives a package that is initialized later the lab's state directory as its cache, and then the process its
// environment back.
//
// controller-runtime's envtest makes a directory below the user's cache directory while it is initialized, and
// panics, before main, when it cannot: in a container with a read-only home and /tmp nothing of the binary would run,
// not even --help. It also leaves that directory behind in homes that the lab promises not to touch.
//
// Packages are initialized in the order of their import paths as soon as all they import is, so a package that imports
// only a little of the standard library, with a path before sigs.k8s.io, comes first. That holds for every importer
// in this module. The package sandbox imports envtest, so it is initialized after that, and calls [Restore].
package early

import (
	"os"
	"path/filepath"
	"runtime"
)

// cache is set up by the initialization of this variable: an init function of this package would do the same.
var cache = redirect()

// variable names what os.UserCacheDir reads on this system.
func variable() string {
	if runtime.GOOS == "darwin" {
		return "HOME"
	}
	return "XDG_CACHE_HOME"
}

// setting is an environment variable as it was.
type setting struct {
	name, value string
	set         bool
}

func redirect() setting {
	answerHelp()
	was := setting{name: variable()}
	was.value, was.set = os.LookupEnv(was.name)
	if dir := stateDir(); dir != "" {
		_ = os.MkdirAll(dir, 0o700) // or envtest makes it, open to the group; who needs it reports an error
		_ = os.Setenv(was.name, filepath.Join(dir, "cache"))
	}
	return was
}

// stateDir repeats sandbox.StateDir, which this package must not import.
func stateDir() string {
	if dir := os.Getenv("OPERATOR_LAB_STATE_DIR"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "operator-lab")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "state", "operator-lab")
	}
	return ""
}

// Restore gives the environment back as it was: what this process starts, such as a Go command, is to find the user's
// caches.
func Restore() error {
	if cache.set {
		return os.Setenv(cache.name, cache.value)
	}
	return os.Unsetenv(cache.name)
}
