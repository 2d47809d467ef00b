package main

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox/host"
)

// printManifests prints what an operator needs in a cluster before it runs: CRDs, then its identity and permissions.
func printManifests(io streams, op operators.Operator, instance operators.Instance) error {
	crds, err := instance.CRDs()
	if err != nil {
		return err
	}
	var objects []any
	for _, crd := range crds {
		objects = append(objects, crd)
	}
	grants, err := host.Grants(op, instance.Variant())
	if err != nil {
		return err
	}
	for _, grant := range grants {
		objects = append(objects, grant.Object)
	}
	for _, o := range objects {
		b, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		fmt.Fprintf(io.out, "---\n%s", b)
	}
	return nil
}
