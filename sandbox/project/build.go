package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/keymutex"

	"github.com/operator-lab/operator-lab/sandbox"
)

// BuildOptions says how to build.
type BuildOptions struct {
	// Plain leaves the taps out, also where they could be put in.
	Plain bool
	// Progress is called with the import path of each package that is compiled; it may be nil. Calls do not overlap.
	Progress func(importPath string)
}

// BuildError says why a project does not compile.
type BuildError struct {
	// Lines are the first messages, at least one.
	Lines []BuildLine
}

// BuildLine is a message of the compiler, the linker or the go tool.
type BuildLine struct {
	// File is relative to the project's root, with slashes; empty if the message is about none.
	File string
	// Line and Column count from 1; 0 if they are not known.
	Line, Column int
	// Message has one line or more.
	Message string
}

// String returns file:line:column: message, without what is not known.
func (l BuildLine) String() string {
	switch {
	case l.File == "":
		return l.Message
	case l.Line == 0:
		return fmt.Sprintf("%s: %s", l.File, l.Message)
	case l.Column == 0:
		return fmt.Sprintf("%s:%d: %s", l.File, l.Line, l.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", l.File, l.Line, l.Column, l.Message)
}

// Error returns the first message, and how many more there are.
func (e *BuildError) Error() string {
	text, _, _ := strings.Cut(e.Lines[0].String(), "\n")
	if more := len(e.Lines) - 1; more > 0 {
		return fmt.Sprintf("%s (and %d more)", text, more)
	}
	return text
}

// maxBuildLines is the number of messages of a BuildError.
const maxBuildLines = 20

// builds are the private directories in which a build is under way.
var builds = keymutex.NewHashed(0)

// Build builds the program, with the taps if the project is Linked, and returns its path in the private directory. A
// source that does not compile is a [BuildError]. It waits for a build that has begun there before: that might take longer,
// and put an older program in the place of the newer one.
func (p *Project) Build(ctx context.Context, o BuildOptions) (binary string, err error) {
	builds.LockKey(p.options.WorkDir)
	defer func() { err = errors.Join(err, builds.UnlockKey(p.options.WorkDir)) }()
	binary = filepath.Join(p.options.WorkDir, "bin", p.Name)
	args := []string{"build", "-v", "-buildvcs=false", "-o", binary}
	var files overlay
	if p.Linked && !o.Plain {
		if files, err = p.writeOverlay(ctx); err != nil {
			return "", err
		}
		args = append(args, "-overlay="+files.file())
	}
	temp := filepath.Join(p.options.WorkDir, "tmp")
	if err := errors.Join(os.RemoveAll(temp), os.MkdirAll(temp, 0o700)); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	// The go tool leaves its directory when it is interrupted before it compiles.
	env := append(p.found.env(), "TMPDIR="+temp, "GOTMPDIR="+temp)
	cmd := goCommand(ctx, p.Root, env, append(append(args, p.flags()...), p.MainPath))
	out := &buildOutput{progress: o.Progress}
	cmd.Stdout, cmd.Stderr = out, out
	if err := runGo(ctx, cmd); err != nil {
		if _, failed := errors.AsType[*exec.ExitError](err); !failed {
			return "", err
		}
		return "", p.buildError(files, out.rest.String())
	}
	return binary, nil
}

// buildOutput takes what 'go build -v' writes: the packages that are compiled go to progress, the rest is kept.
type buildOutput struct {
	progress func(string)
	line     []byte
	rest     strings.Builder
}

// Write takes a part of the output.
func (b *buildOutput) Write(part []byte) (int, error) {
	for _, c := range part {
		if b.line = append(b.line, c); c == '\n' {
			b.take(string(b.line))
			b.line = b.line[:0]
		}
	}
	return len(part), nil
}

var importPath = regexp.MustCompile(`^[\w.~/-]+\n$`)

func (b *buildOutput) take(line string) {
	if !importPath.MatchString(line) {
		b.rest.WriteString(line)
	} else if b.progress != nil {
		b.progress(strings.TrimSuffix(line, "\n"))
	}
}

// buildError explains why 'go build' failed.
func (p *Project) buildError(files overlay, output string) error {
	e := &BuildError{Lines: p.parseBuild(output, files.original())}
	of := func(l BuildLine) bool { return strings.HasPrefix(l.File, inside+"/") }
	if !slices.ContainsFunc(e.Lines, of) {
		return &sandbox.Problem{Err: e, Hint: buildHint(p.Module, e.Lines)}
	}
	return &sandbox.Problem{
		Err:  fmt.Errorf("the taps do not compile with the project's controller-runtime %s: %w", p.ControllerRuntime, e),
		Hint: "build the program yourself, and run it without taps: run -- ./bin/manager",
	}
}

// buildHint says what to do about messages.
func buildHint(module string, lines []BuildLine) string {
	says := func(texts ...string) bool {
		return slices.ContainsFunc(lines, func(l BuildLine) bool {
			return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(l.Message, text) })
		})
	}
	switch {
	case says("missing method DeepCopyObject", "provides package "+module+"/", "providing package "+module+"/", "no matching files found"):
		return "if that is generated code, have it generated first, such as with 'make generate'"
	case says("C compiler"):
		return "install a C compiler, which cgo needs, or build without cgo: CGO_ENABLED=0"
	case says("build constraints exclude all Go files"):
		return "it has no files for this machine: they may need cgo, which is used with CGO_ENABLED=1, or build tags, which lab.yaml can name"
	}
	return "mend it; 'go build ./...' in the project says all of it"
}

