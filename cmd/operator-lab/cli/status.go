package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/sandbox"
)

// view is a record as commands show it.
type view struct {
	Name       string         `json:"name"`
	Status     string         `json:"status"`
	URL        string         `json:"url,omitempty"`
	Proxy      string         `json:"proxy,omitempty"`
	Nodes      int            `json:"nodes"`
	FakeNodes  int            `json:"fakeNodes,omitempty"`
	Kubeconfig string         `json:"kubeconfig,omitempty"`
	Directory  string         `json:"directory"`
	Started    *time.Time     `json:"started,omitempty"`
	PID        int            `json:"pid,omitempty"`
	Programs   map[string]int `json:"programs,omitempty"`
	Restarts   map[string]int `json:"restarts,omitempty"`
	Operators  []string       `json:"operators,omitempty"`
}

func viewOf(r *sandbox.Record) view {
	v := view{Name: r.Name, Status: "stopped", Directory: r.Dir}
	if !r.Running {
		return v
	}
	v.Status = "starting"
	if r.Ready {
		v.Status = "running"
	}
	v.Proxy, v.Nodes, v.FakeNodes = r.Proxy, r.Nodes, r.FakeNodes
	v.URL, v.Kubeconfig, v.Started, v.PID = r.URL(), r.Kubeconfig(), &r.Started, r.PID
	v.Programs, v.Restarts, v.Operators = r.Children, r.Restarts, r.Operators
	return v
}

func statusCommand(io streams) *cobra.Command {
	var name, output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show one sandbox; exit code 1 when it is not running",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			r, err := lookup(name)
			if err != nil {
				return err
			}
			v := viewOf(r)
			if err := printed(io.out, output, v, func(w *tabwriter.Writer) { printStatus(w, v) }); err != nil {
				return err
			}
			if v.Status != "running" {
				return &exitError{code: exitFailed}
			}
			return nil
		},
	}
	nameFlag(cmd, &name)
	outputFlag(cmd, &output)
	return cmd
}

func printStatus(w *tabwriter.Writer, v view) {
	fmt.Fprintf(w, "name\t%s\nstatus\t%s\n", v.Name, v.Status)
	if v.Started != nil {
		fmt.Fprintf(w, "up\t%s\nurl\t%s\nproxy\t%s\nkubeconfig\t%s\n", time.Since(*v.Started).Round(time.Second), v.URL, v.Proxy, v.Kubeconfig)
	}
	fmt.Fprintf(w, "directory\t%s\n", v.Directory)
	if v.FakeNodes > 0 {
		fmt.Fprintf(w, "nodes\t%d that only answer (KWOK): no program runs in a pod\n", v.FakeNodes)
	}
	if v.PID != 0 {
		fmt.Fprintf(w, "operator-lab\tpid %d\n", v.PID)
	}
	for _, program := range slices.Sorted(maps.Keys(v.Programs)) {
		state := "not running"
		if pid := v.Programs[program]; pid > 0 {
			state = fmt.Sprintf("pid %d", pid)
		}
		if n := v.Restarts[program]; n > 0 {
			state += fmt.Sprintf(", restarts: %d", n)
		}
		fmt.Fprintf(w, "%s\t%s\n", program, state)
	}
}

func listCommand(io streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List all sandboxes",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			state, err := sandbox.StateDir()
			if err != nil {
				return err
			}
			records, err := sandbox.List(state)
			if err != nil {
				return err
			}
			views := make([]view, len(records))
			for i, r := range records {
				views[i] = viewOf(r)
			}
			if len(views) == 0 && output == "" {
				fmt.Fprintln(io.err, "there is no sandbox; start one with 'operator-lab up --detach'")
				return nil
			}
			return printed(io.out, output, views, func(w *tabwriter.Writer) { printList(w, views) })
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

func printList(w *tabwriter.Writer, views []view) {
	fmt.Fprintln(w, "NAME\tSTATUS\tUP\tURL")
	for _, v := range views {
		up := ""
		if v.Started != nil {
			up = time.Since(*v.Started).Round(time.Second).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", v.Name, v.Status, up, v.URL)
	}
}

func outputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "json for programs; default: text for people")
}

func checkOutput(output string) error {
	if output == "" || output == "json" {
		return nil
	}
	return usageError("use -o json, or leave it out", "unknown output format %q", output)
}

// printed writes a value as JSON or as a table.
func printed(out io.Writer, output string, value any, table func(*tabwriter.Writer)) error {
	if err := checkOutput(output); err != nil {
		return err
	}
	if output == "json" {
		return printJSON(out, value)
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	table(w)
	return w.Flush()
}

// printJSON writes a value as JSON for programs, indented for people who look at it.
func printJSON(out io.Writer, value any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(value)
}
