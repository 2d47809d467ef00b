package sandbox_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox"
)

// TestACatalogIsADirectoryForOLM: nothing is started otherwise. What OLM does is in the script olm of cmd/operator-lab.
func TestACatalogIsADirectoryForOLM(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		options sandbox.Options
		want    string
	}{
		{sandbox.Options{Catalog: t.TempDir()}, "a catalog is for OLM"},
		{sandbox.Options{OLM: true, Catalog: filepath.Join(t.TempDir(), "no")}, "is no directory"},
	} {
		test.options.StateDir, test.options.Ephemeral = stateDir, true
		lab, err := sandbox.Start(t.Context(), test.options)
		if err == nil {
			_ = lab.Stop()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) || sandbox.HintOf(err) == "" {
			t.Errorf("%+v: got %v, want %q and a hint", test.options, err, test.want)
		}
	}
}
