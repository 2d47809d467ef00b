package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

// repository is the directory of the module, as seen from this package.
var repository = filepath.Join("..", "..", "..")

// documents returns the Markdown files that people read, relative to the repository: all but the lessons, which have a
// test of their own.
func documents(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.md", "*/*.md", ".github/*.md"} {
		files, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name, err := filepath.Rel(repository, file)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	if len(found) < 10 {
		t.Fatalf("there are only %q", found)
	}
	return found
}

// read returns a document.
func read(t *testing.T, document string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, document))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block is a fenced block of a document. The first word after the fence is its language; what follows it may say how it
// is run, see [block.mark].
type block struct {
	line     int // of its first line
	language string
	info     string
	text     string
}

// mark returns how a block is to be run, and why: "not-run" is not run, "exits-1" ends with exit code 1; empty is run, and
// ends with 0.
func (b block) mark() (mark, reason string) {
	mark, reason, _ = strings.Cut(b.info, ":")
	return mark, strings.TrimSpace(reason)
}

var fence = regexp.MustCompile("^ {0,3}(```+)([^`]*)$")

// split returns the blocks of a document, and its other lines; those of blocks are empty there.
func split(text string) (blocks []block, prose []string) {
	var open string
	var b block
	for i, line := range strings.Split(text, "\n") {
		found := fence.FindStringSubmatch(line)
		switch {
		case open == "" && found != nil:
			open, b = found[1], block{line: i + 2}
			b.language, b.info, _ = strings.Cut(strings.TrimSpace(found[2]), " ")
		case open != "" && found != nil && found[1] == open && found[2] == "":
			open, blocks = "", append(blocks, b)
		case open != "":
			b.text += line + "\n"
		default:
			prose = append(prose, line)
			continue
		}
		prose = append(prose, "")
	}
	return blocks, prose
}

// commands returns what a shell is given of the block: all of sh, and what follows the prompts of console.
func (b block) commands() string {
	if b.language == "sh" {
		return b.text
	}
	var lines strings.Builder
	for line := range strings.Lines(b.text) {
		if command, is := strings.CutPrefix(line, "$ "); is && b.language == "console" {
			lines.WriteString(command)
		}
	}
	return lines.String()
}

// calls returns the simple commands of a shell script, with their arguments. What a shell would put in place of variables
// and of the output of commands is left out.
func calls(script string) ([][]string, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, err
	}
	nothing := &expand.Config{CmdSubst: func(io.Writer, *syntax.CmdSubst) error { return nil }}
	var found [][]string
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, is := n.(*syntax.CallExpr); is && len(call.Args) > 0 && err == nil {
			var args []string
			args, err = expand.Fields(nothing, call.Args...)
			found = append(found, args)
		}
		return true
	})
	return found, err
}

// checkCall reports what is wrong with a command line of operator-lab, as far as that can be seen without running it; other
// programs are not checked. In prose, arguments may be left out.
func checkCall(args []string, prose bool) error {
	if filepath.Base(args[0]) != "operator-lab" {
		return nil
	}
	cmd, rest, err := rootCommand(streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard}, Programs{}).Find(args[1:])
	if err != nil {
		return err
	}
	if cmd.DisableFlagParsing { // the flags of kubectl and its kin are theirs
		return nil
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	switch n := cmd.Flags().NArg(); {
	case cmd.Flags().Changed("help"), prose && n == 0:
		return nil
	case cmd.CommandPath() == "operator-lab run" && (cmd.ArgsLenAtDash() == 0 || isPath(cmd.Flags().Arg(0)) || cmd.Flags().Changed("images")): // the reader's own
		return nil
	case n > 0 && cmd.HasSubCommands() && cmd.Args == nil: // such as the name of an operator
		return fmt.Errorf("there is no %q", cmd.Flags().Arg(0))
	}
	if path := cmd.CommandPath(); path == "operator-lab lesson" || path == "operator-lab scorecard" {
		known, _ := cmd.ValidArgsFunction(cmd, nil, "")
		for _, arg := range cmd.Flags().Args() {
			named := func(completion string) bool { return arg == strings.Split(completion, "\t")[0] }
			if bareName.MatchString(arg) && !slices.ContainsFunc(known, named) {
				return fmt.Errorf("there is no %q", arg)
			}
		}
	}
	return errors.Join(cmd.ValidateArgs(cmd.Flags().Args()), cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups())
}

// bareName is a name, and neither a path nor a number.
var bareName = regexp.MustCompile(`\A[a-z][a-z-]*\z`)

// placeholder is something that the reader replaces.
var placeholder = regexp.MustCompile(`<[^<>]+>`)

// checkLine is checkCall for all commands of a line or a script.
func checkLine(script string, prose bool) error {
	found, err := calls(placeholder.ReplaceAllString(script, "zundoko"))
	if err != nil {
		return err
	}
	for _, args := range found {
		if err := checkCall(args, prose); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
		}
	}
	return nil
}

// TestDocumentedCommands checks the command lines of all documents, in blocks and in sentences, and those of the examples
// of the help: commands and flags exist, and take such arguments. Those of the Japanese twins are the same as in English.
func TestDocumentedCommands(t *testing.T) {
	span := regexp.MustCompile("`((?:bin/)?operator-lab [^`…]*)`")
	for _, document := range documents(t) {
		t.Run(document, func(t *testing.T) {
			blocks, prose := split(read(t, document))
			for _, b := range blocks {
				if err := checkLine(b.commands(), false); err != nil {
					t.Errorf("%s:%d: %v", document, b.line, err)
				}
				switch mark, reason := b.mark(); mark {
				case "":
				case "not-run", "exits-1":
					if reason == "" {
						t.Errorf("%s:%d: %s without a reason", document, b.line, mark)
					}
				default:
					t.Errorf("%s:%d: %q is neither not-run nor exits-1", document, b.line, mark)
				}
			}
			for i, line := range prose {
				for _, found := range span.FindAllStringSubmatch(line, -1) {
					if err := checkLine(found[1], true); err != nil {
						t.Errorf("%s:%d: %v", document, i+1, err)
					}
				}
			}
			if english, is := strings.CutSuffix(document, ".ja.md"); is {
				if diff := cmp.Diff(bare(t, english+".md"), bare(t, document)); diff != "" {
					t.Errorf("the commands differ from those in English:\n%s", diff)
				}
			}
		})
	}
	t.Run("examples of the help", func(t *testing.T) {
		for path, cmd := range verbs(t) {
			for line := range strings.Lines(cmd.Example) {
				line, _, _ = strings.Cut(strings.TrimSpace(line), "  ") // what it does is said behind it
				if err := checkLine(line, false); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		}
	})
}

// bare returns the commands of a document without their comments, each block with its mark.
func bare(t *testing.T, document string) (found []string) {
	t.Helper()
	blocks, _ := split(read(t, document))
	for _, b := range blocks {
		if b.commands() == "" {
			continue
		}
		file, err := syntax.NewParser().Parse(strings.NewReader(placeholder.ReplaceAllString(b.commands(), "x")), "")
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := syntax.NewPrinter().Print(&text, file); err != nil {
			t.Fatal(err)
		}
		mark, _ := b.mark()
		found = append(found, strings.TrimSpace(mark+"\n"+text.String()))
	}
	return found
}

// TestCheckCall checks the check: one that finds nothing would always be content.
func TestCheckCall(t *testing.T) {
	for line, wrong := range map[string]bool{
		"operator-lab run zundoko --seed 8":                       false,
		`eval "$(operator-lab env --name x)"`:                     false,
		"operator-lab kubectl get pods --all-namespaces":          false,
		"FOO=$(operator-lab assets -p path) go test ./... # text": false,
		"operator-lab run ./mine --apply":                         false,
		"operator-lab run -- ./bin/manager --flag":                false,
		"operator-lab run ./mine --aply":                          true,
		"operator-lab run zundok":                                 true,
		"operator-lab rn zundoko":                                 true,
		"operator-lab run zundoko --sed 8":                        true,
		"operator-lab run zundoko --seed eight":                   true,
		"operator-lab status here":                                true,
		"operator-lab lesson run-zundok":                          true,
		`eval "$(operator-lab envv)"`:                             true,
		"operator-lab test 'a":                                    true,
	} {
		if err := checkLine(line, false); (err != nil) != wrong {
			t.Errorf("%s: got error %v", line, err)
		}
	}
}

// TestReadmeIsShort checks that what belongs into the other documents stays there.
func TestReadmeIsShort(t *testing.T) {
	const most = 150
	for _, document := range []string{"README.md", "README.ja.md"} {
		if n := strings.Count(read(t, document), "\n"); n > most {
			t.Errorf("%s has %d lines, more than %d", document, n, most)
		}
	}
}

// TestDocumentedVersions checks that the documents name the versions of Kubernetes and etcd that are linked.
func TestDocumentedVersions(t *testing.T) {
	named := regexp.MustCompile(`(Kubernetes|etcd) (\d+\.\d+\.\d+)`)
	modules := map[string]string{"Kubernetes": "k8s.io/kubernetes", "etcd": "go.etcd.io/etcd/server/v3"}
	required, seen := read(t, "go.mod"), 0
	for _, document := range documents(t) {
		for _, found := range named.FindAllStringSubmatch(read(t, document), -1) {
			seen++
			if !strings.Contains(required, modules[found[1]]+" v"+found[2]+"\n") {
				t.Errorf("%s: %s is not what go.mod requires", document, found[0])
			}
		}
	}
	if seen == 0 {
		t.Error("no document names one")
	}
}

// TestLinks checks that the links of documents within the repository lead to a file, and to a heading in it.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code := regexp.MustCompile("`[^`]*`")
	for _, document := range documents(t) {
		_, prose := split(read(t, document))
		for i, line := range prose {
			for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
				target, heading, _ := strings.Cut(found[1], "#")
				if strings.Contains(target, "://") {
					continue
				}
				file := document
				if target != "" {
					file = filepath.Join(filepath.Dir(document), target)
				}
				if _, err := os.Stat(filepath.Join(repository, file)); err != nil {
					t.Errorf("%s:%d: %v", document, i+1, err)
				} else if heading != "" && !slices.Contains(headings(t, file), heading) {
					t.Errorf("%s:%d: %s has no heading #%s", document, i+1, file, heading)
				}
			}
		}
	}
}

// TestDirectories checks that the tables of directories have all packages, and nothing that is no more. The bundled operators are in the
// tables of another document.
func TestDirectories(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `((?:cmd|lessons|operators|sandbox|scenarios)[^`]*)` \\|")
	var want []string
	for _, pattern := range []string{"cmd/*/*/*.go", "lessons/*/*.go", "operators/*/*.go", "sandbox/*/*.go", "sandbox/api/*/*.go", "scenarios/*/*.go"} {
		files, err := filepath.Glob(filepath.Join(repository, filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: there is nothing (%v)", pattern, err)
		}
		for _, file := range files {
			dir, err := filepath.Rel(repository, filepath.Dir(file))
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, filepath.ToSlash(dir))
		}
	}
	want = append(want, "cmd/operator-lab", "lessons", "operators", "sandbox", "scenarios")
	slices.Sort(want)
	want = slices.DeleteFunc(slices.Compact(want), func(dir string) bool {
		name, is := strings.CutPrefix(dir, "operators/")
		return is && slices.Contains(operators.Names(), name)
	})
	for _, document := range []string{"operators/README.md", "operators/README.ja.md"} {
		text := read(t, document)
		for _, name := range operators.Names() {
			if !strings.Contains(text, "\n| ["+name+"](#") {
				t.Errorf("%s: the table has no row for %s", document, name)
			}
		}
	}
	for _, document := range []string{"sandbox/README.md", "sandbox/README.ja.md"} {
		var got []string
		for _, found := range row.FindAllStringSubmatch(read(t, document), -1) {
			got = append(got, found[1])
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", document, diff)
		}
	}
}

