package agent

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/operators/etcd/store"
)

func TestNames(t *testing.T) {
	at := time.Date(2026, 11, 20, 19, 5, 7, 0, time.UTC)
	if got, want := nameOf("a/b", version{10, at}), "a/b_v10_2026-11-20-19:05:07"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for name, ours := range map[string]bool{
		"a/b_v10_2026-11-20-19:05:07":                  true,
		"a/b_v9223372036854775807_2026-11-20-19:05:07": true,
		"a/b":                                 false,
		"a/b_v":                               false,
		"a/b_v10":                             false,
		"a/b_v10_":                            false,
		"a/b_v0_2026-11-20-19:05:07":          false,
		"a/b_v-1_2026-11-20-19:05:07":         false,
		"a/b_v+1_2026-11-20-19:05:07":         false,
		"a/b_v010_2026-11-20-19:05:07":        false,
		"a/b_v10_2026-11-20-19:05:07.5":       false,
		"a/b_v10_2026-11-20-19:05:07.partial": false,
		"a/b_v10_2026-13-20-19:05:07":         false,
		"a/b_v9223372036854775808_2026-11-20-19:05:07": false,
		"a/bc_v10_2026-11-20-19:05:07":                 false,
		"a/b_v10_v10_2026-11-20-19:05:07":              false,
		"b_v10_2026-11-20-19:05:07":                    false,
	} {
		if _, got := parseName("a/b", name); got != ours {
			t.Errorf("%s: ours %t, want %t", name, got, ours)
		}
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("b", "b_v10_2026-11-20-19:05:07")
	f.Add("b_v1_2026-11-20-19:05:07", "b_v1_2026-11-20-19:05:07_v2_2026-11-20-19:05:07")
	f.Add("", "_v1_0000-01-01-00:00:00")
	f.Fuzz(func(t *testing.T, path, name string) {
		v, ok := parseName(path, name)
		if !ok {
			return
		}
		if got := nameOf(path, v); got != name {
			t.Errorf("%q is read as %+v, which is written %q", name, v, got)
		}
		if v.revision <= 0 || v.compare(v) != 0 {
			t.Errorf("%q is read as %+v", name, v)
		}
	})
}

func TestPruneGoesByNumberAndKeepsTheNewest(t *testing.T) {
	for _, tc := range []struct {
		name   string
		there  string // names after b_v, with the newest one first
		keep   int
		remain string
	}{
		// B-01: as strings v9 comes after v10, which would be deleted.
		{"across a power of ten", "10_2026-01-01-00:00:10 9_2026-01-01-00:00:09 8_2026-01-01-00:00:08", 2, "10_2026-01-01-00:00:10 9_2026-01-01-00:00:09"},
		{"one", "100_2026-01-01-00:00:10 99_2026-01-01-00:00:09", 1, "100_2026-01-01-00:00:10"},
		{"all", "3_2026-01-01-00:00:10 2_2026-01-01-00:00:09 1_2026-01-01-00:00:08", 0, "3_2026-01-01-00:00:10 2_2026-01-01-00:00:09 1_2026-01-01-00:00:08"},
		{"nothing was written", "5_2026-01-01-00:00:10 5_2026-01-01-00:00:09 5_2026-01-01-00:00:08", 2, "5_2026-01-01-00:00:10 5_2026-01-01-00:00:09"},
		{"the cluster began anew", "2_2026-01-01-00:00:10 70_2026-01-01-00:00:09 69_2026-01-01-00:00:08", 2, "2_2026-01-01-00:00:10 70_2026-01-01-00:00:09"},
		{"somebody else's", "5_2026-01-01-00:00:10 4_2026-01-01-00:00:09 3.keep", 1, "5_2026-01-01-00:00:10 3.keep"},
		{"a clock went back", "7_2026-01-01-00:00:01 6_2026-01-01-00:00:09 5_2026-01-01-00:00:08", 2, "7_2026-01-01-00:00:01 6_2026-01-01-00:00:09"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in, err := store.NewDir(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			there := strings.Fields(tc.there)
			for _, name := range there {
				if err := in.Put(t.Context(), "x/b_v"+name, strings.NewReader(name), int64(len(name))); err != nil {
					t.Fatal(err)
				}
			}
			kept, pruned, err := prune(t.Context(), slog.New(slog.DiscardHandler), in, "x/b", "x/b_v"+there[0], tc.keep)
			if err != nil {
				t.Fatal(err)
			}
			objects, err := in.List(t.Context(), "x/b_v")
			if err != nil {
				t.Fatal(err)
			}
			var remain []string
			for _, o := range objects {
				remain = append(remain, strings.TrimPrefix(o.Name, "x/b_v"))
			}
			want := strings.Fields(tc.remain)
			slices.Sort(want)
			slices.Sort(remain)
			if !slices.Equal(remain, want) {
				t.Errorf("remain %q, want %q", remain, want)
			}
			if pruned != len(there)-len(want) {
				t.Errorf("said to have deleted %d of %q", pruned, there)
			}
			ours := 0
			for _, name := range remain {
				if _, ok := parseName("x/b", "x/b_v"+name); ok {
					ours++
				}
			}
			if kept != ours {
				t.Errorf("said to have kept %d, kept %d", kept, ours)
			}
		})
	}
}
