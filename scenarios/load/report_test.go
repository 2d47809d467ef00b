package load

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

func TestNewFit(t *testing.T) {
	sizes := []int{1, 4, 16, 64}
	series := func(f func(n float64) float64) (out []float64) {
		for _, n := range sizes {
			out = append(out, f(float64(n)))
		}
		return out
	}
	for name, test := range map[string]struct {
		sizes  []int
		values []float64
		want   Model
		why    string
	}{
		"hardly grows":      {sizes, []float64{4, 4, 4, 5}, Constant, ""},
		"nothing":           {sizes, series(func(float64) float64 { return 0 }), Constant, ""},
		"constant":          {sizes, series(func(float64) float64 { return 7 }), Constant, ""},
		"wobbles":           {sizes, []float64{10, 11, 9, 10}, Constant, ""},
		"n":                 {sizes, series(func(n float64) float64 { return 3 * n }), Linear, ""},
		"n and more":        {sizes, series(func(n float64) float64 { return 20 + 3*n }), Linear, ""},
		"n, but wobbles":    {sizes, []float64{1, 4, 17, 61}, Linear, ""},
		"n log n":           {sizes, series(func(n float64) float64 { return 5 * n * math.Log2(n+1) }), Linearithmic, ""},
		"n²":                {sizes, series(func(n float64) float64 { return n * n }), Quadratic, ""},
		"half of n² + n":    {sizes, series(func(n float64) float64 { return n * (n + 1) / 2 }), Quadratic, ""},
		"falls":             {sizes, []float64{100, 50, 20, 1}, "", "no model is near"},
		"jumps":             {sizes, []float64{1, 900, 2, 800}, "", "no model is near"},
		"three sizes":       {sizes[:3], []float64{1, 4, 16}, "", "there are only 3"},
		"sizes too close":   {[]int{4, 5, 6, 7}, []float64{4, 5, 6, 7}, "", "too close"},
		"no sizes":          {nil, nil, "", "there are only 0"},
		"decades, n":        {[]int{1, 10, 100, 1000}, []float64{12, 110, 1090, 11000}, Linear, ""},
		"decades, n²":       {[]int{1, 10, 100, 1000}, []float64{3, 120, 10100, 1000900}, Quadratic, ""},
		"decades, constant": {[]int{1, 10, 100, 1000}, []float64{3, 3, 4, 3}, Constant, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := NewFit(test.sizes, test.values)
			if got.Model != test.want || !strings.Contains(got.Why, test.why) || (got.Why == "") != (test.why == "") {
				t.Errorf("%+v, want %s %q", got, test.want, test.why)
			}
		})
	}
}

// made returns a report of an operator with so many calls for each object, which lists so many objects in each.
func made(calls, items func(n int) int) *Report {
	r := &Report{Operator: "band", Kind: "Song", Changes: 10}
	for _, n := range []int{1, 4, 16, 64} {
		size := &Size{Objects: n, Phases: map[string]*Phase{}, Settled: true, Etcd: 4096}
		for _, phase := range Phases {
			often, each, listed := n, int64(calls(n)), items(n)
			if phase == Change {
				often, each, listed = r.Changes, 128, 10
			}
			size.Phases[phase] = &Phase{
				Seconds: 1, Reconciles: often,
				Requests: []RequestCount{{Verb: "update", Resource: "songs", Requests: each, Sent: int64(100 * often), Received: int64(200 * often)}},
				Calls:    []CallCount{{Call: Call{Verb: "list", Kind: "Song", From: trace.Cache, Line: "band.go:7"}, Calls: often, Items: listed}},
			}
		}
		r.Sizes = append(r.Sizes, size)
	}
	r.conclude()
	return r
}

