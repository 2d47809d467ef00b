package plot

import (
	"math"
	"strings"
	"testing"
)

func TestCanvas(t *testing.T) {
	c := New(5, 3)
	for i := range 5 {
		c.Put(float64(i)/4, 0, Background)
	}
	c.Put(0, 0, 'a')
	c.Put(0, 0, Background)
	c.Put(0.5, 1, 'a')
	c.Put(0.5, 1, 'a')
	c.Put(1, 0.5, 'a')
	c.Put(1, 0.5, 'b')
	for _, out := range []float64{-1, 2, math.NaN(), math.Inf(1)} {
		c.Put(out, 0, 'x')
		c.Put(0, out, 'x')
	}
	want := strings.Join([]string{
		"  9 |  a",
		"    |    *",
		"  0 |a....",
		"    +-----",
	}, "\n")
	if got := strings.Join(c.Rows(3, "9", "0"), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := New(0, 0).Rows(0, "top", "bottom"); len(got) != 2 {
		t.Errorf("the least is %q", got)
	}
}