var sourceLine = regexp.MustCompile(`^(\S[^:]*\.(?:go|s|c|h|mod|work)):(\d+):(?:(\d+):)? ?(.*)$`)

// parseBuild reads the output of the go tool, which names files of the overlay where they are; originals maps them to the
// project's tree. It returns at least one line.
func (p *Project) parseBuild(output string, originals map[string]string) []BuildLine {
	var lines []BuildLine
	for text := range strings.Lines(output) {
		text = strings.TrimPrefix(strings.TrimRight(text, "\r\n"), "go: ")
		last := len(lines) - 1
		switch m := sourceLine.FindStringSubmatch(text); {
		case strings.TrimSpace(text) == "", strings.HasPrefix(text, "# "), strings.HasPrefix(text, "finding module for package "), strings.HasSuffix(text, ": too many errors"):
		case strings.HasPrefix(text, "\t") && last >= 0:
			lines[last].Message += "\n" + text
		case m != nil:
			l := BuildLine{File: p.sourceFile(m[1], originals), Message: m[4]}
			l.Line, _ = strconv.Atoi(m[2])
			l.Column, _ = strconv.Atoi(m[3])
			lines = append(lines, l)
		default:
			lines = append(lines, BuildLine{Message: strings.TrimSpace(text)})
		}
	}
	if len(lines) == 0 {
		lines = []BuildLine{{Message: "the go tool failed without a word"}}
	}
	return lines[:min(len(lines), maxBuildLines)]
}

// sourceFile makes a file name of the go tool relative to the project's root.
func (p *Project) sourceFile(name string, originals map[string]string) string {
	if rest, found := strings.CutPrefix(name, p.Module+"/"); found && p.Module != "" {
		return rest
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(p.Root, name) // where the go tool ran
	}
	return p.below(cmp.Or(originals[name], name))
}

// listError is the error for packages whose imports cannot be read.
func (p *Project) listError(broken []listed) error {
	var text strings.Builder
	for _, l := range broken {
		if l.Error.Pos != "" && !strings.Contains(l.Error.Err, l.Error.Pos) {
			text.WriteString(l.Error.Pos + ": ")
		}
		text.WriteString(l.Error.Err + "\n")
	}
	return &BuildError{Lines: p.parseBuild(text.String(), nil)}
}
