package trace

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestPrintGate checks the lines for a program of which only the requests are seen.
func TestPrintGate(t *testing.T) {
	j := New(Options{})
	song := Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "song", UID: "u"}
	word := func(w string) json.RawMessage {
		return json.RawMessage(`{"kind":"ConfigMap","metadata":{"name":"song"},"data":{"word":"` + w + `","n":"` + w + `","m":"` + w + `","k":"` + w + `"}}`)
	}
	for _, e := range []Event{
		{Kind: KindCall, Verb: VerbWatch, Object: Ref{Kind: "ConfigMap"}, Source: Server},
		{Kind: KindWatch, Verb: Added, Object: Ref{Kind: "ConfigMap", Namespace: "default", Name: "old", UID: "o"}, Initial: true},
		{Kind: KindCall, Verb: VerbList, Object: Ref{Kind: "ConfigMap", Namespace: "default"}, Count: 3, Source: Server},
		{Kind: KindCall, Verb: VerbGet, Object: song, Reason: "NotFound", Error: "no song", Source: Server},
		{Kind: KindCall, Verb: VerbCreate, Object: song, ResourceVersion: "5", After: word("Zun")},
		{Kind: KindWatch, Verb: Added, Object: song, ResourceVersion: "5"},
		{Kind: KindCall, Verb: VerbUpdate, Object: song, ResourceVersion: "6", Before: word("Zun"), After: word("Doko")},
		{Kind: KindCall, Verb: VerbUpdate, Object: song, ResourceVersion: "6", Before: word("Doko"), After: word("Doko"), NoOp: true},
		{Kind: KindCall, Verb: VerbUpdate, Object: song, Before: word("Doko"), Reason: "Conflict", Error: "it changed"},
		{Kind: KindWatch, Verb: Deleted, Object: song, ResourceVersion: "9"},
		{Kind: KindCall, Verb: VerbList, Object: Ref{Kind: "secrets"}, Reason: "Forbidden", Error: "no right"},
	} {
		e.Operator, e.Actor, e.Via = "pyop", "pyop", ViaGate
		j.Append(e)
	}
	for l, want := range map[Language]string{
		English: `pyop   watch ConfigMap
pyop   watch ADDED ConfigMap default/old (was there)
pyop   list 3 ConfigMap
pyop   get ConfigMap default/song: not found
pyop   create ConfigMap default/song (rv 5)
pyop   watch ADDED ConfigMap default/song (own)
pyop   update ConfigMap default/song (rv 6): data.k=Doko, data.m=Doko, data.n=Doko; 1 more
pyop   update ConfigMap default/song (no change)
pyop   update ConfigMap default/song: Conflict
pyop   watch DELETED ConfigMap default/song
pyop   list secrets: Forbidden
`,
		Japanese: `pyop   watch ConfigMap
pyop   watch ADDED ConfigMap default/old (既存)
pyop   list 3 ConfigMap
pyop   get ConfigMap default/song: なし
pyop   create ConfigMap default/song (rv 5)
pyop   watch ADDED ConfigMap default/song (自分)
pyop   update ConfigMap default/song (rv 6): data.k=Doko, data.m=Doko, data.n=Doko、他 1 件
pyop   update ConfigMap default/song (変化なし)
pyop   update ConfigMap default/song: Conflict
pyop   watch DELETED ConfigMap default/song
pyop   list secrets: Forbidden
`,
	} {
		var out strings.Builder
		if err := NewPrinter(&out, j, PrintOptions{Language: l}).Update(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	}
	var writes strings.Builder
	if err := NewPrinter(&writes, j, PrintOptions{OnlyWrites: []string{"pyop"}}).Update(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSpace(writes.String()), "\n"); len(got) != 4 || strings.Contains(writes.String(), "watch") {
		t.Errorf("%d lines instead of the four writes:\n%s", len(got), &writes)
	}
	j.Append(Event{Kind: KindOperator, Operator: "pyop", Verb: VerbStart, Reason: ReasonPartly})
	timeline := NewTimeline(j)
	timeline.Update()
	if mode := timeline.Tip().ModeOf("pyop"); !mode.Gated || !mode.Partly {
		t.Errorf("its mode is %+v", mode)
	}
	for except, want := range map[string]string{"": "wrote      3: ", "pyop": "wrote      0: "} {
		if got := timeline.Tip().Story(English, except)[1]; !strings.HasPrefix(got, want) {
			t.Errorf("without %q it says %q, want %q", except, got, want)
		}
	}
}
