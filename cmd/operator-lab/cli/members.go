package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/sandbox/members"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

type membersFlags struct {
	name    string
	cluster string
	until   time.Duration
	write   bool
	fail    bool
}

func membersCommand(io streams) *cobra.Command {
	var f membersFlags
	cmd := &cobra.Command{
		Use:   "members",
		Short: "Look at the members of etcd clusters in a sandbox, and write to one",
		Long: `Ask the members of the EtcdClusters in a sandbox how they are, twice a second, and print it as a
table at once and whenever something changes: who leads, who learns, who does not answer, and
whether they have a quorum. REQUESTED is the version that the image of the pod names; RUNS is
the etcd that really runs there. STATE is up, leaderless (it answers, and knows no leader), down
(it does not answer), pending (its pod does not run yet), ended (its pod has) or absent (it is on
the list of members, and has no pod). It ends with Ctrl-C, or with --for.

With --write, a key of the cluster that --cluster names is written twenty times a second through
the cluster's client Service; a write has failed when it is not acknowledged in a second. What
came of it follows on standard error. Before the first write that is acknowledged none counts.`,
		Example: `  operator-lab members
  operator-lab members --cluster default/example-etcd-cluster --write --for 30s --fail`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), io) },
	}
	nameFlag(cmd, &f.name)
	flags := cmd.Flags()
	flags.StringVar(&f.cluster, "cluster", "", "this cluster only, as namespace/name (default: all)")
	flags.DurationVar(&f.until, "for", 0, "end after this time; 0: go on")
	flags.BoolVar(&f.write, "write", false, "write to the cluster that --cluster names")
	flags.BoolVar(&f.fail, "fail", false, "exit code 1 if a write failed, or none was acknowledged")
	return cmd
}

// check checks the flags and returns the cluster of --cluster; empty without one.
func (f *membersFlags) check() (only types.NamespacedName, err error) {
	const hint = "see 'operator-lab members --help'"
	if f.cluster != "" {
		var has bool
		only.Namespace, only.Name, has = strings.Cut(f.cluster, "/")
		if !has || only.Namespace == "" || only.Name == "" || strings.Contains(only.Name, "/") {
			return only, usageError("such as default/example", "--cluster %q is not namespace/name", f.cluster)
		}
	}
	switch {
	case f.until < 0:
		return only, usageError(hint, "--for %v is negative", f.until)
	case f.write && f.cluster == "":
		return only, usageError("name it with --cluster namespace/name", "write to which cluster?")
	case f.fail && !f.write:
		return only, usageError("add --write", "--fail says what is to happen when a write fails, and nothing is written")
	}
	return only, nil
}

func (f *membersFlags) run(ctx context.Context, io streams) error {
	only, err := f.check()
	if err != nil {
		return err
	}
	quietLibraries()
	record, err := running(f.name)
	if err != nil {
		return sandboxError(err)
	}
	box, err := record.Open()
	if err != nil {
		return sandboxError(err)
	}
	observer, err := members.New(members.Options{Config: box.Config(), Dial: box.DialContext})
	if err != nil {
		return err
	}
	looking := ctx
	if f.until > 0 {
		var cancel context.CancelFunc
		looking, cancel = context.WithTimeout(ctx, f.until)
		defer cancel()
	}
	table := &membersTable{out: io.out, only: only, told: map[types.NamespacedName]trace.Membership{}, others: map[string]bool{}}
	table.silent = time.AfterFunc(silence, func() { table.sayNothing(io.err, f.name) })
	var sum members.WriteSum
	var unheard string // why none was acknowledged before the first that was
	var writing sync.WaitGroup
	if f.write {
		writer := members.Writer{Endpoint: members.Endpoint(only), Dial: box.DialContext}
		writing.Go(func() { // it ends with the time
			_ = writer.Run(looking, func(w members.Write) {
				if !sum.Add(w) {
					unheard = w.Problem()
				}
			})
		})
	}
	err = observer.Run(looking, table.show)
	writing.Wait()
	if table.silent.Stop() {
		table.sayNothing(io.err, f.name)
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil || f.until == 0 && errors.Is(err, context.Canceled) {
		err = nil // that is the end it was waiting for
	}
	if !f.write {
		return err
	}
	err = errors.Join(err, sum.Print(io.err))
	if sum.OK == 0 && unheard != "" {
		fmt.Fprintf(io.err, "none was acknowledged at %s: %s\n", members.Endpoint(only), unheard)
	}
	switch {
	case err != nil:
		return err
	case f.fail && (sum.Failed > 0 || sum.OK == 0):
		return &exitError{code: exitFailed}
	}
	return nil
}

// silence is the time without a cluster after which a message says that there is none.
const silence = 3 * time.Second

// membersTable prints clusters when they change.
type membersTable struct {
	out  io.Writer
	only types.NamespacedName
	told map[types.NamespacedName]trace.Membership

	// silent runs until the first cluster is printed; others are those that are not meant.
	silent *time.Timer
	mu     sync.Mutex
	others map[string]bool
}

// sayNothing prints why no cluster is shown.
func (t *membersTable) sayNothing(out io.Writer, sandbox string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what := "etcd cluster"
	if t.only.Name != "" {
		what += " " + t.only.String()
	}
	line := fmt.Sprintf("there is no %s in sandbox %s so far", what, sandbox)
	if len(t.others) > 0 {
		line += "; there is " + strings.Join(slices.Sorted(maps.Keys(t.others)), ", ")
	}
	fmt.Fprintln(out, line)
}

// show prints a cluster if it has changed.
func (t *membersTable) show(cluster types.NamespacedName, seen trace.Membership) {
	if t.only.Name != "" && cluster != t.only {
		t.mu.Lock()
		defer t.mu.Unlock()
		if delete(t.others, cluster.String()); !seen.Gone {
			t.others[cluster.String()] = true
		}
		return
	}
	t.silent.Stop()
	last, before := t.told[cluster]
	if before && seen.Same(last) {
		return
	}
	if before {
		fmt.Fprintln(t.out)
	}
	t.told[cluster] = seen
	head := fmt.Sprintf("%s %s: %s", time.Now().Format(time.TimeOnly), cluster, trace.QuorumText(seen, trace.English))
	if seen.Leader != "" {
		head += ", leader " + seen.Leader
	}
	fmt.Fprintln(t.out, head)
	if len(seen.Members) == 0 {
		return
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  MEMBER\tROLE\tSTATE\tREQUESTED\tRUNS\tTERM\tINDEX\tSIZE\tPROBLEM")
	for _, m := range seen.Members {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, cmp.Or(string(m.Role), "-"), cmp.Or(string(m.State), "-"), cmp.Or(m.Requested, "-"),
			cmp.Or(m.Runs, "-"), number(m.Term), number(m.Index), number(uint64(max(0, m.Size))), problemOf(m))
	}
	_ = w.Flush() // as any other line that is said to a person
}

func problemOf(m trace.Member) string {
	var words []string
	if m.Problem != "" {
		words = append(words, m.Problem)
	}
	if m.Leaving {
		words = append(words, "being deleted")
	}
	return strings.Join(append(words, m.Alarms...), ", ")
}

func number(n uint64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
