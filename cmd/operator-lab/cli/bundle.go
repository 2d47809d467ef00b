package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/catalog"
	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/project"
)

// bundleFlags are the flags of 'bundle', and what it finds.
type bundleFlags struct {
	out       string
	image     string
	manifests []string
	source    catalog.Source
}

func bundleCommand(io streams) *cobra.Command {
	var f bundleFlags
	cmd := &cobra.Command{
		Use:   "bundle [directory]",
		Short: "Make a bundle and a catalog for OLM of your operator, and check them",
		Long: `Make a bundle (registry+v1) of the manifests of an operator's project, as OLM, the Operator Lifecycle
Manager, installs it, and have upstream's validators read it. Taken are the directory bundle, if there
is one; else config/manifests with the ClusterServiceVersion to begin with, as operator-sdk writes it;
else config/default. What OLM does not take from a bundle is left out, and it is said why.

Without --out nothing is written. With it the folder that it names is made: bundle has the manifests
and the metadata, and catalog is a file-based catalog with the bundle. With subscription.yaml
OLM installs it in a sandbox, where images.yaml has its pods run what the project's source is built to.
The catalog has the bundle in it. With --image it has the name of the bundle's image only, and OLM
unpacks that with a Job, as it does elsewhere: images.yaml says that it is the folder bundle.

Exit code 2 when something is wrong; then nothing is written. Warnings are no error.`,
		Example: `  operator-lab bundle .
  operator-lab bundle ./my-operator --out dist --version 1.2.0 --channel stable
  operator-lab up --detach --catalog dist/catalog --images dist/images.yaml
  operator-lab kubectl apply -f dist/subscription.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("such as 'operator-lab bundle ./my-operator'", "a bundle is made of one project, got %q too", args[1])
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), io, strings.Join(args, ""))
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "out", "o", "", "folder to make for the bundle and the catalog (default: they are only checked)")
	flags.StringVar(&f.image, "image", "", "name of the bundle's image for the catalog, such as quay.io/you/app-bundle:v1 (default: the catalog has all of it)")
	flags.StringArrayVar(&f.manifests, "manifests", nil, "file or directory to make the bundle of (default: bundle, config/manifests or config/default)")
	flags.StringVar(&f.source.Package, "package", "", "name of the package (default: that of the ClusterServiceVersion, else of the project)")
	flags.StringVar(&f.source.Version, "version", "", "version of the bundle (default: that of the ClusterServiceVersion, else 0.0.1)")
	flags.StringSliceVar(&f.source.Channels, "channel", nil, "channels that it is in; the first one is the default (default: alpha)")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

func (f *bundleFlags) run(ctx context.Context, streams streams, dir string) error {
	if f.out != "" {
		if _, err := os.Lstat(f.out); err == nil {
			return usageError("name another folder with --out, or remove it", "%s is there already", f.out)
		}
	}
	if err := images.CheckName(f.image); f.image != "" && err != nil {
		return usageError("such as quay.io/you/app-bundle:v1.0.0", "--image: %w", err)
	}
	own := &ownOperator{flags: &ownFlags{manifests: f.manifests}}
	defer own.close()
	if dir == "" {
		dir = "."
	}
	if err := own.find(ctx, dir); err != nil {
		return err
	}
	b, err := f.make(own)
	if err != nil {
		return err
	}
	b.describe(streams.out)
	fmt.Fprintf(streams.err, "%s, %s\n", count(len(b.checked.Wrong), "error"), count(len(b.checked.Warnings), "warning"))
	if len(b.checked.Wrong) > 0 {
		return &exitError{code: exitUsage}
	}
	if f.out == "" {
		return nil
	}
	files, err := b.files(own, dir)
	if err != nil {
		return err
	}
	return f.write(streams, b.dir, files)
}

// madeBundle is a bundle of a project.
type madeBundle struct {
	// dir is its directory: the user's own, or one in the private directory of the project.
	dir     string
	leftOut []catalog.LeftOut
	sources []string
	checked catalog.Checked
	// served is the catalog that has it; nil if something is wrong with it.
	served *declcfg.DeclarativeConfig
}

// The folder of a bundle and the files beside it: its catalog, what has OLM install it, and an images file that has its pods run a project.
const (
	bundleFolder     = "bundle"
	catalogFolder    = "catalog"
	subscriptionFile = "subscription.yaml"
	imagesFile       = "images.yaml"
)

// make makes the bundle, and has upstream's validators read it.
func (f *bundleFlags) make(own *ownOperator) (*madeBundle, error) {
	logrus.SetLevel(logrus.WarnLevel) // upstream's reader of bundles tells of each optional file
	b, err := f.collect(own)
	if err != nil {
		return nil, err
	}
	b.checked = catalog.Check(b.dir)
	if len(b.checked.Wrong) == 0 {
		if b.served, err = catalog.Of(b.dir, f.image); err == nil {
			_, err = declcfg.ConvertToModel(*b.served)
		}
		if err != nil {
			b.checked.Wrong = append(b.checked.Wrong, err.Error())
		}
	}
	return b, nil
}

// files returns the files beside the bundle of a project in a directory, by name.
func (b *madeBundle) files(own *ownOperator, dir string) (map[string][]byte, error) {
	var text strings.Builder
	if err := declcfg.WriteYAML(*b.served, &text); err != nil {
		return nil, err
	}
	files := map[string][]byte{
		subscriptionFile: subscription(b.checked.CSV, b.served), catalogFolder + "/catalog.yaml": []byte(text.String()),
	}
	var err error
	if own.project.Module == "" {
		dir = ""
	}
	if image := b.served.Bundles[0].Image; dir+image != "" {
		files[imagesFile], err = imagesOf(b.checked.CSV, dir, image)
	}
	return files, err
}

// collect finds the bundle of a project, or makes one of its manifests.
func (f *bundleFlags) collect(own *ownOperator) (*madeBundle, error) {
	shipped, err := own.project.Shipped()
	if err != nil {
		return nil, usageOf(err)
	}
	if shipped.Bundle != "" {
		if f.source.Package+f.source.Version != "" || len(f.source.Channels) > 0 {
			return nil, usageError("leave them out, or make it anew: --manifests config/default", "%s is a bundle, which says itself its package, version and channels", shipped.Bundle)
		}
		return &madeBundle{dir: shipped.Bundle, sources: shipped.Sources}, nil
	}
	source := f.source
	source.Objects, source.Samples = shipped.Objects, shipped.Samples
	source.Default = own.project.Name
	files, leftOut, err := source.Files()
	if err != nil {
		return nil, usageError("name others with --manifests FILE", "%s: %w", strings.Join(shipped.Sources, ", "), err)
	}
	b := &madeBundle{dir: filepath.Join(own.work.Dir, bundleFolder), leftOut: leftOut, sources: shipped.Sources}
	if err := os.RemoveAll(b.dir); err != nil {
		return nil, err
	}
	return b, writeFolder(b.dir, files)
}

// subscription returns what has OLM install the bundle: in the namespace operators, whose OperatorGroup is for all; an
// operator that cannot watch all in a namespace of its own.
func subscription(csv *v1alpha1.ClusterServiceVersion, served *declcfg.DeclarativeConfig) []byte {
	of := served.Packages[0]
	text, namespace := "# With 'up --catalog', local is the catalog in the folder catalog.\n", "operators"
	everywhere := func(m v1alpha1.InstallMode) bool {
		return m.Type == v1alpha1.InstallModeTypeAllNamespaces && m.Supported
	}
	if !slices.ContainsFunc(csv.Spec.InstallModes, everywhere) {
		namespace = cmp.Or(csv.Annotations[catalog.SuggestedNamespace], of.Name)
		text += fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata:
  name: %[1]s
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata:
  name: %[1]s
  namespace: %[1]s
spec:
  targetNamespaces: [%[1]s]
---
`, namespace)
	}
	return fmt.Appendf(nil, `%sapiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata:
  name: %[2]s
  namespace: %[3]s
spec:
  name: %[2]s
  channel: %[4]s
  source: local
  sourceNamespace: olm
`, text, of.Name, namespace, of.DefaultChannel)
}

