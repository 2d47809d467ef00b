package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/sandbox"
)

// followPoll is the time between two reads of a log that is followed.
const followPoll = 100 * time.Millisecond

func logsCommand(io streams) *cobra.Command {
	var name string
	var follow bool
	var tail int
	cmd := &cobra.Command{
		Use:   "logs [program…]",
		Short: "Print the logs of a sandbox's programs",
		Long: `Print the logs of a sandbox's programs: etcd, kube-apiserver, kube-controller-manager,
kube-scheduler, the kubelets (node-1…), with --olm catalog-operator, olm-operator,
package-server and opm, and operator-lab when it runs in the background.
Default: all that have one. Logs of pods are kubectl's: 'operator-lab kubectl logs'.`,
		Example: `  operator-lab logs kube-apiserver -f
  operator-lab logs --tail 5`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			r, err := lookup(name)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var programs []string
			files, _ := logFiles(r, nil)
			for _, f := range files {
				programs = append(programs, f.program)
			}
			return programs, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, programs []string) error {
			r, err := lookup(name)
			if err != nil {
				return err
			}
			files, err := logFiles(r, programs)
			if err != nil {
				return err
			}
			return printLogs(cmd.Context(), io.out, files, tail, follow)
		},
	}
	nameFlag(cmd, &name)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing what is added, until Ctrl-C")
	cmd.Flags().IntVar(&tail, "tail", -1, "print only this many of the last lines of each; -1: all")
	return cmd
}

// logFile is one program's log.
type logFile struct{ program, path string }

func logFiles(r *sandbox.Record, programs []string) ([]logFile, error) {
	paths, err := filepath.Glob(r.LogFile("*"))
	if err != nil {
		return nil, err
	}
	var all []logFile
	var names []string
	for _, path := range paths {
		program := strings.TrimSuffix(filepath.Base(path), ".log")
		all, names = append(all, logFile{program, path}), append(names, program)
	}
	for _, program := range programs {
		if !slices.Contains(names, program) {
			return nil, usageError("there are logs of "+strings.Join(names, ", "), "sandbox %s has no log of %q", r.Name, program)
		}
	}
	if len(programs) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(f logFile) bool { return !slices.Contains(programs, f.program) }), nil
}

// printLogs prints one file after the other, and when following, all of them as they grow.
func printLogs(ctx context.Context, out io.Writer, files []logFile, tail int, follow bool) error {
	w := &lineWriter{out: out, named: len(files) > 1}
	var wg sync.WaitGroup
	var failures []error
	for _, f := range files {
		lines, offset, err := readTail(f.path, tail)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		for _, line := range lines {
			w.write(f.program, line)
		}
		if follow {
			wg.Go(func() { followLog(ctx, f, offset, w) })
		}
	}
	wg.Wait()
	return errors.Join(failures...)
}

// readTail reads the last lines of a file, and how far it read.
func readTail(path string, tail int) (lines []string, offset int64, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil || len(b) == 0 {
		return nil, 0, err
	}
	lines = strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if tail >= 0 && len(lines) > tail {
		lines = lines[len(lines)-tail:]
	}
	return lines, int64(len(b)), nil
}

func followLog(ctx context.Context, f logFile, offset int64, w *lineWriter) {
	file, err := os.Open(f.path)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return
	}
	reader := bufio.NewReader(file)
	var partial string
	for {
		text, err := reader.ReadString('\n')
		partial += text
		if err == nil {
			w.write(f.program, strings.TrimSuffix(partial, "\n"))
			partial = ""
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(followPoll):
		}
	}
}

// lineWriter writes whole lines of several logs, with the program's name in front when there is more than one.
type lineWriter struct {
	out   io.Writer
	named bool
	mu    sync.Mutex
}

func (w *lineWriter) write(program, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.named {
		fmt.Fprintf(w.out, "%-24s| ", program)
	}
	fmt.Fprintln(w.out, line)
}
