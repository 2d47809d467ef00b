package cli

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/sandbox"
)

// completeLinked completes the arguments of a linked program by asking the program itself, about the sandbox that a
// leading --name chooses. Without a sandbox that runs, it knows its verbs and flags, and no cluster.
func completeLinked(program func() int, name string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 && args[0] == "--name" {
			return sandboxNames(nil), cobra.ShellCompDirectiveNoFileComp
		}
		chosen, args, err := leadingName(args)
		if err != nil || program == nil || pointAt(chosen) != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return askForCompletions(program, name, append(args, typed))
	}
}

// pointAt lets kubectl in this process use a running sandbox, and otherwise no cluster, not even a person's own.
func pointAt(name string) error {
	kubeconfig, cache := os.DevNull, os.DevNull
	if r, err := running(name); err == nil {
		kubeconfig, cache = r.Kubeconfig(), sandbox.KubectlCache(r.Dir)
	}
	return errors.Join(os.Setenv("KUBECONFIG", kubeconfig), os.Setenv("KUBECACHEDIR", cache))
}

// askForCompletions runs a program of Cobra's in this process, and reads what it prints for shells: a completion a line,
// then a colon and the directive.
func askForCompletions(program func() int, name string, args []string) ([]string, cobra.ShellCompDirective) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer func() { _ = reader.Close() }()
	printed := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(reader) // what could be read are completions, too
		printed <- string(text)
	}()
	stdout := os.Stdout
	os.Stdout = writer
	err = runLinked(program, name, append([]string{cobra.ShellCompRequestCmd}, args...))
	os.Stdout = stdout
	err = errors.Join(err, writer.Close())
	text := <-printed
	answers, directive, found := strings.Cut("\n"+strings.TrimSpace(text), "\n:")
	number, wrong := strconv.Atoi(directive)
	if err != nil || !found || wrong != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return strings.FieldsFunc(answers, func(r rune) bool { return r == '\n' }), cobra.ShellCompDirective(number)
}
