package durability_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/node"
)

// monkey breaks one thing after the other, in an order that its seed decides. How far the cluster has got by then is not
// the seed's, so two runs of one seed are alike and not the same.
type monkey struct {
	*fixture
	chance *rand.Rand
	// gentle deletes a member, with its data, only while all are well: what is lost of two of three members is lost.
	gentle bool
	// done counts the actions, by name.
	done map[string]int
}

// mischief is one way to break the cluster. do returns a description of what it did; empty if it could not.
type mischief struct {
	name string
	do   func(context.Context) (string, error)
}

const (
	shortestCalm, longestCalm = 300 * time.Millisecond, 2 * time.Second
	longestOutage             = 4 * time.Second
)

// run breaks things until ctx is done.
func (m *monkey) run(ctx context.Context) {
	all := []mischief{
		{"kill a member", m.killMember},
		{"delete a member's pod", m.deleteMember},
		{"crash the operator", m.crashOperator},
		{"restart a node", m.restartNode},
		{"lose a node for a while", m.loseNode},
		{"kill a program of the control plane", m.killProgram},
	}
	for ctx.Err() == nil {
		m.wait(ctx, shortestCalm, longestCalm)
		now := all[m.chance.IntN(len(all))]
		what, err := now.do(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			m.Logf("monkey: %s: not now: %v", now.name, err)
		case what != "":
			m.done[now.name]++
			m.Logf("monkey: %s: %s", now.name, what)
		}
	}
}

func (m *monkey) wait(ctx context.Context, from, to time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(from + time.Duration(m.chance.Int64N(int64(to-from)))):
	}
}

// member chooses a member's pod; none if there is none.
func (m *monkey) member(ctx context.Context) (name string, err error) {
	n := m.chance.Int()
	pods, err := m.pods(ctx)
	if err != nil || len(pods) == 0 {
		return "", err
	}
	return pods[n%len(pods)].Name, nil
}

func (m *monkey) killMember(ctx context.Context) (string, error) {
	name, err := m.member(ctx)
	if err != nil || name == "" {
		return "", err
	}
	killed, err := m.box.Nodes().KillContainers(m.match(name), node.ReasonError)
	if len(killed) == 0 {
		return "", err
	}
	return name, err
}

func (m *monkey) deleteMember(ctx context.Context) (string, error) {
	name, err := m.member(ctx)
	if err != nil || name == "" {
		return "", err
	}
	if m.gentle {
		if err := m.well(ctx); err != nil {
			return "", nil //nolint:nilerr // another time, then
		}
	}
	pods, err := m.pods(ctx)
	if err != nil {
		return "", err
	}
	for i := range pods {
		if pods[i].Name == name {
			return name, client.IgnoreNotFound(m.Delete(ctx, &pods[i]))
		}
	}
	return "", nil
}

func (m *monkey) crashOperator(ctx context.Context) (string, error) {
	pause := time.Duration(m.chance.Int64N(int64(2 * time.Second)))
	fault := &v1alpha1.Fault{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "monkey-"},
		Spec:       v1alpha1.FaultSpec{Operator: operator, Crash: &v1alpha1.CrashFault{RestartAfter: metav1.Duration{Duration: pause}}},
	}
	return fmt.Sprintf("back after %v", pause.Round(time.Millisecond)), m.Create(ctx, fault)
}

func (m *monkey) node() string {
	names := m.box.Nodes().Names()
	return names[m.chance.IntN(len(names))]
}

func (m *monkey) restartNode(context.Context) (string, error) {
	name := m.node()
	return name, m.box.Nodes().Restart(name)
}

func (m *monkey) loseNode(ctx context.Context) (string, error) {
	name := m.node()
	if err := m.box.Nodes().Lose(name); err != nil {
		return "", err
	}
	m.wait(ctx, time.Millisecond, longestOutage)
	return name, m.box.Nodes().Return(name)
}

func (m *monkey) killProgram(context.Context) (string, error) {
	programs := sandbox.Programs()
	name := programs[m.chance.IntN(len(programs))]
	return name, m.box.Kill(name)
}
