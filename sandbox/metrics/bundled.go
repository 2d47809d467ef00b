package metrics

import (
	"embed"
	"fmt"
	"io/fs"
	"path"

	"github.com/operator-lab/operator-lab/operators"
)

//go:embed rules
var ownRules embed.FS

// rulesDir is where the manifests of an operator have rules for what it looks after.
const rulesDir = "prometheus"

// Bundled returns the lab's rules for operators, and those that bundled operators have for what they look after.
func Bundled() (*Rules, error) {
	all := &Rules{}
	if err := all.addFiles("lab", ownRules, "rules"); err != nil {
		return nil, err
	}
	for _, o := range operators.All() {
		if err := all.addFiles(o.Name, o.Manifests, rulesDir); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addFiles adds the rules in the files of a directory. In errors and states their names begin with that of whose they are.
func (r *Rules) addFiles(whose string, files fs.FS, dir string) error {
	found, err := fs.Glob(files, path.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range found {
		content, err := fs.ReadFile(files, file)
		if err != nil {
			return err
		}
		more, err := ParseRules(path.Join(whose, path.Base(file)), content)
		if err != nil {
			return fmt.Errorf("read the rules of the lab: %w", err)
		}
		r.Add(more)
	}
	return nil
}