// TestTables checks that the documents of scenarios have a row for each bundled scenario and each oracle.
func TestTables(t *testing.T) {
	for _, document := range []string{"scenarios/README.md", "scenarios/README.ja.md"} {
		text := read(t, document)
		row := func(name string) bool {
			return regexp.MustCompile("(?m)^\\|.*`(\\w+/)?" + name + "`.*\\|").MatchString(text)
		}
		for _, name := range slices.Concat(scenarioNames(), format.Oracles) {
			if !strings.Contains(name, "/") && !row(name) {
				t.Errorf("%s has no row for %s", document, name)
			}
		}
	}
}

// headings returns the names by which links name the headings of a document: as GitHub makes them.
func headings(t *testing.T, document string) []string {
	t.Helper()
	var found []string
	_, prose := split(read(t, document))
	for _, line := range prose {
		if marks, text, is := strings.Cut(line, " "); is && marks != "" && strings.Trim(marks, "#") == "" {
			found = append(found, strings.Map(func(r rune) rune {
				switch {
				case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsDigit(r), r == '-', r == '_':
					return unicode.ToLower(r)
				case r == ' ':
					return '-'
				}
				return -1
			}, text))
		}
	}
	return found
}

// inAnotherTerminal is said of a command that goes on while the following ones are run.
const inAnotherTerminal = "in another terminal"

