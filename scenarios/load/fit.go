package load

import (
	"fmt"
	"math"
)

// Model says how a figure grows with the number of objects.
type Model string

// The models, from the slowest growth to the fastest.
const (
	Constant     Model = "constant"
	Linear       Model = "n"
	Linearithmic Model = "n log n"
	Quadratic    Model = "n²"
)

// models are the models, from the slowest to the fastest, each with its term.
var models = []struct {
	model Model
	term  func(n float64) float64
}{
	{Constant, func(float64) float64 { return 0 }},
	{Linear, func(n float64) float64 { return n }},
	{Linearithmic, func(n float64) float64 { return n * math.Log2(n+1) }},
	{Quadratic, func(n float64) float64 { return n * n }},
}

// rank returns the place of a model among all, from 0; -1 if it is none of them.
func (m Model) rank() int {
	for i, known := range models {
		if known.model == m {
			return i
		}
	}
	return -1
}

// What a fit needs: fewer sizes, or sizes that are closer, say nothing; and a fit that is further off is none.
const (
	fewestSizes = 4
	leastSpread = 8 // the largest size divided by the smallest
	furthestOff = 0.25
	leastGrowth = 0.5 // what grows, with the most objects, divided by what is there anyway
)

// Fit is a model that was fitted to a figure: base + slope × the term of the model.
type Fit struct {
	// Model is empty if nothing can be said; Why then says why.
	Model Model  `json:"model,omitempty"`
	Why   string `json:"why,omitempty"`
	// Base and Slope are the coefficients; Slope is 0 for Constant.
	Base  float64 `json:"base,omitempty"`
	Slope float64 `json:"slope,omitempty"`
	// Off is the root of the mean square of the relative errors: 0.02 is 2 %.
	Off float64 `json:"off"`
}

// NewFit fits the models by least squares of the relative errors, so that small sizes count as much as large ones, and takes the
// best. A model that grows faster is taken only if it is closer by half, and if what grows is worth mentioning.
func NewFit(sizes []int, values []float64) Fit {
	switch {
	case len(sizes) < fewestSizes:
		return Fit{Why: fmt.Sprintf("it takes %d sizes, and there are only %d", fewestSizes, len(sizes))}
	case sizes[len(sizes)-1] < leastSpread*sizes[0]:
		return Fit{Why: fmt.Sprintf("the sizes are too close: the last has to be %d times the first", leastSpread)}
	}
	var best Fit
	for i, m := range models {
		f := fit(sizes, values, m.term)
		f.Model = m.model
		if i > 0 && f.Slope*m.term(float64(sizes[len(sizes)-1])) < leastGrowth*f.Base {
			continue
		}
		if i == 0 || f.Off < best.Off/2 && best.Off > exact {
			best = f
		}
	}
	if best.Off > furthestOff {
		return Fit{Why: fmt.Sprintf("no model is near; the nearest, %s, is off by %.0f %%", best.Model, 100*best.Off), Off: best.Off}
	}
	return best
}

// exact is how far off a fit may be that is taken without looking at faster growth.
const exact = 0.02

// fit returns the base and the slope for a term. Neither is negative: nothing costs less than nothing.
func fit(sizes []int, values []float64, term func(float64) float64) Fit {
	var w, wx, wy, wxx, wxy float64
	for i, n := range sizes {
		x, y := term(float64(n)), values[i]
		weight := 1 / math.Pow(math.Max(y, 1), 2)
		w, wx, wy, wxx, wxy = w+weight, wx+weight*x, wy+weight*y, wxx+weight*x*x, wxy+weight*x*y
	}
	f := Fit{Base: wy / w}
	if d := w*wxx - wx*wx; wx > 0 && d > 0 {
		f.Slope = (w*wxy - wx*wy) / d
		f.Base = (wy - f.Slope*wx) / w
		if f.Base < 0 {
			f.Base, f.Slope = 0, wxy/wxx
		}
		if f.Slope < 0 {
			f.Base, f.Slope = wy/w, 0
		}
	}
	var sum float64
	for i, n := range sizes {
		off := (f.Base + f.Slope*term(float64(n)) - values[i]) / math.Max(values[i], 1)
		sum += off * off
	}
	f.Off = math.Sqrt(sum / float64(len(sizes)))
	return f
}
