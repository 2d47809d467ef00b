package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/operators/catalog"
)

// bundleFlags are the flags of 'bundle', and what it finds.
type bundleFlags struct {
	out       string
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
and the metadata, and catalog is a file-based catalog with the bundle in it, for 'up --catalog'.

Exit code 2 when something is wrong; then nothing is written. Warnings are no error.`,
		Example: `  operator-lab bundle .
  operator-lab bundle ./my-operator --out dist --version 1.2.0 --channel stable
  operator-lab up --catalog dist/catalog`,
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
	logrus.SetLevel(logrus.WarnLevel) // upstream's reader of bundles tells of each optional file
	own := &ownOperator{flags: &ownFlags{manifests: f.manifests}}
	defer own.close()
	if dir == "" {
		dir = "."
	}
	if err := own.find(ctx, dir); err != nil {
		return err
	}
	made, leftOut, sources, err := f.make(own)
	if err != nil {
		return err
	}
	checked := catalog.Check(made)
	var served *declcfg.DeclarativeConfig
	if len(checked.Wrong) == 0 {
		if served, err = catalog.Of(made); err == nil {
			_, err = declcfg.ConvertToModel(*served)
		}
		if err != nil {
			checked.Wrong = append(checked.Wrong, err.Error())
		}
	}
	describeBundle(streams.out, checked, leftOut, sources)
	fmt.Fprintf(streams.err, "%s, %s\n", count(len(checked.Wrong), "error"), count(len(checked.Warnings), "warning"))
	if len(checked.Wrong) > 0 {
		return &exitError{code: exitUsage}
	}
	if f.out == "" {
		return nil
	}
	return f.write(streams, made, served)
}

// make returns the directory of the bundle: the user's own, or one in the private directory of the project.
func (f *bundleFlags) make(own *ownOperator) (dir string, leftOut []catalog.LeftOut, sources []string, err error) {
	shipped, err := own.project.Shipped()
	if err != nil {
		return "", nil, nil, usageOf(err)
	}
	if shipped.Bundle != "" {
		if f.source.Package+f.source.Version != "" || len(f.source.Channels) > 0 {
			return "", nil, nil, usageError("leave them out, or make it anew: --manifests config/default", "%s is a bundle, which says itself its package, version and channels", shipped.Bundle)
		}
		return shipped.Bundle, nil, shipped.Sources, nil
	}
	source := f.source
	source.Objects, source.Samples = shipped.Objects, shipped.Samples
	source.Default = own.project.Name
	files, leftOut, err := source.Files()
	if err != nil {
		return "", nil, nil, usageError("name others with --manifests FILE", "%s: %w", strings.Join(shipped.Sources, ", "), err)
	}
	dir = filepath.Join(own.work.Dir, "bundle")
	if err := os.RemoveAll(dir); err != nil {
		return "", nil, nil, err
	}
	return dir, leftOut, shipped.Sources, writeFolder(dir, files)
}

// write makes the folder with the bundle and the catalog.
func (f *bundleFlags) write(streams streams, dir string, served *declcfg.DeclarativeConfig) error {
	var text strings.Builder
	if err := declcfg.WriteYAML(*served, &text); err != nil {
		return err
	}
	err := writeFolder(f.out, map[string][]byte{"catalog/catalog.yaml": []byte(text.String())})
	if err == nil {
		err = os.CopyFS(filepath.Join(f.out, "bundle"), os.DirFS(dir))
	}
	if err != nil {
		return usageError("name a folder that can be written with --out", "write the bundle: %w", err)
	}
	fmt.Fprintln(streams.out, filepath.Join(f.out, "bundle"))
	fmt.Fprintln(streams.out, filepath.Join(f.out, "catalog"))
	fmt.Fprintf(streams.err, "use it       operator-lab up --catalog %s\n", shellQuote(filepath.Join(f.out, "catalog")))
	return nil
}

// describeBundle prints what is in a bundle, what is not, and what the validators say.
func describeBundle(w io.Writer, c catalog.Checked, leftOut []catalog.LeftOut, sources []string) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	if csv := c.CSV; csv != nil {
		line("bundle", "%s, of %s", csv.Name, strings.Join(sources, ", "))
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
	for _, l := range leftOut {
		line("left out", "%s %s: %s", l.Kind, l.Name, l.Reason)
	}
	for _, text := range c.Warnings {
		fmt.Fprintf(w, "warning: %s\n", oneLine(text))
	}
	for _, text := range c.Wrong {
		fmt.Fprintf(w, "error: %s\n", oneLine(text))
	}
}