func TestFindings(t *testing.T) {
	n := func(n int) int { return n }
	quiet := made(n, n)
	if len(quiet.Findings) > 0 || quiet.summary() != "nothing grows faster than it has to" {
		t.Errorf("%+v", quiet.Findings)
	}
	square := func(n int) int { return n * n }
	if found := made(n, square).Findings; len(found) != 1 || found[0].Text != "lists all of kind Song from its cache at each reconcile (band.go:7): 64 × 64 = 4,096 objects when all is listed anew with 64 Songs" {
		t.Errorf("%+v", found)
	}
	if found := made(square, n).Findings; len(found) == 0 || found[0].Sort != Grows || !strings.Contains(found[0].Text, "calls at the API server grow like n²: ") || !strings.Contains(found[0].Text, "update songs (4,096)") {
		t.Errorf("%+v", found)
	}
	// A write at each of 64 objects has no reason, unless others have changed as many.
	for others, want := range map[int]string{0: "writes although nobody has changed anything: 64 of patch Song", 8: "writes although others have changed only 8: 64", 60: ""} {
		again := made(n, n)
		last := again.last(Restart)
		last.Others, last.Calls = others, []CallCount{{Call: Call{Verb: "patch", Kind: "Song"}, Calls: 64}}
		if again.conclude(); (len(again.Findings) == 1) != (want != "") || want != "" && !strings.HasPrefix(again.Findings[0].Text, want) {
			t.Errorf("%d: %+v", others, again.Findings)
		}
	}
	// Too few sizes say nothing.
	few := made(square, square)
	few.Sizes = few.Sizes[:3]
	if few.conclude(); len(few.Findings) > 0 || !strings.Contains(strings.Join(few.notes(), " "), "there are only 3") {
		t.Errorf("%+v %v", few.Findings, few.notes())
	}
}

// TestMergedKeys has figures of a real operator, of which the last size took twice as many reconciles for each object as the
// others: fewer of its keys were merged.
func TestMergedKeys(t *testing.T) {
	reconciles := []float64{2, 4, 9, 34}
	for name, test := range map[string]struct {
		keys, calls []float64
		reconciles  string
		grow        string // in what is found
	}{
		"fewer are merged":      {[]float64{6, 12, 23, 70}, []float64{2, 4, 8, 26}, "at most n (±15%)", ""},
		"more calls each":       {[]float64{6, 12, 23, 70}, []float64{2, 8, 36, 272}, "at most n (±15%)", "calls at the API server grow like n²"},
		"as many keys":          {reconciles, []float64{2, 4, 8, 26}, "n² (±7%)", "reconciles grow like n²"},
		"retries and no events": {[]float64{1, 2, 4, 8}, []float64{2, 4, 8, 26}, "n² (±7%)", "reconciles grow like n²"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Report{Operator: "cafe", Kind: "Cafe"}
			for i, n := range []int{1, 2, 4, 8} {
				since := func(figure []float64) int { // a phase has what came since the size before
					if i == 0 {
						return int(figure[0])
					}
					return int(figure[i] - figure[i-1])
				}
				r.Sizes = append(r.Sizes, &Size{Objects: n, Settled: true, Phases: map[string]*Phase{Create: {
					Seconds: 1, Reconciles: since(reconciles), Keys: since(test.keys),
					Requests: []RequestCount{{Verb: "patch", Resource: "cafes", Requests: int64(since(test.calls))}},
				}}})
			}
			r.conclude()
			if got := r.growth(Create, "reconciles").text(); got != test.reconciles {
				t.Errorf("the reconciles grow like %s, want %s", got, test.reconciles)
			}
			found := ""
			for _, f := range r.Findings {
				found += f.Text
			}
			if (found == "") != (test.grow == "") || !strings.HasPrefix(found, test.grow) {
				t.Errorf("found is %q, want %q", found, test.grow)
			}
		})
	}
}

