package sandboxtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// MakeHome makes a home directory for programs of a test that is removed in the end. The go command leaves a process behind that
// writes its telemetry there, also after that; in this home it is told not to.
func MakeHome(dir string) error {
	telemetry := filepath.Join(dir, ".config", "go", "telemetry")
	return errors.Join(
		os.MkdirAll(dir, 0o700), os.MkdirAll(telemetry, 0o700), os.WriteFile(filepath.Join(telemetry, "mode"), []byte("off"), 0o600),
	)
}

// GoSettings returns the settings of the go command by which a test that has another home shares the caches of this machine,
// as variables NAME=value: without them each of its builds would begin with nothing.
func GoSettings(tb testing.TB) []string {
	tb.Helper()
	names := []string{"GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "CGO_ENABLED"}
	out, err := exec.CommandContext(tb.Context(), "go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		tb.Fatal(err)
	}
	values := strings.Split(string(out), "\n")
	for i, name := range names {
		names[i] = name + "=" + values[i]
	}
	return names
}
