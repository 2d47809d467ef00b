package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"
)

// writeJUnitTest writes a suite for each folder with a case for each test.
func writeJUnitTest(w io.Writer, r *Run) error {
	var folders []string
	tests := map[string][]*Test{}
	for _, t := range r.Tests {
		if tests[t.Folder] == nil {
			folders = append(folders, t.Folder)
		}
		tests[t.Folder] = append(tests[t.Folder], t)
	}
	suites := newSuites(r)
	for _, folder := range folders {
		suite := junit.Testsuite{Name: folder}
		var all time.Duration
		for _, t := range tests[folder] {
			all += took(t.Started, t.Ended)
			c := junit.Testcase{Name: t.Name, Time: xmlSeconds(t.Started, t.Ended), Failure: testResult(t), SystemOut: outputOf(t)}
			c.Skipped = skippedResult(t)
			suite.AddTestcase(c)
		}
		suite.Time = fmt.Sprintf("%.6f", all.Seconds())
		suites.AddSuite(suite)
	}
	return writeXML(w, suites)
}

// writeJUnitStep writes a suite for each test with a case for each step.
func writeJUnitStep(w io.Writer, r *Run) error {
	return writeSuites(w, r, func(suite *junit.Testsuite, s *Step) {
		suite.AddTestcase(junit.Testcase{
			Name: s.Name, Classname: suite.Name, Time: xmlSeconds(s.Started, s.Ended), Failure: failuresOf(s.Operations),
		})
	})
}

// writeJUnitOperation writes a suite for each test with a case for each operation.
func writeJUnitOperation(w io.Writer, r *Run) error {
	return writeSuites(w, r, func(suite *junit.Testsuite, s *Step) {
		for _, o := range s.Operations {
			suite.AddTestcase(junit.Testcase{
				Name: s.Name + " / " + o.Name, Classname: o.Type, Time: xmlSeconds(o.Started, o.Ended),
				Failure: failuresOf([]*Operation{o}),
			})
		}
	})
}

// writeSuites writes a suite for each test; the oracles' findings are a case too.
func writeSuites(w io.Writer, r *Run, add func(*junit.Testsuite, *Step)) error {
	suites := newSuites(r)
	for _, t := range r.Tests {
		suite := junit.Testsuite{Name: t.Name, Package: t.Folder, File: t.File, Time: xmlSeconds(t.Started, t.Ended)}
		suite.SetTimestamp(r.Started)
		suite.AddProperty("namespace", t.Namespace)
		if skipped := skippedResult(t); skipped != nil {
			suite.AddTestcase(junit.Testcase{Name: t.Name, Time: xmlSeconds(t.Started, t.Ended), Skipped: skipped})
			suites.AddSuite(suite)
			continue
		}
		for _, s := range t.Steps {
			add(&suite, s)
		}
		for _, f := range t.Findings {
			suite.AddTestcase(junit.Testcase{
				Name: "oracle " + f.Oracle, Classname: "oracle",
				Failure: &junit.Result{Message: f.Message, Data: legalXML(strings.Join(f.Details, "\n"))},
			})
		}
		suite.SystemOut = outputOf(t)
		suites.AddSuite(suite)
	}
	return writeXML(w, suites)
}

func newSuites(r *Run) *junit.Testsuites {
	return &junit.Testsuites{Name: r.Name, Time: xmlSeconds(r.Started, r.Ended)}
}

// skippedResult returns a result for a test that was not run; else nil.
func skippedResult(t *Test) *junit.Result {
	switch t.Status() {
	case Skipped:
		return &junit.Result{Message: t.SkipReason}
	case NotRun:
		return &junit.Result{Message: "the run ended before it did"}
	}
	return nil
}

// testResult joins all failures of a test.
func testResult(t *Test) *junit.Result {
	var operations []*Operation
	for _, s := range t.Steps {
		operations = append(operations, s.Operations...)
	}
	result := failuresOf(operations)
	for _, f := range t.Findings {
		if result == nil {
			result = &junit.Result{}
		}
		join(result, "oracle "+f.Oracle+": "+f.Message, legalXML(strings.Join(f.Details, "\n")))
	}
	return result
}

// failuresOf joins the failures of operations; nil if there are none.
func failuresOf(operations []*Operation) *junit.Result {
	var result *junit.Result
	for _, o := range operations {
		if o.Failure == nil {
			continue
		}
		if result == nil {
			result = &junit.Result{}
		}
		join(result, o.Failure.Message, legalXML(strings.Join(failureLines(o), "\n")))
	}
	return result
}

func join(r *junit.Result, message, data string) {
	for _, part := range []struct {
		to        *string
		text, sep string
	}{{&r.Message, message, "; "}, {&r.Data, data, "\n\n"}} {
		if *part.to != "" && part.text != "" {
			*part.to += part.sep
		}
		*part.to += part.text
	}
}

// failureLines describes a failed operation with all details.
func failureLines(o *Operation) []string {
	p, x := page{}, NewText(nil, TextOptions{})
	x.operation(&p, o, 0)
	p.output(o.Output, mostOutput)
	return strings.Split(strings.TrimRight(p.String(), "\n"), "\n")
}

// outputOf returns an output with the path of a test's journal.
func outputOf(t *Test) *junit.Output {
	var lines []string
	for _, note := range t.Notes {
		lines = append(lines, "note: "+note)
	}
	if t.Journal != "" {
		lines = append(lines, "journal: "+t.Journal)
	}
	if len(lines) == 0 {
		return nil
	}
	return &junit.Output{Data: legalXML(strings.Join(lines, "\n"))}
}

func xmlSeconds(started, ended time.Time) string {
	return fmt.Sprintf("%.6f", took(started, ended).Seconds())
}

// legalXML replaces characters that XML does not allow, not even escaped. The encoder does that everywhere except in
// CDATA.
func legalXML(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r', r >= 0x20 && r <= 0xd7ff, r >= 0xe000 && r <= 0xfffd, r >= 0x10000 && r <= 0x10ffff:
			return r
		}
		return '\ufffd'
	}, s)
}

func writeXML(w io.Writer, suites *junit.Testsuites) error {
	text, err := xml.MarshalIndent(suites, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(append([]byte(xml.Header), text...), '\n'))
	return err
}
