package sandbox_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox"
)

// TestAssetsTogether makes the links of a new binary several times at once, as when several sandboxes start together.
func TestAssetsTogether(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "operator-lab")
	if err := os.WriteFile(binary, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		state := t.TempDir()
		errs := make([]error, 8)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { _, errs[i] = sandbox.Assets(state, binary) })
		}
		all.Wait()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
		dir, err := sandbox.Assets(state, binary)
		if err != nil {
			t.Fatal(err)
		}
		links, err := os.ReadDir(dir)
		if err != nil || len(links) != 5 {
			t.Fatal(links, err)
		}
	}
}