// TestMerge shares the sizes of a measurement, and joins what the shards wrote.
func TestMerge(t *testing.T) {
	square := func(n int) int { return n * n }
	whole := made(square, square)
	// written returns the sizes of a shard as the file of its report has them.
	written := func(index int, sizes ...int) []*Report {
		part := made(square, square)
		part.Shard, part.Sizes = report.Shard{Index: index, Count: 2}, nil
		for _, i := range sizes {
			size := made(square, square).Sizes[i]
			if len(part.Sizes) == 0 { // all is made at once
				for _, before := range whole.Sizes[:i] {
					size.Phases[Create].Requests[0].Requests += before.Phases[Create].Requests[0].Requests
				}
			}
			part.Sizes = append(part.Sizes, size)
		}
		part.conclude()
		var text strings.Builder
		var read []*Report
		if err := errors.Join(WriteJSON(&text, []*Report{part}), json.Unmarshal([]byte(text.String()), &read)); err != nil {
			t.Fatal(err)
		}
		return read
	}
	merged, missing, err := Merge([][]*Report{written(2, 3), written(1, 0, 1, 2)})
	if err != nil || len(missing) > 0 || len(merged) != 1 {
		t.Fatal(merged, missing, err)
	}
	got := merged[0]
	if !slices.Equal(got.sizes(Create), whole.sizes(Create)) || !reflect.DeepEqual(got.Findings, whole.Findings) {
		t.Errorf("%v %+v, want %v %+v", got.sizes(Create), got.Findings, whole.sizes(Create), whole.Findings)
	}
	for _, phase := range Phases {
		if g, want := got.growth(phase, "calls"), whole.growth(phase, "calls"); !reflect.DeepEqual(g, want) {
			t.Errorf("%s: %+v, want %+v", phase, g, want)
		}
	}
	if got.requests()[0].Requests != whole.requests()[0].Requests {
		t.Errorf("%+v, want %+v", got.requests(), whole.requests())
	}
	// One that did not come to rest does not take the others with it.
	restless := written(1, 0, 1)
	restless[0].Sizes[1].Settled, restless[0].Unsettled = false, "it spins"
	merged, missing, err = Merge([][]*Report{restless})
	if err != nil || !slices.Equal(missing, []report.Shard{{Index: 2, Count: 2}}) || merged[0].Findings[0].Text != "it spins" || !slices.Equal(merged[0].sizes(Create), []int{1}) {
		t.Errorf("%+v %v %v", merged, missing, err)
	}
	interrupted := written(1, 0, 1)
	interrupted[0].Sizes[1].Settled = false
	if merged, _, err := Merge([][]*Report{interrupted}); err != nil || !strings.Contains(strings.Join(merged[0].notes(), " "), "shard 1/2 was ended with 4 Songs") {
		t.Errorf("%+v %v", merged, err)
	}
	other := written(2, 3)
	other[0].Changes++
	for why, shards := range map[string][][]*Report{
		"there twice":                    {written(1, 0), written(1, 1)},
		"have both measured 4 Songs":     {written(1, 1), written(2, 1)},
		"have measured different things": {written(1, 0), other},
		"is no shard":                    {{made(square, square)}},
	} {
		if _, _, err := Merge(shards); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %q", err, why)
		}
	}
}

func TestWrite(t *testing.T) {
	square := func(n int) int { return n * n }
	plain, other := made(func(n int) int { return n }, square), made(square, square)
	other.Variant = "grand"
	var text, page, raw strings.Builder
	both := []*Report{plain, other}
	for out, write := range map[*strings.Builder]func(io.Writer, []*Report) error{&text: WriteText, &page: WriteHTML, &raw: WriteJSON} {
		if err := write(out, both); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		"! lists all of kind Song from its cache", "items            band         1       17      273    4,369  n² (±", "\n                 grand        1       17      273    4,369  n²",
		"RELIST: ", "band, relist, with so many objects", "calls per object", "etcd grew by",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text has no %q:\n%s", want, text.String())
		}
	}
	for line := range strings.Lines(text.String()) {
		if width := len([]rune(line)); width > 81 && !strings.HasPrefix(line, "  ") {
			t.Errorf("%d columns: %s", width, line)
		}
	}
	for _, want := range []string{"<h1>load: band and band grand</h1>", "lists all of kind Song from its cache", `<circle cx="460"`, "<code>band.go:7</code>"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q:\n%.3000s", want, page.String())
		}
	}
	if strings.Contains(page.String(), "src=") || strings.Contains(page.String(), "href=") {
		t.Error("the page loads something")
	}
	var again []*Report
	if err := json.Unmarshal([]byte(raw.String()), &again); err != nil || len(again) != 2 || len(again[0].Findings) != 1 {
		t.Errorf("%v: %s", err, raw.String())
	}
}

