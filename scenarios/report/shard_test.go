package report_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operator-lab/operator-lab/scenarios/report"
)

func TestParseShard(t *testing.T) {
	for text, want := range map[string]report.Shard{
		"1/1": {Index: 1, Count: 1}, "3/8": {Index: 3, Count: 8}, "8/8": {Index: 8, Count: 8},
		"": {}, "3": {}, "0/8": {}, "9/8": {}, "-1/8": {}, "a/8": {}, "3/8/2": {}, "3/": {}, "/8": {},
	} {
		got, err := report.ParseShard(text)
		if got != want || (err == nil) != (want.Count > 0) || err == nil && got.String() != text {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// TestReadJSON checks that a report is written again as it was read.
func TestReadJSON(t *testing.T) {
	run := sample()
	run.Shard = report.Shard{Index: 2, Count: 3}
	var written, again bytes.Buffer
	if err := report.JSON.Write(&written, run); err != nil {
		t.Fatal(err)
	}
	read, err := report.ReadJSON(written.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := report.JSON.Write(&again, read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written.String(), again.String()); diff != "" {
		t.Error(diff)
	}
}

func FuzzReadJSON(f *testing.F) {
	var written bytes.Buffer
	if err := report.JSON.Write(&written, sample()); err != nil {
		f.Fatal(err)
	}
	f.Add(written.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		run, err := report.ReadJSON(text)
		if err != nil {
			return
		}
		if err := report.JUnitTest.Write(&bytes.Buffer{}, run); err != nil {
			t.Error(err)
		}
	})
}

// TestMerge checks what is joined, what is missing, and what is refused.
func TestMerge(t *testing.T) {
	shard := func(index, count int, seed int64, seconds float64, tests ...string) *report.Run {
		r := &report.Run{Shard: report.Shard{Index: index, Count: count}, Seed: seed, Started: at(seconds), Ended: at(seconds + 1)}
		for _, name := range tests {
			r.Tests = append(r.Tests, &report.Test{Name: name})
		}
		return r
	}
	for name, test := range map[string]struct {
		runs []*report.Run
		want string
	}{
		"all":         {[]*report.Run{shard(2, 2, 7, 0, "b"), shard(1, 2, 7, 5, "a")}, "a b, seed 7, 6s, missing []"},
		"some":        {[]*report.Run{shard(3, 4, 7, 0, "c")}, "c, seed 7, 1s, missing [1/4 2/4 4/4]"},
		"none in one": {[]*report.Run{shard(1, 2, 7, 0, "a"), shard(2, 2, 0, 0)}, "a, seed 7, 1s, missing []"},
		"other seeds": {[]*report.Run{shard(1, 2, 7, 0, "a"), shard(2, 2, 8, 0, "b")}, "a b, seed 0, 1s, missing []"},
		"twice":       {[]*report.Run{shard(1, 2, 7, 0, "a"), shard(1, 2, 7, 0, "a")}, "shard 1/2 is there twice"},
		"of others":   {[]*report.Run{shard(1, 2, 7, 0, "a"), shard(2, 3, 7, 0, "b")}, "1/2 and 2/3 do not belong together"},
		"everything":  {[]*report.Run{shard(0, 0, 7, 0, "a")}, "one of them is no shard: it has everything"},
	} {
		run, missing, err := report.Merge(test.runs)
		got := fmt.Sprint(err)
		if err == nil {
			var names []string
			for _, one := range run.Tests {
				names = append(names, one.Name)
			}
			got = fmt.Sprintf("%s, seed %d, %v, missing %v", strings.Join(names, " "), run.Seed, run.Ended.Sub(run.Started), missing)
		}
		if got != test.want {
			t.Errorf("%s: %s; want %s", name, got, test.want)
		}
	}
}
