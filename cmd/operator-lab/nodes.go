package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/operator-lab/operator-lab/sandbox"
)

// nodeFlags say what a sandbox has besides its control plane.
type nodeFlags struct {
	nodes  int
	images string
}

// bind adds the flags; there are so many nodes unless the person asks for others.
func (f *nodeFlags) bind(flags *pflag.FlagSet, nodes int) {
	f.nodes = nodes
	flags.Var((*nodeCount)(&f.nodes), "nodes", "how many simulated nodes run pods; 0: pods stay Pending")
	flags.StringVar(&f.images, "images", "", "file that says which programs images are (default: only those that come with the lab)")
}

// use tells a sandbox that is about to start.
func (f *nodeFlags) use(o *sandbox.Options) { o.Nodes, o.Images = f.nodes, f.images }

// args are the flags for another process.
func (f *nodeFlags) args() []string {
	args := []string{"--nodes", strconv.Itoa(f.nodes)}
	if f.images != "" {
		args = append(args, "--images", f.images)
	}
	return args
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
