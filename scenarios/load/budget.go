package load

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox"
)

// Budget is a limit for a figure, such as "calls per object <= 12", "bytes per reconcile at relist < 4KiB", "findings <= 0" or "growth
// of items at restart <= n".
type Budget struct {
	text, figure, per, phase string
	less                     bool // the limit itself is too much
	limit                    float64
	growth                   Model // of a limit for the growth; else empty
}

// findingsFigure is the figure that counts findings.
const findingsFigure = "findings"

// budgetHint says how budgets are written.
var budgetHint = "such as 'calls per object <= 12' or 'growth of items at relist <= n'; figures: " + strings.Join(figureNames(), ", ") +
	"; per object, change or reconcile; at " + strings.Join(Phases, ", ")

func figureNames() (names []string) {
	for _, f := range figures {
		names = append(names, f.name)
	}
	return append(names, findingsFigure)
}

var budgetPattern = regexp.MustCompile(`^(growth of )?(` + strings.Join(figureNames(), "|") + `)(?: per (object|change|reconcile))?(?: at (` +
	strings.Join(Phases, "|") + `))? ?(<=?) ?(.+)$`)

// units are the units of limits in bytes.
var units = []struct {
	name  string
	bytes float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}}

// ParseBudget reads a budget. Its error has a hint.
func ParseBudget(text string) (Budget, error) {
	wrong := func(format string, args ...any) error {
		return &sandbox.Problem{Err: fmt.Errorf("budget %q: %w", text, fmt.Errorf(format, args...)), Hint: budgetHint}
	}
	parts := budgetPattern.FindStringSubmatch(strings.Join(strings.Fields(text), " "))
	if parts == nil {
		return Budget{}, wrong("it is no figure with a limit")
	}
	b := Budget{text: text, figure: parts[2], per: parts[3], phase: parts[4], less: parts[5] == "<"}
	if b.figure == findingsFigure && (b.per != "" || b.phase != "" || parts[1] != "") {
		return Budget{}, wrong("findings are of all phases")
	}
	if b.phase == "" {
		b.phase = Create
		if b.per == "change" {
			b.phase = Change
		}
	}
	if b.per == "change" && b.phase != Change {
		return Budget{}, wrong("there are no changes at %s", b.phase)
	}
	limit := parts[6]
	if parts[1] != "" {
		b.growth = Model(strings.NewReplacer("n^2", string(Quadratic), "n2", string(Quadratic)).Replace(limit))
		if b.growth.rank() < 0 || b.per != "" {
			return Budget{}, wrong("the growth of a figure is constant, n, n log n or n^2")
		}
		return b, nil
	}
	scale := 1.0
	for _, u := range units {
		if plain, is := strings.CutSuffix(limit, u.name); is && b.figure == "bytes" {
			limit, scale = strings.TrimSpace(plain), u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(limit, 64)
	if err != nil || !(v >= 0 && v < 1e300) {
		return Budget{}, wrong("%q is no limit", parts[6])
	}
	b.limit = v * scale
	return b, nil
}

// Exceeded says how a report exceeds the budget; empty if it does not.
func (b Budget) Exceeded(r *Report) string {
	name := strings.TrimSuffix(r.Operator+" ("+r.Variant, " (")
	if r.Variant != "" {
		name += ")"
	}
	if b.figure == findingsFigure {
		return b.compare(name, float64(len(r.Findings)), "findings")
	}
	g := r.growth(b.phase, b.figure)
	switch {
	case g == nil:
		return fmt.Sprintf("%s: %s: %s was not measured", name, b.text, b.phase)
	case b.growth != "" && g.Model == "":
		return fmt.Sprintf("%s: %s: that cannot be told: %s", name, b.text, g.Why)
	case b.growth != "":
		if rank, limit := g.Model.rank(), b.growth.rank(); rank > limit || b.less && rank == limit {
			return fmt.Sprintf("%s: %s: they grow like %s", name, b.text, g.Model)
		}
		return ""
	}
	v, sizes := g.Values[len(g.Values)-1], r.sizes(b.phase)
	n := sizes[len(sizes)-1]
	by := map[string]float64{"": 1, "object": float64(n), "change": float64(r.Changes)}[b.per]
	if b.per == "reconcile" {
		by = r.growth(b.phase, "reconciles").Values[len(sizes)-1]
	}
	if by == 0 {
		return fmt.Sprintf("%s: %s: there was no %s", name, b.text, cmp.Or(b.per, "object"))
	}
	return b.compare(name, v/by, "at "+b.phase+" with "+ofKind(n, r.Kind))
}

func (b Budget) compare(name string, v float64, where string) string {
	if v < b.limit || v == b.limit && !b.less {
		return ""
	}
	return fmt.Sprintf("%s: %s: %s %s", name, b.text, strconv.FormatFloat(v, 'g', 5, 64), where)
}
