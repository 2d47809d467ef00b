package tui_test

import (
	"context"
	"fmt"
	"os"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// A recording is shown without a cluster.
func ExampleRun_replay() {
	journal, report, err := trace.Load(os.Stdin, trace.Options{})
	if err != nil {
		return
	}
	_ = tui.Run(context.Background(), tui.Options{
		Journal: journal, Replay: true, Title: "replay run.jsonl", Notice: report.Text(trace.English),
	})
}

// An operator is watched from the boot of its cluster on.
func ExampleRun_live() {
	journal := trace.New(trace.Options{})
	_ = tui.Run(context.Background(), tui.Options{
		Journal: journal, Title: "zundoko",
		Boot: func(_ context.Context, step func(tui.Step)) (tui.Controls, error) {
			step(tui.Step{Name: "etcd"})
			// … start the sandbox and the operator; a *taps.Taps is a tui.Loop
			step(tui.Step{Name: "etcd", Done: true})
			return tui.Controls{Facts: "k8s 1.36"}, nil
		},
	})
}

// The text of a lesson for a screen reader, or for another terminal.
func ExamplePlain() {
	const lesson = "## Ask for a song\n\nApply the **Hikawa** in `hikawa.yaml`:\n\n```sh\nkubectl apply -f hikawa.yaml\n```\n"
	fmt.Fprint(os.Stdout, tui.Plain(lesson, 76))
	// Output:
	// Ask for a song
	//
	// Apply the Hikawa in `hikawa.yaml`:
	//
	//   kubectl apply -f hikawa.yaml
}