// script returns the block as a script. A command for another terminal runs until the end of the block; then the others
// are tried until they succeed, as a person does who waits for something to come up there.
func (b block) script() string {
	commands := b.commands()
	if !strings.Contains(commands, inAnotherTerminal) {
		return "set -eu\n" + commands
	}
	text := `set -eu
terminals=
trap 'for terminal in $terminals; do kill "$terminal"; done; wait' EXIT
try() {
	left=300
	until "$@"; do
		left=$((left - 1))
		[ "$left" -gt 0 ]
		sleep 0.2
	done
}
`
	for line := range strings.Lines(commands) {
		command, comment, _ := strings.Cut(line, " #")
		if strings.Contains(comment, inAnotherTerminal) {
			text += strings.TrimSpace(command) + " &\nterminals=\"$terminals $!\"\n"
		} else {
			text += "try " + line
		}
	}
	return text
}

// TestDocumentedBlocks runs the blocks of the documents with the binary, as a reader does who follows them from the top: each
// in a shell of its own, all of a document in one directory and with one state directory. A YAML block that begins
// with the name of a file is that file.
func TestDocumentedBlocks(t *testing.T) {
	sandboxtest.Long(t)
	binary := os.Getenv("OPERATOR_LAB_BINARY")
	if binary == "" {
		t.Skip("OPERATOR_LAB_BINARY is not set: it names the binary these tests drive; 'make test' builds it and sets it")
	}
	bin := t.TempDir()
	for _, name := range []string{"operator-lab", "kubectl"} {
		if err := os.Symlink(binary, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	goSettings := sandboxtest.GoSettings(t)
	for _, document := range documents(t) {
		if strings.HasSuffix(document, ".ja.md") { // it has the same commands
			continue
		}
		t.Run(document, func(t *testing.T) {
			t.Parallel()
			dir, state, home := t.TempDir(), t.TempDir(), t.TempDir()
			if err := sandboxtest.MakeHome(home); err != nil {
				t.Fatal(err)
			}
			environment := append([]string{
				"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + home,
				"OPERATOR_LAB_STATE_DIR=" + state, "GOGC=" + os.Getenv("GOGC"), "TMPDIR=" + os.TempDir(),
			}, goSettings...)
			t.Cleanup(func() {
				down := exec.Command(binary, "down", "--all", "--delete")
				down.Env = environment
				if out, err := down.CombinedOutput(); err != nil {
					t.Errorf("operator-lab down --all --delete: %v\n%s", err, out)
				}
			})
			blocks, _ := split(read(t, document))
			for _, b := range blocks {
				if mark, _ := b.mark(); b.commands() != "" && mark != "not-run" || b.file() != "" {
					t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) { b.run(t, dir, environment) })
				}
			}
		})
	}
}