// imagesOf returns an images file that has the image of each Deployment's manager be the source in a directory, and that of the
// bundle the bundle beside the file. Either may be empty.
func imagesOf(csv *v1alpha1.ClusterServiceVersion, dir, image string) ([]byte, error) {
	type entry struct {
		Name    string `json:"name"`
		Project string `json:"project,omitempty"`
		Bundle  string `json:"bundle,omitempty"`
	}
	var file struct {
		Images []entry `json:"images"`
	}
	if image != "" {
		file.Images = append(file.Images, entry{Name: image, Bundle: bundleFolder})
	}
	if dir == "" {
		return yaml.Marshal(file)
	}
	source, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if len(d.Spec.Template.Spec.Containers) == 0 {
			continue // the API server refuses it
		}
		name, _, _ := strings.Cut(project.Manager(d.Spec.Template.Spec.Containers).Image, "@")
		file.Images = append(file.Images, entry{Name: name, Project: source})
	}
	return yaml.Marshal(file)
}

// write makes the folder with the bundle and the files beside it.
func (f *bundleFlags) write(streams streams, dir string, files map[string][]byte) error {
	err := writeFolder(f.out, files)
	if err == nil {
		err = os.CopyFS(filepath.Join(f.out, bundleFolder), os.DirFS(dir))
	}
	if err != nil {
		return usageError("name a folder that can be written with --out", "write the bundle: %w", err)
	}
	in := func(name string) string { return shellQuote(filepath.Join(f.out, name)) }
	fmt.Fprintln(streams.out, filepath.Join(f.out, bundleFolder))
	with := ""
	if files[imagesFile] != nil {
		with = " --images " + in(imagesFile)
	}
	fmt.Fprintf(streams.err, "use it       operator-lab up --detach --catalog %s%s\ninstall it   operator-lab kubectl apply -f %s\n",
		in(catalogFolder), with, in(subscriptionFile))
	return nil
}

