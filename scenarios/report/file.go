package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Format is a file format of reports, by Chainsaw's names.
type Format string

// The file formats.
const (
	// JSON has everything that is known of a run.
	JSON Format = "JSON"
	// XML is the same as JUnitTest.
	XML Format = "XML"
	// JUnitTest is a JUnit file with a case for each test.
	JUnitTest Format = "JUNIT-TEST"
	// JUnitStep is a JUnit file with a case for each step.
	JUnitStep Format = "JUNIT-STEP"
	// JUnitOperation is a JUnit file with a case for each operation.
	JUnitOperation Format = "JUNIT-OPERATION"
)

// Formats returns all formats.
func Formats() []Format { return []Format{JSON, XML, JUnitTest, JUnitStep, JUnitOperation} }

// ParseFormat returns the format with a name, ignoring case.
func ParseFormat(name string) (Format, error) {
	for _, f := range Formats() {
		if strings.EqualFold(string(f), name) {
			return f, nil
		}
	}
	return "", fmt.Errorf("unknown report format %q", name)
}

// File returns the path of the file for a report: in the folder, with the format's extension unless the name has one.
func (f Format) File(folder, name string) string {
	if filepath.Ext(name) == "" {
		extension := ".xml"
		if f == JSON {
			extension = ".json"
		}
		name += extension
	}
	return filepath.Join(folder, name)
}

// Write writes a report.
func (f Format) Write(w io.Writer, r *Run) error {
	switch f {
	case JSON:
		return writeJSON(w, r)
	case XML, JUnitTest:
		return writeJUnitTest(w, r)
	case JUnitStep:
		return writeJUnitStep(w, r)
	case JUnitOperation:
		return writeJUnitOperation(w, r)
	}
	return fmt.Errorf("unknown report format %q", f)
}

// Save writes a report to a file, of mode 0600 if it is new. The file is either written completely or not changed.
func (f Format) Save(file string, r *Run) error {
	return writeFile(file, func(w io.Writer) error { return f.Write(w, r) })
}

// writeFile writes a file completely or not at all.
func writeFile(path string, write func(io.Writer) error) (err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return writeInto(path, write) // such as /dev/stdout, which must not be replaced
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(write(f), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func writeInto(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
