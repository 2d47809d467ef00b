package cli

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/catalog"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
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
	grants, err := operatorhost.Grants(op, instance.Variant())
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

// printCSV prints the ClusterServiceVersion of an operator.
func printCSV(io streams, op operators.Operator, instance operators.Instance) error {
	csv, err := catalog.CSV(op, instance.Variant())
	if err != nil {
		return err
	}
	b, err := yaml.Marshal(csv)
	if err == nil {
		_, err = io.out.Write(b)
	}
	return err
}

// writeManifests writes all files of an operator below a folder. What is there already stays as it is, and is an error.
func writeManifests(op operators.Operator, folder string) error {
	if err := os.CopyFS(folder, op.Manifests); err != nil {
		return usageError("name a new folder with --files", "write the files of %s: %w", op.Name, err)
	}
	return nil
}
