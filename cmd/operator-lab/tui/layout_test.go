package tui

import (
	"fmt"
	"strings"
	"testing"
)

// picture draws a layout: a character stands for four columns, and a line for
// as many rows as it says. Digits are panes; H header, S strip, t traffic, m members, s scrubber,
// w why, g legend, n what is beside it, - rule, F footer.
func picture(l Layout, w, h int) string {
	at := func(x, y int) byte {
		in := func(r Rect) bool { return x >= r.X && x < r.X+r.W && y >= r.Y && y < r.Y+r.H }
		found := byte('.')
		for p, r := range l.Pane {
			if in(r) {
				found = '0' + byte(p)
			}
		}
		for _, c := range []struct {
			sign byte
			r    Rect
		}{{'w', l.Why}, {'H', l.Header}, {'S', l.Strip}, {'t', l.Traffic}, {'m', l.Store}, {'s', l.Scrubber}, {'g', l.Legend}, {'-', l.Rule}, {'n', l.Aside}, {'F', l.Footer}} {
			if in(c.r) {
				found = c.sign
			}
		}
		return found
	}
	var out strings.Builder
	last, n := "", 0
	for y := 0; y <= h; y++ {
		line := ""
		if y < h {
			for x := 0; x < w; x += 4 {
				line += string(at(x, y))
			}
		}
		if line != last && n > 0 {
			fmt.Fprintf(&out, "%2d %s\n", n, last)
			n = 0
		}
		last = line
		n++
	}
	return out.String()
}

