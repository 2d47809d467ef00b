package trace

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// asked returns a journal of requests for a page once a second: production, an outage, maintenance.
func asked() *Journal {
	base, at := time.Date(2026, 11, 20, 23, 55, 0, 0, time.UTC), 17*time.Second
	j := New(Options{Now: func() time.Time { return base.Add(at) }})
	j.start = base
	last := ""
	for _, answer := range []string{"Production Page !", "Production Page !", "Production Page !", "", "", "Maintenance Page !"} {
		e := Event{Kind: KindTraffic, Actor: "traffic", Verb: VerbAnswer, Message: answer, Values: TrafficValues("http://httpd:8080"), Duration: 2 * time.Millisecond}
		if answer == "" {
			e.Error = "connection\nrefused"
		}
		if text := AnswerText(&e); text != last {
			e.Verb, last = VerbSwitch, text
		}
		j.Append(e)
		at += time.Second
	}
	return j
}

func TestTrafficState(t *testing.T) {
	timeline := NewTimeline(asked())
	timeline.Update()
	got := timeline.Tip().Traffic()[0]
	if got.OK != 4 || got.Failed != 2 || got.Switches != 2 || got.Same != 1 || got.Replaced != 2 || got.Before.Error == "" ||
		got.Texts["Production Page !"] != 3 || timeline.Tip().Worked() != 0 {
		t.Errorf("%+v", got)
	}
	if line := timeline.Tip().TrafficLine(got.Last); line != "23:55:21: Maintenance Page !" {
		t.Errorf("the last line is %q", line)
	}
	before := timeline.At(2).Traffic()[0]
	if before.OK != 2 || before.Failed != 0 || before.Same != 2 || before.Before != nil {
		t.Errorf("at the second answer: %+v", before)
	}
	if got := timeline.Tip().clone(); &got.traffic[0] == &timeline.tip.traffic[0] {
		t.Error("a clone shares what changes")
	}
}

func TestTrafficIsPrintedWhenItSwitches(t *testing.T) {
	for language, want := range map[Language]string{
		English: `http   23:55:16: Production Page !
http   23:55:19: (connection refused)   after 3 times Production Page !
http   23:55:21: Maintenance Page !   after 2 times (connection refused)

http://httpd:8080: 6 requests, 2 failed
       3 Production Page !
       2 (connection refused)
       1 Maintenance Page !
`,
		Japanese: `http   23:55:16: Production Page !
http   23:55:19: (connection refused)   それまで 3 回は Production Page !
http   23:55:21: Maintenance Page !   それまで 2 回は (connection refused)

http://httpd:8080: リクエスト 6 件 (失敗 2 件)
       3 Production Page !
       2 (connection refused)
       1 Maintenance Page !
`,
	} {
		var out bytes.Buffer
		p := NewPrinter(&out, asked(), PrintOptions{Language: language, Width: 140})
		if err := p.Update(); err != nil {
			t.Fatal(err)
		}
		if err := p.Summary(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	}
}

func TestTrafficIsKeptAndTold(t *testing.T) {
	var file, page bytes.Buffer
	if err := asked().Save(&file); err != nil {
		t.Fatal(err)
	}
	j, report, err := Load(&file, Options{})
	if err != nil || !report.Complete() {
		t.Fatal(err, report)
	}
	timeline := NewTimeline(j)
	timeline.Update()
	if got := timeline.Tip().Traffic(); len(got) != 1 || got[0].OK != 4 {
		t.Errorf("after loading: %+v", got)
	}
	for language, want := range map[Language]string{
		English:  "From here on http://httpd:8080 answered: Maintenance Page !.",
		Japanese: "ここから http://httpd:8080 の応答が変わった: Maintenance Page !",
	} {
		if got := timeline.Tip().Why(j.Get(6), language); got != want {
			t.Errorf("got %q", got)
		}
	}
	if err := WriteHTML(&page, j, HTMLOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(page.String(), "From here on http://httpd:8080"); n != 3 {
		t.Errorf("the page tells of %d switches", n)
	}
}
