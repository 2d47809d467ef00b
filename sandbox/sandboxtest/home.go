package sandboxtest

import (
	"errors"
	"os"
	"path/filepath"
)

// MakeHome makes a home directory for programs of a test that is removed in the end. The go command leaves a process behind that
// writes its telemetry there, also after that; in this home it is told not to.
func MakeHome(dir string) error {
	telemetry := filepath.Join(dir, ".config", "go", "telemetry")
	return errors.Join(
		os.MkdirAll(dir, 0o700), os.MkdirAll(telemetry, 0o700), os.WriteFile(filepath.Join(telemetry, "mode"), []byte("off"), 0o600),
	)
}