func TestBudget(t *testing.T) {
	r := made(func(n int) int { return 2 * n }, func(n int) int { return n * n })
	for text, want := range map[string]string{
		"calls per object <= 2.7":          "",
		"calls per object<2":               "band: calls per object<2: 2.6562 at create with 64 Songs",
		"calls per object at relist <= 2":  "",
		"calls per object at relist < 2":   "2 at relist with 64 Songs",
		"items at relist <= 4095":          "4096 at relist with 64 Songs",
		"items per reconcile at relist<=9": "64 at relist with 64 Songs",
		"bytes at change <= 3KiB":          "",
		"bytes at change < 3000B":          "3000 at change",
		"calls per change <= 13":           "",
		"calls per change <= 12":           "12.8 at change",
		"growth of calls at relist <= n":   "",
		"growth of calls at relist < n":    "they grow like n",
		"growth of items at restart <= n":  "they grow like n²",
		"growth of items at restart <= n2": "",
		"findings <= 1":                    "",
		"findings <= 0":                    "1 findings",
	} {
		b, err := ParseBudget(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := b.Exceeded(r); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{
		"", "calls", "calls <= many", "calls = 3", "songs <= 3", "calls per song <= 3", "calls at lunch <= 3", "calls per change at relist <= 1",
		"growth of calls <= 3", "growth of calls per object <= n", "findings per object <= 1", "calls <= -1", "calls <= NaN", "calls <= 3KiB", "calls <= Inf",
	} {
		if _, err := ParseBudget(text); err == nil || sandbox.HintOf(err) == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
	few := made(func(n int) int { return n }, func(n int) int { return n })
	few.Sizes = few.Sizes[:2]
	few.conclude()
	b, _ := ParseBudget("growth of calls <= n²")
	if why := b.Exceeded(few); !strings.Contains(why, "cannot be told: it takes 4 sizes") {
		t.Error(why)
	}
}

func FuzzParseBudget(f *testing.F) {
	for _, seed := range []string{"calls per object <= 12", "growth of items at relist < n log n", "bytes <= 4 MiB", "findings <= 0", "n²"} {
		f.Add(seed)
	}
	r := made(func(n int) int { return n }, func(n int) int { return n })
	f.Fuzz(func(t *testing.T, text string) {
		b, err := ParseBudget(text)
		if err != nil {
			if sandbox.HintOf(err) == "" {
				t.Error("no hint")
			}
			return
		}
		b.Exceeded(r)
		b.Exceeded(&Report{})
		if b.growth == "" && !(b.limit >= 0) {
			t.Errorf("limit %v", b.limit)
		}
	})
}

func TestSample(t *testing.T) {
	s := Sample{Manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {of: 'app-$(N)'}}", Change: "data: {at: '$(N)'}"}
	o, err := s.object(7, "here")
	if err != nil || o.GetName() != "one-7" || o.GetNamespace() != "here" || o.Object["data"].(map[string]any)["of"] != "app-7" {
		t.Errorf("%v %v", o, err)
	}
	if p, err := s.patch(3); err != nil {
		t.Error(err)
	} else if raw, _ := p.Data(nil); string(raw) != `{"data":{"at":"3"}}` {
		t.Errorf("%s", raw)
	}
	s.Manifest = strings.Replace(s.Manifest, "name: one", "name: $(N)-of-all", 1)
	if o, err := s.object(7, "here"); err != nil || o.GetName() != "7-of-all" {
		t.Errorf("%v %v", o, err)
	}
	for _, wrong := range []Sample{{}, {Manifest: "["}, {Manifest: "kind: ConfigMap"}, {Manifest: s.Manifest, Change: "3"}, {Manifest: s.Manifest, Change: "{"}} {
		if err := wrong.Check(); err == nil || sandbox.HintOf(err) == "" {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	for _, sizes := range [][]int{nil, {0, 1}, {1, 1}, {4, 2}, {-1}} {
		if err := CheckSizes(sizes); err == nil || sandbox.HintOf(err) == "" {
			t.Errorf("%v: %v", sizes, err)
		}
	}
}