// describe prints what is in the bundle, what is not, and what the validators say.
func (b *madeBundle) describe(w io.Writer) {
	c := b.checked
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	if csv := c.CSV; csv != nil {
		line("bundle", "%s, of %s", csv.Name, strings.Join(b.sources, ", "))
		line("channels", "%s", strings.Join(c.Channels, ", "))
		for _, d := range csv.Spec.CustomResourceDefinitions.Owned {
			line("owns", "%s, %s %s", d.Name, d.Kind, d.Version)
		}
		for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
			var images []string
			for _, container := range d.Spec.Template.Spec.Containers {
				images = append(images, container.Image)
			}
			line("runs", "Deployment %s, %s", d.Name, strings.Join(images, ", "))
		}
		for _, d := range csv.Spec.WebhookDefinitions {
			line("webhook", "%s, %s", d.GenerateName, d.Type)
		}
		var modes []string
		for _, m := range csv.Spec.InstallModes {
			if m.Supported {
				modes = append(modes, string(m.Type))
			}
		}
		line("installs in", "%s", strings.Join(modes, ", "))
		var samples []json.RawMessage
		if err := json.Unmarshal([]byte(csv.Annotations["alm-examples"]), &samples); err == nil {
			line("samples", "%d", len(samples))
		}
	}
	for _, l := range b.leftOut {
		line("left out", "%s %s: %s", l.Kind, l.Name, l.Reason)
	}
	for _, text := range c.Warnings {
		fmt.Fprintf(w, "warning: %s\n", oneLine(text))
	}
	for _, text := range c.Wrong {
		fmt.Fprintf(w, "error: %s\n", oneLine(text))
	}
}
