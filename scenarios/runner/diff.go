package runner

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

const (
	// around is the number of lines shown before and after a difference.
	around = 3
	// diffBound is the bound of [trace.Diff]: two texts of a thousand lines each are still aligned.
	diffBound = 1 << 20
)

// diff returns a unified diff of the asserted (-) and the found (+) fields.
func (a *asserted) diff(ctx context.Context, found *unstructured.Unstructured) []string {
	var value any
	if found != nil {
		value = found.Object
	}
	wanted, got, err := a.scope.Compare(ctx, a.tree, value)
	if err != nil {
		return nil
	}
	lines := func(v any) []string { return strings.Split(strings.TrimSuffix(asYAML(v), "\n"), "\n") }
	return unified(trace.Diff(lines(wanted), lines(got), diffBound))
}

// unified omits the lines that are far from any difference; a line of dots replaces them.
func unified(all []trace.DiffLine) []string {
	keep := make([]bool, len(all))
	for i, line := range all {
		if line.Op == ' ' {
			continue
		}
		for k := max(0, i-around); k <= min(len(all)-1, i+around); k++ {
			keep[k] = true
		}
	}
	var out []string
	for i, line := range all {
		lonely := (i == 0 || keep[i-1]) && (i == len(all)-1 || keep[i+1]) // dots would not be shorter
		switch {
		case keep[i], lonely:
			out = append(out, string(line.Op)+line.Text)
		case i == 0 || keep[i-1]:
			out = append(out, " ...")
		}
	}
	return out
}
