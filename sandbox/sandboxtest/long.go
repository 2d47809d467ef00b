package sandboxtest

import "testing"

// Long skips a test that takes long when the run is to be short, as with 'go test -short'. A test that runs parallel to
// others calls it after [testing.T.Parallel].
func Long(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("it takes long: not in a short run")
	}
}