// To change a layout: change it, run the test, look at the picture it prints,
// and if you like it paste it here.
func TestLayout(t *testing.T) {
	for _, test := range []struct {
		name string
		args layoutArgs
		want string
	}{
		{"too small", layoutArgs{w: 59, h: 16}, `
16 ...............
`},
		{"smallest", layoutArgs{w: 60, h: 16}, `
 2 wwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHH
 1 SSSSSSSSSSSSSSS
 5 333333333333333
 4 444444444444444
 1 sssssssssssssss
 1 nnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFF
`},
		{"stack", layoutArgs{w: 80, h: 24}, `
 2 wwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHH
 1 SSSSSSSSSSSSSSSSSSSS
 9 33333333333333333333
 7 44444444444444444444
 1 ssssssssssssssssssss
 2 nnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFF
`},
		{"stack, with traffic", layoutArgs{w: 80, h: 24, asked: true}, `
 2 wwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHH
 1 SSSSSSSSSSSSSSSSSSSS
 1 tttttttttttttttttttt
 8 33333333333333333333
 7 44444444444444444444
 1 ssssssssssssssssssss
 2 nnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFF
`},
		{"stack, with members", layoutArgs{w: 80, h: 24, store: 3}, `
 2 wwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHH
 1 SSSSSSSSSSSSSSSSSSSS
 1 mmmmmmmmmmmmmmmmmmmm
 8 33333333333333333333
 7 44444444444444444444
 1 ssssssssssssssssssss
 2 nnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFF
`},
		{"medium, smallest, with members", layoutArgs{w: 100, h: 30, store: 3}, `
 2 wwwwwwwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHHHHHHH
 2 SSSSSSSSSSSSSSSSSSSSSSSSS
 2 mmmmmmmmmmmmmmmmmmmmmmmmm
 9 1111111113333333333333333
 9 2222222224444444444444444
 1 sssssssssssssssssssssssss
 1 -------------------------
 2 nnnnnnnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFFFFFFF
`},
		{"medium, with members", layoutArgs{w: 120, h: 40, store: 7}, `
 2 wwwwwwwwwwwwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHHHHHHHHHHHH
 2 SSSSSSSSSSSSSSSSSSSSSSSSSSSSSS
 7 mmmmmmmmmmmmmmmmmmmmmmmmmmmmmm
11 111111111133333333333333333333
 1 111111111144444444444444444444
11 222222222244444444444444444444
 1 ssssssssssssssssssssssssssssss
 1 ------------------------------
 2 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFFFFFFFFFFFF
`},
		{"wide, with members", layoutArgs{w: 200, h: 50, lesson: true, asked: true, store: 3}, `
 2 wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHH
 2 SSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSS
 1 tttttttttttttttttttttttttttttttttttttttttttttttttt
 6 mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm
16 11111111111133333333333333333333334444444444444444
 2 11111111111133333333333333333333335555555555555555
14 22222222222266666666666666666666665555555555555555
 1 ssssssssssssssssssssssssssssssssssssssssssssssssss
 1 gggggggggggggggggggggggggggggggggggggggggggggggggg
 1 --------------------------------------------------
 2 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF
`},
		{"stack, objects on top", layoutArgs{w: 80, h: 24, focus: ObjectsPane, top: ObjectsPane}, `
 2 wwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHH
 1 SSSSSSSSSSSSSSSSSSSS
 9 11111111111111111111
 7 44444444444444444444
 1 ssssssssssssssssssss
 2 nnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFF
`},
		{"stack, zoomed to half", layoutArgs{w: 80, h: 24, focus: QueuePane, top: QueuePane, zoom: ZoomHalf}, `
 2 wwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHH
 1 SSSSSSSSSSSSSSSSSSSS
11 22222222222222222222
 5 44444444444444444444
 1 ssssssssssssssssssss
 2 nnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFF
`},
		{"wide but low is a stack", layoutArgs{w: 120, h: 24}, `
 2 wwwwwwwwwwwwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHHHHHHHHHHHH
 1 SSSSSSSSSSSSSSSSSSSSSSSSSSSSSS
 9 333333333333333333333333333333
 7 444444444444444444444444444444
 1 ssssssssssssssssssssssssssssss
 2 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFFFFFFFFFFFF
`},
		{"tall", layoutArgs{w: 90, h: 50, focus: LoopPane}, `
 2 wwwwwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHHHHH
 1 SSSSSSSSSSSSSSSSSSSSSSS
 9 11111111111111111111111
 6 22222222222222222222222
18 33333333333333333333333
 9 44444444444444444444444
 1 sssssssssssssssssssssss
 2 nnnnnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFFFFF
`},
		{"medium, smallest", layoutArgs{w: 100, h: 30}, `
 2 wwwwwwwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHHHHHHH
 2 SSSSSSSSSSSSSSSSSSSSSSSSS
10 1111111113333333333333333
 1 1111111114444444444444444
 9 2222222224444444444444444
 1 sssssssssssssssssssssssss
 1 -------------------------
 2 nnnnnnnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFFFFFFF
`},
		{"medium", layoutArgs{w: 120, h: 40}, `
 2 wwwwwwwwwwwwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHHHHHHHHHHHH
 2 SSSSSSSSSSSSSSSSSSSSSSSSSSSSSS
15 111111111133333333333333333333
 1 111111111144444444444444444444
14 222222222244444444444444444444
 1 ssssssssssssssssssssssssssssss
 1 ------------------------------
 2 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFFFFFFFFFFFF
`},
		{"medium, with a demo", layoutArgs{w: 120, h: 40, demo: true}, `
 2 wwwwwwwwwwwwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHHHHHHHHHHHH
 2 SSSSSSSSSSSSSSSSSSSSSSSSSSSSSS
14 111111111133333333333333333333
 1 111111111144444444444444444444
13 222222222244444444444444444444
 1 ssssssssssssssssssssssssssssss
 1 ------------------------------
 4 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFFFFFFFFFFFF
`},
		{"medium, lesson", layoutArgs{w: 120, h: 40, low: LessonPane, focus: LessonPane, lesson: true}, `
 2 wwwwwwwwwwwwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHHHHHHHHHHHH
 2 SSSSSSSSSSSSSSSSSSSSSSSSSSSSSS
 9 111111111133333333333333333333
 7 111111111155555555555555555555
14 222222222255555555555555555555
 1 ssssssssssssssssssssssssssssss
 1 ------------------------------
 2 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFFFFFFFFFFFF
`},
		{"medium, lesson without an operator", layoutArgs{w: 100, h: 30, lesson: true, bare: true, store: 3}, `
 1 HHHHHHHHHHHHHHHHHHHHHHHHH
 2 mmmmmmmmmmmmmmmmmmmmmmmmm
23 5555555555555555555555555
 1 -------------------------
 2 nnnnnnnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFFFFFFF
`},
		{"medium, zoomed to half", layoutArgs{w: 120, h: 40, focus: LoopPane, zoom: ZoomHalf}, `
 2 wwwwwwwwwwwwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHHHHHHHHHHHH
 2 SSSSSSSSSSSSSSSSSSSSSSSSSSSSSS
30 333333333333333444444444444444
 1 ssssssssssssssssssssssssssssss
 1 ------------------------------
 2 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFFFFFFFFFFFF
`},
		{"zoomed", layoutArgs{w: 120, h: 40, focus: LoopPane, zoom: ZoomFull}, `
 2 wwwwwwwwwwwwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHHHHHHHHHHHH
 2 SSSSSSSSSSSSSSSSSSSSSSSSSSSSSS
30 333333333333333333333333333333
 1 ssssssssssssssssssssssssssssss
 1 ------------------------------
 2 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFFFFFFFFFFFF
`},
		{"wide", layoutArgs{w: 200, h: 50, lesson: true}, `
 2 wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHH
 2 SSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSS
19 11111111111133333333333333333333334444444444444444
 3 11111111111133333333333333333333335555555555555555
17 22222222222266666666666666666666665555555555555555
 1 ssssssssssssssssssssssssssssssssssssssssssssssssss
 1 gggggggggggggggggggggggggggggggggggggggggggggggggg
 1 --------------------------------------------------
 2 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF
`},
		{"wide without a lesson", layoutArgs{w: 160, h: 40}, `
 2 wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww
 1 HHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHH
 2 SSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSS
16 1111111113333333333333333334444444444444
13 2222222226666666666666666664444444444444
 1 ssssssssssssssssssssssssssssssssssssssss
 1 gggggggggggggggggggggggggggggggggggggggg
 1 ----------------------------------------
 2 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
 1 FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.args.why = 2
			if got := "\n" + picture(layout(test.args), test.args.w, test.args.h); got != test.want {
				t.Errorf("the layout is now:%s\nand was:%s", got, test.want)
			}
		})
	}
}

// TestLayoutCoversTheScreen: whatever the size, every cell belongs to exactly one rectangle.
func TestLayoutCoversTheScreen(t *testing.T) {
	for w := minWidth; w <= 250; w++ {
		for h := minHeight; h <= 110; h += 3 {
			for _, zoom := range []Zoom{ZoomNormal, ZoomHalf, ZoomFull} {
				for p := ObjectsPane; p <= CausePane; p++ {
					a := layoutArgs{w: w, h: h, zoom: zoom, focus: p, top: p, lesson: h%2 == 0, asked: w%2 == 0, demo: w%3 == 0, store: w * h % 9, why: w % 5}
					cells := 0
					l := layout(a)
					for _, r := range append(l.Pane[:], l.Why, l.Header, l.Strip, l.Traffic, l.Store, l.Scrubber, l.Legend, l.Rule, l.Aside, l.Footer) {
						if r.X < 0 || r.Y < 0 || r.X+r.W > w || r.Y+r.H > h {
							t.Fatalf("%+v: %+v is off the screen", a, r)
						}
						cells += r.W * r.H
					}
					if cells != w*h {
						t.Fatalf("%+v: the rectangles have %d cells, the screen %d", a, cells, w*h)
					}
				}
			}
		}
	}
}
