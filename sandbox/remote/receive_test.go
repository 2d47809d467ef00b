package remote_test

import (
	"bufio"
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/link"
	"github.com/operator-lab/operator-lab/sandbox/remote"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

const (
	headerLine = `{"format":"operator-lab-journal","version":1,"start":"2026-01-02T03:04:05Z"}` + "\n"
	startLine  = `{"seq":1,"at":1,"kind":"operator","operator":"toy","verb":"start"}` + "\n"
	takenLine  = `{"seq":2,"at":2,"kind":"dequeue","operator":"toy","controller":"c","key":"ns/one","reconcile":1}` + "\n"
)

// readSettings reads the first line that a process gets.
func readSettings(t *testing.T, conn net.Conn) (s link.Settings) {
	t.Helper()
	first, err := bufio.NewReader(conn).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(first, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSettings(t *testing.T) {
	l := newLab(t)
	l.taps.Pause()
	conn, _ := l.serve()
	want := link.Settings{Operator: "toy", Mode: link.Mode{Paused: true}, Namespace: "lab"}
	if s := readSettings(t, conn); s != want {
		t.Errorf("the settings are %+v", s)
	}
}

// frames returns the frames of lines of JSON; what is no such line stays as it is.
func frames(tb testing.TB, sent string) []byte {
	tb.Helper()
	var out bytes.Buffer
	enc := gob.NewEncoder(&out)
	for text := range strings.Lines(sent) {
		var header trace.Header
		var line trace.Line
		var message link.Message
		raw := []byte(text)
		if !strings.HasSuffix(text, "\n") || json.Unmarshal(raw, &header) != nil || json.Unmarshal(raw, &line) != nil || json.Unmarshal(raw, &message) != nil {
			out.Write(raw)
			continue
		}
		var f link.Frame
		switch {
		case header.Format != "":
			f.Header = &header
		case message.Ack != 0 || message.State != nil:
			f.Message = &message
		case line.Event != nil:
			f.Line = line
		}
		if err := enc.Encode(f); err != nil {
			tb.Fatal(err)
		}
	}
	return out.Bytes()
}

// receive serves what a process sends, and returns the journal and what Serve returned.
func receive(tb testing.TB, sent string) (*trace.Journal, error) {
	tb.Helper()
	journal := trace.New(trace.Options{})
	taps := remote.New(journal, "toy")
	ours, theirs := net.Pipe()
	go func() {
		in := bufio.NewReader(theirs)
		if _, err := in.ReadBytes('\n'); err == nil {
			_, _ = theirs.Write(frames(tb, sent)) // the lab may close the connection first
		}
		_ = theirs.Close()
	}()
	err := taps.Serve(ours, link.Settings{})
	timeline := trace.NewTimeline(journal)
	timeline.Update()
	if s := timeline.Tip(); len(s.Running()) > 0 || len(taps.Controllers()) > 0 {
		tb.Errorf("%d reconciles of a run that has ended still run, %d controllers", len(s.Running()), len(taps.Controllers()))
	}
	return journal, err
}

func TestLinesOfAProcess(t *testing.T) {
	for name, c := range map[string]struct {
		sent   string
		events int64  // in the journal afterwards, with those of the end
		want   string // in the error; empty for none
	}{
		"nothing":             {"", 0, ""},
		"only a header":       {headerLine, 0, ""},
		"killed while it ran": {headerLine + startLine + takenLine, 4, ""},
		"killed while it wrote": {
			headerLine + startLine + takenLine[:20], 2, "",
		},
		"lost events":        {headerLine + strings.Replace(startLine, "1", "100", 1), 3, ""},
		"no header":          {startLine, 0, "frame 1: the first one is not the header"},
		"a later format":     {strings.Replace(headerLine, `"version":1`, `"version":2`, 1), 0, "frame 1: the first one is not the header"},
		"garbage":            {headerLine + "\x03abc", 0, "frame 2: gob: "},
		"an empty object":    {headerLine + "{}\n", 0, "frame 2: neither an event nor a message"},
		"a huge frame":       {headerLine + "\xfc\x7f\xff\xff\xff" + strings.Repeat("x", 2*trace.MaxLine), 0, "frame 2: it is longer than 16 MiB"},
		"a repeated number":  {headerLine + startLine + startLine, 2, "frame 3: a number that cannot be"},
		"a cause to come":    {headerLine + strings.Replace(startLine, `"at"`, `"cause":1,"at"`, 1), 0, "a number that cannot be"},
		"an object to come":  {headerLine + strings.Replace(startLine, `"at"`, `"beforeSeq":2,"at"`, 1), 0, "a number that cannot be"},
		"a time before":      {headerLine + strings.Replace(startLine, `"at":1`, `"at":-1`, 1), 0, "a number that cannot be"},
		"another operator":   {headerLine + strings.Replace(startLine, "toy", "toys", 1), 0, "an event of another operator"},
		"a second manager":   {headerLine + strings.Replace(startLine, "toy", "toy-2", 1), 2, ""},
		"nobody's ack":       {headerLine + `{"ack":1,"state":{}}` + "\n", 0, "an acknowledgement of what was not ordered"},
		"an ack and nothing": {headerLine + `{"ack":1}` + "\n", 0, "neither an event nor a message"},
	} {
		t.Run(name, func(t *testing.T) {
			journal, err := receive(t, c.sent)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if n := journal.Stats().Last; n != c.events {
				t.Errorf("%d events, want %d", n, c.events)
			}
		})
	}
}

// TestLostEndOfAReconcile has a key taken again whose reconcile's end got lost.
func TestLostEndOfAReconcile(t *testing.T) {
	again := strings.NewReplacer(`"seq":2`, `"seq":50`, `"reconcile":1`, `"reconcile":9`).Replace(takenLine)
	journal, err := receive(t, headerLine+startLine+takenLine+again)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range journal.Since(0) {
		got = append(got, fmt.Sprint(e.Kind, e.Reconcile, e.Outcome))
	}
	want := "operator0 dequeue1 note0 dequeue2 end1aborted end2aborted operator0"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

func FuzzServe(f *testing.F) {
	f.Add(headerLine + startLine + takenLine)
	f.Add(headerLine + startLine + `{"ack":1,"found":true,"state":{"controllers":["c"],"serving":true}}` + "\n")
	f.Add(headerLine + `{"seq":9223372036854775807,"kind":"call","operator":"toy","at":9223372036854775807,"reconcile":7,"after":{}}` + "\n")
	f.Fuzz(func(t *testing.T, sent string) {
		journal, _ := receive(t, sent) // an error is as good
		var at int64
		for i, e := range journal.Since(0) {
			if e.Seq != int64(i)+1 || int64(e.At) < at {
				t.Fatalf("event %d at %v", e.Seq, e.At)
			}
			at = int64(e.At)
		}
	})
}
