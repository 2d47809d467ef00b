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
	fake    bool // the nodes only answer
	images  string
	olm     bool
	catalog string // a directory
}

// bind adds the flags, with a default number of nodes.
func (f *nodeFlags) bind(flags *pflag.FlagSet, nodes int) {
	flags.IntVar(&f.nodes, "nodes", nodes, "how many simulated nodes run pods; 0: pods stay Pending")
	flags.BoolVar(&f.fake, "fake", false, fmt.Sprintf("the nodes only answer (KWOK): pods are Ready at once, and no program runs in them; up to %d", sandbox.MaxFakeNodes))
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
	if f.fake {
		o.Nodes, o.FakeNodes = 0, f.nodes
	}
	o.OLM, o.Catalog = f.olm || f.catalog != "", f.catalog
	return f.check()
}

// run reports whether there are nodes that run programs.
func (f *nodeFlags) run() bool { return f.nodes > 0 && !f.fake }

// titled adds to a run's title, which the screen and its journal show all the time, that no program runs in pods.
func (f *nodeFlags) titled(title string) string {
	if f.fake {
		title += " / fake nodes"
	}
	return title
}

// check reports what is wrong with the nodes, the catalog and the images file.
func (f *nodeFlags) check() error {
	switch {
	case f.nodes < 0:
		return usageError("0 is none", "there cannot be %d nodes", f.nodes)
	case f.fake && f.nodes == 0:
		return usageError("say how many, such as --nodes 500", "--fake is about nodes, and there are none")
	case f.fake && (f.images != "" || f.olm || f.catalog != ""):
		return usageError("leave out --fake", "nodes that only answer run no programs, neither those of images nor operators that OLM installs")
	case f.nodes > sandbox.MaxFakeNodes:
		return usageError(fmt.Sprintf("there can be %d, and with --fake %d", sandbox.MaxNodes, sandbox.MaxFakeNodes), "%d nodes are too many", f.nodes)
	case !f.fake && f.nodes > sandbox.MaxNodes:
		return usageError("with --fake they only answer, and there can be more", "%d nodes are too many: each is a process, and there can be %d", f.nodes, sandbox.MaxNodes)
	}
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
	if f.fake {
		args = append(args, "--fake")
	}
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

// onlyAnswer is said by what runs tests and measures.
const onlyAnswer = "nodes only answer (--fake): pods are Ready at once, and no program runs in them"

// Said at the beginning of a run whose pods are to run.
const (
	fakeNodes   = "No program runs in any pod: KWOK answers for the nodes, and says at once that a pod is Ready, or that a Job's is done. There are no logs, no exec and no connections."
	fakeNodesJa = "Pod の中では何も動きません。ノードの代わりに KWOK が答え、Pod はすぐ Ready に、Job の Pod はすぐ完了になります。ログも exec も通信もありません。"

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
	if s.flags.nodes.fake {
		s.note(language.Choose(fakeNodes, fakeNodesJa))
		return
	}
	s.note(language.Choose(simulatedNodes, simulatedNodesJa))
	if d, ok := s.subject.(*demo); ok && d.hasStore() {
		s.note(fmt.Sprintf(language.Choose(simulatedVersion, simulatedVersionJa), etcdversion.Version))
	}
}
