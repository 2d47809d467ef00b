package trace

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// TestPayloads replays a journal with every kind of event that has a payload, some too short. The file was written
// before payloads had types: it must read the same for ever.
func TestPayloads(t *testing.T) {
	raw, err := os.ReadFile("testdata/payloads.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	j, report, err := Load(bytes.NewReader(raw), Options{})
	if err != nil || !report.Complete() {
		t.Fatal(err, report)
	}
	if !bytes.Equal(raw, saved(t, j)) {
		t.Error("it is not saved as it was")
	}
	timeline := NewTimeline(j)
	timeline.Update()
	s := timeline.Tip()
	var b bytes.Buffer
	for _, l := range []Language{English, Japanese} {
		for _, hide := range []bool{false, true} {
			p := NewPrinter(&b, j, PrintOptions{Language: l, Logs: true, HideTimes: hide})
			if err := p.Update(); err != nil {
				t.Fatal(err)
			}
			if err := p.Summary(); err != nil {
				t.Fatal(err)
			}
		}
		for _, e := range j.Since(0) {
			fmt.Fprintln(&b, e.Seq, StoreFails(e), s.Why(e, l))
		}
	}
	golden(t, "payloads.txt", b.String()+digest(s))
}
