// Package plot draws plots in characters.
package plot

import (
	"fmt"
	"math"
	"strings"
)

// Canvas is the area of a plot, with an axis at its left and one below.
type Canvas struct {
	width, height int
	cells         [][]byte
}

// Background is a mark that gives way to any other.
const Background = '.'

// New returns an empty canvas of at least one character.
func New(width, height int) *Canvas {
	c := &Canvas{width: max(width, 1), height: max(height, 1)}
	for range c.height {
		c.cells = append(c.cells, []byte(strings.Repeat(" ", c.width)))
	}
	return c
}

// Column returns the column of an x from 0 (left) to 1 (right).
func (c *Canvas) Column(x float64) int { return int(math.Round(x * float64(c.width-1))) }

// Put puts a mark at x and y, from 0 (left, below) to 1; what is outside is left out. Where there is another mark already,
// both become *.
func (c *Canvas) Put(x, y float64, mark byte) {
	if math.IsNaN(x) || math.IsNaN(y) {
		return
	}
	column, row := c.Column(x), c.height-1-int(math.Round(y*float64(c.height-1)))
	if column < 0 || column >= c.width || row < 0 || row >= c.height {
		return
	}
	cell := &c.cells[row][column]
	if *cell != ' ' && *cell != Background && *cell != mark && mark != Background {
		mark = '*'
	}
	if *cell == ' ' || mark != Background {
		*cell = mark
	}
}

// Rows returns the lines of the plot and the axis below it. The labels at the top and at the bottom of the left axis are
// right-aligned in so many columns.
func (c *Canvas) Rows(columns int, top, bottom string) []string {
	var rows []string
	for i, row := range c.cells {
		label := ""
		switch i {
		case c.height - 1:
			label = bottom
		case 0:
			label = top
		}
		rows = append(rows, fmt.Sprintf("%*s |%s", columns, label, strings.TrimRight(string(row), " ")))
	}
	return append(rows, fmt.Sprintf("%*s +%s", columns, "", strings.Repeat("-", c.width)))
}
