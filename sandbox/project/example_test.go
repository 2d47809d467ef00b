package project_test

import (
	"context"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/project"
)

// An operator of one's own is built with the taps, is given what its manifests have, and runs in a sandbox.
func ExampleNewOperator() {
	ctx := context.Background()
	err := func() error {
		work, err := project.OpenWork(".")
		if err != nil {
			return err
		}
		defer work.Close()
		p, err := project.Find(ctx, project.Options{Dir: ".", WorkDir: work.Dir})
		if err != nil {
			return err
		}
		plan, err := p.Plan(ctx)
		if err != nil {
			return err
		}
		operator := project.NewOperator(project.OperatorOptions{Project: p, Plan: plan})
		defer operator.Close()
		box, err := sandbox.Start(ctx, sandbox.Options{Ephemeral: true})
		if err != nil {
			return err
		}
		defer func() { _ = box.Stop() }()
		l, err := lab.Open(ctx, lab.Options{Cluster: box, Programs: []lab.Program{operator}})
		if err != nil {
			return err
		}
		defer func() { _ = l.Close(ctx) }()
		_, err = l.Load(ctx, p.Name, v1alpha1.OperatorSpec{})
		return err
	}()
	if err != nil {
		panic(err)
	}
}
