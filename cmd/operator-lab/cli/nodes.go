package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
	etcdversion "go.etcd.io/etcd/api/v3/version"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// nodeFlags hold the flags for the nodes and images of a sandbox.
type nodeFlags struct {
	nodes  int
	images string
}

// bind adds the flags, with a default number of nodes.
func (f *nodeFlags) bind(flags *pflag.FlagSet, nodes int) {
	f.nodes = nodes
	flags.Var((*nodeCount)(&f.nodes), "nodes", "how many simulated nodes run pods; 0: pods stay Pending")
	flags.StringVar(&f.images, "images", "", "file that says which programs images are (default: only those that come with the lab)")
}

// take takes from a project's lab.yaml what no flag says.
func (f *nodeFlags) take(p *project.Project, flags *pflag.FlagSet) {
	if p.Nodes != nil && !flags.Changed("nodes") {
		f.nodes = *p.Nodes
	}
	if !flags.Changed("images") {
		f.images = cmp.Or(f.images, p.Images)
	}
}

// use sets the options of a sandbox, after a check of the images file.
func (f *nodeFlags) use(o *sandbox.Options) error {
	o.Nodes, o.Images = f.nodes, f.images
	return f.check()
}

// check reports what is wrong with the images file.
func (f *nodeFlags) check() error {
	if f.images == "" {
		return nil
	}
	catalogue, err := images.NewCatalogue("", f.images)
	if catalogue != nil {
		catalogue.Close()
	}
	if err == nil {
		return nil
	}
	hint := "see 'Put your own program into a pod' in sandbox/README.md"
	if problem, is := errors.AsType[images.Problem](err); is && problem.Hint != "" {
		hint = problem.Hint
	}
	return usageError(hint, "%w", err)
}

// args returns the flags as arguments for another process.
func (f *nodeFlags) args() []string {
	args := []string{"--nodes", strconv.Itoa(f.nodes)}
	if f.images != "" {
		args = append(args, "--images", f.images)
	}
	return args
}

// Said at the beginning of a run whose pods are to run.
const (
	simulatedNodes   = "The nodes are simulated. Kubernetes' own kubelet runs programs of this binary there, not containers, and their network is made in user space."
	simulatedVersion = "The version of an etcd image is only what was requested: etcd %s runs in all of them, which is real, with raft between its members."
	simulatedNodesJa = "ノードはシミュレーションです。本物の kubelet が、コンテナの代わりにこのバイナリのプログラムを動かします。Pod のネットワークもユーザー空間で実現しています。"

	simulatedVersionJa = "etcd のイメージのバージョンは指定にすぎません。どれでも実際に動くのは etcd %s です。これは本物で、メンバーの間では Raft が動きます。"
)

// sayWhatIsSimulated writes a note into the journal about what is simulated.
func (s *liveOperator) sayWhatIsSimulated() {
	if s.flags.nodes.nodes == 0 {
		return
	}
	text := simulatedNodes
	if s.flags.look.language() == trace.Japanese {
		text = simulatedNodesJa
	}
	s.journal.Append(trace.Event{Kind: trace.KindNote, Actor: "lab", Message: text})
	if d, ok := s.subject.(*demo); ok && d.hasStore() {
		text := simulatedVersion
		if s.flags.look.language() == trace.Japanese {
			text = simulatedVersionJa
		}
		s.journal.Append(trace.Event{Kind: trace.KindNote, Actor: "lab", Message: fmt.Sprintf(text, etcdversion.Version)})
	}
}

// nodeCount is a flag that takes the number of nodes.
type nodeCount int

func (n *nodeCount) String() string { return strconv.Itoa(int(*n)) }

func (n *nodeCount) Type() string { return "int" }

func (n *nodeCount) Set(s string) error {
	count, err := strconv.Atoi(s)
	if err != nil || count < 0 || count > sandbox.MaxNodes {
		return fmt.Errorf("there can be 0 to %d nodes", sandbox.MaxNodes)
	}
	*n = nodeCount(count)
	return nil
}
