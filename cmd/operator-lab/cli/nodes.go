package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	etcdversion "go.etcd.io/etcd/api/v3/version"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/project"
)

// nodeFlags hold the flags for the nodes and images of a sandbox, and for OLM in it.
type nodeFlags struct {
	nodes   int
	images  string
	olm     bool
	catalog string // a directory
}

// bind adds the flags, with a default number of nodes.
func (f *nodeFlags) bind(flags *pflag.FlagSet, nodes int) {
	f.nodes = nodes
	flags.Var((*nodeCount)(&f.nodes), "nodes", "how many simulated nodes run pods; 0: pods stay Pending")
	flags.StringVar(&f.images, "images", "", "file that says which programs images are (default: only those that come with the lab)")
	flags.BoolVar(&f.olm, "olm", false, "start the Operator Lifecycle Manager, with a catalog of the bundled operators")
	flags.StringVar(&f.catalog, "catalog", "", "directory with a file-based catalog for OLM, beside that of the bundled operators; implies --olm")
	_ = cobra.MarkFlagDirname(flags, "catalog")
}

// withOLM adds a node for OLM, unless a flag says how many there are: what it installs is a Deployment, which is never ready
// without.
func (f *nodeFlags) withOLM(flags *pflag.FlagSet) {
	if (f.olm || f.catalog != "") && !flags.Changed("nodes") {
		f.nodes = max(f.nodes, 1)
	}
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

// use sets the options of a sandbox, after a check of the files that they name.
func (f *nodeFlags) use(o *sandbox.Options) error {
	o.Nodes, o.Images = f.nodes, f.images
	o.OLM, o.Catalog = f.olm || f.catalog != "", f.catalog
	return f.check()
}

// check reports what is wrong with the catalog and the images file.
func (f *nodeFlags) check() error {
	catalogue, err := images.NewCatalogue("", f.images)
	if err == nil {
		defer catalogue.Close()
		return checkCatalog(f.catalog, catalogue)
	}
	catalogue.Close()
	hint := "see 'Put your own program into a pod' in sandbox/README.md"
	if problem, is := errors.AsType[images.Problem](err); is && problem.Hint != "" {
		hint = problem.Hint
	}
	return usageError(hint, "%w", err)
}

// olmOperators returns the names of OLM's operators, if it is to be started.
func (f *nodeFlags) olmOperators() []string {
	if !f.olm && f.catalog == "" {
		return nil
	}
	return sandbox.OLMOperators()
}

// operators returns the names of the operators that the images file has for pods.
func (f *nodeFlags) operators() []string {
	if f.images == "" {
		return nil
	}
	catalogue, err := images.NewCatalogue("", f.images)
	if err != nil {
		return nil // check has said so
	}
	defer catalogue.Close()
	return catalogue.Operators()
}

// checkCatalog reads a file-based catalog as opm does, and reports what is wrong with it. A bundle that is an image has to be in the
// images file, as nothing is pulled.
func checkCatalog(dir string, catalogue *images.Catalogue) error {
	if dir == "" {
		return nil
	}
	const hint = "it holds files with olm.package, olm.channel and olm.bundle, as 'opm validate' accepts them"
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usageError(hint, "the catalog %s is no directory", dir)
	}
	config, err := declcfg.LoadFS(context.Background(), os.DirFS(dir))
	if err == nil && len(config.Packages) == 0 {
		err = errors.New("it has no package")
	}
	if err == nil {
		_, err = declcfg.ConvertToModel(*config)
	}
	if err != nil {
		return usageError(hint, "the catalog %s: %s", dir, strings.Join(strings.Fields(err.Error()), " "))
	}
	for _, b := range config.Bundles {
		if b.Image == "" {
			continue
		}
		image, err := catalogue.Lookup(b.Image)
		if err == nil && image.Pull.Error == "" && !image.IsBundle() {
			err = errors.New("nothing is pulled here, and no images file says that it is a bundle")
		}
		if err != nil {
			return usageError("name its directory in an images file for --images, as {name: "+b.Image+", bundle: DIR}",
				"the catalog %s: the bundle %s is the image %s: %w", dir, b.Name, b.Image, err)
		}
	}
	return nil
}

// args returns the flags as arguments for another process.
func (f *nodeFlags) args() []string {
	args := []string{"--nodes", strconv.Itoa(f.nodes)}
	if f.images != "" {
		args = append(args, "--images", f.images)
	}
	if f.olm {
		args = append(args, "--olm")
	}
	if f.catalog != "" {
		args = append(args, "--catalog", f.catalog)
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
	language := s.flags.look.language()
	s.note(language.Choose(simulatedNodes, simulatedNodesJa))
	if d, ok := s.subject.(*demo); ok && d.hasStore() {
		s.note(fmt.Sprintf(language.Choose(simulatedVersion, simulatedVersionJa), etcdversion.Version))
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
