package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/network"
	"github.com/operator-lab/operator-lab/sandbox/node"
)

// MaxNodes is the largest number of simulated nodes in a sandbox. Each is a process.
const MaxNodes = 32

// MaxFakeNodes is the largest number of nodes that only answer.
const MaxFakeNodes = 1000

// kwok is the name of the program that answers for those nodes.
const kwok = "kwok"

// SimulatedLabel is a label of every node of a sandbox.
const SimulatedLabel = "operator-lab.dev/simulated"

// NodeName returns the name of a node by its number, from 1.
func NodeName(index int) string { return network.NodeName(index) }

// FakeNodeName returns the name of a node that only answers, by its number, from 1.
func FakeNodeName(index int) string { return fakePrefix + strconv.Itoa(index) }

const fakePrefix = "fake-"

// nodeIndex returns the number of a node by its name, or 0 if it is not one of ours.
func nodeIndex(name string) int { return numberOf(name, "node-") }

// numberOf returns the number after a prefix, or 0 if the name is not made of both.
func numberOf(name, prefix string) int {
	index, err := strconv.Atoi(strings.TrimPrefix(name, prefix))
	if err != nil || prefix+strconv.Itoa(index) != name {
		return 0
	}
	return index
}

func checkNodes(count, most int) error {
	if count < 0 || count > most {
		return &Problem{fmt.Errorf("there cannot be %d nodes", count), fmt.Sprintf("ask for 0 to %d", most)}
	}
	return nil
}

// checkImages reports what is wrong with an images file.
func checkImages(binary, file string) error {
	catalogue, err := images.NewCatalogue(binary, file)
	if catalogue != nil {
		catalogue.Close()
	}
	if problem, is := errors.AsType[images.Problem](err); is {
		return &Problem{err, problem.Hint}
	}
	return err
}

// Nodes are the simulated nodes of a sandbox. The methods of [node.Fleet] are about what runs on them.
type Nodes struct {
	*node.Fleet
	programs []*program // the kubelets
}

func (l layout) troubles() string { return filepath.Join(l.dir, "troubles.json") }

// LabFile returns the file in a sandbox's directory that has the path of a lab's socket, while a lab is told of operators in pods and
// of OLM's.
func LabFile(dir string) string { return filepath.Join(dir, "lab") }

// Names returns the names of all nodes, including lost ones.
func (n *Nodes) Names() []string {
	var names []string
	for _, p := range n.programs {
		names = append(names, p.name)
	}
	return names
}

// Lose switches a node off, as a power cut does: its process and all containers on it end at once, nobody is told, and it
// is not started again before [Nodes.Return]. When it returns the node is off.
func (n *Nodes) Lose(name string) error { return n.do(name, (*program).lose) }

// Return switches a lost node on again. What should run on it starts anew.
func (n *Nodes) Return(name string) error { return n.do(name, (*program).regain) }

// Restart switches a node off and on again. When it returns the node was off. A lost node stays lost.
func (n *Nodes) Restart(name string) error { return n.do(name, (*program).kill) }

// Await returns when all nodes that are not lost can be given pods, or with ctx's error.
func (n *Nodes) Await(ctx context.Context) error { return awaitAll(ctx, n.programs) }

// awaitAll returns when all programs that are not lost serve, or with ctx's error.
func awaitAll(ctx context.Context, programs []*program) error {
	for _, p := range programs {
		if err := p.awaitServing(ctx); err != nil {
			return fmt.Errorf("wait for %s: %w", p.name, err)
		}
	}
	return nil
}

// do calls a function for one node. The error of a name that no node has lists the names.
func (n *Nodes) do(name string, do func(*program)) error {
	for _, p := range n.programs {
		if p.name == name {
			do(p)
			return nil
		}
	}
	hint := "start it with nodes: it has none"
	if names := n.Names(); len(names) > 0 {
		hint = "its nodes are " + strings.Join(names, ", ")
	}
	return &Problem{fmt.Errorf("the sandbox has no node %q", name), hint}
}

// nodePrograms returns the kubelets.
func (p *plane) nodePrograms(count int, imagesFile string, plan network.Plan) ([]*program, error) {
	var nodes []*program
	for index := range count {
		one, err := p.nodeProgram(index+1, imagesFile, plan)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, one)
	}
	return nodes, nil
}

func (p *plane) nodeProgram(index int, imagesFile string, plan network.Plan) (*program, error) {
	name := NodeName(index)
	if err := p.pki.ensure(
		subject{file: name, ca: clusterCA, name: "system:node:" + name, groups: []string{"system:nodes"}},
		subject{file: name + "-serving", ca: clusterCA, name: "system:node:" + name, groups: []string{"system:nodes"}, hosts: []string{plan.NodeIP(index), name}},
	); err != nil {
		return nil, err
	}
	config, err := p.config(name)
	if err != nil {
		return nil, err
	}
	kubeconfig := p.pki.path(name + ".kubeconfig")
	if err := writeKubeconfig(kubeconfig, name, config); err != nil {
		return nil, err
	}
	dir, err := shortcut(plan.Dir, p.layout, index)
	if err != nil {
		return nil, err
	}
	c := &command{path: p.program("kubelet"), patience: nodeGrace, args: []string{
		"--index=" + strconv.Itoa(index), "--kubeconfig=" + kubeconfig, "--root-dir=" + dir, "--volumes=" + p.volumes(),
		"--sockets=" + plan.Dir, "--loopback=" + strconv.Itoa(plan.Loopback),
		"--tls-cert-file=" + p.pki.path(name+"-serving.crt"), "--tls-private-key-file=" + p.pki.path(name+"-serving.key"),
		"--client-ca-file=" + p.pki.path(clusterCA+".crt"),
		"--images=" + imagesFile, "--troubles=" + p.troubles(), "--lab=" + LabFile(p.dir), "--binary=" + p.binary, "--api-server=" + config.Host,
	}}
	return &program{name: name, logFile: p.logFile(name), launch: c.launch, halt: c.halt, orderly: true}, nil
}

// nodeGrace limits how long a node may take to end its containers when the sandbox stops.
const nodeGrace = 3 * time.Second
