package fault

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// all returns the frames of a stream, without their newlines.
func all(r io.Reader) ([]string, error) {
	f := frames{r: r}
	var out []string
	for {
		frame, err := f.next()
		if err != nil {
			return out, err
		}
		out = append(out, strings.TrimSuffix(string(frame), "\n"))
	}
}

func TestFrames(t *testing.T) {
	long := `{"a":"` + strings.Repeat(`x{"\"`[:2], 3*chunk) + `"}`
	events := []string{`{"type":"ADDED","object":{"a":[1,{"b":"}"}]}}`, `{}`, `{"s":"\\\"}{"}`, long, `{"a":"ズン"}`, `{"last":{}}`}
	for _, between := range []string{"\n", "", " \r\n\t", "\n\n"} {
		stream := strings.Join(events, between)
		for name, r := range map[string]io.Reader{
			"whole":   strings.NewReader(stream),
			"by byte": iotest.OneByteReader(strings.NewReader(stream)),
			"halves":  iotest.HalfReader(strings.NewReader(stream)),
			"at end":  iotest.DataErrReader(strings.NewReader(stream)),
		} {
			got, err := all(r)
			if !errors.Is(err, io.EOF) || strings.Join(got, "|") != strings.Join(events, "|") {
				t.Errorf("%s, %q: %d frames of %d, %v", name, between, len(got), len(events), err)
			}
		}
	}
}

// TestFrameAtOnce checks that an event is returned as soon as its last byte arrives, with a newline although that comes
// later.
func TestFrameAtOnce(t *testing.T) {
	r, w := io.Pipe()
	defer func() { _ = w.Close() }()
	go func() { _, _ = w.Write([]byte(`{"a":{}}`)) }()
	f := frames{r: r}
	frame, err := f.next()
	if err != nil || string(frame) != "{\"a\":{}}\n" {
		t.Errorf("%q %v", frame, err)
	}
}

// TestBrokenFrames checks that the incomplete end of a stream is returned before its error.
func TestBrokenFrames(t *testing.T) {
	broken := errors.New("broken")
	got, err := all(io.MultiReader(strings.NewReader(`{"a":1} {"b":`), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || strings.Join(got, "|") != `{"a":1}|{"b":` {
		t.Errorf("%q %v", got, err)
	}
}

// FuzzFrames compares the frames of arbitrary objects with the result of the standard library.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED"}{"a":"\"}"} [1,[]]`), 3)
	f.Fuzz(func(t *testing.T, stream []byte, n int) {
		var want []string
		d := json.NewDecoder(bytes.NewReader(stream))
		for {
			var raw json.RawMessage
			if err := d.Decode(&raw); err != nil {
				if !errors.Is(err, io.EOF) {
					return
				}
				break
			}
			if raw[0] != '{' && raw[0] != '[' {
				return // watches have objects
			}
			want = append(want, string(raw))
		}
		got, err := all(iotest.OneByteReader(bytes.NewReader(stream)))
		if n%2 == 0 {
			got, err = all(bytes.NewReader(stream))
		}
		if !errors.Is(err, io.EOF) || strings.Join(got, "\x00") != strings.Join(want, "\x00") {
			t.Errorf("%q: %q, want %q, %v", stream, got, want, err)
		}
	})
}

func FuzzField(f *testing.F) {
	for _, s := range []string{"spec.replicas", "a[0].b", `a["b.c"]`, `a\.b`, ".a", "a[", `a["b`, "a..b", "[x]"} {
		f.Add(s)
	}
	object := decoded([]byte(`{"a":[{"b":{"c":null}}],"spec":{"replicas":1}}`))
	f.Fuzz(func(_ *testing.T, s string) {
		path, err := parseField(s)
		if err != nil {
			return
		}
		path.of(object)
		path.differs(object, nil)
		path.inMerge(object)
		path.inOperations([]byte(`[{"op":"add","path":"/a/0"}]`))
	})
}

func TestParseField(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"spec.replicas", "spec|replicas"},
		{".spec.replicas", "spec|replicas"},
		{"status.conditions[0].type", "status|conditions|0|type"},
		{`metadata.annotations["example.com/word"]`, "metadata|annotations|example.com/word"},
		{`metadata.annotations['a"b'].c`, `metadata|annotations|a"b|c`},
		{`metadata.annotations.example\.com/word`, "metadata|annotations|example.com/word"},
		{"", ""},
		{"a..b", ""},
		{"a.", ""},
		{"a[", ""},
		{"a[x]", ""},
		{"a[-1]", ""},
		{`a["b`, ""},
		{`a\`, ""},
	} {
		got, err := parseField(c.in)
		if (err != nil) != (c.want == "") || strings.Join(got, "|") != c.want {
			t.Errorf("%q: %q, %v", c.in, got, err)
		}
	}
}