var fileName = regexp.MustCompile(`\A# (\S+\.yaml)\n`)

// file returns the name of the file that a block is; empty for others.
func (b block) file() string {
	if found := fileName.FindStringSubmatch(b.text); b.language == "yaml" && found != nil {
		return found[1]
	}
	return ""
}

// run runs the commands of a block, or writes its file.
func (b block) run(t *testing.T, dir string, environment []string) {
	if b.file() != "" {
		if err := os.WriteFile(filepath.Join(dir, b.file()), []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	mark, _ := b.mark()
	if strings.Contains(b.commands(), "curl -x") {
		if _, err := exec.LookPath("curl"); err != nil {
			t.Skip(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-c", b.script())
	shell.Dir, shell.Env = dir, environment
	shell.Cancel = func() error { return shell.Process.Signal(syscall.SIGTERM) }
	shell.WaitDelay = 10 * time.Second
	output := filepath.Join(t.TempDir(), "output") // a file: a sandbox that runs on would keep a pipe open
	file, err := os.Create(output)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	shell.Stdout, shell.Stderr = file, file
	err = shell.Run()
	if want := map[string]int{"exits-1": 1}[mark]; shell.ProcessState == nil || shell.ProcessState.ExitCode() != want {
		text, _ := os.ReadFile(output)
		t.Errorf("%v, want exit code %d:\n%s\nsaid:\n%s", err, want, b.commands(), text)
	}
}
