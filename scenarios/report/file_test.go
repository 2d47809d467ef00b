package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/scenarios/report"
)

func TestFormats(t *testing.T) {
	for format, name := range map[report.Format]string{
		report.JSON: "report.json", report.JUnitTest: "junit-test.xml", report.JUnitStep: "junit-step.xml",
		report.JUnitOperation: "junit-operation.xml",
	} {
		t.Run(string(format), func(t *testing.T) {
			var out strings.Builder
			if err := format.Write(&out, sample()); err != nil {
				t.Fatal(err)
			}
			golden(t, name, out.String())
		})
	}
	var a, b strings.Builder
	if err := errors.Join(report.XML.Write(&a, sample()), report.JUnitTest.Write(&b, sample())); err != nil {
		t.Fatal(err)
	}
	if a.String() != b.String() {
		t.Error("XML is not JUNIT-TEST")
	}
}

func TestLines(t *testing.T) {
	var out strings.Builder
	play(sample(), report.NewLines(&out))
	golden(t, "lines.jsonl", out.String())
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

// TestXMLIsWellFormed checks the XML for arbitrary output of programs.
func TestXMLIsWellFormed(t *testing.T) {
	r := sample()
	evil := "]]> <a b=\"c\"> & \x00\x1b[31m\xff\ufffe"
	o := r.Tests[1].Steps[0].Operations[1]
	o.Output, o.Failure.Message, o.Failure.Loop = evil, evil, []string{evil}
	r.Tests[1].Journal, r.Tests[1].Name = evil, evil
	r.Tests[2].Findings[0].Details = []string{evil}
	for _, format := range report.Formats()[1:] {
		var out bytes.Buffer
		if err := format.Write(&out, r); err != nil {
			t.Fatal(err)
		}
		decoder := xml.NewDecoder(&out)
		for {
			_, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
		}
	}
}

func TestParseFormat(t *testing.T) {
	for _, name := range []string{"JSON", "xml", "Junit-Step"} {
		if f, err := report.ParseFormat(name); err != nil || !strings.EqualFold(string(f), name) {
			t.Errorf("%s: got %q, %v", name, f, err)
		}
	}
	for _, name := range []string{"", "YAML", "JUNIT"} {
		if _, err := report.ParseFormat(name); err == nil {
			t.Errorf("%q is a format", name)
		}
	}
}

func TestFile(t *testing.T) {
	for _, c := range []struct {
		format             report.Format
		folder, name, want string
	}{
		{report.JSON, "", "chainsaw-report", "chainsaw-report.json"},
		{report.XML, "out", "r", "out/r.xml"},
		{report.JUnitStep, "out", "r.json", "out/r.json"},
		{report.JUnitOperation, "/tmp", "v1.2", "/tmp/v1.2"}, // as in Chainsaw, the part after a dot is an extension
	} {
		if got := c.format.File(c.folder, c.name); got != filepath.FromSlash(c.want) {
			t.Errorf("%s in %q: got %s, want %s", c.name, c.folder, got, c.want)
		}
	}
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.json")
	for range 2 { // the second time over an existing file
		if err := report.JSON.Save(file, sample()); err != nil {
			t.Fatal(err)
		}
	}
	var saved struct {
		Tests []struct{ Name, Status string }
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &saved); err != nil || len(saved.Tests) != 5 || saved.Tests[1].Status != "failed" {
		t.Errorf("got %+v, %v", saved, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("more than the report is there: %v, %v", entries, err)
	}
	if err := report.JSON.Save(filepath.Join(dir, "missing", "report.json"), sample()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if err := report.XML.Save(os.DevNull, sample()); err != nil {
		t.Error(err)
	}
	if err := report.Format("x").Save(file, sample()); err == nil {
		t.Error("an unknown format is no error")
	}
}
